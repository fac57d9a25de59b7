import { describe, expect, test } from "vitest";
import { findFetchMarkers, headingsBelow, replaceFetchMarkers } from "./fetch-markers.ts";

const messagesOf = (text: string) => findFetchMarkers(text).warnings.map(({ line, message }) => `${line}: ${message}`);
const marker = (attributes: string) => `<!-- sync:fetch ${attributes} -->`;

test("a marker has its attributes and its place", () => {
  const text = `# A\n\n${marker('url="https://a.example/x" max_lines="60" ttl_hours="0" format="text" selector="main .b" label="Notes (feb)"')}\nB\n`;
  expect(findFetchMarkers(text)).toEqual({
    warnings: [],
    markers: [
      {
        line: 3,
        start: 5,
        next: text.indexOf("B\n"),
        under: 1,
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

test("the default format is markdown, and single quotes, CRLF and indentation are accepted", () => {
  const { markers } = findFetchMarkers(`x\r\n  ${marker("url='https://a.example' max_tokens=9")}\r\ny`);
  expect(markers).toMatchObject([{ line: 2, url: "https://a.example", format: "markdown", maxTokens: 9 }]);
});

test("a marker in code, inside another comment, beside text or under another name does not count", () => {
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

test("a marker without an address is a warning, not a marker", () => {
  expect(findFetchMarkers(`a\n${marker('label="x"')}`)).toEqual({
    markers: [],
    warnings: [{ line: 2, message: 'sync:fetch: the marker has no url and is left out. Write url="https://…".' }],
  });
  expect(findFetchMarkers("<!-- sync:fetch -->").warnings).toHaveLength(1);
});

test("ignores invalid numbers with a warning", () => {
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

test("max_lines wins over max_tokens, an unknown format is markdown, and a misspelt attribute is named", () => {
  const text = marker('url="https://a.example" max_lines="5" max_tokens="6" format="html" max_line="7"');
  expect(messagesOf(text)).toEqual([
    '1: sync:fetch: unknown attribute "max_line" is ignored. Did you mean "max_lines"?',
    '1: sync:fetch: unknown format "html", markdown is used. Formats: raw, text, markdown.',
    "1: sync:fetch: the marker has max_lines and max_tokens; max_lines is used",
  ]);
  expect(findFetchMarkers(text).markers).toMatchObject([{ maxLines: 5, maxTokens: undefined, format: "markdown" }]);
});

test("texts replace the lines of their markers, and a marker without a text is kept", () => {
  const [a, b] = [marker('url="https://a.example"'), marker('url="https://b.example"')];
  const textOf = (texts: Record<string, string>) => (each: { url: string }) => texts[each.url];
  const text = `1\n${a}\n2\n${b}\n3`;
  expect(replaceFetchMarkers(text, textOf({ "https://a.example": "A\nA", "https://b.example": "B\n" })).text).toBe(
    "1\nA\nA\n2\nB\n3",
  );
  expect(replaceFetchMarkers(text, textOf({ "https://b.example": "" })).text).toBe(`1\n${a}\n2\n3`);
  expect(replaceFetchMarkers(text, textOf({})).text).toBe(text);
  expect(replaceFetchMarkers(a, textOf({ "https://a.example": "A" })).text).toBe("A\n");
});

test("maps lines of the new text to the original lines", () => {
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

describe("headings of a fetched text", () => {
  test.each([
    [3, "# Feb\n\n## New\n", "#### Feb\n\n##### New\n"],
    [0, "# Feb\n\nText.\n### New\n", "## Feb\n\nText.\n#### New\n"],
    [4, "Text.\n# A #\n###### B", "Text.\n##### A #\n###### B"],
    [6, "# A\n## B\n", "####### A\n####### B\n"],
  ])("below a heading of level %i move down together", (under, text, shown) => {
    expect(headingsBelow(text, { under })).toBe(shown);
  });

  test("stay where they are if they are deep enough, or are code", () => {
    for (const text of ["### New\n\n#### More\n", "```sh\n# a comment\n```\n", "#tag and # more\n"])
      expect(headingsBelow(text, { under: 2 })).toBe(text);
  });

  test("follow the heading above the marker", () => {
    const one = marker('url="https://a.example"');
    const text = `${one}\n## A\n\`\`\`\n# code\n\`\`\`\n### B\n${one}\ntext\n${one}\n`;
    expect(findFetchMarkers(text).markers.map(({ under }) => under)).toEqual([0, 3, 3]);
  });
});

describe("a heading whose fetched text is empty", () => {
  const line = marker('url="https://example.com/x"');
  const emptied = (text: string) => replaceFetchMarkers(text, () => "").text;

  test("goes with the text", () => {
    expect(emptied(`# A\n\na\n\n## B\n\n${line}\n\n## C\n\nc\n`)).toBe("# A\n\na\n\n\n\n## C\n\nc\n");
  });

  test("goes with the headings around it that have nothing else", () => {
    expect(emptied(`# A\n## B\n### C\n${line}\n# D\nd\n`)).toBe("# D\nd\n");
    expect(emptied(`## B\n<!-- verbosity:detail -->\n${line}\n`)).toBe("<!-- verbosity:detail -->\n");
  });

  test.each([
    ["has other text", `## B\n\nb\n\n${line}\n`, "## B\n\nb\n\n"],
    ["has text after the marker", `## B\n\n${line}\n\nb\n`, "## B\n\n\nb\n"],
    ["has a part with text", `## B\n${line}\n### C\nc\n`, "## B\n### C\nc\n"],
    ["has a part that somebody wrote without text", `## A\n### B\n## C\n${line}\n`, "## A\n### B\n"],
    ["has code", `## B\n${line}\n\`\`\`\n# x\n\`\`\`\n`, "## B\n```\n# x\n```\n"],
    ["never had a text", `## A\n## B\nb\n${line}\n`, "## A\n## B\nb\n"],
  ])("stays if it %s", (_, text, kept) => expect(emptied(text)).toBe(kept));

  test("leaves every other line with its own number", () => {
    const { text, originalLine } = replaceFetchMarkers(`a\n## B\n${line}\n## C\nc\n`, () => "");
    expect(text).toBe("a\n## C\nc\n");
    expect([1, 2, 3].map(originalLine)).toEqual([1, 4, 5]);
  });
});
