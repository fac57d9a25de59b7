/** Turns the bytes of a file into text. */
import { isUtf8 } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import { TextDecoder } from "node:util";
import { type CutText, cutText } from "../../../core/text/index.ts";

export type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "latin1";

/** Enough to decide, and little enough to read from every file. */
const maxSampleBytes = 64 * 1024;

/** Detects the encoding from the first bytes of an open file. */
export async function sampleEncoding(handle: FileHandle): Promise<Encoding | "binary"> {
  const sample = Buffer.alloc(maxSampleBytes);
  const { bytesRead } = await handle.read(sample, 0, maxSampleBytes, 0);
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
  if (sample.length < maxSampleBytes) return sample;
  for (let back = 1; back <= 4; back++) {
    const byte = sample[sample.length - back] ?? 0;
    if (byte < 0x80) return sample;
    if (byte >= 0xc0) return sample.subarray(0, -back);
  }
  return sample;
}

/** Returns undefined if Node does not know the encoding. Removes a byte order mark and replaces invalid bytes with
 *  U+FFFD. */
function createDecoder(encoding: string): TextDecoder | undefined {
  try {
    return new TextDecoder(encoding);
  } catch {
    return undefined;
  }
}

/** Decodes one line given as a byte string, without the carriage return at its end unless `keepsReturn`. If the
 *  encoding of its file is unknown, tries UTF-8, then latin1. */
export function decodeLine(
  bytes: string,
  { encoding, keepsReturn = false }: { readonly encoding?: Encoding | undefined; readonly keepsReturn?: boolean } = {},
): string {
  const line = decodeWholeLine(bytes, encoding);
  return line.endsWith("\r") && !keepsReturn ? line.slice(0, -1) : line;
}

function decodeWholeLine(bytes: string, encoding: Encoding | undefined): string {
  // Most lines are ASCII, which a decoder takes several times as long for. UTF-16 has other bytes.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant, control characters too.
  if (!encoding?.startsWith("utf-16") && /^[\x00-\x7f]*$/.test(bytes)) return bytes;
  const buffer = trimHalves(Buffer.from(bytes, "latin1"), encoding);
  const decoder = createDecoder(encoding ?? (isUtf8(buffer) ? "utf-8" : "latin1"));
  return decoder?.decode(buffer) ?? bytes;
}

/** Lines were cut at the byte of a line feed. In UTF-16 a line feed has a second byte: after it (le) or before it
 *  (be). */
function trimHalves(line: Buffer, encoding: Encoding | undefined): Buffer {
  if (line.length % 2 === 0) return line;
  if (encoding === "utf-16le" && line[0] === 0) return line.subarray(1);
  return encoding === "utf-16be" ? line.subarray(0, -1) : line;
}

/** Removes partial characters at both ends. Returns a byte string. */
export function trimCutEnds(bytes: Buffer): string {
  for (let cut = 0; cut < 16; cut++) {
    const part = bytes.subarray(cut % 4, bytes.length - Math.floor(cut / 4));
    if (isUtf8(part)) return part.toString("latin1");
  }
  return bytes.toString("latin1");
}

/** Returns the text of a small file, or undefined for a binary one. */
export function decodeFile(bytes: Buffer): string | undefined {
  const encoding = detectEncoding(bytes.subarray(0, maxSampleBytes));
  return encoding === "binary" ? undefined : createDecoder(encoding)?.decode(bytes);
}

/** The lines of a file of any size, read with little memory. */
export interface TextLines {
  /** The name of the encoding. */
  readonly encoding: string;
  /** Line feeds, and a carriage return before them, are not part of a line. Text after the last line feed is a line
   *  unless it is empty. If the signal comes inside a line, that line is left out, because it would look complete. */
  readonly batches: AsyncIterable<CutText[]>;
}

interface LineOptions {
  readonly maxLineLength: number;
  /** The first character to show of each line. Default: 1. */
  readonly startColumn?: number;
  readonly signal: AbortSignal;
}

/** Returns undefined if Node does not know the encoding. */
export function openLines(
  handle: FileHandle,
  { encoding, ...options }: LineOptions & { readonly encoding: string },
): TextLines | undefined {
  const decoder = createDecoder(encoding);
  if (decoder === undefined) return undefined;
  const name = decoder.encoding === "windows-1252" ? "latin1" : decoder.encoding;
  return { encoding: name, batches: readLines(handle, decoder, options) };
}

/** Yields a batch for each part that was read. */
async function* readLines(handle: FileHandle, decoder: TextDecoder, options: LineOptions): AsyncGenerator<CutText[]> {
  const buffer = Buffer.alloc(256 * 1024);
  const collector = createLineCollector(options);
  for (let position = 0; !options.signal.aborted; ) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) {
      yield [...collector.collect(decoder.decode()), ...collector.end()];
      return;
    }
    position += bytesRead;
    yield collector.collect(decoder.decode(buffer.subarray(0, bytesRead), { stream: true }));
  }
}

/** Keeps no more of an unfinished line than is shown. */
function createLineCollector({ maxLineLength, startColumn = 1 }: LineOptions) {
  // Also keeps the character before. A column can be inside a surrogate pair, which is then shown whole.
  const skip = Math.max(startColumn - 2, 0);
  const extra = startColumn - 1 - skip;
  let kept = "";
  let length = 0;
  const take = (text: string, from: number, end: number) => {
    const first = from + Math.max(skip - length, 0);
    // One more than is shown, to see a carriage return at its end.
    const last = Math.min(end, from + skip + extra + maxLineLength + 1 - length);
    if (last > first) kept += text.slice(first, last);
    length += end - from;
  };
  const finish = (): CutText => {
    const unshown = /^[\ud800-\udbff][\udc00-\udfff]/.test(kept) ? 0 : Math.min(extra, kept.length);
    const line = kept.slice(unshown);
    const left = Math.max(length - skip - unshown, 0);
    kept = "";
    length = 0;
    // `line` can be one character longer than what is shown. `left` counts to the end of the whole line.
    const isWhole = line.length === left;
    const complete = isWhole ? line.replace(/\r$/, "") : line;
    if (complete.length <= maxLineLength && isWhole) return { text: complete, omitted: 0 };
    const { text } = cutText(complete, maxLineLength);
    return { text, omitted: left - text.length };
  };
  return {
    collect: (text: string): CutText[] => {
      const lines: CutText[] = [];
      let from = 0;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
        take(text, from, end);
        lines.push(finish());
        from = end + 1;
      }
      take(text, from, text.length);
      return lines;
    },
    end: (): CutText[] => (length === 0 ? [] : [finish()]),
  };
}
