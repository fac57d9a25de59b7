/** Files that git tracks although .gitignore leaves them out. ripgrep passes them over; the list of files has them, so they are searched
 *  by name: then it takes links and binary files as well, which are left out here. */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { isFailure } from "../../session/index.ts";
import { splitRecords } from "../../workspace/index.ts";
import type { Run } from "../frame/run.ts";
import { isByteName, nameOfBytes } from "../source/byte-names.ts";
import { createContainedDirectories } from "../source/contained-directories.ts";
import { startListing } from "../source/git.ts";
import { openRegular } from "../source/open-regular.ts";
import { sampleEncoding } from "../source/text-encoding.ts";
import type { SearchRequest } from "./match.ts";
import type { CountedFile } from "./ripgrep-matches.ts";

export interface Counts {
  readonly files: readonly CountedFile[];
  /** Undefined where ripgrep did not come to its end. */
  readonly searched: number | undefined;
  /** Some files could not be read. */
  readonly denied: boolean;
}

/** `count` counts the matches of files that are named. */
export async function countPassedOver(
  { path, files: filter, isSecret }: SearchRequest,
  run: Run,
  count: (paths: readonly string[]) => Promise<Counts>,
): Promise<Counts & { readonly secrets: readonly string[] }> {
  const all = (await trackedIgnored(run, path)).filter(filter.matches);
  const secrets = all.filter((each) => isSecret(each));
  const tracked = all.filter((each) => !isSecret(each));
  const isContained = createContainedDirectories(run.root);
  const readable = await choose(
    tracked,
    async (each) => (await isContained(each)) && (await lstat(join(run.root, each))).isFile(),
  );
  const found: CountedFile[] = [];
  let searched = 0;
  let denied = false;
  for (let at = 0; at < readable.length && !run.signal.aborted; at += filesAtOnce) {
    const counts = await count(readable.slice(at, at + filesAtOnce).map((each) => `./${each}`));
    found.push(...counts.files);
    searched += counts.searched ?? 0;
    denied ||= counts.denied;
  }
  const files = await choose(found, (file) => isText(join(run.root, file.path)));
  return { files, searched, denied, secrets };
}

/** A command line has room for these. */
const filesAtOnce = 200;

async function trackedIgnored(run: Run, path: string): Promise<string[]> {
  const git = await startListing(run, ["--cached", "--ignored"], path);
  if (isFailure(git)) return [];
  const paths = new Set<string>();
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) paths.add(nameOfBytes(record));
  }
  // No argument can be a name that is no text, and in ripgrep's output a line break would end one.
  return [...paths].filter((each) => !isByteName(each) && !each.includes("\n"));
}

async function isText(path: string): Promise<boolean> {
  const handle = await openRegular(path);
  try {
    return (await handle.stat()).isFile() && (await sampleEncoding(handle)) !== "binary";
  } finally {
    await handle.close();
  }
}

const atOnce = 64;

/** What fails to answer is left out: it is gone, or may not be read. */
async function choose<Each>(
  all: readonly Each[],
  isChosen: (each: Each) => Promise<boolean>,
): Promise<Each[]> {
  const chosen: Each[] = [];
  for (let at = 0; at < all.length; at += atOnce) {
    const some = all.slice(at, at + atOnce);
    const answers = await Promise.all(some.map((each) => isChosen(each).catch(() => false)));
    chosen.push(...some.filter((_, index) => answers[index]));
  }
  return chosen;
}
