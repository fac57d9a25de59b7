import { expect, it } from "vitest";
import { measure } from "./limits.ts";

const counter = { name: "words", count: (text: string) => text.split(" ").length };

it("measures a text in each unit", () => {
  const text = "née 😀\nzwei\nend";
  expect(measure(text, "bytes", counter)).toBe(Buffer.byteLength(text));
  expect(measure(text, "chars", counter)).toBe([...text].length);
  expect(measure(text, "lines", counter)).toBe(3);
  expect(measure(text, "tokens", counter)).toBe(2);
});

it("counts a last line without a line break, and no line in an empty text", () => {
  expect(measure("", "lines", counter)).toBe(0);
  expect(measure("a\n", "lines", counter)).toBe(1);
  expect(measure("a\nb", "lines", counter)).toBe(2);
});
