/** The files of a tree as the tools see it: those that git lists, or without a repository those that `.gitignore` files
 *  do not exclude. */
import { createHash, type Hash } from "node:crypto";
import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hashed, type IgnoreRules, loadIgnoreRules, splitRecords } from "../../../host/index.ts";
import { isFailure, type ToolFailure } from "../../session/index.ts";
import type { Run } from "../run.ts";
import { containExisting, decodeName, deniedByGit, diskName, type ExistingPath, isDenied } from "./contained-path.ts";
import { startListing } from "./repository.ts";

export interface PathList {
  /** The named path, relative to the root. */
  readonly path: string;
  /** Relative to the root, in a fixed order. */
  readonly batches: AsyncIterable<string[]>;
  /** Whether git ignores the named path, so that it was listed without git. Call it after the batches were read. */
  isIgnored(): boolean;
  /** The number of directories that cannot be read. Call it after the batches were read. */
  denied(): number;
  /** Why git refused, so that the tree was listed without it. Call it after the batches were read. */
  refusal(): string | undefined;
  /** Changes with the list. Call it after the batches were read. */
  version(): string;
}

export async function listPaths(run: Run, path: string): Promise<PathList | ToolFailure> {
  const contained = await containExisting(run.root, path);
  if (isFailure(contained)) return contained;
  const found: Found = { ignored: false, denied: 0, hash: createHash("sha1") };
  return {
    path: contained.path,
    batches: readBatches(run, contained, found),
    isIgnored: () => found.ignored,
    denied: () => found.denied,
    refusal: () => found.refusal,
    version: () => found.hash.copy().digest("hex"),
  };
}

interface Found {
  ignored: boolean;
  denied: number;
  refusal?: string;
  readonly hash: Hash;
}

/** git lists nothing below a directory that it ignores or that is another repository. Such a path was named on
 *  purpose. */
async function* readBatches(run: Run, named: ExistingPath, found: Found): AsyncGenerator<string[]> {
  const { path } = named;
  const isDirectory = named.stats.isDirectory();
  const listed = await listByGit(run, path, found.hash);
  const git = isFailure(listed) ? undefined : listed;
  if (isFailure(listed) && listed.code === "refused_repository") found.refusal = listed.message;
  let known = false;
  let isListed = false;
  for await (const batch of git?.batches ?? []) {
    // A submodule is one entry, like a repository that git does not know and a link to a directory.
    const below = isDirectory ? batch.filter((each) => !(each === path || each === `${path}/`)) : batch;
    known ||= batch.length > 0;
    isListed ||= below.length > 0;
    yield below;
  }
  if (run.signal.aborted) return;
  if (isListed) {
    found.denied = (await git?.denied()) ?? 0;
    return;
  }
  const inRepository = (await git?.succeeded()) ?? false;
  for await (const batch of walked(run, named, found)) {
    found.ignored ||= inRepository && !known && batch.length > 0;
    for (const each of batch) found.hash.update(each);
    yield batch;
  }
}

function walked(
  { root, signal }: Run,
  { path, stats }: ExistingPath,
  found: Found,
): AsyncIterable<string[]> | string[][] {
  return stats.isDirectory() ? walkPaths({ root, path, signal, found }) : [[path]];
}

/** Lists what git tracks below `path` and what it would track, each path once. */
async function listByGit(run: Run, path: string, hash: Hash) {
  // The letters of `-t`: `?` is not tracked, `S` is not checked out.
  const git = await startListing(run, ["-t", "--cached", "--others"], path);
  if (isFailure(git)) return git;
  return {
    batches: mergeKinds(splitRecords(hashed(git.output, hash), "\0")),
    /** Call it after the batches were read. */
    succeeded: async (): Promise<boolean> => (await git.end).code === 0,
    /** The number of directories that cannot be read. Call it after the batches were read. */
    denied: async (): Promise<number> => deniedByGit((await git.end).stderr),
  };
}

/** git lists untracked files first, then tracked ones. The first list is usually short. It is kept and merged into the
 *  second. */
