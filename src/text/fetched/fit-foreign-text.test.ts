import fc from "fast-check";
import { expect, test } from "vitest";
import { findBlock } from "../blocks/marked-block.ts";
import { scanLines } from "../markdown/fences.ts";
import { importedNames } from "../markdown/imported-names.ts";
import { parseSegments } from "../markdown/verbosity.ts";
import { findFetchMarkers } from "./fetch-markers.ts";
import { fitForeignText } from "./fit-foreign-text.ts";

const runs = process.env.PLIMSOLL_DEEP === "1" ? 5000 : 300;

test("a text without limits keeps its lines, with LF and one final line break", () => {
  expect(fitForeignText("\uFEFF\n a\r\nb\n\n")).toEqual({ text: "a\nb\n", truncated: false });
  expect(fitForeignText(" \n")).toEqual({ text: "", truncated: false });
});

test("lines are counted, and bytes are cut at a line", () => {
  expect(fitForeignText("a\nb\nc", { maxLines: 2 })).toEqual({ text: "a\nb\n", truncated: true });
  expect(fitForeignText("a\nb\nc", { maxLines: 3 })).toEqual({ text: "a\nb\nc\n", truncated: false });
  expect(fitForeignText("aaaa\nbbbb\n", { maxBytes: 9 })).toEqual({ text: "aaaa\n", truncated: true });
});

test("a line that does not fit is cut at a character", () => {
  expect(fitForeignText("äöü€😀x", { maxBytes: 11 })).toEqual({ text: "äöü€", truncated: true });
  expect(fitForeignText("äöü€😀x", { maxBytes: 13 })).toEqual({ text: "äöü€😀", truncated: true });
});

test("code that is cut open is closed within the limit", () => {
  const code = "a\n````js\nb\nc\nd\n````\n";
  expect(fitForeignText(code, { maxLines: 4 }).text).toBe("a\n````js\nb\n````\n");
  expect(fitForeignText(code, { maxLines: 2 }).text).toBe("a\n");
  expect(fitForeignText("- ~~~\n  x").text).toBe("- ~~~\n  x\n  ~~~\n");
});

test("comments at the start of a line go, elsewhere and in code they are text", () => {
  expect(fitForeignText("a\n<!-- verbosity:extended -->\nb\n<!--\n plimsoll:end:x\n--> c\n").text).toBe(
    "a\nb\n c\n",
  );
  const kept = "see `<!-- x -->`\n\n```\n<!-- verbosity:core -->\n```\n";
  expect(fitForeignText(kept).text).toBe(kept);
  expect(fitForeignText("a\n<!-- never\nb").text).toBe("a\n&lt;!-- never\nb\n");
});

test.each([
  ["@AGENTS.md", "\\@AGENTS.md"],
  ["see @~/.ssh/id_rsa, and @../x.md.", "see \\@~/.ssh/id_rsa, and \\@../x.md."],
  ["- @a\n> @b\n| @c |\n|@d|", "- \\@a\n> \\@b\n| \\@c |\n|\\@d|"],
  // To a parser of Markdown these begin a text of their own.
  ["**@a** _@b_ [@c](d) ~~@e~~ <b>@f</b>", "**\\@a** _\\@b_ [\\@c](d) ~~\\@e~~ <b>\\@f</b>"],
  ["`a`@b", "`a`\\@b"],
  ["\\*@a", "\\*\\@a"],
  ["\u00a0@a", "\\@a"],
  // These are code only at a first look.
  ["`a\n`@b`", "`a\n`\\@b`"],
  ["\\`@a`", "\\`\\@a`"],
  ["``@a`", "``\\@a`"],
  ["```a` @b```", "```a` \\@b```"],
  ['<a title="`">@b`', '<a title="`">\\@b`'],
])("what an agent would import is escaped: %j", (text, escaped) => {
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
])("what no agent imports stays: %j", (text) => {
  expect(fitForeignText(text).text).toBe(`${text}\n`);
});

test("code that loses its end by a limit is escaped", () => {
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

test("any text fits, and neither hides nor re-tiers what follows", () => {
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
        expect(findBlock(around, "context").kind).toBe("none");
        expect(importedNames(around)).toEqual([]);
      },
    ),
    { numRuns: runs },
  );
});
