import fc from "fast-check";
import { expect, it, test } from "vitest";
import { markedBlock } from "../../rules/index.ts";
import { findFetchMarkers } from "../../rules/packs/index.ts";
import { closeFence, importedNames, type LineKind, scanLines, withoutBareFence } from "./fences.ts";
import { fitForeignText } from "./foreign-text.ts";
import { parseSegments } from "./verbosity.ts";

function kinds(text: string): LineKind[] {
  const result: LineKind[] = [];
  scanLines(text, (_line, kind) => result.push(kind));
  return result;
}

test("a fence opens code that the next fence of its kind closes", () => {
  expect(kinds("a\n```js\ncode\n```\nb")).toEqual(["text", "opener", "code", "closer", "text"]);
  expect(kinds("~~~\n```\n~~~\nb\n")).toEqual(["opener", "code", "closer", "text"]);
});

test("only a fence of the same mark, at least as long and with nothing after it closes", () => {
  expect(kinds("````\n```\n````js\n`````\nb")).toEqual(["opener", "code", "code", "closer", "text"]);
  expect(kinds("```\n``` \t\nb")).toEqual(["opener", "closer", "text"]);
});

test("ticks with another tick later in the line are inline code", () => {
  expect(kinds("```a``` b\nc")).toEqual(["text", "text"]);
  expect(kinds("~~~a~~~\nc")).toEqual(["opener", "code"]);
});

test("a closing fence indented by more than three columns is code", () => {
  expect(kinds("```\n    ```\n   ```\nb")).toEqual(["opener", "code", "closer", "text"]);
});

test("a fence inside a list item counts, even on the line of the marker", () => {
  expect(kinds("- ```sh\n  x\n  ```\nb")).toEqual(["opener", "code", "closer", "text"]);
  expect(kinds("10. a\n    ```\n    x\n    ```\nb")).toEqual(["text", "opener", "code", "closer", "text"]);
  expect(kinds("- 1. ~~~\n     x\n     ~~~\nb")).toEqual(["opener", "code", "closer", "text"]);
});

test("code ends with its list item, and the line that ends it is read again", () => {
  expect(kinds("- ```sh\n  x\n\ny\n```\nz")).toEqual(["opener", "code", "code", "text", "opener", "code"]);
  expect(kinds("- ```sh\n  x\n- ```\n  ```\nb")).toEqual(["opener", "code", "opener", "closer", "text"]);
  expect(kinds("- a\n\n  ~~~\n  x\n b\n~~~")).toEqual(["text", "text", "opener", "code", "text", "opener"]);
  expect(kinds("1. a\n   - ```\n     x\n   b")).toEqual(["text", "opener", "code", "text"]);
});

test("code ends with its quote, which needs its mark on every line", () => {
  expect(kinds("> ```\n> x\n> ```\nb")).toEqual(["opener", "code", "closer", "text"]);
  expect(kinds("> ```\n> x\nb")).toEqual(["opener", "code", "text"]);
  expect(kinds("> ```\n\n> b")).toEqual(["opener", "text", "text"]);
  expect(kinds("- > ~~~\n  > x\n  b")).toEqual(["opener", "code", "text"]);
});

test("text indented by four columns is not a fence outside a list item", () => {
  expect(kinds("a\n\n    ```\n\tx\n\t```")).toEqual(["text", "text", "text", "text", "text"]);
  expect(kinds("a\n    ```\nb")).toEqual(["text", "text", "text"]);
  expect(kinds("- a\n\n    ```\n    x\n    ```")).toEqual(["text", "text", "opener", "code", "closer"]);
  expect(kinds("-     ```\n- a\n\n      ```")).toEqual(["text", "text", "text", "text"]);
  expect(kinds("1.\t```\n\tx\n  y")).toEqual(["opener", "code", "text"]);
});

test("a list item starts and ends as in CommonMark", () => {
  // An item that starts with two blank lines is empty.
  expect(kinds("-\n\n      ```")).toEqual(["text", "text", "text"]);
  expect(kinds("-\n    ```")).toEqual(["text", "opener"]);
  // A rule and an underlined heading are not items, and a paragraph continues over a number.
  expect(kinds("- - -\n    ```")).toEqual(["text", "text"]);
  expect(kinds("a\n-\n    ```")).toEqual(["text", "text", "text"]);
  expect(kinds("a\n2. ```\n3. b")).toEqual(["text", "text", "text"]);
  expect(kinds("a\n1. ```\n2. b")).toEqual(["text", "opener", "text"]);
  // A paragraph may leave the marks out, and its item continues.
  expect(kinds("- a\nb\n      ```\n  ```\n  c\nd")).toEqual([...["text", "text", "text", "opener", "code", "text"]]);
});

test("a comment ends with its list item too", () => {
  expect(kinds("- <!--\n  ```\n```\n-->")).toEqual(["comment", "comment", "opener", "code"]);
});