async function* mergeKinds(records: AsyncIterable<string[]>): AsyncGenerator<string[]> {
  const others: string[] = [];
  let next = 0;
  let last: string | undefined;
  for await (const batch of records) {
    const merged: string[] = [];
    for (const record of batch) {
      const path = record.slice(2);
      if (record.startsWith("?")) {
        others.push(path);
        continue;
      }
      // git lists a file in conflict once for each of its versions.
      if (record.startsWith("S") || path === last) continue;
      last = path;
      for (let other = others[next]; other !== undefined && other < path; other = others[++next]) {
        merged.push(decodeName(other));
      }
      merged.push(decodeName(path));
    }
    yield merged;
  }
  yield others.slice(next).map(decodeName);
}

interface Walk {
  readonly root: string;
  /** The directory to list, relative to the root. "." for the root. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** Counts the directories that cannot be read. */
  readonly found: { denied: number };
}

/** Yields files and links below a directory that git's rules do not exclude, a batch for each run of files, in git's
 *  order. Paths are relative to the root. Links are not followed, and unreadable directories are skipped. */
async function* walkPaths({ root, path, signal, found }: Walk): AsyncGenerator<string[]> {
  const { openIgnoreRules } = await loadIgnoreRules();
  const directory = join(root, path);
  const [rules, entries] = [await openIgnoreRules(directory, root), await readEntries(directory, found)];
  yield* walk({ root, path: path === "." ? "" : `${path}/`, entries, rules, signal, found });
}

interface WalkStep extends Walk {
  /** "" or a path that ends with a slash. */
  readonly path: string;
  readonly entries: readonly DirectoryEntry[];
  /** The rules that apply inside the directory. */
  readonly rules: IgnoreRules;
}

async function* walk({ root, path, entries, rules, signal, found }: WalkStep): AsyncGenerator<string[]> {
  let files: string[] = [];
  for (const name of sortNames(entries)) {
    if (signal.aborted) break;
    const isDirectory = name.endsWith("/");
    const entry = path + name;
    const place = `${root}/${isDirectory ? entry.slice(0, -1) : entry}`;
    if (rules.ignores(place, isDirectory ? "directory" : "file")) continue;
    if (!isDirectory) {
      files.push(entry);
      continue;
    }
    if (files.length > 0) yield files;
    files = [];
    yield* walk({ root, path: entry, ...(await enter(place, { rules, found })), signal, found });
  }
  if (files.length > 0) yield files;
}

/** Most directories have no rules of their own. Their entries show that without another disk read. */
async function enter(
  directory: string,
  { rules, found }: Pick<WalkStep, "rules" | "found">,
): Promise<Pick<WalkStep, "entries" | "rules">> {
  const entries = await readEntries(directory, found);
  if (!entries.some(({ name }) => name === ".gitignore")) return { entries, rules };
  return { entries, rules: await rules.enter(directory, diskName(join(directory, ".gitignore"))) };
}

type DirectoryEntry = Pick<Dirent, "name" | "isFile" | "isDirectory" | "isSymbolicLink">;

/** A name with U+FFFD may not be UTF-8. Only then are the bytes read, which takes longer. */
async function readEntries(path: string, found: Walk["found"]): Promise<DirectoryEntry[]> {
  const directory = diskName(path);
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    if (isDenied(error)) found.denied++;
    return [];
  });
  if (!entries.some(({ name }) => name.includes("\uFFFD"))) return entries;
  const byBytes = await readdir(directory, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  return byBytes.map((entry) => ({
    name: decodeName(entry.name.toString("latin1")),
    isFile: () => entry.isFile(),
    isDirectory: () => entry.isDirectory(),
    isSymbolicLink: () => entry.isSymbolicLink(),
  }));
}

/** A slash at the end sorts a directory where its files are. Sockets and devices are skipped. */
function sortNames(entries: readonly DirectoryEntry[]): string[] {
  const names = entries.flatMap((entry) => {
    if (entry.isDirectory()) return `${entry.name}/`;
    return entry.isFile() || entry.isSymbolicLink() ? entry.name : [];
  });
  return names.sort();
}
