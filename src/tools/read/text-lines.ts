/** Lines of a file of any size, in little memory. */
import type { FileHandle } from "node:fs/promises";
import type { TextDecoder } from "node:util";

export interface TextLine {
  readonly text: string;
  /** Characters that are left out after `text`. */
  readonly omitted: number;
}

export interface LineOptions {
  readonly decoder: TextDecoder;
  readonly maxLineLength: number;
  readonly signal: AbortSignal;
}

const chunkBytes = 256 * 1024;

/** A batch for each part that was read. Line feeds and a carriage return before them belong to no line; what follows the last one is a
 *  line unless it is empty. */
export async function* readLines(handle: FileHandle, options: LineOptions): AsyncGenerator<TextLine[]> {
  const { decoder, signal } = options;
  const buffer = Buffer.alloc(chunkBytes);
  const collect = createLineCollector(options.maxLineLength);
  for (let position = 0; !signal.aborted; ) {
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    yield collect(decoder.decode(buffer.subarray(0, bytesRead), { stream: true }));
  }
  const last = [...collect(decoder.decode()), ...collect("\n")];
  yield last.filter(({ text, omitted }, index) => index < last.length - 1 || text !== "" || omitted > 0);
}

/** Keeps the start of a line that is not over yet, never more of it than is shown. */
function createLineCollector(maxLineLength: number): (text: string) => TextLine[] {
  let start = "";
  let length = 0;
  return (text) => {
    const lines: TextLine[] = [];
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      const line = start + text.slice(from, Math.min(end, from + maxLineLength + 1));
      lines.push(finished(line, length + end - from, maxLineLength));
      start = "";
      length = 0;
      from = end + 1;
    }
    start = (start + text.slice(from, from + maxLineLength + 1)).slice(0, maxLineLength + 1);
    length += text.length - from;
    return lines;
  };
}

/** `line` may be one character longer than what is shown, so that a carriage return at its end is seen. */
function finished(line: string, length: number, maxLineLength: number): TextLine {
  const complete = line.length === length ? line.replace(/\r$/, "") : line;
  if (complete.length <= maxLineLength && line.length === length) return { text: complete, omitted: 0 };
  // Never half of a surrogate pair: it would come out as U+FFFD.
  const text = complete.slice(0, maxLineLength).replace(/[\ud800-\udbff]$/, "");
  return { text, omitted: length - text.length };
}
