/** Reads the lines of an open file in pieces, so that neither a large file nor a long line fills the memory. */

import { readSync } from "node:fs";

export interface LineRange {
  readonly start: number;
  readonly size: number;
  /** How many bytes may still be read, of this file and others.
   *  @default no limit */
  readonly budget?: { bytes: number } | undefined;
}

export interface LinesRead {
  /** Where the last complete line ends. */
  readonly offset: number;
  /** Where reading ended: at the end of the file, or after the last complete line that the budget allowed. */
  readonly end: number;
  /** What follows the last line break of the file. Undefined if reading ended before it. */
  readonly rest?: { readonly text: string; readonly isCut: boolean } | undefined;
}

const chunkBytes = 1 << 20;
/** A longer line is not read, because its text and its values would take several times its size. */
const maxLineBytes = 32 << 20;
/** Shows what kind of line it is. */
const headBytes = 4096;

/** Calls `onLine` with each complete line. `isCut` says that a line is too long and the text is only its head. Stops if
 *  `onLine` returns false. */
export function readLines(
  file: number,
  { start, size, budget = { bytes: Number.POSITIVE_INFINITY } }: LineRange,
  onLine: (text: string, isCut: boolean) => boolean,
): LinesRead {
  const chunk = Buffer.allocUnsafe(Math.max(0, Math.min(chunkBytes, size - start)));
  const line = createLineStart();
  let [offset, position] = [start, start];
  // A line that was begun is read to its end: otherwise a long line would be begun in every run.
  const mayRead = (): boolean => budget.bytes > 0 || (offset === start && position > start);
  while (position < size && mayRead()) {
    const length = readSync(file, chunk, 0, chunk.length, position);
    if (length === 0) break;
    position += length;
    budget.bytes -= length;
    let from = 0;
    for (let to = chunk.indexOf(10); to >= 0 && to < length; to = chunk.indexOf(10, from)) {
      const text = decodeLine(line.end(chunk.subarray(from, to)));
      from = to + 1;
      offset = position - length + from;
      if (!onLine(text, line.isCut)) return { offset, end: offset };
    }
    if (from < length) line.add(chunk.subarray(from, length));
  }
  if (position < size) return { offset, end: offset };
  const text = decodeLine(line.end(Buffer.alloc(0)));
  return { offset, end: size, rest: { text, isCut: line.isCut } };
}

/** Collects the chunks of a line. */
function createLineStart() {
  let pieces: Buffer[] = [];
  let length = 0;
  let isCut = false;
  const add = (piece: Buffer): void => {
    length += piece.length;
    if (length <= maxLineBytes) pieces.push(Buffer.from(piece));
    else pieces = pieces.slice(0, 1).map((first) => first.subarray(0, headBytes));
  };
  return {
    add,
    /** Returns the line with its last piece, and starts the next one. */
    end(piece: Buffer): Buffer {
      isCut = false;
      if (length === 0) return piece;
      add(piece);
      isCut = length > maxLineBytes;
      const line = Buffer.concat(pieces);
      pieces = [];
      length = 0;
      return line;
    },
    /** Whether the last line was too long. Then only its head was kept. */
    get isCut(): boolean {
      return isCut;
    },
  };
}

function decodeLine(line: Buffer): string {
  const end = line.at(-1) === 13 ? line.length - 1 : line.length;
  return line.toString("utf8", line[0] === 0xef && line[1] === 0xbb ? 3 : 0, end);
}
