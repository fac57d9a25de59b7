/** Writes a file atomically: a temporary file, fsync, rename. At every moment the file is the old one or the new
 *  one. All of it happens in one open folder. */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { isAlive } from "../processes/process-identity.ts";
import { makeDirectory } from "./make-directory.ts";
import { type OpenFolder, openFolder } from "./open-folder.ts";
import { followLinks } from "./paths.ts";

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

export function readFileState(path: string): FileState {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (found === undefined) return undefined;
  const { mode, uid, gid, ino, size, mtimeNs, ctimeNs } = found;
  const version = [ino, size, mtimeNs, ctimeNs].join(" ");
  return { mode: Number(mode), uid: Number(uid), gid: Number(gid), size: Number(size), version };
}

interface FilePlace {
  readonly folder: OpenFolder;
  readonly name: string;
}

export interface Replacement {
  readonly bytes: Buffer | undefined;
  readonly expected: FileState;
  /** Only the owner may read the file. */
  readonly isPrivate?: boolean | undefined;
  /** The permissions of the new file, instead of those of the file that it replaces. */
  readonly mode?: number | undefined;
}

/** Writes `bytes`, or deletes the file for `undefined`. Returns false and does nothing if the file is not in the state
 *  `expected` any more: somebody saved it after it was read, and that change must not be lost. */
export function replaceFile(place: FilePlace, replacement: Replacement): boolean {
  const { folder, name } = place;
  const { bytes, expected, isPrivate = false, mode } = replacement;
  const temporary = bytes === undefined ? undefined : writeTemporary(place, bytes, { like: expected, isPrivate, mode });
  try {
    if (readFileState(folder.at(name))?.version !== expected?.version) return false;
    if (temporary !== undefined) renameSync(folder.at(temporary), folder.at(name));
    else rmSync(folder.at(name), { force: true });
    // Makes the rename durable. Some systems cannot sync a directory; the file is complete there anyway.
    try {
      const descriptor = openSync(folder.at("."), "r");
      try {
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    } catch {
      // Nothing to undo: the new file is in place.
    }
    return true;
  } finally {
    if (temporary !== undefined) rmSync(folder.at(temporary), { force: true });
  }
}

/** Replaces a file in a folder of our own, which it makes if necessary. Call this under a lock. */
export async function replaceOwnFile(path: string, bytes: Buffer): Promise<void> {
  makeDirectory(dirname(path), 0o700);
  const directory = await followLinks(dirname(path));
  const folder = openFolder(directory, { root: directory })!;
  try {
    const place = { folder, name: basename(path) };
    removeStaleTemporaries(place);
    replaceFile(place, { bytes, expected: readFileState(folder.at(place.name)), isPrivate: true });
  } finally {
    folder.close();
  }
}

/** Returns the temporary files of this target, from killed runs and from current ones. */
export function listTemporaries({ folder, name }: FilePlace): readonly { entry: string; pid: number }[] {
  const prefix = `.${name}.plimsoll-`;
  let entries: string[] = [];
  try {
    entries = readdirSync(folder.at("."));
  } catch {
    // A folder that may be entered but not listed.
  }
  return entries.flatMap((entry) => {
    const pid = entry.startsWith(prefix) ? /^(\d+)-\d+\.tmp$/.exec(entry.slice(prefix.length))?.[1] : undefined;
    return pid === undefined ? [] : { entry, pid: Number(pid) };
  });
}

/** Call this under the target's lock: a file with our own process id is then from an earlier process. */
export function removeStaleTemporaries(place: FilePlace): void {
  for (const { entry, pid } of listTemporaries(place)) {
    if (pid === process.pid || !isAlive({ pid })) rmSync(place.folder.at(entry), { force: true });
  }
}

interface Modes {
  /** The file that will be replaced. */
  readonly like: FileState;
  readonly isPrivate: boolean;
  readonly mode?: number | undefined;
}

/** The file gets the mode and owner of the file that it replaces. A new file gets 0644 minus the umask, a private one
 *  0600. Returns its name. */
function writeTemporary({ folder, name }: FilePlace, bytes: Buffer, modes: Modes): string {
  for (let count = 1; ; count++) {
    const entry = `.${name}.plimsoll-${process.pid}-${count}.tmp`;
    try {
      fill({ folder, name: entry }, bytes, modes);
      return entry;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      rmSync(folder.at(entry), { force: true });
      throw error;
    }
  }
}

function fill({ folder, name }: FilePlace, bytes: Buffer, { like, isPrivate, mode }: Modes): void {
  const descriptor = openSync(folder.at(name), "wx", like === undefined && !isPrivate ? 0o644 : 0o600);
  try {
    // If the folder was swapped just before, the file is empty and no text is in the wrong place.
    folder.verify();
    writeFileSync(descriptor, bytes);
    if (like !== undefined) {
      try {
        fchownSync(descriptor, like.uid, like.gid);
      } catch {
        // Only root may change the owner. For others the file becomes theirs, as with any editor that renames.
      }
      fchmodSync(descriptor, like.mode & (isPrivate ? 0o700 : 0o7777));
    }
    if (mode !== undefined) fchmodSync(descriptor, mode);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
