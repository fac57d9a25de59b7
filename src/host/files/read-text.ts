/** Reads UTF-8 text, or returns the reason why a file is not read. Content that is not text never throws: the reason is
 *  data. */
import { isUtf8 } from "node:buffer";
import { type FileHandle, open, readdir, realpath } from "node:fs/promises";
import { resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";

export type TextRead = { text: string; bytes: number } | Unread;

export interface Unread {
  reason: string;
  /** `binary` and `special` (links, sockets, devices) are not text, so nothing is lost. `failed` is or may be text that
   *  was not read. */
  kind: "binary" | "special" | "failed";
}

/** A text of twice this size is close to V8's longest string, and no context window is that large. */
export const maxTextBytes: number = 100 * 1024 * 1024;

export interface TextLimit {
  maxBytes: number;
  /** The message after the size of a text that is too large. */
  reason: string;
}

export const textLimit: TextLimit = {
  maxBytes: maxTextBytes,
  reason: `files above ${megabytes(maxTextBytes)} are not read: split it`,
};

/** Reads a file that a person typed. Reads pipes and devices to their end, so `<(command)` works. Use `readForeignText`
 *  for a file that a program finds by its name. */
export async function readTextFile(path: string, limit: TextLimit = textLimit): Promise<TextRead> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path);
    const stats = await handle.stat();
    if (!stats.isFile()) return await readTextStream(handle.createReadStream({ autoClose: false }), limit);
    if (stats.size > limit.maxBytes) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(8192), 0, 8192, 0);
      return refuseLarge(buffer.subarray(0, bytesRead), stats.size, limit);
    }
    return decodeText(await handle.readFile());
  } catch (error) {
    // A listing shows a name that is not UTF-8 with U+FFFD, and no file has that name.
    const isMisread = getErrorCode(error) === "ENOENT" && path.includes("\uFFFD");
    return { reason: isMisread ? "its name is not valid UTF-8" : systemReason(error), kind: "failed" };
  } finally {
    await handle?.close();
  }
}

/** Stops reading as soon as the text is too large. */
export async function readTextStream(stream: AsyncIterable<Buffer>, limit: TextLimit = textLimit): Promise<TextRead> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > limit.maxBytes) return tooLarge(`more than ${megabytes(limit.maxBytes)}`, limit);
    }
  } catch (error) {
    return { reason: systemReason(error), kind: "failed" };
  }
  return decodeText(Buffer.concat(chunks));
}

/** Keeps a byte order mark in the text: it is sent to the model like any other character. */
export function decodeText(bytes: Buffer): TextRead {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff))
    return { reason: "UTF-16 text, only UTF-8 is read: convert it first", kind: "failed" };
  if (startsBinary(bytes)) return binary;
  if (isUtf8(bytes)) return { text: bytes.toString("utf8"), bytes: bytes.length };
  if (bytes.includes(0)) return binary;
  return { reason: `invalid UTF-8 in line ${lineOfInvalidUtf8(bytes)}: convert it first`, kind: "failed" };
}

/** Returns the reason without the path, which callers put in front. `own` overrides the reasons by error code. Rethrows
 *  an error that is not a system error: it is a bug. */
export function systemReason(error: unknown, own: Readonly<Record<string, string>> = {}): string {
  const code = getErrorCode(error);
  if (code === undefined) throw error;
  return own[code] ?? readReasons[code] ?? `cannot be read (${code})`;
}

/** Returns the code of a system error, such as ENOENT. */
export function getErrorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}

const readReasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file or directory",
  EACCES: "no permission to read it",
  EPERM: "no permission to read it",
  EISDIR: "is a directory",
  ENOTDIR: "a part of its path is not a directory",
  ELOOP: "its symbolic links lead in a circle",
  ENAMETOOLONG: "its path is too long",
  EMFILE: "too many open files",
  EIO: "the disk reports an error",
  ENXIO: "is a socket or a device that cannot be read",
};

const binary: Unread = { reason: "binary file", kind: "binary" };

/** Git's test: a NUL byte in the first 8 KB. */
function startsBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, 8192).includes(0);
}

/** Returns why a file is not read. `head` has its first bytes. */
export function refuseLarge(head: Buffer, size: number, limit: TextLimit): Unread {
  return startsBinary(head) ? binary : tooLarge(megabytes(size), limit);
}

function tooLarge(size: string, { reason }: TextLimit): Unread {
  return { reason: `${size}, ${reason}`, kind: "failed" };
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / (1024 * 1024))} MB`;
}

/** No UTF-8 character spans a line feed, so every line can be checked alone. */
function lineOfInvalidUtf8(bytes: Buffer): number {
  let start = 0;
  for (let line = 1; ; line++) {
    const end = bytes.indexOf(0x0a, start);
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) return line;
    start = end + 1;
  }
}

/** Returns the real path of a directory that can be listed. Throws with the given name otherwise. */
export async function openDirectory(name: string, cwd = ""): Promise<string> {
  try {
    const path = await realpath(resolve(cwd, name));
    await readdir(path);
    return path;
  } catch (cause) {
    throw new ContextError(
      "unreadable_input",
      systemReason(cause, { ENOENT: "no such directory", ENOTDIR: "is not a directory" }),
      { file: name, cause },
    );
  }
}

/** Far larger than any context window. */
export const messagesLimit: TextLimit = {
  maxBytes: 100 * 1024 * 1024,
  reason: "a history above 100 MB is not read. Remove its oldest messages first",
};
