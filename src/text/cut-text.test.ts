import fc from "fast-check";
import { expect, test } from "vitest";
import { cutText } from "./cut-text.ts";
import { wellFormed } from "./surrogates.ts";

test("what fits stays, and of the rest it is told how much is left out", () => {
  expect(cutText("abc", 3)).toEqual({ text: "abc", omitted: 0 });
  expect(cutText("abcd", 3)).toEqual({ text: "abc", omitted: 1 });
  expect(cutText("ab😀cd", 3)).toEqual({ text: "ab", omitted: 4 });
  expect(cutText("ab😀cd", 4)).toEqual({ text: "ab😀", omitted: 2 });
  expect(cutText("😀", 1)).toEqual({ text: "", omitted: 2 });
});

test("every character of what is left is whole, and one more would not fit", () => {
  const characters = fc.array(fc.constantFrom("a", "é", "😀", "\u{10ffff}"));
  fc.assert(
    fc.property(characters, fc.nat(20), (each, most) => {
      const whole = each.join("");
      const { text, omitted } = cutText(whole, most);
      expect(whole.startsWith(text)).toBe(true);
      expect(text.length + omitted).toBe(whole.length);
      expect(wellFormed(text)).toBe(text);
      expect(text.length).toBeLessThanOrEqual(most);
      if (omitted > 0) expect(text.length).toBeGreaterThanOrEqual(most - 1);
    }),
  );
});
