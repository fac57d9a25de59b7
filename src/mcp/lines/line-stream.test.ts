import { Writable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readLines, writeLine } from "./line-stream.ts";

async function* chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

test("lines are the bytes that came, cut behind each line break, however the chunks fall", async () => {
  const bytes = fc.array(fc.constantFrom(0x0a, 0x0d, 0x61, 0xff), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.array(bytes), async (chunks) => {
      const lines: Buffer[] = [];
      for await (const line of readLines(chunksOf(chunks.map((chunk) => Uint8Array.from(chunk)))))
        lines.push(line);
      const all = Buffer.from(chunks.flat());
      expect(Buffer.concat(lines)).toEqual(all);
      expect(lines.map((line) => line.indexOf(0x0a))).toEqual(
        lines.map((line, index) => (index < lines.length - 1 || all.at(-1) === 0x0a ? line.length - 1 : -1)),
      );
    }),
  );
});

test("a line is written when the reader has taken it, and a reader that is gone holds nobody up", async () => {
  const takes: (() => void)[] = [];
  const stream = new Writable({ write: (_chunk, _encoding, taken) => void takes.push(taken) });
  stream.on("error", () => {});
  const done: string[] = [];
  const write = (line: string) => writeLine(stream, line).then(() => done.push(line));
  const writes = [write("one\n"), write("two\n")];
  takes.shift()?.();
  await writes[0];
  expect(done).toEqual(["one\n"]);
  stream.destroy(new Error("gone"));
  await Promise.all([...writes, write("three\n")]);
});
