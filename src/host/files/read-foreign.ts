/** Reads files that Plimsoll did not write: those of a repository, of other programs, of people. Such a file may be a
 *  link to a secret or a pipe without a writer, and it may be exchanged while it is read. So nothing here leaves what
 *  was named, waits for a writer or reads without a limit. A file that a person types may be a pipe: `readTextFile`
 *  reads those. */
import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { isInside } from "./paths.ts";
import { decodeText, refuseLarge, systemReason, type TextRead, type Unread } from "./read-text.ts";

interface ForeignOptions {
  /** The folder or file that was named. What really lies elsewhere is not read. Without it links lead anywhere: leave
   *  it out only for files that no repository can bring. */
  readonly within?: string | undefined;
  /** Refuses a link in the place of the file, wherever it leads. */
  readonly refuseLink?: boolean | undefined;
  /** @default 5 MB: files that people write by hand are much smaller. */
  readonly maxBytes?: number | undefined;
  /** The message after the size of a file that is too large. */
  readonly reason?: string | undefined;
  /** How long to read. Checked between two pieces, because nothing can interrupt one.
   *  @default 5_000 */
  readonly maxMs?: number | undefined;
}

const maxForeignBytes = 5 * 1024 * 1024;

/** Returns the bytes of a regular file, or the reason why not. Waits for the disk: going to another thread several
 *  times takes longer than reading a small file. */
export function readForeign(path: string | Buffer, options: ForeignOptions = {}): Buffer | Unread {
  const file = openForeign(path, options);
  if ("reason" in file) return file;
  try {
    // Reads to the end, not to the size: files of the system have the size 0, and others grow.
    const {
      descriptor,
      stats: { size },
    } = file;
    const headBytes = 8192;
    const { maxBytes = maxForeignBytes, maxMs = 5_000 } = options;
    const latest = process.uptime() * 1000 + maxMs;
    // The first bytes of a file that is too large still show whether it is text.
    let buffer = Buffer.allocUnsafe(size > maxBytes ? headBytes : size + 1);
    for (let length = 0; ; ) {
      if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length + pieceBytes, maxBytes + 1));
      const read = readSync(descriptor, buffer, length, Math.min(pieceBytes, buffer.length - length), null);
      length += read;
      if (size > maxBytes || length > maxBytes) return explainLarge(buffer.subarray(0, length), size, options);
      if (read === 0) return buffer.subarray(0, length);
      if (process.uptime() * 1000 > latest) return { reason: `is not read within ${maxMs / 1000} s`, kind: "failed" };
    }
  } catch (error) {
    return { reason: systemReason(error), kind: "failed" };
  } finally {
    closeSync(file.descriptor);
  }
}

/** Works as `readForeign`, for UTF-8 text. */
export function readForeignText(path: string | Buffer, options: ForeignOptions = {}): TextRead {
  const read = readForeign(path, options);
  return Buffer.isBuffer(read) ? decodeText(read) : read;
}

/** Works as `readForeign`, for a byte string: one character a byte. Returns `undefined` if the file is not read. */
export function readForeignBytes(path: string, options: ForeignOptions = {}): string | undefined {
  const read = readForeign(path, options);
  return Buffer.isBuffer(read) ? read.toString("latin1") : undefined;
}

/** Opens a regular file. First looks where the path leads, because opening a device can have effects. Looks again at
 *  what was opened, because the path may lead elsewhere by then. */
export function openForeign(
  path: string | Buffer,
  { within, refuseLink }: ForeignOptions = {},
): { readonly descriptor: number; readonly stats: Stats } | Unread {
  let descriptor: number | undefined;
  try {
    if (refuseLink === true && lstatSync(path).isSymbolicLink())
      return { reason: "is a symbolic link, not a file", kind: "special" };
    const real = realpathSync.native(path, "buffer");
    const refused = refusePlace(real, within) ?? refuseKind(statSync(real));
    if (refused !== undefined) return refused;
    descriptor = openSync(real, openFlags);
    const stats = fstatSync(descriptor);
    const changed = refuseKind(stats) ?? refuseOpened(descriptor, { path: real, within });
    if (changed !== undefined) return changed;
    const file = { descriptor, stats };
    descriptor = undefined;
    return file;
  } catch (error) {
    return { reason: systemReason(error), kind: "failed" };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Lists a folder. A link that leads out of `within` is not followed, also if it is put there meanwhile. */
export function listForeign(folder: string, { within }: Pick<ForeignOptions, "within"> = {}): Dirent[] | Unread {
  let descriptor: number | undefined;
  try {
    const real = realpathSync.native(folder, "buffer");
    const refused = refusePlace(real, within);
    if (refused !== undefined) return refused;
    if (within === undefined || process.platform !== "linux") return namesIn(real.toString("utf8"));
    descriptor = openSync(real, openFlags | constants.O_DIRECTORY);
    return refuseOpened(descriptor, { path: real, within }) ?? namesIn(`/proc/self/fd/${descriptor}`);
  } catch (error) {
    return { reason: systemReason(error, { ENOTDIR: "is not a directory" }), kind: "failed" };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** With these flags, a pipe does not wait for a writer, and a link that was put into the place of the file is not
 *  followed. Windows has none of them. */
const openFlags =
  constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0) | (constants.O_NOCTTY ?? 0);

/** Returns why an open file is not used: it is not in `within`. A folder on its path may be a link by now. */
export function refuseOpened(
  descriptor: number,
  { path, within }: { readonly path: string | Buffer; readonly within: string | undefined },
): Unread | undefined {
  if (within === undefined) return undefined;
  const place = findOpenedPlace(descriptor);
  if (place !== undefined) return refusePlace(place, within);
  const real = realpathSync.native(path, "buffer");
  const [opened, there] = [fstatSync(descriptor), lstatSync(real)];
  const isSame = opened.dev === there.dev && opened.ino === there.ino;
  return isSame ? refusePlace(real, within) : { reason: "was exchanged while it was opened", kind: "failed" };
}

/** Only Linux says where an open file is. Elsewhere its path must lead to the same file again. */
function findOpenedPlace(descriptor: number): Buffer | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`, "buffer");
  } catch {
    return undefined;
  }
}

/** Compares byte strings, because a name need not be UTF-8. */
function refusePlace(real: Buffer, within: string | undefined): Unread | undefined {
  if (within === undefined) return undefined;
  const named = realpathSync.native(within, "buffer");
  if (isInside(real.toString("latin1"), named.toString("latin1"))) return undefined;
  const reason = `leads through a symbolic link out of ${within}, to ${real.toString("utf8")}. Copy the file instead`;
  return { reason, kind: "special" };
}

function refuseKind(stats: Stats): Unread | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return { reason: "is a directory", kind: "failed" };
  return { reason: "is a pipe, socket or device, not a file", kind: "special" };
}

const pieceBytes = 1024 * 1024;

function explainLarge(head: Buffer, size: number, options: ForeignOptions): Unread {
  const { maxBytes = maxForeignBytes, reason } = options;
  const bytes = Math.max(size, head.length);
  if (reason !== undefined) return refuseLarge(head, bytes, { maxBytes, reason });
  return { reason: `has ${bytes} bytes, more than ${maxBytes} are not read`, kind: "failed" };
}

function namesIn(folder: string): Dirent[] {
  return readdirSync(folder, { withFileTypes: true });
}
