import { expect, test } from "vitest";
import { itemizeResult } from "./itemize-result.ts";

const text = (value: string) => ({ type: "text", text: value });
const image = { type: "image", data: "AAAA", mimeType: "image/png" };
const plain = (...content: object[]) => itemizeResult({ result: { content } });
const structured = (structuredContent: object, ...content: object[]) =>
  itemizeResult({
    result: { content, structuredContent },
    structuredText: JSON.stringify(structuredContent),
  });

test("a text becomes its lines", () => {
  expect(plain(text("a\r\n\nb\n"))).toEqual({ fields: {}, itemsName: "lines", items: ["a\r", "", "b", ""] });
});

test("a text that is JSON becomes the elements of its largest list, and the rest its fields", () => {
  expect(plain(text("[1, 2]"))).toEqual({ fields: {}, itemsName: "items", items: [1, 2] });
  const found = { query: "x", data: { page: 1, rows: [{ a: 1 }, { a: 2 }] }, hits: [1] };
  expect(plain(text(JSON.stringify(found, null, 2)))).toEqual({
    fields: { query: "x", data: { page: 1 }, hits: [1] },
    itemsName: "rows",
    items: [{ a: 1 }, { a: 2 }],
  });
});

test("the largest text of an object becomes its lines", () => {
  expect(plain(text('{"log":"one\\ntwo","code":0}'))).toEqual({
    fields: { code: 0 },
    itemsName: "log_lines",
    items: ["one", "two"],
  });
});

test("what only looks like JSON is text, and so is JSON whose numbers would be rounded", () => {
  expect(plain(text("[1, 2")).items).toEqual(["[1, 2"]);
  expect(plain(text('{"id": 9007199254740993}')).items).toEqual(['{"id": 9007199254740993}']);
  const precise = itemizeResult({
    result: { content: [], structuredContent: { id: 9007199254740992 } },
    structuredText: '{"id":9007199254740993}',
  });
  expect(precise.items).toEqual(['{"id":9007199254740993}']);
});

test("several blocks become items, with a note in the place of what cannot be paged", () => {
  const link = { type: "resource_link", uri: "file:///a", name: "a" };
  expect(plain(text("a\nb"), image, link)).toEqual({
    fields: {},
    itemsName: "blocks",
    items: ["a\nb", { type: "image", mimeType: "image/png", note: "stands beside the first page" }, link],
  });
});

test("structured content counts, and a text that says the same is not told twice", () => {
  const data = { rows: [1, 2, 3], name: "n" };
  const expected = { fields: { name: "n" }, itemsName: "rows", items: [1, 2, 3] };
  expect(structured(data)).toEqual(expected);
  expect(structured(data, text(JSON.stringify(data, null, 2)))).toEqual(expected);
  expect(structured(data, text('{"rows":[1,2,3]}'))).toEqual(expected);
  expect(structured({ content: "a\nb" }, text("a\nb"))).toEqual({
    fields: {},
    itemsName: "content_lines",
    items: ["a", "b"],
  });
});

test("a text beside structured content that says something else is kept", () => {
  expect(structured({ rows: [1, 2, 3, 4, 5, 6] }, text("six rows"))).toEqual({
    fields: { text_content: "six rows" },
    itemsName: "rows",
    items: [1, 2, 3, 4, 5, 6],
  });
});

test("fields that a page has itself step aside", () => {
  expect(structured({ rows: [1, 2, 3], total: 30, offset: 3, limit: 3 }).fields).toEqual({
    limit: 3,
    tool_fields: { total: 30, offset: 3 },
  });
});

test("what has neither a list nor a text is fields alone", () => {
  expect(structured({ a: { b: 1 }, total: 2 })).toEqual({
    fields: { a: { b: 1 }, tool_fields: { total: 2 } },
    itemsName: "items",
    items: [],
  });
  expect(itemizeResult({ result: {} })).toEqual({ fields: {}, itemsName: "blocks", items: [] });
});
