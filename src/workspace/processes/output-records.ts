/** What programs print, as records. */
import type { Hash } from "node:crypto";

/** Lets output pass and adds it to the hash: another output has another version. */
export async function* hashed(output: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of output) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Cuts output at each separator, a batch for each chunk: an await for every record would cost more than the record. A character
 *  a byte, so that no name is damaged and names sort as git sorts them. What follows the last separator is half a record of a
 *  process that was ended, and left out unless it is asked for. A line of many megabytes is given in part: nobody shows more of it. */
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

/** Far more than a chunk has, so that a line in one chunk need not be measured. */
const mostLineBytes = 4 * 1024 * 1024;

async function* boundLines(output: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of output) {
    const first = chunk.indexOf(10);
    const isOver = length > mostLineBytes;
    if (first < 0) length += chunk.length;
    else length = chunk.length - 1 - chunk.lastIndexOf(10);
    if (!isOver) yield chunk;
    else if (first >= 0) yield chunk.subarray(first);
  }
}

/** The text of a byte string; what is not UTF-8 is shown as U+FFFD. */
export function decodeBytes(bytes: string): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant, control characters too.
  return /^[\x00-\x7f]*$/.test(text);
}
