import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBytes, splitRecords } from "./output-records.ts";

test("records come whole however the output was cut into chunks", async () => {
  const cut = fc.record({
    records: fc.array(
      fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "")),
      { maxLength: 8 },
    ),
    sizes: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
    ended: fc.boolean(),
  });
  const check = async ({ records, sizes, ended }: { records: string[]; sizes: number[]; ended: boolean }) => {
    const bytes = Buffer.from(records.join("\0") + (ended && records.length > 0 ? "\0" : ""));
    async function* chunks() {
      for (let at = 0, next = 0; at < bytes.length; next++) {
        const size = sizes[next % sizes.length] ?? 1;
        yield bytes.subarray(at, at + size);
        at += size;
      }
    }
    const read: string[] = [];
    for await (const batch of splitRecords(chunks(), "\0", "keep")) read.push(...batch.map(decodeBytes));
    expect(read).toEqual(ended || records.at(-1) !== "" ? records : records.slice(0, -1));
    const whole: string[] = [];
    for await (const batch of splitRecords(chunks(), "\0")) whole.push(...batch.map(decodeBytes));
    expect(whole).toEqual(ended ? records : records.slice(0, -1));
  };
  await fc.assert(fc.asyncProperty(cut, check), { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 3_000 : 200 });
});

test("bytes that are not UTF-8 are shown as such and damage nothing else", () => {
  expect(decodeBytes(Buffer.from("é\xff!", "latin1").toString("latin1"))).toBe("\uFFFD\uFFFD!");
  expect(decodeBytes(Buffer.from("größe").toString("latin1"))).toBe("größe");
});

test("of a line of many megabytes a part is given, and all of what follows it", async () => {
  const chunk = Buffer.alloc(64 * 1024, "x");
  async function* chunks() {
    yield Buffer.from("first\n");
    for (let count = 0; count < 200; count++) yield chunk;
    yield Buffer.from("x\nlast\n");
  }
  const records: string[] = [];
  for await (const batch of splitRecords(chunks(), "\n")) records.push(...batch);
  expect(records.map((record) => record[0])).toEqual(["f", "x", "l"]);
  expect(records[1]?.length).toBeGreaterThan(4_000_000);
  expect(records[1]?.length).toBeLessThan(5_000_000);
});
