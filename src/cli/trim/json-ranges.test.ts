import fc from "fast-check";
import { expect, test } from "vitest";
import { memberRange, valueRanges } from "./json-ranges.ts";

const runs = { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 200 };
const spaces = fc.constantFrom("", " ", "\n", "\r\n\t", "  ");
const written = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t")).map(([value, indent]) => {
  return JSON.stringify(value, null, indent);
});

test("the elements of any array are found as they are written", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(spaces, written, spaces)), spaces, (elements, around) => {
      const inside = elements.map((parts) => parts.join("")).join(",");
      const text = `${around}[${inside}${elements.length === 0 ? around : ""}]${around}`;
      const found = valueRanges(text, text.indexOf("[") + 1);
      expect(found.map(({ start, end }) => text.slice(start, end))).toEqual(
        elements.map(([, value]) => value),
      );
    }),
    runs,
  );
});

test("the member that JSON.parse takes is found, whatever stands around it", () => {
  const names = fc.constantFrom("messages", "input", "a", 'b"', "\\");
  fc.assert(
    fc.property(fc.array(fc.tuple(names, written)), spaces, (members, space) => {
      const inside = members.map(([name, value]) => `${JSON.stringify(name)}${space}:${space}${value}`);
      const text = `${space}{${space}${inside.join(`${space},${space}`)}${space}}`;
      const range = memberRange(text, "messages");
      const last = members.findLast(([name]) => name === "messages")?.[1];
      expect(range && text.slice(range.start, range.end)).toBe(last);
    }),
    runs,
  );
});

test("names are compared as they are meant, not as they are escaped", () => {
  const text = '{"mess\\u0061ges": [1]}';
  expect(memberRange(text, "messages")).toEqual({ start: 18, end: 21 });
});

test("JSON Lines are values in a row", () => {
  const text = '\n{"a":"}\\\\"}\r\n\n{"b":["\\""]}';
  expect(valueRanges(text, 0).map(({ start, end }) => text.slice(start, end))).toEqual([
    '{"a":"}\\\\"}',
    '{"b":["\\""]}',
  ]);
  expect(valueRanges("", 0)).toEqual([]);
});

test("a text of escapes takes time in proportion to its length", () => {
  const text = `["${'\\\\\\"'.repeat(200_000)}"]`;
  const started = performance.now();
  expect(valueRanges(text, 1)).toEqual([{ start: 1, end: text.length - 1 }]);
  expect(performance.now() - started).toBeLessThan(2_000);
});
