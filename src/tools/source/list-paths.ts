/** The files of a tree as the tools see it: those of git, or without a repository those that `.gitignore` files leave. */
import { createHash, type Hash } from "node:crypto";
import { isFailure, type ToolFailure } from "../../session/index.ts";
import type { Run } from "../frame/run.ts";
import { type ContainedPath, containExisting } from "./contained-path.ts";
import { gitPaths } from "./git-paths.ts";
import { walkPaths } from "./walk-paths.ts";

export interface PathList {
  /** What was named, relative to the root. */
  readonly path: string;
  /** Relative to the root, in a fixed order. */
  readonly batches: AsyncIterable<string[]>;
  /** Asked after the batches were read: git leaves out what was named, so it was listed without git. */
  isIgnored(): boolean;
  /** Asked after the batches were read: directories that may not be read. */
  denied(): number;
  /** Asked after the batches were read: why git was refused, so that the tree was listed without it. */
  refusal(): string | undefined;
  /** Asked after the batches were read. Another list has another version. */
  version(): string;
}

export async function listPaths(run: Run, path: string): Promise<PathList | ToolFailure> {
  const contained = await containExisting(run.root, path);
  if (isFailure(contained)) return contained;
  const found: Found = { ignored: false, denied: 0, hash: createHash("sha1") };
  const named: Named = { ...contained, isDirectory: contained.stats.isDirectory() };
  return {
    path: contained.path,
    batches: readBatches(run, named, found),
    isIgnored: () => found.ignored,
    denied: () => found.denied,
    refusal: () => found.refusal,
    version: () => found.hash.copy().digest("hex"),
  };
}

/** Whether git leaves out what was named: told with what comes of it, since nobody sees it otherwise. */
export async function isIgnoredPath(run: Run, path: string): Promise<boolean> {
  const list = path === "." ? undefined : await listPaths(run, path);
  if (list === undefined || isFailure(list)) return false;
  for await (const batch of list.batches) if (batch.length > 0) break;
  return list.isIgnored();
}

interface Named extends ContainedPath {
  readonly isDirectory: boolean;
}

interface Found {
  ignored: boolean;
  denied: number;
  refusal?: string;
  readonly hash: Hash;
}

/** git lists nothing below a directory that it leaves out or that is another repository. Such a one was named on purpose. */
async function* readBatches(run: Run, named: Named, found: Found): AsyncGenerator<string[]> {
  const listed = await gitPaths(run, named.path, found.hash);
  const git = isFailure(listed) ? undefined : listed;
  if (isFailure(listed) && listed.code === "refused_repository") found.refusal = listed.message;
  let known = false;
  let isListed = false;
  for await (const batch of git?.batches ?? []) {
    const below = named.isDirectory ? batch.filter((each) => !isItself(each, named.path)) : batch;
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

/** A submodule is listed as one entry, as are a repository that git does not know and a link to a directory. */
function isItself(entry: string, path: string): boolean {
  return entry === path || entry === `${path}/`;
}

function walked({ root, signal }: Run, named: Named, found: Found): AsyncIterable<string[]> | string[][] {
  const { path, isDirectory } = named;
  return isDirectory ? walkPaths({ root, path, signal, found }) : [[path]];
}
