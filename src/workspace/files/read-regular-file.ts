/** Reads files that a program finds by their name: a pipe in such a place would wait for a writer for ever. */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { decodeText, systemReason, type TextRead, type Unread } from "./read-text.ts";

/** What people write by hand stays far below. */
const maxRegularBytes = 5 * 1024 * 1024;

/** The bytes of a regular file, links followed, or why there are none. Pipes and devices are for `readTextFile`. */
export async function readRegularFile(
  path: string,
  maxBytes: number = maxRegularBytes,
): Promise<Buffer | Unread> {
  let handle: FileHandle | undefined;
  try {
    // Asking for the kind first and opening then would leave time to swap the file; opened so, a pipe does not wait.
    handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await handle.stat();
    if (stats.isDirectory()) return { reason: "is a directory", kind: "failed" };
    if (!stats.isFile()) return { reason: "is a pipe, socket or device, not a file", kind: "special" };
    if (stats.size > maxBytes) {
      return { reason: `has ${stats.size} bytes, more than ${maxBytes} are not read`, kind: "failed" };
    }
    return await handle.readFile();
  } catch (error) {
    return { reason: systemReason(error), kind: "failed" };
  } finally {
    await handle?.close();
  }
}

/** As `readRegularFile`, for UTF-8 text. */
export async function readRegularText(path: string): Promise<TextRead> {
  const read = await readRegularFile(path);
  return Buffer.isBuffer(read) ? decodeText(read) : read;
}
