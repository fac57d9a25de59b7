/** Removes and copies whole folders that another process may be changing. Neither goes into a link. */
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { copyFile, readdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { type OpenFolder, openFolder } from "./open-folder.ts";
import { followLinks, upward } from "./paths.ts";
import { getErrorCode } from "./read-text.ts";

/** Removes a folder with everything in it, or a link or file in its place. It may be missing. The entry `first` goes
 *  before all others. */
export async function removeTree(path: string, { first }: { readonly first?: string } = {}): Promise<void> {
  const parent = await followLinks(dirname(path));
  const around = quietly(["ENOENT"], () => openFolder(parent, { root: parent }));
  if (around === undefined) return;
  try {
    const folder = first === undefined ? undefined : openEntry(around, basename(path));
    if (folder !== undefined) removeFile(folder, first!);
    folder?.close();
    await removeEntry(around, basename(path));
  } finally {
    around.close();
  }
}

async function removeEntry(around: OpenFolder, name: string): Promise<void> {
  // A process that keeps writing into the folder is not worth waiting for.
  const maxAttempts = 10;
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const folder = openEntry(around, name);
    if (folder === undefined) removeFile(around, name);
    else {
      await removeContent(folder).finally(() => folder.close());
      quietly(["ENOENT", "ENOTDIR", "ENOTEMPTY", "EEXIST"], () => rmdirSync(around.at(name)));
    }
    if (lstatSync(around.at(name), { throwIfNoEntry: false }) === undefined) return;
  }
  throw new ContextError("write_failed", "could not be removed: another program keeps writing it", { file: name });
}

/** Returns `undefined` for a link or a file. */
function openEntry(around: OpenFolder, name: string): OpenFolder | undefined {
  try {
    return around.child(name);
  } catch (error) {
    if (error instanceof ContextError) return undefined;
    throw error;
  }
}

async function removeContent(folder: OpenFolder): Promise<void> {
  const entries = await readdir(folder.at("."), { withFileTypes: true, encoding: "buffer" });
  for (const [index, entry] of entries.entries()) {
    let name = entry.name.toString();
    if (!Buffer.from(name).equals(entry.name)) {
      // Not UTF-8, so a string cannot name it.
      name = `.plimsoll-${process.pid}-${index}.tmp`;
      renameSync(Buffer.concat([Buffer.from(`${folder.at(".")}/`), entry.name]), folder.at(name));
    }
    if (entry.isDirectory()) await removeEntry(folder, name);
    else removeFile(folder, name);
  }
}

/** A folder that has replaced the file meanwhile stays for the next attempt. */
function removeFile(folder: OpenFolder, name: string): void {
  quietly(["ENOENT", "EISDIR", "EPERM"], () => unlinkSync(folder.at(name)));
}

/** Removes the folders that were made for a file, as far as nothing else is in them. The root stays, and so do folders
 *  that are not in `only`. */
export async function removeEmptyFolders(path: string, root: string, only?: readonly string[]): Promise<void> {
  for (const folder of upward(dirname(path), root)) {
    if (folder === root || only?.includes(folder) === false) return;
    // A killed run may have made only the outer folders.
    if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) continue;
    let around: OpenFolder | undefined;
    try {
      around = openFolder(await followLinks(dirname(folder)), { root: await followLinks(root) });
      if (around === undefined) return;
      rmdirSync(around.at(basename(folder)));
    } catch {
      return;
    } finally {
      around?.close();
    }
  }
}

function quietly<Result>(codes: readonly string[], action: () => Result): Result | undefined {
  try {
    return action();
  } catch (error) {
    if (codes.includes(getErrorCode(error) ?? "")) return undefined;
    throw error;
  }
}

interface Copying {
  readonly from: OpenFolder;
  readonly to: OpenFolder;
}

/** Copies an entry, with links as they are. Shares the blocks of files where the file system can. */
export async function copyTree(name: string, { from, to }: Copying): Promise<void> {
  const stats = lstatSync(from.at(name));
  if (stats.isSymbolicLink()) return symlinkSync(readlinkSync(from.at(name)), to.at(name));
  if (stats.isDirectory()) return copyFolder(name, { from, to });
  if (stats.isFile()) return copyOneFile(name, { from, to });
  throw new ContextError("refused_target", "is a pipe, socket or device, not a file", { file: name });
}

async function copyFolder(name: string, copying: Copying): Promise<void> {
  const from = copying.from.child(name);
  const to = copying.to.child(name, 0o700);
  try {
    if (from === undefined || to === undefined) return;
    for (const entry of await readdir(from.at("."))) await copyTree(entry, { from, to });
    chmodSync(to.at("."), lstatSync(from.at(".")).mode & 0o7777);
  } finally {
    from?.close();
    to?.close();
  }
}

async function copyOneFile(name: string, { from, to }: Copying): Promise<void> {
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const descriptor = openSync(from.at(name), flags);
  try {
    const source = process.platform === "linux" ? `/proc/self/fd/${descriptor}` : from.at(name);
    await copyFile(source, to.at(name), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  } finally {
    closeSync(descriptor);
  }
}