test("takes linear time, whatever the text is", () => {
  const used = process.cpuUsage();
  for (const piece of ["- ", "> ", "- - - x\n", "- ```\n", "- <!--\n", ">\n", "\t- a\n", "1. ", "*"])
    for (const before of ["", `${"- > ".repeat(2_000)}x\n`, `${"- ".repeat(2_000)}x\n`])
      kinds(before + piece.repeat(200_000 / piece.length));
  expect(process.cpuUsage(used).user / 1_000).toBeLessThan(4_000);
});

test("line breaks may be CRLF", () => {
  expect(kinds("```\r\nx\r\n```\r\nb\r\n")).toEqual(["opener", "code", "closer", "text"]);
});

test("a fence without an end runs to the end and is reported with its closing line", () => {
  expect(scanLines("a\n```\nb", () => {})).toMatchObject({ number: 2, start: 2, closer: "```" });
  expect(scanLines("- ```\n  a\n- b", () => {})).toBeUndefined();
  expect(scanLines("```\n```\n", () => {})).toBeUndefined();
});

test("fences in a multi-line comment do not count, and a comment in code is code", () => {
  expect(kinds("<!--\n```\n-->\nb")).toEqual(["comment", "comment", "comment", "text"]);
  expect(kinds("```\n<!--\n```\n-->")).toEqual(["opener", "code", "closer", "text"]);
  expect(kinds("<!-- a -->\n```\n")).toEqual(["text", "opener"]);
  expect(kinds("<!-->\n```\n-->\n```\n")).toEqual(["text", "opener", "code", "closer"]);
});

test("a comment without an end hides nothing", () => {
  expect(kinds("--> <!--\n<!-- a\n```\nb\n```")).toEqual(["text", "text", "opener", "code", "closer"]);
});

test("lines have their number and place", () => {
  const lines: unknown[] = [];
  scanLines("ab\r\n\nc", (line) => lines.push(line));
  expect(lines).toEqual([
    { number: 1, start: 0, end: 2, next: 4 },
    { number: 2, start: 4, end: 4, next: 5 },
    { number: 3, start: 5, end: 6, next: 6 },
  ]);
});

test("closes an open fence in the column of its opener, with as many marks", () => {
  expect(closeFence("a\n```js\ncode\n")).toBe("a\n```js\ncode\n```");
  expect(closeFence("a\n```js\ncode")).toBe("a\n```js\ncode\n```");
  expect(closeFence("- ~~~~\n  ```\n")).toBe("- ~~~~\n  ```\n  ~~~~");
});

test("a fence is closed in its list item and its quote", () => {
  expect(closeFence("> ```\n> a")).toBe("> ```\n> a\n> ```");
  expect(closeFence("- a\n  >1.  ~~~\n")).toBe("- a\n  >1.  ~~~\n  >     ~~~");
  expect(closeFence("10.\t ```\n")).toBe("10.\t ```\n     ```");
});

test("does not close a fence that ended with its list item or quote", () => {
  for (const text of ["- ```sh\n  x\n\nb\n", "- ```\n- b", "> ```\n> x\n\nb", "a\n\n    ```\n"])
    expect(closeFence(text)).toBe(text);
});

test("a text without an open fence is returned unchanged", () => {
  for (const text of ["", "plain", "```\ncode\n```\n", "a ``` b", "<!--\n```\n-->\n"])
    expect(closeFence(text)).toBe(text);
});

test("removes an open fence without code after it, but not one with code", () => {
  expect(withoutBareFence("a\n\n```js\n \n")).toBe("a");
  expect(withoutBareFence("```")).toBe("");
  expect(withoutBareFence("a\n```js\ncode")).toBe("a\n```js\ncode");
  expect(withoutBareFence("a\n```\n```\n")).toBe("a\n```\n```\n");
});

const runs = process.env.PLIMSOLL_DEEP === "1" ? 5000 : 300;

test("a text without limits keeps its lines, with LF and one final line break", () => {
  expect(fitForeignText("\uFEFF\n a\r\nb\n\n")).toEqual({ text: "a\nb\n", truncated: false });
  expect(fitForeignText(" \n")).toEqual({ text: "", truncated: false });
});

test("counts lines, and cuts bytes at a line", () => {
  expect(fitForeignText("a\nb\nc", { maxLines: 2 })).toEqual({ text: "a\nb\n", truncated: true });
  expect(fitForeignText("a\nb\nc", { maxLines: 3 })).toEqual({ text: "a\nb\nc\n", truncated: false });
  expect(fitForeignText("aaaa\nbbbb\n", { maxBytes: 9 })).toEqual({ text: "aaaa\n", truncated: true });
});

test("cuts a line that does not fit at a character", () => {
  expect(fitForeignText("äöü€😀x", { maxBytes: 11 })).toEqual({ text: "äöü€", truncated: true });
  expect(fitForeignText("äöü€😀x", { maxBytes: 13 })).toEqual({ text: "äöü€😀", truncated: true });
});

