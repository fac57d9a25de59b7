/** Paths that a model names lie below the root, or are refused. */
import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import type { ToolFailure } from "../../session/index.ts";
import { followLinks } from "../../workspace/index.ts";
import { failure, isFailure } from "./failure.ts";

export interface ContainedPath {
  /** From the root, with slashes, as it was named; "." for the root itself. */
  readonly path: string;
  /** Where it really lies, all links followed. It need not exist. */
  readonly real: string;
}

/** Refused: what leaves the root by its name or through a link, and what belongs to git. */
export async function containPath(root: string, path: string): Promise<ContainedPath | ToolFailure> {
  if (path.includes("\0")) return failure("invalid_argument", "path holds a NUL byte.");
  const realRoot = await realpath(root).catch(() => undefined);
  if (realRoot === undefined) return failure("not_found", "The root of the project is gone.");
  const named = resolve(root, path);
  const below = [root, realRoot].find((each) => isInside(named, resolve(each)));
  if (below === undefined) return outside(path, "lies outside of the root.");
  const way = relative(resolve(below), named);
  const real = await realPathOf(resolve(realRoot, way), path);
  if (typeof real !== "string") return real;
  if (!isInside(real, realRoot)) return outside(path, "leads out of the root through a symbolic link.");
  if (isGitInternal(way) || isGitInternal(relative(realRoot, real))) {
    return failure(
      "refused_path",
      `${shown(path)} belongs to git.`,
      "Use vcs_log, vcs_diff, vcs_status or vcs_blame.",
    );
  }
  return { path: way === "" ? "." : way.split(sep).join("/"), real };
}

export interface ExistingPath extends ContainedPath {
  readonly stats: Stats;
}

/** As `containPath`, for what must be there. */
export async function containExisting(root: string, path: string): Promise<ExistingPath | ToolFailure> {
  const contained = await containPath(root, path);
  if (isFailure(contained)) return contained;
  const stats = await stat(contained.real).catch(() => undefined);
  if (stats !== undefined) return { ...contained, stats };
  return failure("not_found", `${shown(path)} does not exist.`, "project_files lists what does.");
}

function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Also in the spellings that other file systems take for it: `.GIT`, `git~1`, `.git.`, `.git::$INDEX_ALLOCATION`. */
function isGitInternal(path: string): boolean {
  return path.split(/[/\\]/).some((name) => /^(\.git|git~\d)[. ]*(:.*)?$/i.test(name));
}

async function realPathOf(path: string, named: string): Promise<string | ToolFailure> {
  try {
    return await followLinks(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === undefined) throw error;
    return failure("not_found", `${shown(named)} ${reasons[code] ?? `cannot be reached (${code})`}.`);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ELOOP: "goes in a circle of symbolic links",
  ENOTDIR: "goes through a file as if it were a directory",
  EACCES: "may not be reached",
  ENAMETOOLONG: "is longer than a path can be",
};

function outside(path: string, how: string): ToolFailure {
  return failure("outside_root", `${shown(path)} ${how}`, "Paths are relative to the root of the project.");
}

/** In messages: quoted, and never a page long. */
export function shown(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}
