/** The company's layer of packs. A layer from git is kept in the user's cache, one folder per commit, and a small file
 *  names the current one. That file changes with one rename, so a killed sync leaves the old layer or the new one,
 *  never a part. */
import { createHash } from "node:crypto";
import { chmod, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import {
  type Company,
  cacheDirectory,
  collectOutput,
  connecting,
  type Environment,
  getErrorCode,
  gitReason,
  isAlive,
  makeDirectory,
  noGitReason,
  type ProjectPlace,
  readCompanySource,
  readForeignBytes,
  replaceOwnFile,
  startGit,
  withoutPasswords,
} from "../../host/index.ts";
import type { ResolveOptions } from "./public-host.ts";

export interface CompanySync {
  readonly source: string;
  readonly revision: string | undefined;
  readonly commit: string | undefined;
  /** The directory that can be used now. After a failure, the one from an earlier sync. */
  readonly directory: string | undefined;
  readonly status: "in place" | "updated" | "current" | "failed";
  readonly reason: string | undefined;
}

/** Returns the directory with the company's packs, or `undefined` if none is configured. Throws if it is configured but
 *  not on this machine: without it, the written text would differ from the teammates' text. */
export async function companyDirectory(company: Company | undefined, place: ProjectPlace): Promise<string | undefined> {
  if (company === undefined) return undefined;
  const source = readCompanySource(company, place);
  if (source.kind === "directory") return source.path;
  const current = await readCurrent(locateCache(source, place.env));
  if (current !== undefined) return current.directory;
  const packs = `the company's packs from ${withoutPasswords(company.source)} at ${source.revision}`;
  const message = `${packs} are not on this machine yet`;
  throw new ContextError("unreadable_input", message, { hint: "Run plimsoll sync." });
}

/** Returns the commit of the company's packs on this machine. A folder that is used in place has none. */
export async function readCompanyCommit(company: Company, place: ProjectPlace): Promise<string | undefined> {
  const source = readCompanySource(company, place);
  return source.kind === "git" ? (await readCurrent(locateCache(source, place.env)))?.commit : undefined;
}

/** Updates the layer. A failure is data, and keeps the earlier layer. */
export async function syncCompany(
  company: Company,
  {
    force = false,
    allowPrivate,
    ...place
  }: ProjectPlace & { readonly force?: boolean | undefined } & Pick<ResolveOptions, "allowPrivate">,
): Promise<CompanySync> {
  const source = readCompanySource(company, place);
  const base = { source: withoutPasswords(company.source), revision: company.revision, commit: undefined };
  if (source.kind === "directory") {
    const isThere = (await stat(source.path).catch(() => undefined))?.isDirectory() === true;
    return isThere
      ? { ...base, directory: source.path, status: "in place", reason: undefined }
      : { ...base, directory: undefined, status: "failed", reason: `${source.path} is not a directory` };
  }
  const git = locateCache(source, place.env);
  const before = await readCurrent(git);
  // A full commit name always means the same tree.
  const isDone = !force && before !== undefined && before.commit === source.revision;
  const fetched = isDone ? before : await fetchLayer(git, { env: place.env, allowPrivate });
  if ("reason" in fetched) {
    const { commit, directory } = before ?? {};
    return { ...base, commit, directory, status: "failed", reason: fetched.reason };
  }
  const status = fetched.commit === before?.commit ? "current" : "updated";
  return { ...base, commit: fetched.commit, directory: fetched.directory, status, reason: undefined };
}

interface CachedLayer {
  readonly url: string;
  readonly revision: string;
  readonly directory: string;
  readonly currentFile: string;
}

function locateCache({ url, revision }: { url: string; revision: string }, env: Environment): CachedLayer {
  const key = createHash("sha256").update(`${url}\n${revision}`).digest("hex").slice(0, 32);
  const directory = join(cacheDirectory(env), "company", key);
  return { url, revision, directory, currentFile: join(directory, "current") };
}

async function readCurrent({
  directory,
  currentFile,
}: CachedLayer): Promise<{ readonly commit: string; readonly directory: string } | undefined> {
  const commit = (readForeignBytes(currentFile) ?? "").trim();
  if (!/^[\da-f]{40,64}$/.test(commit)) return undefined;
  const layer = join(directory, commit);
  return (await stat(layer).catch(() => undefined))?.isDirectory() ? { commit, directory: layer } : undefined;
}

async function fetchLayer(
  git: CachedLayer,
  options: Pick<TreeRequest, "env" | "allowPrivate">,
): Promise<{ readonly commit: string; readonly directory: string } | { readonly reason: string }> {
  const temporary = join(git.directory, `fetch-${process.pid}.tmp`);
  try {
    makeDirectory(git.directory, 0o700);
    await rm(temporary, { recursive: true, force: true });
    // Only a sync needs child processes; every inject reads the directory.
    const tree = await fetchGitTree({ ...git, directory: temporary, ...options });
    if ("reason" in tree) return tree;
    const directory = join(git.directory, tree.commit);
    await makePrivate(temporary);
    await rename(temporary, directory).catch((error) => {
      // Another sync put the same tree there.
      if (!["ENOTEMPTY", "EEXIST"].includes(getErrorCode(error) ?? "")) throw error;
    });
    const before = await readCurrent(git);
    await replaceOwnFile(git.currentFile, Buffer.from(`${tree.commit}\n`));
    await removeOld(git, [tree.commit, before?.commit]);
    return { commit: tree.commit, directory };
  } catch (error) {
    const code = getErrorCode(error);
    if (code === undefined) throw error;
    return { reason: `${git.directory} cannot be written (${code})` };
  } finally {
    await rm(temporary, { recursive: true, force: true }).catch(() => {});
  }
}

/** Git writes files with the umask. No file of a layer is run, so none needs more rights than this. */
async function makePrivate(directory: string): Promise<void> {
  await chmod(directory, 0o700);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await makePrivate(path);
    else if (entry.isFile()) await chmod(path, 0o600);
  }
}

