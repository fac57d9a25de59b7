import fc from "fast-check";
import { expect, test } from "vitest";
import {
  characterStart,
  closest,
  countNoun,
  cutText,
  didYouMean,
  formatNumber,
  isInsidePair,
  namedKey,
  printable,
  printableJson,
  printableLines,
  shorten,
  truncateBytes,
  wellFormed,
} from "./wording.ts";

const commands = ["completion", "config", "count"];

test("finds the word that a typo meant", () => {
  expect(closest("cuont", commands)).toBe("count");
  expect(closest("cont", commands)).toBe("count");
  expect(closest("confg", commands)).toBe("config");
  expect(closest("COUNT", commands)).toBe("count");
  expect(closest("compltion", commands)).toBe("completion");
});

test("two swapped neighbours are one mistake", () => {
  expect(closest("ab", ["ba"])).toBe("ba");
});

test("suggests nothing for a word that is far from all candidates", () => {
  expect(closest("deploy", commands)).toBeUndefined();
  expect(closest("x", commands)).toBeUndefined();
  expect(closest("", commands)).toBeUndefined();
  expect(closest("count", [])).toBeUndefined();
});

test("the earlier of two equally near words wins", () => {
  expect(closest("bat", ["cat", "hat"])).toBe("cat");
});

test("the nearer word wins over an earlier one", () => {
  expect(closest("counter", ["counters-all", "counted", "countes"])).toBe("counted");
  expect(closest("estimate:claude5", ["estimate:claude-3", "estimate:claude-5"])).toBe("estimate:claude-5");
});

test("a suggestion is a sentence, or undefined", () => {
  expect(didYouMean("cuont", commands)).toBe('Did you mean "count"?');
  expect(didYouMean("deploy", commands)).toBeUndefined();
});

test("suggests nothing for one letter, since every other letter is near", () => {
  expect(closest("-x", ["-q", "--all"])).toBeUndefined();
});

test("finds a name that contains the word", () => {
  expect(closest("o200k", ["bytes/4", "estimate:o200k", "exact:o200k"])).toBe("estimate:o200k");
});

test("keeps a text that fits, and reports how much of a longer one is left out", () => {
  expect(cutText("abc", 3)).toEqual({ text: "abc", omitted: 0 });
  expect(cutText("abcd", 3)).toEqual({ text: "abc", omitted: 1 });
  expect(cutText("ab😀cd", 3)).toEqual({ text: "ab", omitted: 4 });
  expect(cutText("ab😀cd", 4)).toEqual({ text: "ab😀", omitted: 2 });
  expect(cutText("😀", 1)).toEqual({ text: "", omitted: 2 });
});

test("keeps characters whole, and one more would not fit", () => {
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

test("separates thousands", () => {
  expect([0, 999, 1000, 1234567, 100000].map(formatNumber)).toEqual(["0", "999", "1,000", "1,234,567", "100,000"]);
});

test("one is singular, everything else is plural", () => {
  expect([0, 1, 2, 1000].map((value) => countNoun(value, "pack"))).toEqual([
    "0 packs",
    "1 pack",
    "2 packs",
    "1,000 packs",
  ]);
});

test("a key has a readable name and a hash that distinguishes equal names", () => {
  expect(namedKey("my shop", "/a/my shop")).toMatch(/^my-shop-[0-9a-f]{10}$/);
  expect(namedKey("shop", "/a/shop")).not.toBe(namedKey("shop", "/b/shop"));
  expect(namedKey("shop", "/a/shop")).toBe(namedKey("shop", "/a/shop"));
});

test("a key is a valid file name, whatever the name", () => {
  for (const name of ["", "../..", "a/b\0c", "名前", "x".repeat(300)])
    expect(namedKey(name, "identity")).toMatch(/^[\w.-]{1,51}$/);
});

test("control characters become visible escapes", () => {
  expect(printable("a\nb\tc\r")).toBe("a\\nb\\tc\\r");
  expect(printable("\u001b[31mred\u0007")).toBe("\\x1b[31mred\\x07");
  expect(printable("\u009b31m\u007f")).toBe("\\x9b31m\\x7f");
});

test("marks that reorder text become visible escapes", () => {
  expect(printable("a\u202egnp.exe")).toBe("a\\u202egnp.exe");
});

test("keeps ordinary text of any script", () => {
  const text = "größe/日本語/🚢 a-b_c.md";
  expect(printable(text)).toBe(text);
});

test("keeps the line breaks of a message and escapes the rest", () => {
  expect(printableLines("one\ntwo\u001b[2J")).toBe("one\ntwo\\x1b[2J");
  expect(printableLines("\tcode\r\u2067")).toBe("\tcode\\r\\u2067");
});

test("JSON keeps its value and loses what controls a terminal", () => {
  const value = { name: "a\u001b\u007f\u009b31m\u202e\u2028b\tc\n", list: [1] };
  const json = printableJson(JSON.stringify(value, null, 2));
  expect(JSON.parse(json)).toEqual(value);
  expect(json).not.toMatch(/[\u007f-\u009f\u2028-\u202e]/);
});

test.each([
  ["as it is", 8, "as it is"],
  [" on\n\n one\tline ", 20, "on one line"],
  ["cut here", 5, "cut…"],
  ["🚢🚢🚢", 4, "🚢…"],
  ["any", 1, "…"],
  ["any", 0, ""],
  [`${" ".repeat(1_000)}behind white space`, 20, "behind white space"],
])("%j in %d characters is %j", (text, maxCharacters, expected) => {
  expect(shorten(text, maxCharacters)).toBe(expected);
});

test("an index is inside a pair only between the halves of one character", () => {
  const inside = (text: string) => Array.from({ length: text.length + 1 }, (_, index) => isInsidePair(text, index));
  expect(inside("a😀b")).toEqual([false, false, true, false, false]);
  expect(inside("\ud83d\ud83d")).toEqual([false, false, false]);
  expect(inside("\udc00\ud83d")).toEqual([false, false, false]);
  expect(inside("")).toEqual([false]);
});

test("a cut inside a pair moves before it", () => {
  expect([0, 1, 2, 3, 4].map((index) => characterStart("a😀b", index))).toEqual([0, 1, 1, 3, 4]);
});

test("a well-formed text equals its UTF-8 round trip", () => {
  const unit = fc.constantFrom("a", "é", "😀", "\ud83d", "\ude00", "\n");
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const text = units.join("");
      expect(wellFormed(text)).toBe(Buffer.from(text).toString());
    }),
  );
});

test.each([
  ["hello", 100, "hello"],
  ["hello", 5, "hello"],
  ["hello world", 5, "hello"],
  ["café!", 4, "caf"],
  ["a\nbc\ndef", 6, "a\nbc\n"],
  // Here 0 means no room at all. Callers without a limit do not call this function.
  ["hello", 0, ""],
  ["hello", -1, ""],
])("%j within %i bytes is %j", (text, maxBytes, expected) => {
  expect(truncateBytes(text, maxBytes)).toEqual({ text: expected, truncated: expected !== text });
});

test("never returns more than the bytes or a broken character, and always a start of the text", () => {
  const property = fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.nat(100), (text, maxBytes) => {
    const cut = truncateBytes(text, maxBytes).text;
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(maxBytes);
    expect(text.startsWith(cut)).toBe(true);
  });
  fc.assert(property, { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 });
});
