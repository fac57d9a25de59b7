import fc from "fast-check";
import { expect, test } from "vitest";
import { applyEdits, elementsOf, hasLongNumbers, memberOf, membersOf } from "./json-text.ts";

const layouts = fc.constantFrom(undefined, 1, "\t", "\n \r\n");

test("members are found where they stand, whatever they hold and however they are laid out", () => {
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

test("elements are found where they stand", () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), layouts, (value, layout) => {
      const text = JSON.stringify(value, null, layout);
      const found = elementsOf(text, 0).map(({ start, end }) => JSON.parse(text.slice(start, end)));
      expect(found).toEqual(JSON.parse(text));
    }),
  );
});

test("of a name that comes twice the last one counts, as for JSON.parse", () => {
  const text = '{"a":1,"\\u0061":2}';
  expect(memberOf(text, 0, "a")?.value).toEqual({ start: 16, end: 17 });
  expect(memberOf(text, 0, "b")).toBeUndefined();
});

test("an edit changes what it names and nothing else", () => {
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
])("%s has numbers that would be rounded: %s", (text, expected) => {
  expect(hasLongNumbers(text)).toBe(expected);
});
