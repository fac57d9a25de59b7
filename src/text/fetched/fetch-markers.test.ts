import { expect, test } from "vitest";
import { findFetchMarkers, replaceFetchMarkers } from "./fetch-markers.ts";

const messagesOf = (text: string) =>
  findFetchMarkers(text).warnings.map(({ line, message }) => `${line}: ${message}`);
const marker = (attributes: string) => `<!-- sync:fetch ${attributes} -->`;

test("a marker gives its attributes and its place", () => {
  const text = `# A\n\n${marker('url="https://a.example/x" max_lines="60" ttl_hours="0" format="text" selector="main .b" label="Notes (feb)"')}\nB\n`;
  expect(findFetchMarkers(text)).toEqual({
    warnings: [],
    markers: [
      {
        line: 3,
        start: 5,
        next: text.indexOf("B\n"),
        url: "https://a.example/x",
        format: "text",
        selector: "main .b",
        maxLines: 60,
        maxTokens: undefined,
        ttlHours: 0,
        label: "Notes (feb)",
      },
    ],
  });
});

test("without a format it is markdown, and single quotes, CRLF and indentation are taken", () => {
  const { markers } = findFetchMarkers(`x\r\n  ${marker("url='https://a.example' max_tokens=9")}\r\ny`);
  expect(markers).toMatchObject([{ line: 2, url: "https://a.example", format: "markdown", maxTokens: 9 }]);
});

test("in code, inside another comment, beside text or under another name it is no marker", () => {
  const one = marker('url="https://a.example"');
  for (const text of [
    `\`\`\`\n${one}\n\`\`\``,
    `~~~md\n${one}\n~~~`,
    `<!--\n${one.replace("-->", "")}\n-->`,
    `see ${one}`,
    `${one} more`,
    one.replace("sync:fetch", "sync:fetched"),
    one.replace("sync:fetch", "sync:fetch:all"),
  ]) {
    expect(findFetchMarkers(text), text).toEqual({ markers: [], warnings: [] });
  }
  expect(findFetchMarkers(`\`\`\`\n${one}\n\`\`\`\n${one}`).markers).toMatchObject([{ line: 4 }]);
});

test("a marker without an address is a warning and no marker", () => {
  expect(findFetchMarkers(`a\n${marker('label="x"')}`)).toEqual({
    markers: [],
    warnings: [{ line: 2, message: 'sync:fetch: has no url and is left out. Write url="https://…".' }],
  });
  expect(findFetchMarkers("<!-- sync:fetch -->").warnings).toHaveLength(1);
});

test("numbers that are none are ignored with a warning", () => {
  for (const [name, value] of [
    ["max_lines", "many"],
    ["max_lines", "0"],
    ["max_tokens", "1.5"],
    ["max_tokens", "-3"],
    ["ttl_hours", ""],
  ]) {
    const text = marker(`url="https://a.example" ${name}="${value}"`);
    expect(messagesOf(text)).toEqual([expect.stringContaining(`${name} is "${value}" and is ignored`)]);
    expect(findFetchMarkers(text).markers).toMatchObject([
      { maxLines: undefined, maxTokens: undefined, ttlHours: undefined },
    ]);
  }
});

test("with both limits max_lines wins, an unknown format is markdown, a misspelt attribute is named", () => {
  const text = marker('url="https://a.example" max_lines="5" max_tokens="6" format="html" max_line="7"');
  expect(messagesOf(text)).toEqual([
    '1: sync:fetch: unknown attribute "max_line" is ignored. Did you mean "max_lines"?',
    '1: sync:fetch: unknown format "html", markdown is used. Formats: raw, text, markdown.',
    "1: sync:fetch: has max_lines and max_tokens, max_lines is used",
  ]);
  expect(findFetchMarkers(text).markers).toMatchObject([
    { maxLines: 5, maxTokens: undefined, format: "markdown" },
  ]);
});

test("texts take the place of their markers' lines, and a marker without a text stays", () => {
  const [a, b] = [marker('url="https://a.example"'), marker('url="https://b.example"')];
  const textOf = (texts: Record<string, string>) => (each: { url: string }) => texts[each.url];
  const text = `1\n${a}\n2\n${b}\n3`;
  expect(
    replaceFetchMarkers(text, textOf({ "https://a.example": "A\nA", "https://b.example": "B\n" })).text,
  ).toBe("1\nA\nA\n2\nB\n3");
  expect(replaceFetchMarkers(text, textOf({ "https://b.example": "" })).text).toBe(`1\n${a}\n2\n3`);
  expect(replaceFetchMarkers(text, textOf({})).text).toBe(text);
  expect(replaceFetchMarkers(a, textOf({ "https://a.example": "A" })).text).toBe("A\n");
});

test("lines of the new text are told by where they stood", () => {
  const text = `1\n${marker('url="https://a.example"')}\n3\n${marker('url="https://b.example"')}\n5\n`;
  const linesWith = (a: string, b: string) => {
    const replaced = replaceFetchMarkers(text, ({ url }) => (url === "https://a.example" ? a : b));
    return replaced.text
      .trimEnd()
      .split("\n")
      .map((_, index) => replaced.originalLine(index + 1));
  };
  expect(linesWith("A\nA\nA\n", "B")).toEqual([1, 2, 2, 2, 3, 4, 5]);
  expect(linesWith("", "B\nB")).toEqual([1, 3, 4, 4, 5]);
  expect(linesWith("", "")).toEqual([1, 3, 5]);
});