test("closes cut code within the limit", () => {
  const code = "a\n````js\nb\nc\nd\n````\n";
  expect(fitForeignText(code, { maxLines: 4 }).text).toBe("a\n````js\nb\n````\n");
  expect(fitForeignText(code, { maxLines: 2 }).text).toBe("a\n");
  expect(fitForeignText("- ~~~\n  x").text).toBe("- ~~~\n  x\n  ~~~\n");
});

test("removes comments at the start of a line, but keeps them elsewhere and in code", () => {
  expect(fitForeignText("a\n<!-- verbosity:extended -->\nb\n<!--\n plimsoll:end:x\n--> c\n").text).toBe("a\nb\n c\n");
  const kept = "see `<!-- x -->`\n\n```\n<!-- verbosity:core -->\n```\n";
  expect(fitForeignText(kept).text).toBe(kept);
  expect(fitForeignText("a\n<!-- never\nb").text).toBe("a\n&lt;!-- never\nb\n");
});

test.each([
  ["@AGENTS.md", "\\@AGENTS.md"],
  ["see @~/.ssh/id_rsa, and @../x.md.", "see \\@~/.ssh/id_rsa, and \\@../x.md."],
  ["- @a\n> @b\n| @c |\n|@d|", "- \\@a\n> \\@b\n| \\@c |\n|\\@d|"],
  // A Markdown parser starts a new text at these.
  ["**@a** _@b_ [@c](d) ~~@e~~ <b>@f</b>", "**\\@a** _\\@b_ [\\@c](d) ~~\\@e~~ <b>\\@f</b>"],
  ["`a`@b", "`a`\\@b"],
  ["\\*@a", "\\*\\@a"],
  ["\u00a0@a", "\\@a"],
  // These only look like code.
  ["`a\n`@b`", "`a\n`\\@b`"],
  ["\\`@a`", "\\`\\@a`"],
  ["``@a`", "``\\@a`"],
  ["```a` @b```", "```a` \\@b```"],
  ['<a title="`">@b`', '<a title="`">\\@b`'],
])("escapes what an agent would import: %j", (text, escaped) => {
  expect(fitForeignText(text).text).toBe(`${escaped}\n`);
  expect(importedNames(fitForeignText(text).text)).toEqual([]);
  // Nothing is escaped twice.
  expect(fitForeignText(escaped).text).toBe(`${escaped}\n`);
});

test.each([
  "write to me@a.example, or see https://a.example/@me and user@host:path",
  "`@types/node` and `a` or `@b`",
  "```\n@a\n```",
  "\\@a",
  "a @ b @",
])("keeps what no agent imports: %j", (text) => {
  expect(fitForeignText(text).text).toBe(`${text}\n`);
});

test("escapes code that a limit leaves without its end", () => {
  const fitted = fitForeignText("`a @b cccccccc`", { maxBytes: 9 }).text;
  expect(fitted).toContain("`a \\@b");
  expect(importedNames(fitted)).toEqual([]);
});

const piece = fc.constantFrom(
  ...[
    "a",
    "é€😀",
    "\n",
    "\n",
    "```",
    "~~~~",
    "- ```",
    "  ",
    "<!--",
    "-->",
    " verbosity:detail ",
    "<!-- verbosity:extended -->",
  ],
  ...['<!-- sync:fetch url="https://a.example" -->', "<!-- plimsoll:end:context -->", "\r\n", "|"],
  ...["<!-- plimsoll:start:context -->", "@a", " @b/c", "`", "\\", "<b>"],
);

test("any text fits, and neither hides the text after it nor changes its tier", () => {
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join("")),
      fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
      fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined }),
      (text, maxLines, maxBytes) => {
        const fitted = fitForeignText(text, { maxLines, maxBytes }).text;
        expect(Buffer.byteLength(fitted)).toBeLessThanOrEqual(maxBytes ?? Number.POSITIVE_INFINITY);
        expect(fitted.split("\n").length - 1).toBeLessThanOrEqual(maxLines ?? Number.POSITIVE_INFINITY);
        expect(fitted.includes("\ufffd")).toBe(false);
        const around = `${fitted}${fitted === "" || fitted.endsWith("\n") ? "" : "\n"}after\n`;
        const kinds: string[] = [];
        scanLines(around, (_, kind) => kinds.push(kind));
        expect(kinds.at(-1)).toBe("text");
        expect(parseSegments(around).segments.map(({ tier }) => tier)).toEqual(["core"]);
        expect(findFetchMarkers(around).markers).toEqual([]);
        expect(markedBlock.find(around, "context").kind).toBe("none");
        expect(importedNames(around)).toEqual([]);
      },
    ),
    { numRuns: runs },
  );
});

it("finds names at the start of a word, in order, without punctuation at the end", () => {
  const text = "@AGENTS.md\nSee @docs/a.md, @~/mine.md and @./b.md.\nmail@example.org";
  expect(importedNames(text)).toEqual(["AGENTS.md", "docs/a.md", "~/mine.md", "./b.md"]);
});

it("ignores code", () => {
  expect(importedNames("`@a.md` @b.md\n```\n@c.md\n```\n<!--\n@d.md\n-->\n")).toEqual(["b.md"]);
});
