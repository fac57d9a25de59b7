/**
 * The company's layer of packs. What comes by git is kept in the user's cache, one folder a commit, and a small file says which
 * one counts: it changes by one rename, so that a sync that is killed leaves the old layer or the new one, never a half.
 */
import { createHash } from "node:crypto";
import { chmod, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ContextError } from "../../errors.ts";
import { cacheDirectory, type Environment } from "../directories.ts";
import { makeDirectory } from "../files/make-directory.ts";
import { removeStaleTemporaries, replaceFile, stateOf } from "../files/replace-file.ts";
import { isAlive } from "../processes/process-identity.ts";
import { type Company, type CompanyPlace, readCompanySource, shownSource } from "./company-source.ts";
import type { TreeRequest } from "./git-tree.ts";

export interface CompanySync {
  readonly source: string;
  readonly revision: string | undefined;
  readonly commit: string | undefined;
  /** What can be used now; after a failure what an earlier sync left. */
  readonly directory: string | undefined;
  readonly status: "in place" | "updated" | "current" | "failed";
  readonly reason: string | undefined;
}

/** The directory with the company's packs, undefined if none is configured. Throws if it is configured and not here:
 *  without it another text would be written than the teammates have. */
export async function companyDirectory(
  company: Company | undefined,
  place: CompanyPlace,
): Promise<string | undefined> {
  if (company === undefined) return undefined;
  const source = readCompanySource(company, place);
  if (source.kind === "directory") return source.path;
  const current = await readCurrent(gitPlace(source, place.env));
  if (current !== undefined) return current.directory;
  const message = `the company's packs from ${shownSource(company.source)} at ${source.revision} are not on this machine yet`;
  throw new ContextError("unreadable_input", message, { hint: "Run plimsoll sync." });
}

interface SyncCompanyOptions {
  readonly force?: boolean | undefined;
  /** Also from machines of this network. */
  readonly allowPrivate?: boolean | undefined;
}

/** Brings the layer up to date. A failure is data, and keeps what was there. */
export async function syncCompany(
  company: Company,
  { force = false, allowPrivate, ...place }: CompanyPlace & SyncCompanyOptions,
): Promise<CompanySync> {
  const source = readCompanySource(company, place);
  const base = { source: shownSource(company.source), revision: company.revision, commit: undefined };
  if (source.kind === "directory") {
    const isThere = (await stat(source.path).catch(() => undefined))?.isDirectory() === true;
    return isThere
      ? { ...base, directory: source.path, status: "in place", reason: undefined }
      : { ...base, directory: undefined, status: "failed", reason: `${source.path} is no directory` };
  }
  const git = gitPlace(source, place.env);
  const before = await readCurrent(git);
  // A whole commit name means one tree for ever.
  const isDone = !force && before !== undefined && before.commit === source.revision;
  const fetched = isDone ? before : await fetchLayer(git, { env: place.env, allowPrivate });
  if ("reason" in fetched) {
    const { commit, directory } = before ?? {};
    return { ...base, commit, directory, status: "failed", reason: fetched.reason };
  }
  const status = fetched.commit === before?.commit ? "current" : "updated";
  return { ...base, commit: fetched.commit, directory: fetched.directory, status, reason: undefined };
}

interface GitPlace {
  readonly url: string;
  readonly revision: string;
  readonly directory: string;
  readonly currentFile: string;
}

function gitPlace({ url, revision }: { url: string; revision: string }, env: Environment): GitPlace {
  const key = createHash("sha256").update(`${url}\n${revision}`).digest("hex").slice(0, 32);
  const directory = join(cacheDirectory(env), "company", key);
  return { url, revision, directory, currentFile: join(directory, "current") };
}

interface Layer {
  readonly commit: string;
  readonly directory: string;
}

async function readCurrent({ directory, currentFile }: GitPlace): Promise<Layer | undefined> {
  const commit = (await readFile(currentFile, "utf8").catch(() => "")).trim();
  if (!/^[\da-f]{40,64}$/.test(commit)) return undefined;
  const layer = join(directory, commit);
  return (await stat(layer).catch(() => undefined))?.isDirectory() ? { commit, directory: layer } : undefined;
}

async function fetchLayer(
  git: GitPlace,
  options: Pick<TreeRequest, "env" | "allowPrivate">,
): Promise<Layer | { reason: string }> {
  const temporary = join(git.directory, `fetch-${process.pid}.tmp`);
  try {
    await makeDirectory(git.directory, 0o700);
    await rm(temporary, { recursive: true, force: true });
    // Only a sync needs child processes; every inject reads the directory.
    const { fetchGitTree } = await import("./git-tree.ts");
    const tree = await fetchGitTree({ ...git, directory: temporary, ...options });
    if ("reason" in tree) return tree;
    const directory = join(git.directory, tree.commit);
    await makePrivate(temporary);
    await moveInto(temporary, directory);
    const before = await readCurrent(git);
    await writeCurrent(git, tree.commit);
    await sweep(git, [tree.commit, before?.commit]);
    return { commit: tree.commit, directory };
  } catch (error) {
    return { reason: cacheReason(error, git) };
  } finally {
    await rm(temporary, { recursive: true, force: true }).catch(() => {});
  }
}

/** Git writes files as the umask has it. Nothing of a layer is run, so no file needs more than this. */
async function makePrivate(directory: string): Promise<void> {
  await chmod(directory, 0o700);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await makePrivate(path);
    else if (entry.isFile()) await chmod(path, 0o600);
  }
}

/** A commit that is there already is the same tree, put there by another sync. */
async function moveInto(temporary: string, directory: string): Promise<void> {
  try {
    await rename(temporary, directory);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
  }
}

async function writeCurrent({ currentFile }: GitPlace, commit: string): Promise<void> {
  await removeStaleTemporaries(currentFile);
  const expected = await stateOf(currentFile);
  await replaceFile(currentFile, { bytes: Buffer.from(`${commit}\n`), expected, isPrivate: true });
}

/** Removes older commits and what killed syncs left. The commit before stays: someone may be reading it right now. */
async function sweep({ directory }: GitPlace, kept: readonly (string | undefined)[]): Promise<void> {
  for (const name of await readdir(directory)) {
    const owner = /^fetch-(\d+)\.tmp$/.exec(name)?.[1];
    const isOld =
      owner === undefined
        ? /^[\da-f]{40,64}$/.test(name) && !kept.includes(name)
        : !isAlive({ pid: Number(owner) });
    // The git of a killed sync may still be at work there: the next sweep gets it.
    if (isOld)
      await rm(join(directory, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
  }
}

function cacheReason(error: unknown, { directory }: GitPlace): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  if (code === undefined) throw error;
  return `${directory} cannot be written (${code})`;
}
