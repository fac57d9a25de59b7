import fc from "fast-check";
import { expect, test } from "vitest";
import { truncateBytes } from "./truncate-bytes.ts";

test.each([
  ["hello", 100, "hello"],
  ["hello", 5, "hello"],
  ["hello world", 5, "hello"],
  ["café!", 4, "caf"],
  ["a\nbc\ndef", 6, "a\nbc\n"],
  // To callers of this function 0 is no room at all; "no limit" is said by not calling it.
  ["hello", 0, ""],
  ["hello", -1, ""],
])("%j within %i bytes is %j", (text, maxBytes, expected) => {
  expect(truncateBytes(text, maxBytes)).toEqual({ text: expected, truncated: expected !== text });
});

test("never more than the bytes, never a broken character, always a start of the text", () => {
  const property = fc.property(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.nat(100),
    (text, maxBytes) => {
      const cut = truncateBytes(text, maxBytes).text;
      expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxBytes);
      expect(text.startsWith(cut)).toBe(true);
    },
  );
  fc.assert(property, { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 });
});
