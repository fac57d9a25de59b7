import { expect, test } from "vitest";
import { scanLines } from "../../text/index.ts";
import { prepareText } from "./prepare-text.ts";

test("text without markers comes through byte for byte", () => {
  for (const text of ["", "a", "# A\n\n```\ncode\n```\n", "a <!-- b --> c\n", "<!-- a\nb -->\nc\n"]) {
    expect(prepareText(text)).toMatchObject({ text, warnings: [] });
  }
});

test("a sync:fetch marker that was not expanded never reaches the reader", () => {
  const { text, warnings } = prepareText('a\n  <!-- sync:fetch url="https://x" max_lines="3" -->\nb\n');
  expect(text).toBe("a\nb\n");
  expect(warnings).toEqual([{ line: 2, message: expect.stringContaining("plimsoll sync") }]);
});

test("a sync:fetch marker over several lines goes as a whole", () => {
  expect(prepareText('a\n<!-- sync:fetch\n  url="u"\n-->\nb\n').text).toBe("a\nb\n");
});

test("markers in code are examples and stay", () => {
  const text = '```\n<!-- sync:fetch url="u" -->\n<!-- plimsoll:end:context -->\n```\n';
  expect(prepareText(text)).toMatchObject({ text, warnings: [] });
});

test("a marker of our own blocks would end the block, so it goes", () => {
  for (const marker of [
    "<!-- plimsoll:end:context -->",
    "  <!--plimsoll:start:x sha256=0 -->",
    "<!-- plimsoll:owns sha256=0 -->",
  ]) {
    const { text, warnings } = prepareText(`a\n${marker}\nb\n`);
    expect(text).toBe("a\nb\n");
    expect(warnings).toHaveLength(1);
  }
});

test("a line that only mentions a marker stays", () => {
  const text = "Blocks end with `<!-- plimsoll:end:context -->`.\n<!-- plimsoll:end:x --> behind\n";
  expect(prepareText(text)).toMatchObject({ text, warnings: [] });
});

test("a marker that closed a comment leaves it closed", () => {
  const { text, warnings } = prepareText("a\n<!-- b\n<!-- plimsoll:end:context -->\nc\n");
  expect(text).toBe("a\n<!-- b\nc\n-->\n");
  expect(warnings.map(({ line }) => line)).toEqual([3, 2]);
});

test.each([
  ["a fence", "a\n```js\ncode"],
  ["a long fence", "~~~~~\n~~~\ncode\n"],
  ["a fence in a list", "- a\n\n  ```\n  code\n"],
  ["a fence in a quote", "> ```\n> code"],
  ["a comment", "a\n<!-- never closed\nb\n"],
])("%s that is never closed is closed", (_, given) => {
  const { text, warnings } = prepareText(given);
  expect(text.startsWith(given)).toBe(true);
  expect(warnings).toEqual([expect.objectContaining({ message: expect.stringContaining("never closed") })]);
  expect(kindOfNextLine(text)).toBe("text");
  expect(kindOfNextLine(given.endsWith("\n") ? given : `${given}\n`)).not.toBe("text");
});

/** What a marker behind the text would be taken for, in the list item or the quote that goes on there. */
function kindOfNextLine(text: string): string {
  let last = "";
  scanLines(`${text}${text.startsWith(">") ? "> " : "  "}<!-- next -->\n`, (_, kind) => {
    last = kind;
  });
  return last;
}
