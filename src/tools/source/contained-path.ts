/** Paths that a model names lie below the root, or are refused. */
import type { Stats } from "node:fs";
import { opendir, realpath, stat } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import { isFailure, type ToolFailure } from "../../session/index.ts";
import { followLinks, isGitInternal, isInside } from "../../workspace/index.ts";
import { failure, shown } from "../frame/failure.ts";
import { isDenied } from "./denied.ts";

export interface ContainedPath {
  /** From the root, with slashes, as it was named; "." for the root itself. */
  readonly path: string;
  /** Where it really lies, all links followed. It need not exist. */
  readonly real: string;
  /** The same from the root, with slashes. */
  readonly realPath: string;
}

/** Refused: what leaves the root by its name or through a link, and what belongs to git. */
export async function containPath(root: string, path: string): Promise<ContainedPath | ToolFailure> {
  if (path.includes("\0")) return failure("invalid_argument", "path holds a NUL byte.");
  const realRoot = await realRootOf(root);
  if (typeof realRoot !== "string") return realRoot;
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
  return { path: slashed(way), real, realPath: slashed(relative(realRoot, real)) };
}

function slashed(way: string): string {
  return way === "" ? "." : way.split(sep).join("/");
}

export interface ExistingPath extends ContainedPath {
  readonly stats: Stats;
}

/** As `containPath`, for what must be there; a directory can be read. */
export async function containExisting(root: string, path: string): Promise<ExistingPath | ToolFailure> {
  const contained = await containPath(root, path);
  if (isFailure(contained)) return contained;
  try {
    const stats = await stat(contained.real);
    // Opened, not asked about: nothing else tells for certain.
    if (stats.isDirectory()) await (await opendir(contained.real)).close();
    return { ...contained, stats };
  } catch (error) {
    if (isDenied(error)) return failure("unreadable", `${shown(path)} may not be read.`);
    return failure("not_found", `${shown(path)} does not exist.`, "project_files lists what does.");
  }
}

async function realRootOf(root: string): Promise<string | ToolFailure> {
  try {
    const real = await realpath(root);
    // The dot asks whether one may go in, which the directory around it cannot tell.
    if ((await stat(`${real}/.`)).isDirectory()) return real;
  } catch (error) {
    if (isDenied(error)) return failure("unreadable", "The root of the project may not be read.");
    if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") {
      return failure("not_found", "The root of the project is gone.");
    }
  }
  return failure("unreadable", "The root of the project is no directory.");
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
