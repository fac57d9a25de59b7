import fc from "fast-check";
import { expect, test } from "vitest";
import { applyEdits, elementsOf, hasLongNumbers, memberOf, membersOf, valuesFrom } from "./json-text.ts";

const layouts = fc.constantFrom(undefined, 1, "\t", "\n \r\n");

test("finds the members of any object in any layout", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), layouts, (value, layout) => {
      const text = JSON.stringify(value, null, layout);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const members = membersOf(text, 0);
      expect(members.map(({ name }) => name)).toEqual(Object.keys(parsed));
      for (const member of members) {
        expect(JSON.parse(text.slice(member.value.start, member.value.end))).toEqual(parsed[member.name]);
        expect(JSON.parse(`{${text.slice(member.start, member.end)}}`)).toEqual({
          [member.name]: parsed[member.name],
        });
      }
    }),
  );
});

test("finds the elements of any list in any layout", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), layouts, (value, layout) => {
      const text = JSON.stringify(value, null, layout);
      const found = elementsOf(text, 0).map(({ start, end }) => JSON.parse(text.slice(start, end)));
      expect(found).toEqual(JSON.parse(text));
    }),
  );
});

test("takes the last of two members with the same name, as JSON.parse does", () => {
  const text = '{"a":1,"\\u0061":2}';
  expect(memberOf(text, 0, "a")?.value).toEqual({ start: 16, end: 17 });
  expect(memberOf(text, 0, "b")).toBeUndefined();
});

test("an edit changes its own range and nothing else", () => {
  const text = '{ "id" : 12345678901234567890, "x": [1.0, 2e0] , "y":null}';
  const x = memberOf(text, 0, "x")!.value;
  const id = memberOf(text, 0, "id")!.value;
  expect(applyEdits(text, [{ ...x, text: "[]" }])).toBe('{ "id" : 12345678901234567890, "x": [] , "y":null}');
  expect(
    applyEdits(text, [
      { ...x, text: "0" },
      { start: id.end, end: id.end, text: "!" },
    ]),
  ).toBe('{ "id" : 12345678901234567890!, "x": 0 , "y":null}');
});

test.each([
  ['{"id":9007199254740993}', true],
  ["[-9223372036854775807]", true],
  ['{"id":9007199254740992}', false],
  ["[1000000000000000000000]", false],
  ['{"id":"9007199254740993"}', false],
  ['["\\"9007199254740993"]', false],
  ["[0.12345678901234567890]", false],
  ["{}", false],
])("reports whether JSON.parse would round a number of %s: %s", (text, expected) => {
  expect(hasLongNumbers(text)).toBe(expected);
});

const runs = { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 200 };
const spaces = fc.constantFrom("", " ", "\n", "\r\n\t", "  ");
const written = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t")).map(([value, indent]) => {
  return JSON.stringify(value, null, indent);
});

test("finds the elements of a list between any white space", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(spaces, written, spaces)), spaces, (elements, around) => {
      const inside = elements.map((parts) => parts.join("")).join(",");
      const text = `${around}[${inside}${elements.length === 0 ? around : ""}]${around}`;
      const found = valuesFrom(text, text.indexOf("[") + 1);
      expect(found.map(({ start, end }) => text.slice(start, end))).toEqual(elements.map(([, value]) => value));
    }),
    runs,
  );
});

test("finds the member that JSON.parse takes between any white space", () => {
  const names = fc.constantFrom("messages", "input", "a", 'b"', "\\");
  fc.assert(
    fc.property(fc.array(fc.tuple(names, written)), spaces, (members, space) => {
      const inside = members.map(([name, value]) => `${JSON.stringify(name)}${space}:${space}${value}`);
      const text = `${space}{${space}${inside.join(`${space},${space}`)}${space}}`;
      const range = memberOf(text, 0, "messages")?.value;
      const last = members.findLast(([name]) => name === "messages")?.[1];
      expect(range && text.slice(range.start, range.end)).toBe(last);
    }),
    runs,
  );
});

test("compares names after decoding their escapes", () => {
  const text = '{"mess\\u0061ges": [1]}';
  expect(memberOf(text, 0, "messages")?.value).toEqual({ start: 18, end: 21 });
});

test("finds the values of JSON Lines", () => {
  const text = '\n{"a":"}\\\\"}\r\n\n{"b":["\\""]}';
  expect(valuesFrom(text, 0).map(({ start, end }) => text.slice(start, end))).toEqual([
    '{"a":"}\\\\"}',
    '{"b":["\\""]}',
  ]);
  expect(valuesFrom("", 0)).toEqual([]);
});

test("reads a text full of escapes in linear time", () => {
  const text = `["${'\\\\\\"'.repeat(200_000)}"]`;
  const before = process.cpuUsage();
  expect(valuesFrom(text, 1)).toEqual([{ start: 1, end: text.length - 1 }]);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000);
});
