/** Names a nebula in the store. The name is the same in every clone of its repository, so machines that share a store
 *  share the nebula. */
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type Store, shownAddress } from "../../core/store/index.ts";
import { namedKey } from "../../core/text/index.ts";
import { changeGit, type Environment, inspectRepository, isStoreAddress } from "../../host/index.ts";
import type { Nebula } from "./nebula.ts";
import { openNebulaRecord, readAnswer, recordCollection, writeAnswer } from "./nebula-record.ts";

type NamedNebula = Pick<Nebula, "directory" | "name">;

/**
 * Returns the name of a nebula in the store. It is made from the first commit of the nebula's repository, the path of
 * its folder in the repository, and the nebula's own name. Outside of a repository, and in a shallow clone, it is made
 * from the real path of the folder.
 *
 * @example
 * ```ts
 * import { loadNebula, nebulaKey } from "plimsoll/nebula";
 *
 * const { nebula } = await loadNebula("plan");
 * if (nebula !== undefined) console.log(await nebulaKey(nebula));
 * ```
 */
export async function nebulaKey({ directory, name }: NamedNebula, env: Environment = process.env): Promise<string> {
  const place = { root: realPath(directory), env, signal: new AbortController().signal };
  const repository = await inspectRepository(place).catch(() => undefined);
  // In a shallow clone, the oldest commit depends on when the clone was made.
  if (repository === undefined || "refused" in repository || repository.isShallow) return folderKey(directory);
  // The oldest commit, found by following first parents from HEAD. Merging another history does not change it.
  const found = await changeGit(place, ["rev-list", "--first-parent", "--max-parents=0", "HEAD"]);
  const first = "refused" in found || found.code !== 0 ? "" : found.stdout.trim();
  return first === "" ? folderKey(directory) : namedKey(name, [first, repository.prefix, name].join("\n"));
}

/** Names a folder on this machine. All paths that lead to it give the same name. */
function folderKey(directory: string): string {
  const path = realPath(directory);
  return namedKey(basename(path), path);
}

/** Names the runs of a nebula's folder with one store on this machine. Runs with another store are independent. */
export function runKey(directory: string, storeFile: string): string {
  const store = isStoreAddress(storeFile) ? shownAddress(storeFile) : realPath(storeFile);
  return `${folderKey(directory)}-${namedKey("", store)}`;
}

/** Resolves links. For a missing path, resolves the nearest existing folder. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const absolute = resolve(path);
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(realPath(parent), basename(absolute));
  }
}

/** Returns the name under which the store has the nebula, or would have it if there is no store yet. A record from before
 *  its folder was in a repository, or from an older version, has the name of the folder. */
export async function storedKey(store: Store | undefined, nebula: NamedNebula, env: Environment): Promise<string> {
  const key = await nebulaKey(nebula, env);
  return store === undefined ? key : storedName(store, nebula, key);
}

async function storedName(store: Store, { directory }: NamedNebula, key: string): Promise<string> {
  const old = folderKey(directory);
  if (key === old || (await store.get(recordCollection, key)) !== undefined) return key;
  return (await store.get(recordCollection, old)) === undefined ? key : old;
}

/** Moves the record and the answers of a nebula to its name, and returns the name. The record comes after the answers, so
 *  a move that was killed starts again or is complete. */
export async function movedKey(store: Store, nebula: NamedNebula, env: Environment): Promise<string> {
  const key = await nebulaKey(nebula, env);
  const old = await storedName(store, nebula, key);
  if (key === old) return key;
  const record = await openNebulaRecord(store, old).read();
  for (const phase of Object.keys(record?.phases ?? {})) {
    const answer = await readAnswer(store, { key: old, phase });
    if (answer !== undefined) await writeAnswer(store, { key, phase }, answer);
  }
  await openNebulaRecord(store, key).change((current) => (current.name === "" && record ? record : current));
  for (const phase of Object.keys(record?.phases ?? {})) await writeAnswer(store, { key: old, phase }, undefined);
  await store.delete(recordCollection, old);
  return key;
}
