/** Fetches and pushes branches of one remote. Git runs in an empty repository that shares only the objects with the
 *  real one, so nothing that an agent wrote into the repository's settings can choose a program, a proxy or a
 *  credential helper. How to reach the server is the user's own choice. */
import { join, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import {
  changeGit,
  collectOutput,
  connecting,
  decodeBytes,
  type Environment,
  type GitResult,
  gitReason,
  inspectRepository,
  makeDirectory,
  noGitReason,
  startGit,
  withoutPasswords,
} from "../../host/index.ts";

export interface GitRemote {
  readonly name: string;
  /** Fetches a branch from the remote and returns its commit. Returns undefined if there is no such
   *  branch. Throws if the remote cannot be reached. */
  fetch(branch: string): Promise<string | undefined>;
  /** Moves a branch on the remote from one commit to another. `from` is undefined if the branch must be new. Returns
   *  false if the branch was not at `from`. */
  move(branch: string, change: { readonly from: string | undefined; readonly to: string }): Promise<boolean>;
  /** Sets a branch on the remote, wherever it was. */
  replace(branch: string, commit: string): Promise<void>;
}

/** Opens a remote that the repository names. Throws if there is none, or if the clone is shallow. `root` is the work
 *  tree, and `folder` is a folder for the empty repository. */
export async function openGitRemote(
  name: string,
  { root, env, folder }: { readonly root: string; readonly env: Environment; readonly folder: string },
): Promise<GitRemote> {
  const place = { root, env, signal: new AbortController().signal };
  const { fetchUrl, pushUrl } = await readUrls(name, place);
  const [format = "", objects = ""] = (await ask(place, ["--show-object-format", "--git-path", "objects"])).split("\n");
  const bare = join(folder, "remote.git");
  makeDirectory(bare, 0o700);
  const at = { bare, env, objects: resolve(root, objects) };
  const run = (...args: string[]) => runRemoteGit(args, at);
  const must = async (what: string, ...args: string[]) => {
    const { code, stderr } = await run(...args);
    if (code !== 0) throw remoteError(name, what, stderr);
  };
  await must("be prepared", "init", "--quiet", "--bare", "--template=", `--object-format=${format}`, bare);
  // This ref tells git which commits are here, so it does not fetch them.
  await must("be prepared", "update-ref", "refs/heads/known", (await ask(place, ["--verify", "HEAD"])).trim());
  const fetchRef = async (ref: string) => {
    const fetchFlags = ["--quiet", "--no-tags", "--no-recurse-submodules"];
    const { code, stderr } = await run("fetch", ...fetchFlags, "--", fetchUrl, `+${ref}:${ref}`);
    if (code !== 0 && !/couldn't find remote ref/i.test(stderr)) throw remoteError(name, "be fetched from", stderr);
    return code === 0 ? (await run("rev-parse", "--verify", ref)).stdout.trim() : undefined;
  };
  return {
    name,
    fetch: (branch) => fetchRef(`refs/heads/${branch}`),
    async move(branch, { from, to }) {
      const ref = `refs/heads/${branch}`;
      const lease = `--force-with-lease=${ref}:${from ?? ""}`;
      const { code, stderr } = await run("push", ...pushFlags, lease, "--", pushUrl, `${to}:${ref}`);
      if (code === 0) return true;
      // A connection may break after the branch has moved, and servers word a refusal differently.
      const now = await fetchRef(ref);
      if (now === to) return true;
      if (now !== from) return false;
      throw remoteError(name, "be pushed to", stderr);
    },
    replace: (branch, commit) =>
      must("be pushed to", "push", ...pushFlags, "--force", "--", pushUrl, `${commit}:refs/heads/${branch}`),
  };
}

const pushFlags = ["--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--no-recurse-submodules"];

type Place = Parameters<typeof inspectRepository>[0];

async function readUrls(name: string, place: Place): Promise<{ fetchUrl: string; pushUrl: string }> {
  const repository = await inspectRepository(place);
  if ("refused" in repository) {
    throw new ContextError("invalid_content", `git cannot be used: ${repository.reason}`, { file: place.root });
  }
  const { settings, isShallow, toplevel } = repository;
  const readUrl = (key: string) => {
    const setting = settings.find((each) => each.key === key);
    if (setting === undefined) return undefined;
    const url = decodeBytes(setting.value);
    // A path in the settings is relative to the work tree.
    return /^[\w+.-]+:\/\//.test(url) || /^[^/\\:]{2,}:/.test(url) ? url : resolve(toplevel, url);
  };
  const url = readUrl(`remote.${name}.url`);
  if (url === undefined) {
    const names = settings.flatMap(({ key }) => /^remote\.(.+)\.url$/s.exec(key)?.[1] ?? []);
    const known = names.length === 0 ? "It has none." : `It has: ${[...new Set(names)].join(", ")}.`;
    throw new ContextError("invalid_content", `the repository has no remote ${JSON.stringify(name)}`, {
      hint: `${known} Add one with git remote add ${/^[\w.-]+$/.test(name) ? name : "NAME"} URL.`,
    });
  }
  if (isShallow) {
    throw new ContextError("invalid_content", "the clone is shallow, so its history cannot be compared", {
      hint: "Run git fetch --unshallow first.",
    });
  }
  return { fetchUrl: url, pushUrl: readUrl(`remote.${name}.pushurl`) ?? url };
}

async function ask(place: Place, args: readonly string[]): Promise<string> {
  const asked = await changeGit(place, ["rev-parse", ...args]);
  if (!("refused" in asked) && asked.code === 0) return asked.stdout;
  const reason = "refused" in asked ? asked.reason : gitReason(asked.stderr);
  throw new ContextError("invalid_content", `git cannot be used: ${reason}`, { file: place.root });
}

async function runRemoteGit(
  args: readonly string[],
  { bare, env, objects }: { readonly bare: string; readonly env: Environment; readonly objects: string },
): Promise<GitResult> {
  // A clean-up here would remove what only branches of the real repository need.
  const keepObjects = ["gc.auto=0", "gc.pruneExpire=never", "maintenance.auto=false", "fetch.writeCommitGraph=false"];
  // Two minutes are enough for a large branch over a slow line.
  const git = await startGit({ root: bare, env, signal: AbortSignal.timeout(120_000) }, args, {
    ...connecting,
    settings: [...(connecting.settings ?? []), ...keepObjects],
    variables: { ...connecting.variables, GIT_DIR: bare, GIT_OBJECT_DIRECTORY: objects },
  });
  if (git === undefined) return { code: null, stdout: "", stderr: noGitReason };
  const stdout = (await collectOutput(git.output)).toString("utf8");
  return { ...(await git.end), stdout };
}

function remoteError(name: string, what: string, stderr: string): ContextError {
  // What a server prints about a refused push is worth more than git's last line.
  const printed = /^remote: +(\S.*)$/m.exec(stderr)?.[1]?.trim();
  const refused = /^ ! \[.*rejected\].*\((.*)\)$/m.exec(stderr)?.[1];
  const explained = [refused, printed].filter((each) => each !== undefined).join(": ");
  const reason = withoutPasswords(explained || gitReason(stderr));
  return new ContextError("write_failed", `the remote ${name} could not ${what}: ${reason}`, {
    hint: `Check that git fetch ${name} and git push ${name} work without a question.`,
  });
}
