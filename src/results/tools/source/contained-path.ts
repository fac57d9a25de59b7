/** Checks that paths from a model are below the root. */

import { isUtf8 } from "node:buffer";
import { constants, realpathSync, type Stats, statSync } from "node:fs";
import { type FileHandle, open, opendir, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { decodeBytes, followLinks, isGitInternal, isInside, refuseOpened } from "../../../host/index.ts";
import { isFailure, type ToolFailure } from "../../session/index.ts";
import { failure, formatCount, quoteArgument } from "../run.ts";

export interface ContainedPath {
  /** Relative to the root, with slashes, as it was named. "." for the root itself. */
  readonly path: string;
  /** The real path, with all links resolved. It need not exist. */
  readonly real: string;
  /** The real path relative to the root, with slashes. */
  readonly realPath: string;
}

/** Refuses a path that leaves the root by its name or through a link, and a path inside git's own files. */
export async function containPath(root: string, path: string): Promise<ContainedPath | ToolFailure> {
  if (path.includes("\0")) return failure("invalid_argument", "path contains a NUL byte.");
  const realRoot = resolveRoot(root);
  if (typeof realRoot !== "string") return realRoot;
  const named = resolve(root, path);
  const below = [root, realRoot].find((each) => isInside(named, resolve(each)));
  if (below === undefined) return refuseOutside(path, "is outside of the root.");
  const way = relative(resolve(below), named);
  const real = await resolveLinks(resolve(realRoot, way), path);
  if (typeof real !== "string") return real;
  if (!isInside(real, realRoot)) return refuseOutside(path, "leaves the root through a symbolic link.");
  if (isGitInternal(way) || isGitInternal(relative(realRoot, real))) {
    return failure(
      "refused_path",
      `${quoteArgument(path)} belongs to git.`,
      "Use vcs_log, vcs_diff, vcs_status or vcs_blame.",
    );
  }
  return { path: joinSlashes(way), real, realPath: joinSlashes(relative(realRoot, real)) };
}

function joinSlashes(way: string): string {
  return way === "" ? "." : way.split(sep).join("/");
}

export interface ExistingPath extends ContainedPath {
  readonly stats: Stats;
}

/** Like `containPath`, but the path must exist and a directory must be readable. */
export async function containExisting(root: string, path: string): Promise<ExistingPath | ToolFailure> {
  const contained = await containPath(root, path);
  if (isFailure(contained)) return contained;
  try {
    const stats = await stat(contained.real);
    // Opens it, because only that shows for certain whether it can be read.
    if (stats.isDirectory()) await (await opendir(contained.real)).close();
    return { ...contained, stats };
  } catch (error) {
    if (isDenied(error)) return failure("unreadable", `${quoteArgument(path)} cannot be read: permission denied.`);
    return failure("not_found", `${quoteArgument(path)} does not exist.`, "Use project_files to list existing files.");
  }
}

function resolveRoot(root: string): string | ToolFailure {
  try {
    const real = realpathSync.native(root);
    // The dot shows whether the directory can be entered, which its parent cannot show.
    if (statSync(`${real}/.`).isDirectory()) return real;
  } catch (error) {
    if (isDenied(error)) return failure("unreadable", "The root of the project cannot be read: permission denied.");
    if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") {
      return failure("not_found", "The root of the project is gone.");
    }
  }
  return failure("unreadable", "The root of the project is not a directory.");
}

async function resolveLinks(path: string, named: string): Promise<string | ToolFailure> {
  try {
    return await followLinks(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === undefined) throw error;
    const reasons: Readonly<Record<string, string>> = {
      ELOOP: "is a circle of symbolic links",
      ENOTDIR: "uses a file as a directory",
      EACCES: "cannot be reached: permission denied",
      ENAMETOOLONG: "is too long for a path",
    };
    return failure("not_found", `${quoteArgument(named)} ${reasons[code] ?? `cannot be reached (${code})`}.`);
  }
}

function refuseOutside(path: string, how: string): ToolFailure {
  return failure("outside_root", `${quoteArgument(path)} ${how}`, "Paths are relative to the root of the project.");
}

