import { expect, test } from "vitest";
import { type LineKind, scanLines } from "./fences.ts";

function kinds(text: string): LineKind[] {
  const result: LineKind[] = [];
  scanLines(text, (_line, kind) => result.push(kind));
  return result;
}

test("a fence opens code that the next fence of its kind closes", () => {
  expect(kinds("a\n```js\ncode\n```\nb")).toEqual(["text", "opener", "code", "closer", "text"]);
  expect(kinds("~~~\n```\n~~~\nb\n")).toEqual(["opener", "code", "closer", "text"]);
});

test("only a fence at least as long, of the same mark and with nothing behind it closes", () => {
  expect(kinds("````\n```\n````js\n`````\nb")).toEqual(["opener", "code", "code", "closer", "text"]);
  expect(kinds("```\n``` \t\nb")).toEqual(["opener", "closer", "text"]);
});

test("ticks with a tick behind them on the line are inline code", () => {
  expect(kinds("```a``` b\nc")).toEqual(["text", "text"]);
  expect(kinds("~~~a~~~\nc")).toEqual(["opener", "code"]);
});

test("an indented closer further than three columns is code", () => {
  expect(kinds("```\n    ```\n   ```\nb")).toEqual(["opener", "code", "closer", "text"]);
});

test("a fence inside a list item is one, also on the line of the marker", () => {
  expect(kinds("- ```sh\n  x\n  ```\nb")).toEqual(["opener", "code", "closer", "text"]);
  expect(kinds("10. a\n    ```\n    x\n    ```\nb")).toEqual(["text", "opener", "code", "closer", "text"]);
  expect(kinds("- 1. ~~~\n     x\n     ~~~\nb")).toEqual(["opener", "code", "closer", "text"]);
});

test("code ends with its list item, and the line that ends it is read anew", () => {
  expect(kinds("- ```sh\n  x\n\ny\n```\nz")).toEqual(["opener", "code", "code", "text", "opener", "code"]);
  expect(kinds("- ```sh\n  x\n- ```\n  ```\nb")).toEqual(["opener", "code", "opener", "closer", "text"]);
  expect(kinds("- a\n\n  ~~~\n  x\n b\n~~~")).toEqual(["text", "text", "opener", "code", "text", "opener"]);
  expect(kinds("1. a\n   - ```\n     x\n   b")).toEqual(["text", "opener", "code", "text"]);
});

test("code ends with its quote, which no line without its mark goes on with", () => {
  expect(kinds("> ```\n> x\n> ```\nb")).toEqual(["opener", "code", "closer", "text"]);
  expect(kinds("> ```\n> x\nb")).toEqual(["opener", "code", "text"]);
  expect(kinds("> ```\n\n> b")).toEqual(["opener", "text", "text"]);
  expect(kinds("- > ~~~\n  > x\n  b")).toEqual(["opener", "code", "text"]);
});

test("what is indented by four columns is no fence, where a list item does not hold it", () => {
  expect(kinds("a\n\n    ```\n\tx\n\t```")).toEqual(["text", "text", "text", "text", "text"]);
  expect(kinds("a\n    ```\nb")).toEqual(["text", "text", "text"]);
  expect(kinds("- a\n\n    ```\n    x\n    ```")).toEqual(["text", "text", "opener", "code", "closer"]);
  expect(kinds("-     ```\n- a\n\n      ```")).toEqual(["text", "text", "text", "text"]);
  expect(kinds("1.\t```\n\tx\n  y")).toEqual(["opener", "code", "text"]);
});

test("a list item begins and ends as in CommonMark", () => {
  // One that begins with two blank lines holds nothing.
  expect(kinds("-\n\n      ```")).toEqual(["text", "text", "text"]);
  expect(kinds("-\n    ```")).toEqual(["text", "opener"]);
  // A rule and an underlined heading are no items, and a paragraph goes on over a number.
  expect(kinds("- - -\n    ```")).toEqual(["text", "text"]);
  expect(kinds("a\n-\n    ```")).toEqual(["text", "text", "text"]);
  expect(kinds("a\n2. ```\n3. b")).toEqual(["text", "text", "text"]);
  expect(kinds("a\n1. ```\n2. b")).toEqual(["text", "opener", "text"]);
  // A paragraph may leave the marks out, and its item goes on.
  expect(kinds("- a\nb\n      ```\n  ```\n  c\nd")).toEqual([
    ...["text", "text", "text", "opener", "code", "text"],
  ]);
});

test("a comment ends with its list item too", () => {
  expect(kinds("- <!--\n  ```\n```\n-->")).toEqual(["comment", "comment", "opener", "code"]);
});

test("time grows with the text, whatever it holds", { timeout: 10_000 }, () => {
  const started = performance.now();
  for (const piece of ["- ", "> ", "- - - x\n", "- ```\n", "- <!--\n", ">\n", "\t- a\n", "1. ", "*"])
    for (const before of ["", `${"- > ".repeat(2_000)}x\n`, `${"- ".repeat(2_000)}x\n`])
      kinds(before + piece.repeat(200_000 / piece.length));
  expect(performance.now() - started).toBeLessThan(4_000);
});

test("line breaks may be CRLF", () => {
  expect(kinds("```\r\nx\r\n```\r\nb\r\n")).toEqual(["opener", "code", "closer", "text"]);
});

test("a fence that is never closed runs to the end and is told, with what would close it", () => {
  expect(scanLines("a\n```\nb", () => {})).toMatchObject({ number: 2, start: 2, closer: "```" });
  expect(scanLines("- ```\n  a\n- b", () => {})).toBeUndefined();
  expect(scanLines("```\n```\n", () => {})).toBeUndefined();
});

test("fences in a comment of several lines are none, and a comment in code is code", () => {
  expect(kinds("<!--\n```\n-->\nb")).toEqual(["comment", "comment", "comment", "text"]);
  expect(kinds("```\n<!--\n```\n-->")).toEqual(["opener", "code", "closer", "text"]);
  expect(kinds("<!-- a -->\n```\n")).toEqual(["text", "opener"]);
  expect(kinds("<!-->\n```\n-->\n```\n")).toEqual(["text", "opener", "code", "closer"]);
});

test("a comment that never ends hides nothing", () => {
  expect(kinds("--> <!--\n<!-- a\n```\nb\n```")).toEqual(["text", "text", "opener", "code", "closer"]);
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
