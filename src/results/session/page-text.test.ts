import fc from "fast-check";
import { expect, test } from "vitest";
import { createTextForm } from "./page-text.ts";

const form = createTextForm({ id: "r1", itemsName: "rows", fields: {}, takesOffset: false, nextPageName: "next_page" });

test("shows like objects as rows below the names of their fields", () => {
  const items = [
    { id: 1, name: "a b", done: true, note: null },
    { id: 2.5, name: "a, b", done: false },
    { id: -3, name: 'say "x"', done: false, note: "" },
    { id: 4, name: "5", done: true, note: "null" },
  ];
  expect(form.itemsText(items)).toBe(
    'id,name,done,note\n1,a b,true,null\n2.5,"a, b",false,\n-3,"say ""x""",false,""\n4,"5",true,"null"',
  );
});

test.each([
  [[{ a: 1 }, { a: [1] }], '{"a":1}\n{"a":[1]}'],
  [[{ a: 1 }, { b: 2 }], '{"a":1}\n{"b":2}'],
  [[{ a: 1 }, "text"], '{"a":1}\ntext'],
  [[{}, {}], "{}\n{}"],
  [['{"a":"b"}', '{"a":"\\n"}'], '{"a":"b"}\n{"a":"\\n"}'],
])("shows other items one by one: %j", (items, text) => {
  expect(form.itemsText(items)).toBe(text);
});

const value = fc.oneof(
  fc.string(),
  fc.constantFrom("", " ", "1", "-1e5", "true", "null", "a,b", '"', "\n", "\r", "x y"),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
);

test("rows can be read back without loss", () => {
  const items = fc.array(fc.record({ a: value, b: value, c: value }, { requiredKeys: ["a", "b"] }), { minLength: 1 });
  fc.assert(
    fc.property(items, (given) => {
      const [names, ...rows] = readRows(form.itemsText(given));
      const read = rows.map((row) => Object.fromEntries(row.map((cell, at) => [names![at]!, cell])));
      expect(read.map(withoutMissing)).toEqual(given.map(withoutMissing));
    }),
  );
});

function withoutMissing(row: object): object {
  return Object.fromEntries(Object.entries(row).filter(([, each]) => each !== undefined));
}

/** A reader of its own: quoted cells are texts, bare ones may be numbers, words or texts. */
function readRows(text: string): unknown[][] {
  const rows: unknown[][] = [[]];
  for (const [, quoted, bare = "", end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows.at(-1)!.push(quoted === undefined ? bareValue(bare) : quoted.replaceAll('""', '"'));
    if (end === "\n") rows.push([]);
    if (end === "") break;
  }
  return rows;
}

function bareValue(text: string): unknown {
  if (text === "") return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? text : parsed;
  } catch {
    return text;
  }
}
