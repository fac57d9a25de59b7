import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import type { Counter } from "../tokens/index.ts";
import { listFiles, readTextFile, readTextStream, type Unread } from "../workspace/index.ts";

export interface CountedFile {
  readonly path: string;
  readonly bytes: number;
  readonly tokens: Readonly<Record<string, number>>;
}

export interface SkippedFile {
  readonly path: string;
  readonly reason: string;
  /** It was asked for, or it may be text: the total lacks something. */
  readonly failed: boolean;
}

export interface CountReport {
  readonly files: readonly CountedFile[];
  readonly skipped: readonly SkippedFile[];
  readonly total: { readonly bytes: number; readonly tokens: Readonly<Record<string, number>> };
}

export interface CountOptions {
  readonly cwd: string;
  readonly stdin: AsyncIterable<Buffer>;
  readonly counters: readonly Counter[];
  progress(text: string): void;
}

/** Counts files, the files of directories, and standard input (`-`), each once. One that cannot be counted never stops the others. */
export async function countInputs(names: readonly string[], options: CountOptions): Promise<CountReport> {
  const { inputs, skipped } = await gatherInputs(names, options);
  const files: CountedFile[] = [];
  let done = 0;
  for (const { path, named } of inputs.values()) {
    options.progress(path === "-" ? "reading standard input" : `counted ${done} of ${inputs.size} files`);
    const read = await (path === "-" ? readTextStream(options.stdin) : readTextFile(path));
    const shown = shownPath(path, options);
    if ("text" in read)
      files.push({ path: shown, bytes: read.bytes, tokens: tokensOf(read.text, options.counters) });
    else skipped.push(skip(read, shown, named));
    done++;
  }
  files.sort(byPath);
  return { files, total: totalOf(files, options.counters), skipped: skipped.sort(byPath) };
}

interface Input {
  path: string;
  named: boolean;
}

interface Gathered {
  inputs: Map<string, Input>;
  skipped: SkippedFile[];
}

async function gatherInputs(names: readonly string[], options: CountOptions): Promise<Gathered> {
  const gathered: Gathered = { inputs: new Map(), skipped: [] };
  const paths = new Set(names.map((name) => (name === "-" ? name : resolve(options.cwd, name))));
  for (const path of paths) {
    if (path !== "-" && (await isDirectory(path))) await gatherDirectory(path, gathered, options);
    else gathered.inputs.set(path, { path, named: true });
  }
  return gathered;
}

async function gatherDirectory(
  directory: string,
  { inputs, skipped }: Gathered,
  options: CountOptions,
): Promise<void> {
  options.progress(`listing ${shownPath(directory, options)}`);
  const list = await listFiles(directory);
  for (const path of list.files) if (!inputs.has(path)) inputs.set(path, { path, named: false });
  for (const { path, ...unread } of list.skipped) skipped.push(skip(unread, shownPath(path, options), false));
}

async function isDirectory(path: string): Promise<boolean> {
  // What is wrong with a path is said when it is read.
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

function shownPath(path: string, { cwd }: CountOptions): string {
  return path === "-" ? path : relative(cwd, path) || ".";
}

function tokensOf(text: string, counters: readonly Counter[]): Record<string, number> {
  return Object.fromEntries(counters.map((counter) => [counter.name, counter.count(text)]));
}

function skip({ reason, kind }: Unread, path: string, named: boolean): SkippedFile {
  return { path, reason, failed: named || kind === "failed" };
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

function totalOf(files: readonly CountedFile[], counters: readonly Counter[]): CountReport["total"] {
  const sum = (size: (file: CountedFile) => number) => files.reduce((total, file) => total + size(file), 0);
  const tokens = counters.map(({ name }) => [name, sum((file) => file.tokens[name] ?? 0)] as const);
  return { bytes: sum((file) => file.bytes), tokens: Object.fromEntries(tokens) };
}
