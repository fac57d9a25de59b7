/** The files of one revision of a git repository, without the repository. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../directories.ts";
import { makeDirectory } from "../files/make-directory.ts";
import { type GitUse, gitReason, startGit } from "../processes/read-git.ts";
import { gitProtocols, shownSource } from "./company-source.ts";
import { type ResolveOptions, resolveHost } from "./public-host.ts";

export interface TreeRequest extends ResolveOptions {
  readonly url: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** Where to write; must not exist. */
  readonly directory: string;
  readonly env: Environment;
}

export type GitTree = { readonly commit: string } | { readonly reason: string };

/** Writes the tree into `directory`. Only that revision is transferred where the server allows it. */
export async function fetchGitTree(request: TreeRequest): Promise<GitTree> {
  const { url, revision, directory, env } = request;
  const way = await wayTo(url, request);
  if ("reason" in way) return way;
  await makeDirectory(directory);
  const git = (...args: readonly string[]) => runGit(args, { directory, env, settings: way.settings });
  const created = await git("init", "--quiet", "--template=");
  if (!created.ok) return { reason: created.reason };
  // Attributes of what is fetched choose no filter of the user's.
  await makeDirectory(join(directory, ".git", "info"));
  await writeFile(join(directory, ".git", "info", "attributes"), "* -filter\n");
  const fetched = await fetchRevision(git, url, revision);
  if (!fetched.ok) return { reason: shownSource(fetched.reason) };
  const wanted = fetched.reference;
  const commit = await git("rev-parse", "--verify", "--quiet", "--end-of-options", `${wanted}^{commit}`);
  if (!commit.ok) return { reason: `has no revision "${revision}"` };
  const checkedOut = await git("checkout", "--quiet", "--force", "--detach", commit.output.trim());
  if (!checkedOut.ok) return { reason: checkedOut.reason };
  await rm(join(directory, ".git"), { recursive: true, force: true });
  return { commit: commit.output.trim() };
}

/** Settings that keep git on the way to the address that was looked at. Where the name is not known, git says so itself; what ssh makes
 *  of a name by its own configuration is the user's choice. */
async function wayTo(
  url: string,
  options: ResolveOptions,
): Promise<{ readonly settings: readonly string[] } | { readonly reason: string }> {
  const server = serverOf(url);
  if (server === undefined || options.allowPrivate) return { settings: [] };
  const resolved = await resolveHost(server.host, options).catch(() => ({ addresses: [] }));
  if ("reason" in resolved) return resolved;
  // A server may lead elsewhere, and nobody would look at that.
  const settings = ["http.followRedirects=false"];
  const [first] = resolved.addresses;
  if (server.port === undefined || first === undefined) return { settings };
  const address = first.family === 6 ? `[${first.address}]` : first.address;
  return { settings: [...settings, `http.curloptResolve=${server.host}:${server.port}:${address}`] };
}

/** Undefined for a file. The port is there where git is told where to connect to: by http. */
function serverOf(url: string): { readonly host: string; readonly port?: string } | undefined {
  if (URL.canParse(url) && url.includes("://")) {
    const { protocol, hostname, port } = new URL(url);
    if (protocol === "file:" || hostname === "") return undefined;
    const defaultPort = { "http:": "80", "https:": "443" }[protocol];
    return defaultPort === undefined ? { host: hostname } : { host: hostname, port: port || defaultPort };
  }
  // As ssh has it: user@host:path.
  const host = /^(?:[^/@]*@)?(\[[^\]]*\]|[^/:]{2,}):/.exec(url)?.[1];
  return host === undefined ? undefined : { host };
}

type Git = (...args: readonly string[]) => Promise<GitResult>;
type GitResult =
  | { readonly ok: true; readonly output: string }
  | { readonly ok: false; readonly reason: string };

/** A server may refuse a commit that no branch ends with, and knows none by a shortened name: then everything is fetched. */
async function fetchRevision(
  git: Git,
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

/** A large repository over a slow line; longer means that nothing comes. */
const mostSeconds = 300;

async function runGit(
  args: readonly string[],
  { directory, env, settings }: { directory: string; env: Environment; settings: readonly string[] },
): Promise<GitResult> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  const timer = setTimeout(stop, mostSeconds * 1000);
  // It has a group of its own, which an interrupt at the terminal does not reach.
  process.once("exit", stop);
  try {
    const git = await startGit({ root: directory, env, signal: controller.signal }, args, {
      ...fetching,
      settings: [...(fetching.settings ?? []), ...settings],
    });
    if (git === undefined) return { ok: false, reason: "git is not installed, or not on PATH" };
    const output = await readText(git.output);
    const { code, stderr } = await git.end;
    if (code === 0) return { ok: true, output };
    const isLate = controller.signal.aborted;
    return { ok: false, reason: isLate ? `git took longer than ${mostSeconds} s` : gitReason(stderr) };
  } finally {
    clearTimeout(timer);
    process.off("exit", stop);
  }
}

async function readText(output: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

const localNames =
  "DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|NAMESPACE|PREFIX";

const fetching: GitUse = {
  settings: ["core.autocrlf=false", "advice.detachedHead=false"],
  variables: { GIT_ALLOW_PROTOCOL: gitProtocols.join(":"), GIT_LFS_SKIP_SMUDGE: "1" },
  // Inside a hook git sets these, which would lead it to the repository at hand. How to reach a server is the user's own choice.
  keptNames: new RegExp(`^GIT_(?!(${localNames})$)`),
};
