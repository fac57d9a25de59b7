/** Reads the output of programs as records. It stays apart from what starts programs: most commands start none, and
 *  loading `node:child_process` takes as long as a tenth of Node's own start. */
import type { Hash } from "node:crypto";

/** Passes the output on and adds it to the hash. */
export async function* hashed(output: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of output) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Cuts output at each separator, one batch per chunk: an await per record would cost more than the record. One
 *  character is one byte, so no name is damaged and names sort as in git. Text after the last separator is half a
 *  record of a stopped process; it is dropped unless asked for. A line of many megabytes is cut. */
export async function* splitRecords(
  output: AsyncIterable<Buffer>,
  separator: "\0" | "\n",
  lastPart: "leave" | "keep" = "leave",
): AsyncGenerator<string[]> {
  let rest = "";
  for await (const chunk of separator === "\n" ? boundLines(output) : output) {
    const records = chunk.toString("latin1").split(separator);
    records[0] = rest + records[0];
    rest = records.pop() ?? "";
    if (records.length > 0) yield records;
  }
  if (rest !== "" && lastPart === "keep") yield [rest];
}

async function* boundLines(output: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // Much larger than a chunk, so a line within one chunk need not be measured.
  const maxLineBytes = 4 * 1024 * 1024;
  let length = 0;
  for await (const chunk of output) {
    const first = chunk.indexOf(10);
    const isOver = length > maxLineBytes;
    if (first < 0) length += chunk.length;
    else length = chunk.length - 1 - chunk.lastIndexOf(10);
    if (!isOver) yield chunk;
    else if (first >= 0) yield chunk.subarray(first);
  }
}

/** Returns the text of a byte string. Bytes that are not UTF-8 become U+FFFD. */
export function decodeBytes(bytes: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant, control characters too.
  return /^[\x00-\x7f]*$/.test(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}
