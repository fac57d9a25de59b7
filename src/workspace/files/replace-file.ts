/** Writes a file atomically: a temporary file, fsync, rename. At every moment the file is the old one or the new
 *  one. */
import { lstat, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isAlive } from "../processes/process-identity.ts";
import { makeDirectory } from "./make-directory.ts";

/** Identifies one state of a file without reading it again. `undefined` for a file that does not exist. */
export type FileState =
  | {
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      readonly size: number;
      readonly version: string;
    }
  | undefined;

export async function fileStateOf(path: string): Promise<FileState> {
  try {
    const { mode, uid, gid, ino, size, mtimeNs, ctimeNs } = await lstat(path, { bigint: true });
    const version = [ino, size, mtimeNs, ctimeNs].join(" ");
    return { mode: Number(mode), uid: Number(uid), gid: Number(gid), size: Number(size), version };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export interface Replacement {
  readonly bytes: Buffer | undefined;
  readonly expected: FileState;
  /** Only the owner may read the file and the directories made for it. */
  readonly isPrivate?: boolean | undefined;
}

/** Writes `bytes`, or deletes the file for `undefined`. Returns false and does nothing if the file is not in the state
 *  `expected` any more: somebody saved it after it was read, and that change must not be lost. */
export async function replaceFile(path: string, { bytes, expected, isPrivate = false }: Replacement): Promise<boolean> {
  const directory = dirname(path);
  if (bytes !== undefined) await makeDirectory(directory, isPrivate ? 0o700 : 0o777);
  const temporary = bytes === undefined ? undefined : await writeTemporary(path, bytes, { like: expected, isPrivate });
  try {
    if ((await fileStateOf(path))?.version !== expected?.version) return false;
    if (temporary !== undefined) await rename(temporary, path);
    else await rm(path, { force: true });
    await syncDirectory(directory);
    return true;
  } finally {
    if (temporary !== undefined) await rm(temporary, { force: true });
  }
}

/** Returns the temporary files of this target, from killed runs and from current ones. */
export async function listTemporaries(path: string): Promise<readonly { file: string; pid: number }[]> {
  const prefix = `.${basename(path)}.plimsoll-`;
  const entries = await readdir(dirname(path)).catch(() => []);
  return entries.flatMap((entry) => {
    const pid = entry.startsWith(prefix) ? /^(\d+)-\d+\.tmp$/.exec(entry.slice(prefix.length))?.[1] : undefined;
    return pid === undefined ? [] : { file: join(dirname(path), entry), pid: Number(pid) };
  });
}

/** Call this under the target's lock: a file with our own process id is then from an earlier process. */
export async function removeStaleTemporaries(path: string): Promise<void> {
  for (const { file, pid } of await listTemporaries(path)) {
    if (pid === process.pid || !isAlive({ pid })) await rm(file, { force: true });
  }
}

interface Modes {
  /** The file that will be replaced. */
  readonly like: FileState;
  readonly isPrivate: boolean;
}

/** The file gets the mode and owner of the file that it replaces. A new file gets 0644 minus the umask, a private one
 *  0600. */
async function writeTemporary(path: string, bytes: Buffer, modes: Modes): Promise<string> {
  for (let count = 1; ; count++) {
    const file = join(dirname(path), `.${basename(path)}.plimsoll-${process.pid}-${count}.tmp`);
    try {
      await fill(file, bytes, modes);
      return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      await rm(file, { force: true });
      throw error;
    }
  }
}

async function fill(file: string, bytes: Buffer, { like, isPrivate }: Modes): Promise<void> {
  const handle = await open(file, "wx", like === undefined && !isPrivate ? 0o644 : 0o600);
  try {
    await handle.writeFile(bytes);
    if (like !== undefined) {
      // Only root may change the owner. For others the file becomes theirs, as with any editor that renames.
      await handle.chown(like.uid, like.gid).catch(() => {});
      await handle.chmod(like.mode & (isPrivate ? 0o700 : 0o7777));
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes the rename durable. Some systems cannot sync a directory; the file is complete there anyway. */
async function syncDirectory(directory: string): Promise<void> {
  try {
    const handle = await open(directory, "r");
    await handle.sync().finally(() => handle.close());
  } catch {
    // Nothing to undo: the new file is in place.
  }
}