/** Removes older commits and files of killed syncs. Keeps the previous commit: somebody may be reading it. */
async function removeOld({ directory }: CachedLayer, kept: readonly (string | undefined)[]): Promise<void> {
  for (const name of await readdir(directory)) {
    const owner = /^fetch-(\d+)\.tmp$/.exec(name)?.[1];
    const isOld =
      owner === undefined ? /^[\da-f]{40,64}$/.test(name) && !kept.includes(name) : !isAlive({ pid: Number(owner) });
    // The git of a killed sync may still be working there. The next sync removes it.
    if (isOld) await rm(join(directory, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
  }
}

/** A request for the files of one revision of a git repository, without the repository. */
interface TreeRequest extends ResolveOptions {
  readonly url: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** The folder to write to. It must not exist. */
  readonly directory: string;
  readonly env: Environment;
}

/** Writes the tree into `directory`. Transfers only that revision if the server allows it. */
export async function fetchGitTree(
  request: TreeRequest,
): Promise<{ readonly commit: string } | { readonly reason: string }> {
  const { url, revision, directory, env } = request;
  const checked = await chooseSettings(url, request);
  if ("reason" in checked) return checked;
  makeDirectory(directory);
  const git = (...args: readonly string[]) => runGit(args, { directory, env, settings: checked.settings });
  const created = await git("init", "--quiet", "--template=");
  if (!created.ok) return { reason: created.reason };
  // The attributes in the fetched tree must not choose a filter of the user.
  makeDirectory(join(directory, ".git", "info"));
  await writeFile(join(directory, ".git", "info", "attributes"), "* -filter\n");
  const fetched = await fetchRevision(git, url, revision);
  if (!fetched.ok) return { reason: withoutPasswords(fetched.reason) };
  const wanted = fetched.reference;
  const commit = await git("rev-parse", "--verify", "--quiet", "--end-of-options", `${wanted}^{commit}`);
  if (!commit.ok) return { reason: `has no revision "${revision}"` };
  const checkedOut = await git("checkout", "--quiet", "--force", "--detach", commit.output.trim());
  if (!checkedOut.ok) return { reason: checkedOut.reason };
  await rm(join(directory, ".git"), { recursive: true, force: true });
  return { commit: commit.output.trim() };
}

/** Returns settings that make git use the address that was checked. If the name is unknown, git reports it. What ssh's
 *  own configuration does with a name is the user's choice. */
async function chooseSettings(
  url: string,
  options: ResolveOptions,
): Promise<{ readonly settings: readonly string[] } | { readonly reason: string }> {
  const server = readServer(url);
  if (server === undefined || options.allowPrivate) return { settings: [] };
  // Only sync reaches this line. Every command that reads packs loads this file, and should not pay for node:dns.
  const { resolveHost } = await import("./public-host.ts");
  const resolved = await resolveHost(server.host, options).catch(() => ({ addresses: [] }));
  if ("reason" in resolved) return resolved;
  // A server may redirect to an address that nobody checked.
  const settings = ["http.followRedirects=false"];
  const [first] = resolved.addresses;
  if (server.port === undefined || first === undefined) return { settings };
  const address = first.family === 6 ? `[${first.address}]` : first.address;
  return { settings: [...settings, `http.curloptResolve=${server.host}:${server.port}:${address}`] };
}

/** Returns `undefined` for a file. The port is set only for http, where git can be told the address. */
function readServer(url: string): { readonly host: string; readonly port?: string } | undefined {
  if (URL.canParse(url) && url.includes("://")) {
    const { protocol, hostname, port } = new URL(url);
    if (protocol === "file:" || hostname === "") return undefined;
    const defaultPort = { "http:": "80", "https:": "443" }[protocol];
    return defaultPort === undefined ? { host: hostname } : { host: hostname, port: port || defaultPort };
  }
  // As in ssh: user@host:path.
  const host = /^(?:[^/@]*@)?(\[[^\]]*\]|[^/:]{2,}):/.exec(url)?.[1];
  return host === undefined ? undefined : { host };
}

type GitResult = { readonly ok: true; readonly output: string } | { readonly ok: false; readonly reason: string };

/** A server may refuse a commit that is not the tip of a branch, and does not know shortened names. Then everything is
 *  fetched. */
async function fetchRevision(
  git: (...args: readonly string[]) => Promise<GitResult>,
  url: string,
  revision: string,
): Promise<{ ok: true; reference: string } | { ok: false; reason: string }> {
  const fetch = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"];
  const shallow = await git(...fetch, "--depth=1", "--", url, revision);
  if (shallow.ok) return { ok: true, reference: "FETCH_HEAD" };
  if (!/^[\da-f]{4,64}$/i.test(revision)) return shallow;
  const all = await git(...fetch, "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*");
  return all.ok ? { ok: true, reference: revision } : all;
}

/** Enough for a large repository over a slow line. After that, nothing will come. */
const maxSeconds = 300;

async function runGit(
  args: readonly string[],
  { directory, env, settings }: { directory: string; env: Environment; settings: readonly string[] },
): Promise<GitResult> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const timer = setTimeout(stop, maxSeconds * 1000);
  // The program has its own group, which an interrupt at the terminal does not reach.
  process.once("exit", stop);
  try {
    const git = await startGit({ root: directory, env, signal: controller.signal }, args, {
      ...connecting,
      settings: ["core.autocrlf=false", "advice.detachedHead=false", ...settings],
      variables: { ...connecting.variables, GIT_LFS_SKIP_SMUDGE: "1" },
    });
    if (git === undefined) return { ok: false, reason: noGitReason };
    const output = (await collectOutput(git.output)).toString("utf8");
    const { code, stderr } = await git.end;
    if (code === 0) return { ok: true, output };
    const isLate = controller.signal.aborted;
    return { ok: false, reason: isLate ? `git took longer than ${maxSeconds} s` : gitReason(stderr) };
  } finally {
    clearTimeout(timer);
    process.off("exit", stop);
  }
}
