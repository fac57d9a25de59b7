/** Lines as ripgrep prints them, `PATH NUL LINE:COLUMN:OFFSET:TEXT`, around a match `PATH NUL LINE-OFFSET-TEXT`. Not its JSON: that
 *  has each line whole and all its matches, however long, and costs more to parse than to find. */
import { isUtf8 } from "node:buffer";
import { decodeBytes } from "../../workspace/index.ts";
import { diskName } from "../source/byte-names.ts";
import { openRegular } from "../source/open-regular.ts";
import { decodeLine } from "../source/text-encoding.ts";
import type { SearchedLine } from "./match.ts";

/** Of a longer line only so many bytes are printed, with a note after them. */
const mostLineBytes = 4_096;

export const lineArguments: readonly string[] = [
  "--text",
  "--with-filename",
  "--null",
  "--no-heading",
  "--line-number",
  "--column",
  "--byte-offset",
  `--max-columns=${mostLineBytes}`,
  "--max-columns-preview",
  "--no-context-separator",
  "--color=never",
  "--threads=1",
];

export interface RipgrepLine {
  readonly name: string;
  readonly number: number;
  /** In bytes from 1, of a line that matches. */
  readonly column: number | undefined;
  /** Where the line begins in the file. */
  readonly offset: number;
  /** As a byte string. */
  readonly text: string;
}

const place = /(\d+)(?::(\d+):(\d+):|-(\d+)-)/y;

export function parseLine(record: string): RipgrepLine | undefined {
  const end = record.indexOf("\0");
  place.lastIndex = end + 1;
  const found = end < 0 ? null : place.exec(record);
  if (found === null) return undefined;
  const [whole, number, column, offset = found[4]] = found;
  return {
    name: decodeBytes(record.slice(0, end)).replace(/^\.\//, ""),
    number: Number(number),
    column: column === undefined ? undefined : Number(column),
    offset: Number(offset),
    text: record.slice(end + 1 + whole.length),
  };
}

/** From here on what is around a match may not have been printed. */
const farBytes = 2_000;

/** Of a line that was printed in part, what is around a match far in it is read from the file at `path`. */
export async function searchedLine(line: RipgrepLine, path: string): Promise<SearchedLine> {
  const { number, column, offset } = line;
  const text = decodeLine(line.text);
  if (column === undefined) return { number, text };
  const start = column - 1;
  // The note makes the printed part longer than this, the last character that found no room a little shorter.
  const isPart = line.text.length > mostLineBytes - 64;
  const around = isPart && start > farBytes ? await readAround(path, offset, start) : undefined;
  if (around !== undefined) return { number, ...around };
  return { number, text, at: isPart && start > farBytes ? 0 : decodeLine(line.text.slice(0, start)).length };
}

type Around = Pick<SearchedLine, "text" | "at">;

/** Undefined where the file has other bytes than ripgrep searched (UTF-16) or cannot be read any more. */
async function readAround(path: string, offset: number, start: number): Promise<Around | undefined> {
  const handle = await openRegular(diskName(path)).catch(() => undefined);
  try {
    const mark = Buffer.alloc(2);
    await handle?.read(mark, 0, 2, 0);
    if (handle === undefined || /^(fffe|feff)$/.test(mark.toString("hex"))) return undefined;
    const bytes = Buffer.alloc(2 * farBytes);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset + start - farBytes);
    const [line = ""] = bytes.toString("latin1", farBytes, bytesRead).split("\n");
    const before = decodeLine(withoutCutEnds(bytes.subarray(0, farBytes)));
    return { text: before + decodeLine(withoutCutEnds(Buffer.from(line, "latin1"))), at: before.length };
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

/** Without the parts of characters at either end, as a byte string. */
function withoutCutEnds(bytes: Buffer): string {
  for (let cut = 0; cut < 16; cut++) {
    const part = bytes.subarray(cut % 4, bytes.length - Math.floor(cut / 4));
    if (isUtf8(part)) return part.toString("latin1");
  }
  return bytes.toString("latin1");
}
