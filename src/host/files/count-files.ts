/** Counts the tokens of files, of the files in directories, and of standard input. */
import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
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
  const { inputs, skipped } = await gatherInputs(names, options);
  const files: CountedFile[] = [];
  const limit = chooseLimit(options.counters);
  let done = 0;
  for (const { path, within } of inputs.values()) {
    options.progress(path === "-" ? "reading standard input" : `counted ${done} of ${inputs.size} files`);
    const read = await readInput(path, { within, limit, options });
    const shown = shownPath(path, options);
    if ("text" in read)
      files.push({
        path: shown,
        bytes: read.bytes,
        tokens: Object.fromEntries(options.counters.map((counter) => [counter.name, counter.count(read.text)])),
      });
    else skipped.set(path, skip(read, shown, within === undefined));
    done++;
  }
  files.sort(byPath);
  const sum = (size: (file: CountedFile) => number) => files.reduce((total, file) => total + size(file), 0);
  const tokens = options.counters.map(({ name }) => [name, sum((file) => file.tokens[name] ?? 0)] as const);
  return {
    files,
    total: { bytes: sum((file) => file.bytes), tokens: Object.fromEntries(tokens) },
    skipped: [...skipped.values()].sort(byPath),
  };
}

/** For one long word of this size an exact counter needs seconds, in which it ignores interrupts, and half a
 *  gigabyte. */
const maxExactMegabytes = 10;

function chooseLimit(counters: readonly Counter[]): TextLimit | undefined {
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
    options,
  }: {
    readonly within: string | undefined;
    readonly limit: TextLimit | undefined;
    readonly options: CountInputsOptions;
  },
): Promise<TextRead> {
  if (path === "-")
    return options.stdinKind === "directory"
      ? { reason: "is a directory", kind: "failed" }
      : readTextStream(options.stdin, limit);
  // A file that was named may be a pipe.
  return within === undefined ? readTextFile(path, limit) : readForeignText(path, { within, ...(limit ?? textLimit) });
}

/** Inputs and skipped files by path, because directories may be nested. */
interface Gathered {
  inputs: Map<
    string,
    {
      path: string;
      /** The directory that was named. Absent for a file that was named itself. */
      within?: string;
    }
  >;
  skipped: Map<string, SkippedFile>;
}

async function gatherInputs(names: readonly string[], options: CountInputsOptions): Promise<Gathered> {
  const gathered: Gathered = { inputs: new Map(), skipped: new Map() };
  const paths = new Set(names.map((name) => (name === "-" ? name : resolve(options.cwd, name))));
  for (const path of paths) {
    if (path !== "-" && (await isDirectory(path))) await gatherDirectory(path, gathered, options);
    else gathered.inputs.set(path, { path });
  }
  // Links in directories are skipped; named links are followed.
  for (const path of gathered.inputs.keys()) gathered.skipped.delete(path);
  return gathered;
}

async function gatherDirectory(
  directory: string,
  { inputs, skipped }: Gathered,
  options: CountInputsOptions,
): Promise<void> {
  options.progress(`listing ${shownPath(directory, options)}`);
  const list = await listFiles(directory);
  for (const path of list.files) if (!inputs.has(path)) inputs.set(path, { path, within: directory });
  for (const { path, ...unread } of list.skipped) skipped.set(path, skip(unread, shownPath(path, options), false));
}

async function isDirectory(path: string): Promise<boolean> {
  // Problems with the path are reported when it is read.
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

function shownPath(path: string, { cwd }: CountInputsOptions): string {
  return path === "-" ? path : relative(cwd, path) || ".";
}

function skip({ reason, kind }: Unread, path: string, named: boolean): SkippedFile {
  return { path, reason, failed: named || kind === "failed" };
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
