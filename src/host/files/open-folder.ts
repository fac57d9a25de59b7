/** Opens folders instead of trusting their names. Another process can replace any part of a path by a link, also
 *  between a check and a write. On Linux an entry is named through the descriptor of its open folder, so no later swap
 *  can redirect it. Other systems have no such names in Node: there the folder is checked again before each use, and a
 *  swap between that check and the next system call is still possible. */
import { closeSync, constants, existsSync, lstatSync, mkdirSync, openSync, realpathSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { getErrorCode } from "./read-text.ts";

export interface OpenFolder {
  /** Returns a path of an entry for functions of node:fs that do not follow a link there. Not for people to read. */
  at(name: string): string;
  /** Opens a folder in this one. Makes a missing one if `mode` is given, or else returns `undefined`. Throws if there is
   *  a link or a file. */
  child(name: string, mode?: number): OpenFolder | undefined;
  /** Throws if the folder is no longer at its path, as far as that matters on this system. */
  verify(): void;
  close(): void;
}

export interface FolderOptions {
  /** The real path of the folder that `path` must be in. */
  readonly root: string;
  /** Makes missing folders with this mode. */
  readonly mode?: number | undefined;
}

/** Opens the folder at a real path, in which links are already followed. Throws if a part of it is a link by now.
 *  Returns `undefined` if it does not exist. The caller closes it. */
export function openFolder(path: string, { root, mode }: FolderOptions): OpenFolder | undefined {
  const names = relative(root, path).split(sep);
  if (names.includes("..")) throw folderChanged();
  let folder: OpenFolder | undefined = openRoot(root);
  for (const name of names) {
    if (name === "") continue;
    const around: OpenFolder = folder;
    try {
      folder = around.child(name, mode);
    } finally {
      around.close();
    }
    if (folder === undefined) return undefined;
  }
  return folder;
}

function openRoot(path: string): OpenFolder {
  if (process.platform !== "linux") return openByName(path);
  const descriptor = openDirectoryOnly(path);
  const folder = openByDescriptor(descriptor);
  // Some containers have no /proc.
  if (existsSync(folder.at("."))) return folder;
  folder.close();
  return openByName(path);
}

/** Throws if the last part of the path is a link or a file. */
function openDirectoryOnly(path: string): number {
  // O_PATH, which Node does not name: opens a folder that may be entered but not listed, such as a parent of a
  // home.
  const pathOnly = 0o10000000;
  try {
    return openSync(path, pathOnly | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    throw getErrorCode(error) === "ENOTDIR" || getErrorCode(error) === "ELOOP" ? folderChanged(error) : error;
  }
}

function openByDescriptor(descriptor: number): OpenFolder {
  const at = (name: string) => `/proc/self/fd/${descriptor}/${name}`;
  return {
    at,
    child: (name, mode) => openChild(at(name), { mode, open: (path) => openByDescriptor(openDirectoryOnly(path)) }),
    verify() {},
    close: () => closeSync(descriptor),
  };
}

function openByName(path: string): OpenFolder {
  const known = lstatSync(path, { bigint: true });
  const verify = () => {
    const now = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    const isSame = now?.isDirectory() && now.ino === known.ino && now.dev === known.dev;
    if (!isSame || realpathSync.native(path) !== path) throw folderChanged();
  };
  verify();
  const at = (name: string) => {
    verify();
    return join(path, name);
  };
  return { at, child: (name, mode) => openChild(at(name), { mode, open: openByName }), verify, close() {} };
}

function openChild(
  path: string,
  { mode, open }: { readonly mode: number | undefined; readonly open: (path: string) => OpenFolder },
): OpenFolder | undefined {
  try {
    return open(path);
  } catch (error) {
    if (getErrorCode(error) !== "ENOENT") throw error;
    if (mode === undefined) return undefined;
  }
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (getErrorCode(error) !== "EEXIST") throw error;
  }
  return open(path);
}

function folderChanged(cause?: unknown): ContextError {
  return new ContextError("write_failed", "a folder of its path was replaced meanwhile", {
    hint: "Run the command again.",
    cause,
  });
}
