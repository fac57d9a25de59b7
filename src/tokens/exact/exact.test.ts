import fc from "fast-check";
import { get_encoding, type Tiktoken } from "tiktoken";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Counter } from "../counter.ts";
import { createExactCounter, type ExactEncoding } from "./exact.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";

const hardTexts: Record<string, string> = {
  "special-token text": "a<|endoftext|>b <|fim_prefix|><|im_start|>user<|endofprompt|>",
  "a byte order mark": "\ufeffimport x\ufeff\ufeff y \ufeff\n\ufeff",
  "lone surrogates": "a\ud800b \udfff\ud83d x\udc00\ud800",
  "line breaks of all kinds": "a\r\nb\rc\n\r\n\n d\u2028e\u2029f\u0085g\vh\fi \n",
  "white space of all kinds":
    " \u00a0\u1680\u180e\u2000\u200a\u200b\u202f\u205f\u3000\u0085 x\u00a0\u00a0y\u3000z  ",
  "trailing space after a line break": "if (x) {\n    \n  \t",
  "contractions in mixed case":
    "I'M you'Re he'S it'ſ we'LL we'lL they'vE I'd 'tis 'S ''s x'\u017fy O'Reilly l'l 'r",
  "marks at odd places": "\u0301a e\u0301 !\u0301 !!\u0301 \u0301\u0301A \u0301B1\u0301 \n\u0301",
  "cases of caseless letters": "AʰB ǅabc ǄABC AªB 中A中 A中a AAʰAA हिन्दी HTTPServer iPhone XMLHttp ΑΒγ",
  "numbers of all kinds": "1234567 12½³ Ⅷ٣٤٥٦७८ x1y22z333 1,000.50 一二三",
  "slashes and line breaks": "// a\n//\n/\r\n/ /// \n/x https://a.b/c?d=e#f\n\n/",
  "joined emoji": "👨‍👩‍👧‍👦🏳️‍🌈🇩🇪🇫🇷👍🏽☺️",
  "letters newer than Unicode 16": "\ua7ce\ua7d2\u{16ea0}\u{16ebb} \u0295a A\u0295B \u{11de0}",
  "control characters": "\0\0a\0 \x01\x7f\x80\x9f",
};

const runs: Record<string, string> = {
  a: "a",
  space: " ",
  newline: "\n",
  tab: "\t",
  emoji: "😀",
  base64: "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
  Han: "的一是不了人我在有他这为之大来以个中上们",
  equals: "=",
  digits: "7",
};

const encodings: readonly ExactEncoding[] = ["o200k", "cl100k"];
describe.each(encodings)("exact:%s", (encoding) => {
  let counter: Counter;
  let reference: Tiktoken;
  const expected = (text: string): number => reference.encode_ordinary(text).length;
  beforeAll(async () => {
    counter = await createExactCounter(encoding);
    reference = get_encoding(`${encoding}_base`);
  });
  afterAll(() => reference.free());

  it("is called by its name", () => {
    expect(counter.name).toBe(`exact:${encoding}`);
  });

  it.each(Object.entries(hardTexts))("equals tiktoken on %s", (_, text) => {
    expect(counter.count(text)).toBe(expected(text));
    for (let end = 0; end < text.length; end++) {
      const part = text.slice(0, end);
      expect({ part, tokens: counter.count(part) }).toEqual({ part, tokens: expected(part) });
    }
  });

  it.each(Object.entries(runs))("equals tiktoken on runs of %s", (_, unit) => {
    for (const bytes of [1, 63, 64, 65, 66, 129, 1000, deep ? 20_000 : 4000]) {
      const text = unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));
      expect(counter.count(text)).toBe(expected(text));
      expect(counter.count(`x ${text}!`)).toBe(expected(`x ${text}!`));
    }
  });

  it("equals tiktoken on mixtures of everything", () => {
    const property = fc.property(mixture, (text) => counter.count(text) === expected(text));
    fc.assert(property, { numRuns: deep ? 10_000 : 1000 });
  });

  it("equals tiktoken on each character of the basic plane between letters and spaces", () => {
    for (let code = 0; code < 0x10000; code += deep ? 1 : 13) {
      const character = String.fromCharCode(code);
      const text = `a${character}b ${character} ${character}${character}A ${character}9'${character}s!${character}\n`;
      if (counter.count(text) !== expected(text)) expect(`U+${code.toString(16)}`).toBe("equal");
    }
  });
});

it("knows the lengths of runs that tiktoken needs minutes for", async () => {
  const counter = await createExactCounter("o200k");
  expect(counter.count("a".repeat(1_000_000))).toBe(125_000);
  expect(counter.count(" ".repeat(1_000_000))).toBe(7813);
  expect(counter.count("\n".repeat(1_000_000))).toBe(62_500);
});

const codePoint = (from: number, to: number): fc.Arbitrary<string> =>
  fc.integer({ min: from, max: to }).map((code) => String.fromCodePoint(code));

const mixture: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      fc.constantFrom(..."aeiostrnlAEISTRN"),
      fc.constantFrom("the", "The", "return", "HTTP", "camelCase", "ing", "中文", "привет", "ß", "İ", "ǅ"),
      fc.constantFrom(
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        "\u00a0",
        "\u0085",
        "\u2028",
        "\u3000",
        "\ufeff",
        "\u200b",
      ),
      fc.constantFrom("'s", "'S", "'ſ", "'RE", "'Ve", "'lL", "'d", "'", "’s"),
      fc.constantFrom("/", "//", "!", "...", "=>", "<|endoftext|>", "{", '"', "_", "-", "—"),
      fc.constantFrom("0", "12", "345", "½", "٣", "Ⅷ"),
      fc.constantFrom("\u0301", "\u0308", "\u093f", "\u20dd", "\ufe0f", "\u200d", "\ud800", "\udc00"),
      codePoint(0, 0x2fff),
      codePoint(0x3000, 0xffff),
      codePoint(0x10000, 0x1ffff),
      fc
        .tuple(fc.constantFrom("a", " ", "\n", "=", "Z", "的"), fc.integer({ min: 2, max: 150 }))
        .map(([c, n]) => c.repeat(n)),
    ),
    { maxLength: 60, size: "max" },
  )
  .map((parts) => parts.join(""));
