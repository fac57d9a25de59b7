/** Reads UTF-8 text and says in a person's words why a file is not read. A file that cannot be text never throws: the reason is data. */
import { isUtf8 } from "node:buffer";
import { type FileHandle, open } from "node:fs/promises";

export type TextRead = Text | Unread;

export interface Text {
  text: string;
  bytes: number;
}

export interface Unread {
  reason: string;
  /** `binary` and `special` (links, sockets, devices) are no text and lose nothing; `failed` is text, or may be, that was not read. */
  kind: "binary" | "special" | "failed";
}

/** A text twice this size would come near the longest string that V8 can hold, and no context window comes near it. */
export const maxTextBytes: number = 100 * 1024 * 1024;

export interface TextLimit {
  maxBytes: number;
  /** Follows the size in what is said of a larger text. */
  reason: string;
}

const defaultLimit: TextLimit = {
  maxBytes: maxTextBytes,
  reason: `files above ${megabytes(maxTextBytes)} are not read: split it`,
};

/** Pipes and devices are read to their end, so that `<(command)` works. */
export async function readTextFile(path: string, limit: TextLimit = defaultLimit): Promise<TextRead> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path);
    const stats = await handle.stat();
    if (!stats.isFile()) return await readTextStream(handle.createReadStream({ autoClose: false }), limit);
    if (stats.size > limit.maxBytes) return await refuseLarge(handle, stats.size, limit);
    return decodeText(await handle.readFile());
  } catch (error) {
    return { reason: misread(path, error) ?? systemReason(error), kind: "failed" };
  } finally {
    await handle?.close();
  }
}

/** Stops reading as soon as it is too much. */
export async function readTextStream(
  stream: AsyncIterable<Buffer>,
  limit: TextLimit = defaultLimit,
): Promise<TextRead> {
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

/** A byte order mark stays in the text: it is sent to the model like any other character. */
export function decodeText(bytes: Buffer): TextRead {
  if (isUtf16(bytes)) return { reason: "UTF-16 text, only UTF-8 is read: convert it first", kind: "failed" };
  if (startsBinary(bytes)) return binary;
  if (isUtf8(bytes)) return { text: bytes.toString("utf8"), bytes: bytes.length };
  if (bytes.includes(0)) return binary;
  return { reason: `invalid UTF-8 in line ${lineOfInvalidUtf8(bytes)}: convert it first`, kind: "failed" };
}

/** What went wrong, without the path: callers put that in front. `own` says by code what is to be said otherwise. What is no error of
 *  the system is a bug, and thrown on. */
export function systemReason(error: unknown, own: Readonly<Record<string, string>> = {}): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  if (code === undefined) throw error;
  return own[code] ?? reasons[code] ?? `cannot be read (${code})`;
}

/** A listing shows a name that is not UTF-8 with U+FFFD in it, and no file has that name. */
function misread(path: string, error: unknown): string | undefined {
  const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
  return missing && path.includes("\uFFFD") ? "its name is not valid UTF-8" : undefined;
}

const reasons: Readonly<Record<string, string>> = {
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

function isUtf16(bytes: Buffer): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}

/** The test that git uses: a NUL byte in the first 8 KB. */
function startsBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, 8192).includes(0);
}

async function refuseLarge(handle: FileHandle, size: number, limit: TextLimit): Promise<Unread> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(8192), 0, 8192, 0);
  return startsBinary(buffer.subarray(0, bytesRead)) ? binary : tooLarge(megabytes(size), limit);
}

function tooLarge(size: string, { reason }: TextLimit): Unread {
  return { reason: `${size}, ${reason}`, kind: "failed" };
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / (1024 * 1024))} MB`;
}

/** No character spans a line feed in UTF-8, so every line can be judged alone. */
function lineOfInvalidUtf8(bytes: Buffer): number {
  let start = 0;
  for (let line = 1; ; line++) {
    const end = bytes.indexOf(0x0a, start);
    if (end === -1 || !isUtf8(bytes.subarray(start, end))) return line;
    start = end + 1;
  }
}
