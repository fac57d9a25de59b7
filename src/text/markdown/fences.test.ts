import { expect, test } from "vitest";
import { type LineKind, scanLines } from "./fences.ts";

function kinds(text: string): LineKind[] {
  const result: LineKind[] = [];
  scanLines(text, (_line, kind) => result.push(kind));
  return result;
}

test("a fence opens code that the next fence of its kind closes", () => {
  expect(kinds("a\n```js\ncode\n```\nb")).toEqual(["text", "fence", "code", "fence", "text"]);
  expect(kinds("~~~\n```\n~~~\nb\n")).toEqual(["fence", "code", "fence", "text"]);
});

test("only a fence at least as long, of the same mark and with nothing behind it closes", () => {
  expect(kinds("````\n```\n````js\n`````\nb")).toEqual(["fence", "code", "code", "fence", "text"]);
  expect(kinds("```\n``` \t\nb")).toEqual(["fence", "fence", "text"]);
});

test("ticks with a tick behind them on the line are inline code", () => {
  expect(kinds("```a``` b\nc")).toEqual(["text", "text"]);
  expect(kinds("~~~a~~~\nc")).toEqual(["fence", "code"]);
});

test("an indented closer further than three columns is code", () => {
  expect(kinds("```\n    ```\n   ```\nb")).toEqual(["fence", "code", "fence", "text"]);
});

test("a fence inside a list item is one, also on the line of the marker", () => {
  expect(kinds("- ```sh\n  x\n  ```\nb")).toEqual(["fence", "code", "fence", "text"]);
  expect(kinds("10. a\n    ```\n    x\n    ```\nb")).toEqual(["text", "fence", "code", "fence", "text"]);
  expect(kinds("- 1. ~~~\n     x\n     ~~~\nb")).toEqual(["fence", "code", "fence", "text"]);
});

test("line breaks may be CRLF", () => {
  expect(kinds("```\r\nx\r\n```\r\nb\r\n")).toEqual(["fence", "code", "fence", "text"]);
});

test("a fence that is never closed runs to the end and is told", () => {
  expect(scanLines("a\n```\nb", () => {})?.number).toBe(2);
  expect(scanLines("```\n```\n", () => {})).toBeUndefined();
});

test("fences in a comment of several lines are none, and a comment in code is code", () => {
  expect(kinds("<!--\n```\n-->\nb")).toEqual(["comment", "comment", "comment", "text"]);
  expect(kinds("```\n<!--\n```\n-->")).toEqual(["fence", "code", "fence", "text"]);
  expect(kinds("<!-- a -->\n```\n")).toEqual(["text", "fence"]);
  expect(kinds("<!-->\n```\n-->\n```\n")).toEqual(["text", "fence", "code", "fence"]);
});

test("a comment that never ends hides nothing", () => {
  expect(kinds("--> <!--\n<!-- a\n```\nb\n```")).toEqual(["text", "text", "fence", "code", "fence"]);
});

test("lines carry their number and place", () => {
  const lines: unknown[] = [];
  scanLines("ab\r\n\nc", (line) => lines.push(line));
  expect(lines).toEqual([
    { number: 1, start: 0, end: 2, next: 4 },
    { number: 2, start: 4, end: 4, next: 5 },
    { number: 3, start: 5, end: 6, next: 6 },
  ]);
});
