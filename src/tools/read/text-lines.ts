/** Lines of a file of any size, in little memory. */
import type { FileHandle } from "node:fs/promises";
import type { TextDecoder } from "node:util";
import { type CutText, cutText } from "../../text/index.ts";

export interface LineOptions {
  readonly decoder: TextDecoder;
  readonly maxLineLength: number;
  /** What stands before it in each line is passed over. Default: 1. */
  readonly startColumn?: number;
  readonly signal: AbortSignal;
}

const chunkBytes = 256 * 1024;

/** A batch for each part that was read. Line feeds and a carriage return before them belong to no line; what follows the last one is a
 *  line unless it is empty. A line that was not read to its end when the signal came is left out: it would pass for a whole one. */
export async function* readLines(handle: FileHandle, options: LineOptions): AsyncGenerator<CutText[]> {
  const { decoder, signal } = options;
  const buffer = Buffer.alloc(chunkBytes);
  const collector = createLineCollector(options);
  for (let position = 0; !signal.aborted; ) {
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position);
    if (bytesRead === 0) {
      yield [...collector.collect(decoder.decode()), ...collector.end()];
      return;
    }
    position += bytesRead;
    yield collector.collect(decoder.decode(buffer.subarray(0, bytesRead), { stream: true }));
  }
}

interface LineCollector {
  collect(text: string): CutText[];
  end(): CutText[];
}

/** Keeps of a line that is not over yet never more than is shown. */
function createLineCollector({ maxLineLength, startColumn = 1 }: LineOptions): LineCollector {
  // With the character before: a column may lie in the middle of a surrogate pair, which then is shown whole.
  const skip = Math.max(startColumn - 2, 0);
  const extra = startColumn - 1 - skip;
  let kept = "";
  let length = 0;
  const take = (text: string, from: number, end: number) => {
    const first = from + Math.max(skip - length, 0);
    // One more than is shown, so that a carriage return at its end is seen.
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
    return finished(line, left, maxLineLength);
  };
  return {
    collect: (text) => {
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
    end: () => (length === 0 ? [] : [finish()]),
  };
}

/** `line` may be one character longer than what is shown; `length` is that of all of it. */
function finished(line: string, length: number, maxLineLength: number): CutText {
  const isWhole = line.length === length;
  const complete = isWhole ? line.replace(/\r$/, "") : line;
  if (complete.length <= maxLineLength && isWhole) return { text: complete, omitted: 0 };
  const { text } = cutText(complete, maxLineLength);
  return { text, omitted: length - text.length };
}