/** Returns whether the directories of listed files are below the root. git also lists tracked files in a directory that
 *  is now a link to somewhere else. Rejects if the system does not allow the check. */
export function createContainedDirectories(root: string): (path: string) => Promise<boolean> {
  const known = new Map<string, Promise<boolean>>();
  const realRoot = realBytes(root);
  // Each question reports the rejection itself.
  realRoot.catch(() => {});
  const look = async (directory: string): Promise<boolean> => {
    const [real, around] = [await realBytes(join(root, directory)), await realRoot];
    return isInside(real, around) && !isGitInternal(relative(around, real));
  };
  return (path) => {
    const directory = dirname(path);
    const answer =
      known.get(directory) ??
      look(directory).catch((error) => {
        if (isDenied(error)) throw error;
        return false;
      });
    known.set(directory, answer);
    return answer;
  };
}

/** Returns the real path of a directory as a byte string, because its name need not be UTF-8. */
async function realBytes(directory: string): Promise<string> {
  return (await realpath(diskName(directory), "buffer")).toString("latin1");
}

/** What the system does not let us read. It exists: it is neither gone nor empty. */
export function isDenied(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  return code === "EACCES" || code === "EPERM";
}

/** Reads which directories git could not open. git continues without them and exits with 0. */
export function deniedByGit(stderr: string): number {
  return stderr.match(/^warning: could not open directory /gm)?.length ?? 0;
}

/** Returns undefined if every directory was read. */
export function deniedWarning(directories: number): string | undefined {
  if (directories === 0) return undefined;
  const which = formatCount(directories, ["directory", "directories"]);
  return `${which} could not be read. ${directories === 1 ? "Its" : "Their"} files may be missing here.`;
}

/** Opened like this, a pipe does not wait for a writer, and a link that has replaced the file or a folder on its path is
 *  not followed out of the root. The opened thing may not be a file, so check before reading. */
export async function openRegular(path: string | Buffer, root: string): Promise<FileHandle> {
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
  try {
    const refused = refuseOpened(handle.fd, { path, within: root });
    if (refused === undefined) return handle;
    throw Object.assign(new Error(refused.reason), { code: "ENOENT" });
  } catch (error) {
    await handle.close();
    throw error;
  }
}

// Names of files whose bytes are not UTF-8. Each such byte becomes one lone surrogate (U+DC80 to U+DCFF), which never
// occurs in decoded text. So names sort, match and compare as strings, and two different names never become equal.

/** Returns the name that a byte string stands for. */
export function decodeName(bytes: string): string {
  const text = decodeBytes(bytes);
  return text.includes("\uFFFD") ? decodeParts(Buffer.from(bytes, "latin1")) : text;
}

/** No call can name such a file, because text from a model cannot contain these bytes. */
export function isByteName(name: string): boolean {
  return /(?<![\ud800-\udbff])[\udc80-\udcff]/.test(name);
}

/** Returns the name as the disk knows it. */
export function diskName(name: string): string | Buffer {
  if (!isByteName(name)) return name;
  const parts = name.split(/(?<![\ud800-\udbff])([\udc80-\udcff])/);
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.from([part.charCodeAt(0) - 0xdc00]))),
  );
}

/** Returns the name as a person or a model sees it. */
export function displayName(name: string): string {
  return name.replace(/(?<![\ud800-\udbff])[\udc80-\udcff]/g, "\uFFFD");
}

/** Returns undefined if every name is text. */
export function byteNamesWarning(count: number): string | undefined {
  if (count === 0) return undefined;
  const files = count === 1 ? "1 file here has a name that is" : `${count} files here have names that are`;
  return `${files} not UTF-8, shown with U+FFFD: no call can name such a file.`;
}

function decodeParts(bytes: Buffer): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lengths = [1, 2, 3, 4].filter((length) => length <= bytes.length - at);
    const length = lengths.find((each) => isUtf8(bytes.subarray(at, at + each)));
    text += length === undefined ? String.fromCharCode(0xdc00 + bytes[at]!) : bytes.toString("utf8", at, at + length);
    at += length ?? 1;
  }
  return text;
}
