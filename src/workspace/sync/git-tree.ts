/** The files of one revision of a git repository, without the repository. */
import { spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../directories.ts";
import { gitReason } from "../processes/read-git.ts";
import { gitProtocols, shownSource } from "./company-source.ts";

export interface TreeRequest {
  readonly url: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** Where to write; must not exist. */
  readonly directory: string;
  readonly env: Environment;
}

export type GitTree = { readonly commit: string } | { readonly reason: string };

/** Writes the tree into `directory`. Only that revision is transferred where the server allows it. */
export async function fetchGitTree({ url, revision, directory, env }: TreeRequest): Promise<GitTree> {
  await mkdir(directory, { recursive: true });
  const git = (...args: readonly string[]) => runGit(args, { directory, env });
  const created = await git("init", "--quiet", "--template=");
  if (!created.ok) return { reason: created.reason };
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

/** What the repository or this machine could make git run is switched off. */
const safeSettings = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.autocrlf=false",
  "advice.detachedHead=false",
  "protocol.ext.allow=never",
].flatMap((setting) => ["-c", setting]);

function runGit(
  args: readonly string[],
  { directory, env }: { directory: string; env: Environment },
): Promise<GitResult> {
  const child = spawn("git", [...safeSettings, ...args], {
    cwd: directory,
    env: gitEnvironment(env),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: mostSeconds * 1000,
  });
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      written[name] = (written[name] + text).slice(-20_000);
    });
  }
  return new Promise((resolve) => {
    child.on("error", ({ message }) => resolve({ ok: false, reason: `git cannot be run: ${message}` }));
    child.on("close", (code, signal) => {
      if (code === 0) resolve({ ok: true, output: written.stdout });
      else
        resolve({
          ok: false,
          reason: signal === null ? gitReason(written.stderr) : `git took longer than ${mostSeconds} s`,
        });
    });
  });
}

const localVariables =
  "DIR WORK_TREE INDEX_FILE OBJECT_DIRECTORY ALTERNATE_OBJECT_DIRECTORIES COMMON_DIR NAMESPACE PREFIX";
const localNames: readonly string[] = localVariables.split(" ").map((name) => `GIT_${name}`);

/** Inside a hook git sets GIT_DIR and more, which would lead it to the repository at hand. It never asks for a password. */
function gitEnvironment(env: Environment): NodeJS.ProcessEnv {
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !localNames.includes(name))),
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: gitProtocols.join(":"),
    GIT_LFS_SKIP_SMUDGE: "1",
    LC_ALL: "C",
  };
}
