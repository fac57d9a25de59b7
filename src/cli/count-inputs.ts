import { stat } from "node:fs/promises";
import { relative, resolve } from "node:path";
import type { Counter } from "../tokens/index.ts";
import {
  listFiles,
  readTextFile,
  readTextStream,
  type TextLimit,
  type TextRead,
  type Unread,
} from "../workspace/index.ts";
import type { StdinKind } from "./command.ts";

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

export interface CountInputsOptions {
  readonly cwd: string;
  readonly stdin: AsyncIterable<Buffer>;
  readonly stdinKind: StdinKind;
  readonly counters: readonly Counter[];
  progress(text: string): void;
}

/** Counts files, the files of directories, and standard input (`-`), each once. One that cannot be counted never stops the others. */
export async function countInputs(
  names: readonly string[],
  options: CountInputsOptions,
): Promise<CountReport> {
  const { inputs, skipped } = await gatherInputs(names, options);
  const files: CountedFile[] = [];
  const limit = limitOf(options.counters);
  let done = 0;
  for (const { path, named } of inputs.values()) {
    options.progress(path === "-" ? "reading standard input" : `counted ${done} of ${inputs.size} files`);
    const read = await (path === "-" ? readStdin(options, limit) : readTextFile(path, limit));
    const shown = shownPath(path, options);
    if ("text" in read)
      files.push({ path: shown, bytes: read.bytes, tokens: tokensOf(read.text, options.counters) });
    else skipped.set(path, skip(read, shown, named));
    done++;
  }
  files.sort(byPath);
  return { files, total: totalOf(files, options.counters), skipped: [...skipped.values()].sort(byPath) };
}

/** One word of this many letters takes an exact counter some seconds, in which an interrupt has no effect, and half a gigabyte. */
const maxExactMegabytes = 10;

function limitOf(counters: readonly Counter[]): TextLimit | undefined {
  const exact = counters.find(({ name }) => name.startsWith("exact:"));
  if (exact === undefined) return undefined;
  const reason = `${exact.name} counts up to ${maxExactMegabytes} MB: split it, or choose an estimate`;
  return { maxBytes: maxExactMegabytes * 1024 * 1024, reason };
}

async function readStdin(
  { stdin, stdinKind }: CountInputsOptions,
  limit: TextLimit | undefined,
): Promise<TextRead> {
  if (stdinKind === "directory") return { reason: "is a directory", kind: "failed" };
  return readTextStream(stdin, limit);
}

interface Input {
  path: string;
  named: boolean;
}

/** Both by path: directories may lie inside each other. */
interface Gathered {
  inputs: Map<string, Input>;
  skipped: Map<string, SkippedFile>;
}

async function gatherInputs(names: readonly string[], options: CountInputsOptions): Promise<Gathered> {
  const gathered: Gathered = { inputs: new Map(), skipped: new Map() };
  const paths = new Set(names.map((name) => (name === "-" ? name : resolve(options.cwd, name))));
  for (const path of paths) {
    if (path !== "-" && (await isDirectory(path))) await gatherDirectory(path, gathered, options);
    else gathered.inputs.set(path, { path, named: true });
  }
  // A link in a directory is skipped; one that is named is followed.
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
  for (const path of list.files) if (!inputs.has(path)) inputs.set(path, { path, named: false });
  for (const { path, ...unread } of list.skipped)
    skipped.set(path, skip(unread, shownPath(path, options), false));
}

async function isDirectory(path: string): Promise<boolean> {
  // What is wrong with a path is said when it is read.
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

function shownPath(path: string, { cwd }: CountInputsOptions): string {
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
