/** Messages over stdio are lines. A line keeps its bytes, the line break included, so that it can be passed on as it came. */
import type { Writable } from "node:stream";

/** The last line may lack its line break. */
export async function* readLines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // Joined once a line: adding each chunk to what is there already would copy a line of 100 MB a thousand times.
  let begun: Buffer[] = [];
  for await (const chunk of source) {
    let start = 0;
    for (let end = chunk.indexOf(lineBreak); end >= 0; end = chunk.indexOf(lineBreak, start)) {
      const rest = chunk.subarray(start, end + 1);
      yield begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
      begun = [];
      start = end + 1;
    }
    if (start < chunk.length) begun.push(chunk.subarray(start));
  }
  if (begun.length > 0) yield Buffer.concat(begun);
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
