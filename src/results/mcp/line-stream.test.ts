import { Writable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createLineBuffer, type LineEnds, readMessageLines, releaseLine, writeLine } from "./line-stream.ts";

async function* chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

const readAll = { replace: () => undefined };

test("lines are the received bytes, cut after each line break, for any chunks", async () => {
  const bytes = fc.array(fc.constantFrom(0x0a, 0x0d, 0x61, 0xff), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.array(bytes), async (chunks) => {
      const lines: Buffer[] = [];
      for await (const line of readMessageLines(chunksOf(chunks.map((chunk) => Uint8Array.from(chunk))), readAll))
        lines.push(line);
      const all = Buffer.from(chunks.flat());
      expect(Buffer.concat(lines)).toEqual(all);
      expect(lines.map((line) => line.indexOf(0x0a))).toEqual(
        lines.map((line, index) => (index < lines.length - 1 || all.at(-1) === 0x0a ? line.length - 1 : -1)),
      );
    }),
  );
});

test("of a line that is too long, the ends are kept, and the next line is read", async () => {
  const long = `{"id":1${"x".repeat(9_000)}}\n`;
  const source = Buffer.from(`one\n${long}two\n${long}`);
  for (const size of [1, 7, 5_000, source.length]) {
    const ends: LineEnds[] = [];
    const chunks = Array.from({ length: Math.ceil(source.length / size) }, (_, at) =>
      source.subarray(at * size, (at + 1) * size),
    );
    const replace = (each: LineEnds): string | undefined => (ends.push(each) === 1 ? "other\n" : undefined);
    const lines: string[] = [];
    for await (const line of readMessageLines(chunksOf(chunks), { replace, maxBytes: 8_000 })) lines.push(String(line));
    expect(lines).toEqual(["one\n", "other\n", "two\n"]);
    expect(ends).toHaveLength(2);
    for (const { head, tail } of ends) {
      expect(long.startsWith(head)).toBe(true);
      expect(long.endsWith(tail)).toBe(true);
      expect([head.length > 0, tail.length > 0]).toEqual([true, true]);
    }
  }
});

test("a line of the longest length is read, and one of twice that length is an error", async () => {
  const read = async (length: number): Promise<number[]> => {
    const found: number[] = [];
    const chunks = [Buffer.alloc(length - 1, "x"), Buffer.from("\n")];
    for await (const line of readMessageLines(chunksOf(chunks), { ...readAll, maxBytes: 100 })) found.push(line.length);
    return found;
  };
  expect(await read(100)).toEqual([100]);
  expect(await read(101)).toEqual([]);
  await expect(read(201)).rejects.toThrow("a line has more than 200 bytes");
});

test("a write resolves when the reader has taken the line, and a gone reader blocks nobody", async () => {
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

const limits = { largeBytes: 20, maxBytes: 60 };

test("returns everything that was added, of any length", () => {
  const part = fc.uint8Array({ maxLength: 25 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.array(fc.array(part, { minLength: 1, maxLength: 8 })), (lines) => {
      const buffer = createLineBuffer(limits);
      for (const parts of lines) {
        for (const each of parts) buffer.add(each);
        expect(Buffer.concat([buffer.take()])).toEqual(Buffer.concat(parts));
      }
    }),
  );
});

function lineOf(bytes: number[] | string, parts: number): Buffer {
  const buffer = createLineBuffer(limits);
  for (let part = 0; part < parts; part += 1) buffer.add(Buffer.from(bytes as string));
  return buffer.take();
}

test("a large line frees its memory, unless its text would have other bytes", () => {
  const large = lineOf("größer", 4);
  expect(String(large)).toBe("größer".repeat(4));
  expect(releaseLine(large)).toBe(true);
  expect(large).toHaveLength(0);
  const odd = lineOf([0x61, 0xff], 15);
  expect(releaseLine(odd)).toBe(false);
  expect(odd).toHaveLength(30);
  for (const other of [lineOf("small", 1), lineOf("small", 2), lineOf("more than most", 10)]) {
    const before = String(other);
    expect(releaseLine(other)).toBe(false);
    expect(String(other)).toBe(before);
  }
});
