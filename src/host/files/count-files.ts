/** Counts the tokens of files, of the files in directories, and of standard input. */
import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { compareText } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { listFiles } from "../scan/scan-project.ts";
import { readForeignText } from "./read-foreign.ts";
import { readTextFile, readTextStream, type TextLimit, type TextRead, textLimit, type Unread } from "./read-text.ts";

interface CountedFile {
  readonly path: string;
  readonly bytes: number;
  readonly tokens: Readonly<Record<string, number>>;
}

interface SkippedFile {
  readonly path: string;
  readonly reason: string;
  /** Whether the total misses it: it was named, or it may be text. */
  readonly failed: boolean;
}

export interface CountReport {
  readonly files: readonly CountedFile[];
  readonly skipped: readonly SkippedFile[];
  readonly total: { readonly bytes: number; readonly tokens: Readonly<Record<string, number>> };
}

interface CountInputsOptions {
  readonly cwd: string;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: "piped" | "directory" | "other";
  readonly counters: readonly Counter[];
  progress(text: string): void;
}

/** Counts files, files of directories, and standard input (`-`), each once. A failure does not stop the others. */
export async function countInputs(names: readonly string[], options: CountInputsOptions): Promise<CountReport> {
  const { cwd, counters, progress } = options;
  const show = (path: string): string => (path === "-" ? path : relative(cwd, path) || ".");
  const skipped = new Map<string, SkippedFile>();
  const skip = (path: string, { reason, kind }: Unread, isNamed: boolean) =>
    skipped.set(path, { path: show(path), reason, failed: isNamed || kind === "failed" });
  const inputs = await gatherInputs(names, { cwd, progress, show, skip });
  // Links in directories are skipped; named links are followed.
  for (const path of inputs.keys()) skipped.delete(path);

  const files: CountedFile[] = [];
  const limit = chooseLimit(counters);
  let done = 0;
  for (const [path, within] of inputs) {
    progress(path === "-" ? "reading standard input" : `counted ${done} of ${inputs.size} files`);
    const read = await readInput(path, { within, limit, ...options });
    if ("text" in read) {
      const tokens = Object.fromEntries(counters.map((counter) => [counter.name, counter.count(read.text)]));
      files.push({ path: show(path), bytes: read.bytes, tokens });
    } else skip(path, read, within === undefined);
    done++;
  }
  files.sort(byPath);
  const sum = (size: (file: CountedFile) => number) => files.reduce((total, file) => total + size(file), 0);
  const tokens = counters.map(({ name }) => [name, sum((file) => file.tokens[name] ?? 0)] as const);
  return {
    files,
    total: { bytes: sum((file) => file.bytes), tokens: Object.fromEntries(tokens) },
    skipped: [...skipped.values()].sort(byPath),
  };
}

/** Returns the directory that was named for each path, or `undefined` for a file that was named itself. Directories may
 *  be nested. */
async function gatherInputs(
  names: readonly string[],
  {
    cwd,
    progress,
    show,
    skip,
  }: Pick<CountInputsOptions, "cwd" | "progress"> & {
    show(path: string): string;
    skip(path: string, unread: Unread, isNamed: boolean): void;
  },
): Promise<Map<string, string | undefined>> {
  const inputs = new Map<string, string | undefined>();
  for (const path of new Set(names.map((name) => (name === "-" ? name : resolve(cwd, name))))) {
    // Problems with the path are reported when it is read.
    const stats = path === "-" ? undefined : await stat(path).catch(() => undefined);
    if (!stats?.isDirectory()) {
      inputs.set(path, undefined);
      continue;
    }
    progress(`listing ${show(path)}`);
    const list = await listFiles(path);
    for (const file of list.files) if (!inputs.has(file)) inputs.set(file, path);
    for (const unread of list.skipped) skip(unread.path, unread, false);
  }
  return inputs;
}

function chooseLimit(counters: readonly Counter[]): TextLimit | undefined {
  // For one long word of this size an exact counter needs seconds, in which it ignores interrupts, and half a gigabyte.
  const maxExactMegabytes = 10;
  const exact = counters.find(({ name }) => name.startsWith("exact:"));
  if (exact === undefined) return undefined;
  const reason = `${exact.name} counts at most ${maxExactMegabytes} MB: split the file, or choose an estimate`;
  return { maxBytes: maxExactMegabytes * 1024 * 1024, reason };
}

async function readInput(
  path: string,
  {
    within,
    limit,
    stdin,
    stdinKind,
  }: CountInputsOptions & { readonly within: string | undefined; readonly limit: TextLimit | undefined },
): Promise<TextRead> {
  if (path === "-" && stdinKind === "directory") return { reason: "is a directory", kind: "failed" };
  if (path === "-") return readTextStream(stdin, limit);
  // A file that was named may be a pipe.
  return within === undefined ? readTextFile(path, limit) : readForeignText(path, { within, ...(limit ?? textLimit) });
}

function byPath(a: { path: string }, b: { path: string }): number {
  return compareText(a.path, b.path);
}
