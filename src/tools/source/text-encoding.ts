/** Turns the bytes of a file into text. */
import { isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import { TextDecoder } from "node:util";

export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "latin1";

/** Enough to decide, and little enough to read from every file. */
const sampleBytes = 64 * 1024;

/** Detects the encoding from the first bytes of an open file. */
export async function sampleEncoding(handle: FileHandle): Promise<Encoding | "binary"> {
  const sample = Buffer.alloc(sampleBytes);
  const { bytesRead } = await handle.read(sample, 0, sampleBytes, 0);
  return detectEncoding(sample.subarray(0, bytesRead));
}

/** A byte order mark decides. A NUL byte near the start means binary, as for git. Text that is not UTF-8 is read as
 *  latin1, which has a character for every byte. */
function detectEncoding(sample: Buffer): Encoding | "binary" {
  if (sample[0] === 0xff && sample[1] === 0xfe) return "utf-16le";
  if (sample[0] === 0xfe && sample[1] === 0xff) return "utf-16be";
  if (sample.subarray(0, 8192).includes(0)) return "binary";
  return isUtf8(withoutCutCharacter(sample)) ? "utf-8" : "latin1";
}

/** A sample may end inside a character. That character is ignored. */
function withoutCutCharacter(sample: Buffer): Buffer {
  if (sample.length < sampleBytes) return sample;
  for (let back = 1; back <= 4; back++) {
    const byte = sample[sample.length - back] ?? 0;
    if (byte < 0x80) return sample;
    if (byte >= 0xc0) return sample.subarray(0, -back);
  }
  return sample;
}

/** Returns undefined if Node does not know the encoding. Removes a byte order mark and replaces invalid bytes with
 *  U+FFFD. */
export function createDecoder(encoding: string): TextDecoder | undefined {
  try {
    return new TextDecoder(encoding);
  } catch {
    return undefined;
  }
}

/** Decodes one line given as a byte string, without the carriage return at its end. If the encoding of its file is
 *  unknown, tries UTF-8, then latin1. */
export function decodeLine(bytes: string, encoding?: Encoding): string {
  const line = decodeWholeLine(bytes, encoding);
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** Keeps the carriage return. */
export function decodeWholeLine(bytes: string, encoding?: Encoding): string {
  // Most lines are ASCII, which a decoder takes several times as long for. UTF-16 has other bytes.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant, control characters too.
  if (!encoding?.startsWith("utf-16") && /^[\x00-\x7f]*$/.test(bytes)) return bytes;
  const buffer = halvesTrimmed(Buffer.from(bytes, "latin1"), encoding);
  const decoder = createDecoder(encoding ?? (isUtf8(buffer) ? "utf-8" : "latin1"));
  return decoder?.decode(buffer) ?? bytes;
}

/** Lines were cut at the byte of a line feed. In UTF-16 a line feed has a second byte: after it (le) or before it
 *  (be). */
function halvesTrimmed(line: Buffer, encoding: Encoding | undefined): Buffer {
  if (line.length % 2 === 0) return line;
  if (encoding === "utf-16le" && line[0] === 0) return line.subarray(1);
  return encoding === "utf-16be" ? line.subarray(0, -1) : line;
}

/** Returns the text of a small file, or undefined for a binary one. */
export function decodeFile(bytes: Buffer): string | undefined {
  const encoding = detectEncoding(bytes.subarray(0, sampleBytes));
  return encoding === "binary" ? undefined : createDecoder(encoding)?.decode(bytes);
}
