import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeName, diskName, displayName, isByteName } from "./contained-path.ts";

test("every name of bytes becomes one string, which becomes the same bytes", () => {
  const bytes = fc.array(
    fc.oneof(
      fc.integer({ min: 0, max: 255 }).map((byte) => [byte]),
      fc.string({ unit: "grapheme", maxLength: 2 }).map((text) => [...Buffer.from(text)]),
    ),
    { maxLength: 12 },
  );
  const check = (parts: number[][]) => {
    const given = Buffer.from(parts.flat());
    const name = decodeName(given.toString("latin1"));
    expect(Buffer.from(diskName(name))).toEqual(given);
    expect(Buffer.from(displayName(name)).toString()).toBe(displayName(name));
    expect(isByteName(name)).toBe(!given.equals(Buffer.from(given.toString())));
  };
  fc.assert(fc.property(bytes, check), { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 500 });
});

test("bytes that are not UTF-8 are shown as U+FFFD, the rest unchanged", () => {
  const name = decodeName(Buffer.from([...Buffer.from("ü😀"), 0xff, 0xfe, 0x2e]).toString("latin1"));
  expect(displayName(name)).toBe("ü😀\uFFFD\uFFFD.");
  expect(displayName(decodeName(Buffer.from("a\uFFFDb").toString("latin1")))).toBe("a\uFFFDb");
  expect(isByteName(decodeName(Buffer.from("a\uFFFDb").toString("latin1")))).toBe(false);
});
