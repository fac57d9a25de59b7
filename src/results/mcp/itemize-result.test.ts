import { expect, test } from "vitest";
import { itemizeResult, type RawResult } from "./itemize-result.ts";

const text = (value: string) => ({ type: "text", text: value });
const image = { type: "image", data: "AAAA", mimeType: "image/png" };
const itemize = (raw: RawResult) => {
  const itemized = itemizeResult(raw);
  return { ...itemized, items: [...itemized.items] };
};
const plain = (...content: object[]) => itemize({ result: { content } });
const structured = (structuredContent: object, ...content: object[]) =>
  itemize({
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
  const precise = itemize({
    result: { content: [], structuredContent: { id: 9007199254740992 } },
    structuredText: '{"id":9007199254740993}',
  });
  expect(precise.items).toEqual(['{"id":9007199254740993}']);
});

test("several blocks become lines, with a note in the place of what cannot be paged", () => {
  const link = { type: "resource_link", uri: "file:///a", name: "a" };
  const note = '{"type":"image","mimeType":"image/png","note":"sent with the first page"}';
  expect(plain(text("a\nb"), image, link)).toEqual({
    fields: {},
    itemsName: "lines",
    items: ["a", "b", note, '{"type":"resource_link","uri":"file:///a","name":"a"}'],
  });
});

test("short blocks come first, and a file's text is as it is below its other facts", () => {
  const lines = Array.from({ length: 300 }, (_, index) => `line ${index} of "the file"`);
  const resource = { uri: "repo://a/b.ts", mimeType: "text/plain", text: lines.join("\n") };
  const file = { type: "resource", resource, annotations: { priority: 1 } };
  const facts = {
    type: "resource",
    resource: { uri: "repo://a/b.ts", mimeType: "text/plain" },
    annotations: { priority: 1 },
  };
  expect(plain(file, text("downloaded (SHA: abc)")).items).toEqual([
    "downloaded (SHA: abc)",
    JSON.stringify(facts),
    ...lines,
  ]);
});

test("a list beside an image is still a list", () => {
  expect(plain(text("[1, 2, 3]"), image)).toEqual({
    fields: { media: [{ type: "image", mimeType: "image/png", note: "sent with the first page" }] },
    itemsName: "items",
    items: [1, 2, 3],
  });
});

test("structured content is used, and a text with the same content is not repeated", () => {
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

test("a text with other content than the structured content is kept", () => {
  expect(structured({ rows: [1, 2, 3, 4, 5, 6] }, text("six rows"))).toEqual({
    fields: { text_content: "six rows" },
    itemsName: "rows",
    items: [1, 2, 3, 4, 5, 6],
  });
});

test("the same members in another order, or fewer of them, are not repeated, other values are kept", () => {
  const data = { rows: Array(20).fill("row"), name: "n", code: 0 };
  const fields = { name: "n", code: 0 };
  for (const same of ['{"name":"n","code":0}', '{"code":0,"name":"n"}', "{}", '{"name":"n"}']) {
    expect(structured(data, text(same)).fields).toEqual(fields);
  }
  for (const other of ['{"name":"m"}', '{"name":"n"', '{"code":0,"x":1}', '{"name":"n","code":01}']) {
    expect(structured(data, text(other)).fields).toEqual({ ...fields, text_content: other });
  }
});

test("if the text is longer than the data, its lines are paged", () => {
  expect(structured({ total: 2, ok: true }, text("line one\nline two"))).toEqual({
    fields: { ok: true, tool_fields: { total: 2 } },
    itemsName: "text_content_lines",
    items: ["line one", "line two"],
  });
  expect(structured([1], text("one and only"))).toEqual({
    fields: { items: [1] },
    itemsName: "text_content_lines",
    items: ["one and only"],
  });
});

test("fields with the name of a fact of the page are renamed", () => {
  expect(structured({ rows: [1, 2, 3], total: 30, offset: 3, limit: 3 }).fields).toEqual({
    limit: 3,
    tool_fields: { total: 30, offset: 3 },
  });
  const paged = { cut: 1, left_out: [], continuation_token: "t", budget_note: "n" };
  expect(structured({ rows: Array(40).fill(1), ...paged }).fields).toEqual({ tool_fields: paged });
});

test("a result with neither a list nor a text has only fields", () => {
  expect(structured({ a: { b: 1 }, total: 2 })).toEqual({
    fields: { a: { b: 1 }, tool_fields: { total: 2 } },
    itemsName: "items",
    items: [],
  });
  expect(itemize({ result: {} })).toEqual({ fields: {}, itemsName: "lines", items: [] });
});

test("an object of many members without a large one becomes its members, also inside another", () => {
  const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`key-${index}`, `v${index}`]));
  const members = Object.entries(many).map(([name, value]) => ({ [name]: value }));
  expect(plain(text(JSON.stringify(many)))).toEqual({ fields: {}, itemsName: "members", items: members });
  expect(plain(text(JSON.stringify({ env: many, host: "h" }, null, 2)))).toEqual({
    fields: { host: "h" },
    itemsName: "env",
    items: members,
  });
  expect(structured(many, text(JSON.stringify(many, null, 2))).items).toEqual(members);
  const few = { a: 1, b: 2, c: "d" };
  expect(plain(text(JSON.stringify({ x: few })))).toMatchObject({ items: ["d"], itemsName: "c_lines" });
});
