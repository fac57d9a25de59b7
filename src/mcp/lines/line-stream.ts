/** Messages over stdio are lines. A line keeps its bytes, the line break included, so that it can be passed on as it came. */
import type { Writable } from "node:stream";
import { createLineBuffer } from "./line-buffer.ts";

/** The last line may lack its line break. */
export async function* readLines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const begun = createLineBuffer();
  let isBegun = false;
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(lineBreak); end >= 0; end = chunk.indexOf(lineBreak, start)) {
      begun.add(chunk.subarray(start, end + 1));
      yield begun.take();
      isBegun = false;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    begun.add(chunk.subarray(start));
    isBegun = true;
  }
  if (isBegun) yield begun.take();
}

const lineBreak = 0x0a;

/** Resolves when the stream has taken the bytes, so that a slow reader slows the writer down. A reader that is gone is no failure
 *  here: its end is noticed where it is waited for. */
export function writeLine(stream: Writable, line: string | Buffer): Promise<void> {
  if (stream.destroyed || stream.writableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off("close", done);
      resolve();
    };
    stream.once("close", done);
    stream.write(line, done);
  });
}
