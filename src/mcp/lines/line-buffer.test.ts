import fc from "fast-check";
import { expect, test } from "vitest";
import { createLineBuffer, releaseLine } from "./line-buffer.ts";

const limits = { largeBytes: 20, mostBytes: 60 };

test("what was added is taken, however long it is and whatever was before", () => {
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

test("a large line gives its memory back, unless its text would be other bytes", () => {
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
