/** How the bytes of a file become text. */
import { isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import { TextDecoder } from "node:util";

export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "latin1";

/** Enough to tell, little enough to read of every file. */
const sampleBytes = 64 * 1024;

/** By the first bytes of an open file. */
export async function sampleEncoding(handle: FileHandle): Promise<Encoding | "binary"> {
  const sample = Buffer.alloc(sampleBytes);
  const { bytesRead } = await handle.read(sample, 0, sampleBytes, 0);
  return detectEncoding(sample.subarray(0, bytesRead));
}

/** A byte order mark decides; a NUL byte near the start means binary, the test that git uses; what is
 *  not UTF-8 is read as latin1, which has a character for every byte. */
function detectEncoding(sample: Buffer): Encoding | "binary" {
  if (sample[0] === 0xff && sample[1] === 0xfe) return "utf-16le";
  if (sample[0] === 0xfe && sample[1] === 0xff) return "utf-16be";
  if (sample.subarray(0, 8192).includes(0)) return "binary";
  return isUtf8(withoutCutCharacter(sample)) ? "utf-8" : "latin1";
}

/** A sample may end inside a character: without the start of that one the rest is judged. */
function withoutCutCharacter(sample: Buffer): Buffer {
  if (sample.length < sampleBytes) return sample;
  for (let back = 1; back <= 4; back++) {
    const byte = sample[sample.length - back] ?? 0;
    if (byte < 0x80) return sample;
    if (byte >= 0xc0) return sample.subarray(0, -back);
  }
  return sample;
}

/** Undefined when Node knows no such encoding. A byte order mark is no part of the text, and bytes that mean nothing come as U+FFFD. */
export function createDecoder(encoding: string): TextDecoder | undefined {
  try {
    return new TextDecoder(encoding);
  } catch {
    return undefined;
  }
}

/** The text of one line as a byte string, without the carriage return at its end. Without the encoding of its file it is UTF-8 or else
 *  latin1. */
export function decodeLine(bytes: string, encoding?: Encoding): string {
  const line = decodeWholeLine(bytes, encoding);
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** With the carriage return. */
export function decodeWholeLine(bytes: string, encoding?: Encoding): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant, control characters too.
  if (encoding === undefined && /^[\x00-\x7f]*$/.test(bytes)) return bytes;
  const buffer = halvesTrimmed(Buffer.from(bytes, "latin1"), encoding);
  const decoder = createDecoder(encoding ?? (isUtf8(buffer) ? "utf-8" : "latin1"));
  return decoder?.decode(buffer) ?? bytes;
}

/** Lines were cut at the byte of a line feed, of which UTF-16 has a second one: after it (le) or before it (be). */
function halvesTrimmed(line: Buffer, encoding: Encoding | undefined): Buffer {
  if (line.length % 2 === 0) return line;
  if (encoding === "utf-16le" && line[0] === 0) return line.subarray(1);
  return encoding === "utf-16be" ? line.subarray(0, -1) : line;
}

/** The text of a small file, or undefined for a binary one. */
export function decodeFile(bytes: Buffer): string | undefined {
  const encoding = detectEncoding(bytes.subarray(0, sampleBytes));
  return encoding === "binary" ? undefined : createDecoder(encoding)?.decode(bytes);
}
