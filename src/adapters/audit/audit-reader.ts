/** Reads the files that tools load, each once however many tools load it. */
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Counter } from "../../tokens/index.ts";
import { isInside, listFiles, outsideReason, readTextFile } from "../../workspace/index.ts";

export interface TextFile {
  readonly path: string;
  /** With its links resolved. */
  readonly realPath: string;
  readonly isLink: boolean;
  readonly text: string;
  readonly bytes: number;
  /** 0 for a reader without a counter. */
  readonly tokens: number;
}

export interface UnreadFile {
  readonly path: string;
  readonly reason: string;
}

export interface FileReader {
  /** `undefined` where there is no file; a folder, a pipe or a device is none. */
  read(path: string): Promise<TextFile | UnreadFile | undefined>;
  /** The files that a name or a pattern stands for in a folder, in order of their names. */
  expand(folder: string, name: string): Promise<readonly string[]>;
  /** Whether git leaves a file of the repository out. */
  isIgnored(path: string, root: string): Promise<boolean>;
}

/** With a root, links of the project that lead out of it are not followed. */
export function createFileReader(counter?: Counter, root?: string): FileReader {
  const read = remember(async (path) => {
    const isOutside = root !== undefined && (await outsideReason(path, root)) !== undefined;
    return isOutside ? { path, reason: "leads out of the project" } : readFile(path, counter);
  });
  const expand = remember(listPattern);
  const listed = remember(listEntries);
  return {
    read,
    expand: (folder, name) => expand(join(folder, name)),
    isIgnored: async (path, root) => isInside(path, root) && !isListed(path, root, await listed(root)),
  };
}

function remember<Value>(compute: (key: string) => Promise<Value>): (key: string) => Promise<Value> {
  const known = new Map<string, Promise<Value>>();
  return (key) => {
    const value = known.get(key) ?? compute(key);
    known.set(key, value);
    return value;
  };
}

async function readFile(
  path: string,
  counter: Counter | undefined,
): Promise<TextFile | UnreadFile | undefined> {
  const entry = await lstat(path).catch(() => undefined);
  if (entry === undefined) return undefined;
  const isLink = entry.isSymbolicLink();
  const target = isLink ? await stat(path).catch(() => undefined) : entry;
  if (target === undefined) return { path, reason: "is a link that leads nowhere" };
  // Reading a pipe would wait for a writer.
  if (!target.isFile()) return undefined;
  const file = await readTextFile(path);
  if (!("text" in file)) return { path, reason: `cannot be read (${file.reason})` };
  return { path, realPath: await realpath(path), isLink, ...file, tokens: counter?.count(file.text) ?? 0 };
}

async function listPattern(pattern: string): Promise<readonly string[]> {
  const star = pattern.indexOf("*");
  if (star === -1) return [pattern];
  const folder = pattern.slice(0, star);
  const ending = pattern.slice(pattern.lastIndexOf("*") + 1);
  const recursive = pattern.startsWith("**", star);
  const names = await readdir(folder, { recursive }).catch(() => []);
  return names
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => join(folder, name));
}

/** What git does not leave out; links stand for all that is behind them. */
async function listEntries(root: string): Promise<ReadonlySet<string>> {
  const { files, skipped } = await listFiles(root);
  return new Set([...files, ...skipped.map((entry) => entry.path)]);
}

function isListed(path: string, root: string, listed: ReadonlySet<string>): boolean {
  for (let current = path; current !== root; current = dirname(current)) if (listed.has(current)) return true;
  return false;
}
