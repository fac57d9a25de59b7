/** Whose a `.plimsoll` folder is. Somebody else's is not read, as git does not read another user's repository: anybody can put one into
 *  /tmp. */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ContextError } from "../../errors.ts";
import { type Environment, homeDirectory } from "../directories.ts";
import { followLinks } from "../files/resolve-target.ts";
import { startGit } from "../processes/read-git.ts";
import { hasTrustVariable, trustedProject } from "./trusted.ts";

/** Throws if the directory or its `.plimsoll` belongs to another user, and neither the environment, `plimsoll trust` nor git's
 *  safe.directory accepts that. */
export async function refuseOtherOwner(directory: string, env: Environment): Promise<void> {
  const owner = await otherOwner(directory, env);
  if (owner === undefined || hasTrustVariable(env) || (await isAccepted(directory, env))) return;
  const path = join(directory, ".plimsoll");
  throw new ContextError("untrusted", `belongs to user ${owner}, not to you, so it is not read`, {
    file: path,
    hint: `If you trust it, run "plimsoll trust ${directory}", or name the directory in git's safe.directory.`,
  });
}

/** The number of the other user that a directory with a `.plimsoll`, or that folder, belongs to. Root is no other user, nor under sudo is whoever called it. */
export async function otherOwner(directory: string, env: Environment): Promise<number | undefined> {
  const own = process.geteuid?.();
  if (own === undefined) return undefined;
  const known = [own, 0, ...(own === 0 && env.SUDO_UID ? [Number(env.SUDO_UID)] : [])];
  const owners = await Promise.all([stat(directory), stat(join(directory, ".plimsoll"))]).catch(() => []);
  return owners.map(({ uid }) => uid).find((uid) => !known.includes(uid));
}

async function isAccepted(directory: string, env: Environment): Promise<boolean> {
  if ((await trustedProject({ root: directory, env })) !== undefined) return true;
  return isNamed(await followLinks(directory), await safeDirectories(env), env);
}

/** As git reads the values: an empty one forgets those before it, `*` is every directory, and a path may end with `/*`. */
function isNamed(path: string, values: readonly string[], env: Environment): boolean {
  return values.slice(values.lastIndexOf("") + 1).some((value) => {
    if (value === "*") return true;
    const named = resolve("/", value.replace(/^~(?=\/)/, homeDirectory(env)));
    return named.endsWith("/*") ? path.startsWith(named.slice(0, -1)) : path === named;
  });
}

/** Of the system's and the user's configuration of git: a repository has no say in this. */
async function safeDirectories(env: Environment): Promise<string[]> {
  const values: string[] = [];
  for (const scope of ["--system", "--global"]) {
    // Asked from the root of the file system, where git finds no repository.
    const place = { root: "/", env, signal: AbortSignal.timeout(5_000) };
    const git = await startGit(place, ["config", scope, "-z", "--get-all", "safe.directory"], {
      variables: {},
      keptNames: /^GIT_CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$/,
    });
    const chunks: Buffer[] = [];
    for await (const chunk of git?.output ?? []) chunks.push(chunk);
    values.push(...Buffer.concat(chunks).toString("utf8").split("\0").slice(0, -1));
  }
  return values;
}
