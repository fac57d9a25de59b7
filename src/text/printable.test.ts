import { expect, test } from "vitest";
import { printable, printableLines } from "./printable.ts";

test("control characters become visible escapes", () => {
  expect(printable("a\nb\tc\r")).toBe("a\\nb\\tc\\r");
  expect(printable("\u001b[31mred\u0007")).toBe("\\x1b[31mred\\x07");
  expect(printable("\u009b31m\u007f")).toBe("\\x9b31m\\x7f");
});

test("marks that reorder text become visible escapes", () => {
  expect(printable("a\u202egnp.exe")).toBe("a\\u202egnp.exe");
});

test("ordinary text of any script stays as it is", () => {
  const text = "größe/日本語/🚢 a-b_c.md";
  expect(printable(text)).toBe(text);
});

test("a message keeps its line breaks and nothing else", () => {
  expect(printableLines("one\ntwo\u001b[2J")).toBe("one\ntwo\\x1b[2J");
});
