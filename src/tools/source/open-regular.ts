import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** Opened so, a pipe does not wait for a writer, and a link that took the file's place meanwhile is not followed. What is no file may be
 *  open then: look before you read it. */
export function openRegular(path: string | Buffer): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0));
}
