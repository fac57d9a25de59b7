/** Files that git tracks although .gitignore leaves them out. ripgrep passes them over; the list of files has them, so they are searched
 *  by name: then it takes links and binary files as well, which are left out here. */
import { type FileHandle, lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { splitRecords } from "../../workspace/index.ts";
import { isByteName, nameOfBytes } from "../frame/byte-names.ts";
import { createContainedDirectories } from "../frame/contained-directories.ts";
import { isFailure } from "../frame/failure.ts";
import type { Run } from "../frame/run.ts";
import { detectEncoding, sampleBytes } from "../read/text-encoding.ts";
import { startGit } from "../vcs/git.ts";
import type { SearchRequest } from "./match.ts";
import type { CountedFile } from "./ripgrep-matches.ts";

export interface Counts {
  readonly files: readonly CountedFile[];
  /** Undefined where ripgrep did not come to its end. */
  readonly searched: number | undefined;
}

/** `count` counts the matches of files that are named. */
export async function countPassedOver(
  { path, files: filter }: SearchRequest,
  run: Run,
  count: (paths: readonly string[]) => Promise<Counts>,
): Promise<Counts> {
  const tracked = await trackedIgnored(run, path);
  const isContained = createContainedDirectories(run.root);
  const readable = await choose(
    tracked.filter(filter.matches),
    async (each) => (await isContained(each)) && (await lstat(join(run.root, each))).isFile(),
  );
  const found: CountedFile[] = [];
  let searched = 0;
  for (let at = 0; at < readable.length && !run.signal.aborted; at += filesAtOnce) {
    const counts = await count(readable.slice(at, at + filesAtOnce).map((each) => `./${each}`));
    found.push(...counts.files);
    searched += counts.searched ?? 0;
  }
  return { files: await choose(found, (file) => isText(join(run.root, file.path))), searched };
}

/** A command line has room for these. */
const filesAtOnce = 200;

/** As the list of files: without a person's global excludes. */
const listing = ["-c", "core.excludesFile=", "ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];

async function trackedIgnored(run: Run, path: string): Promise<string[]> {
  const git = await startGit(run, [...listing, "--", path]);
  if (isFailure(git)) return [];
  const paths = new Set<string>();
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) paths.add(nameOfBytes(record));
  }
  // No argument can be a name that is no text, and in ripgrep's output a line break would end one.
  return [...paths].filter((each) => !isByteName(each) && !each.includes("\n"));
}

async function isText(path: string): Promise<boolean> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path);
    const sample = Buffer.alloc(sampleBytes);
    const { bytesRead } = await handle.read(sample, 0, sampleBytes, 0);
    return detectEncoding(sample.subarray(0, bytesRead)) !== "binary";
  } finally {
    await handle?.close();
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
