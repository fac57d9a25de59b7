/** Where a target really lies. Links are followed, so that they stay links, but never out of the root. */
import { lstat, readlink, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { ContextError } from "../../errors.ts";
import { isSecretName } from "../../text/index.ts";
import { systemReason } from "./read-text.ts";

/** The real path of a file that need not exist yet. Refused: a path that leaves `root`, by its name or through a link. */
export async function resolveTarget(path: string, root: string): Promise<string> {
  const named = resolve(root, path);
  const realRoot = await realpath(root);
  const real = await followLinks(named).catch((error: unknown) => {
    throw unreachable(path, error);
  });
  if (isGitInternal(relative(realRoot, real))) {
    throw new ContextError("refused_target", "lies in .git, which belongs to git", { file: path });
  }
  const isLinked = real !== join(realRoot, relative(resolve(root), named));
  if (isLinked && isSecretName(relative(realRoot, real))) {
    throw new ContextError("refused_target", `is a link to ${real}, which usually holds secrets`, {
      file: path,
      hint: "Put a file in its place.",
    });
  }
  if (isInside(real, realRoot)) return real;
  const how = isInside(named, resolve(root)) ? "leads through a symbolic link" : "lies";
  throw new ContextError("refused_target", `${how} out of ${root}, to ${real}`, {
    file: path,
    hint: "Put a file in its place, or let the link stay inside.",
  });
}

/** Throws if what a repository brings leads out of its root: what lies elsewhere is not its to show. A path that does not exist is no
 *  problem. */
export async function refuseOutside(path: string, root: string, shown: string = path): Promise<void> {
  const reason = await outsideReason(path, root);
  if (reason !== undefined) throw new ContextError("unreadable_input", reason, { file: shown });
}

/** Why a path below the root is not read: undefined if it really lies in the root. */
export async function outsideReason(path: string, root: string): Promise<string | undefined> {
  const [real, realRoot] = await Promise.all([followLinks(path), followLinks(root)]).catch(() => []);
  if (real === undefined || realRoot === undefined || isInside(real, realRoot)) return undefined;
  return `leads through a symbolic link out of the project, to ${real}. Copy what it points to`;
}

/** As `realpath`, also where the last parts do not exist, and where a link points at something that does not exist yet. */
export async function followLinks(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) throw error;
  }
  const directory = await followLinks(dirname(path));
  const isLink = (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;
  return isLink ? followLinks(resolve(directory, await readlink(path))) : join(directory, basename(path));
}

/** By their names alone; a directory lies inside itself. A name may begin with two dots. */
export function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Also in the spellings that other file systems take for it: `.GIT`, `git~1`, `.git.`, `.git::$INDEX_ALLOCATION`. */
export function isGitInternal(path: string): boolean {
  return path.split(/[/\\]/).some((name) => /^(\.git|git~\d)[. ]*(:.*)?$/i.test(name));
}

function unreachable(path: string, error: unknown): ContextError {
  const reason = systemReason(error, { EACCES: "no permission to reach it" });
  return new ContextError("refused_target", reason, { file: path, cause: error });
}
