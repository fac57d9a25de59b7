import fc from "fast-check";
import { get_encoding, type Tiktoken } from "tiktoken";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Counter } from "./create-counter.ts";
import {
  countByMerging,
  createBytePairQueue,
  createBytePairRanks,
  createExactCounter,
  type ExactEncoding,
  noRank,
} from "./exact.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";

const hardTexts: Record<string, string> = {
  "special-token text": "a<|endoftext|>b <|fim_prefix|><|im_start|>user<|endofprompt|>",
  "a byte order mark": "\ufeffimport x\ufeff\ufeff y \ufeff\n\ufeff",
  "lone surrogates": "a\ud800b \udfff\ud83d x\udc00\ud800",
  "line breaks of all kinds": "a\r\nb\rc\n\r\n\n d\u2028e\u2029f\u0085g\vh\fi \n",
  "white space of all kinds": " \u00a0\u1680\u180e\u2000\u200a\u200b\u202f\u205f\u3000\u0085 x\u00a0\u00a0y\u3000z  ",
  "trailing space after a line break": "if (x) {\n    \n  \t",
  "contractions in mixed case": "I'M you'Re he'S it'ſ we'LL we'lL they'vE I'd 'tis 'S ''s x'\u017fy O'Reilly l'l 'r",
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

  it("has its name", () => {
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
    for (const bytes of [1, 63, 64, 65, 66, 129, 1000, deep ? 20_000 : 2000]) {
      const text = unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)));
      expect(counter.count(text)).toBe(expected(text));
      expect(counter.count(`x ${text}!`)).toBe(expected(`x ${text}!`));
    }
  });

  it("equals tiktoken on mixtures of everything", () => {
    const property = fc.property(mixture, (text) => counter.count(text) === expected(text));
    fc.assert(property, { numRuns: deep ? 10_000 : 120 });
  });

  it("equals tiktoken on each character of the basic plane between letters and spaces", () => {
    for (let code = 0; code < 0x10000; code += deep ? 1 : 41) {
      const character = String.fromCharCode(code);
      const text = `a${character}b ${character} ${character}${character}A ${character}9'${character}s!${character}\n`;
      if (counter.count(text) !== expected(text)) expect(`U+${code.toString(16)}`).toBe("equal");
    }
  });
});

it("counts long runs that take tiktoken minutes", { tags: ["deep"] }, async () => {
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
      fc.constantFrom(" ", "  ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u0085", "\u2028", "\u3000", "\ufeff", "\u200b"),
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

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 80;

function countText(vocabulary: readonly string[], text: string): number {
  const bytes = new TextEncoder().encode(text);
  return countByMerging(createBytePairRanks(vocabulary), bytes, 0, bytes.length);
}

/** The definition, word for word. It takes quadratic time, so only tests use it. */
function countByDefinition(vocabulary: readonly string[], text: string): number {
  const parts = [...text];
  for (;;) {
    const ranks = parts.slice(1).map((part, index) => vocabulary.indexOf(parts[index]! + part));
    const lowest = Math.min(...ranks.filter((rank) => rank >= 0));
    if (lowest === Number.POSITIVE_INFINITY) return parts.length;
    const at = ranks.indexOf(lowest);
    parts.splice(at, 2, parts[at]! + parts[at + 1]!);
  }
}

it("merges the lowest rank first, not the longest token", () => {
  expect(countText(["a", "b", "c", "bc", "ab", "abc"], "abc")).toBe(1);
  expect(countText(["a", "b", "c", "bc", "ab"], "abc")).toBe(2);
  expect(countText(["a", "b", "c", "d", "bc", "ab", "cd"], "abcd")).toBe(3);
});

it("merges the leftmost of equal pairs", () => {
  expect(countText(["a", "b", "aa", "aab"], "aaab")).toBe(3);
  expect(countText(["a", "b", "aa", "ab"], "aaab")).toBe(2);
});

it("counts bytes that no token covers one by one", () => {
  expect(countText(["a"], "xyz")).toBe(3);
});

it("follows the definition with any ranks, on both sides of the length where the queue takes over", () => {
  const token = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 2, maxLength: 6 });
  const vocabulary = fc.uniqueArray(token, { minLength: 1, maxLength: 40 });
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 200, size: "max" });
  const property = fc.property(vocabulary, text, (tokens, input) => {
    expect(countText(tokens, input)).toBe(countByDefinition(tokens, input));
  });
  fc.assert(property, { numRuns });
});

it("counts inside a larger text", () => {
  const ranks = createBytePairRanks(["a", "b", "ab", "abab"]);
  const bytes = new TextEncoder().encode(`x${"ab".repeat(100)}y`);
  expect(countByMerging(ranks, bytes, 1, 201)).toBe(50);
  expect(countByMerging(ranks, bytes, 1, 41)).toBe(10);
});

function popAll(queue: ReturnType<typeof createBytePairQueue>): [number, number][] {
  const popped: [number, number][] = [];
  for (let part = queue.pop(); part >= 0; part = queue.pop()) popped.push([queue.rank(), part]);
  return popped;
}

it("returns the lowest rank first, then the leftmost part", () => {
  const pair = fc.tuple(fc.nat(30), fc.nat(100));
  const property = fc.property(fc.array(pair, { maxLength: 200 }), (pairs) => {
    const queue = createBytePairQueue();
    for (const [rank, part] of pairs) queue.push(rank, part);
    expect(popAll(queue)).toEqual(pairs.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]));
  });
  fc.assert(property, { numRuns: 500 });
});

it("accepts lower ranks while a bucket is being emptied, and a rank again after it was empty", () => {
  const queue = createBytePairQueue();
  queue.push(5, 2);
  queue.push(5, 1);
  expect([queue.pop(), queue.rank()]).toEqual([1, 5]);
  queue.push(3, 9);
  expect(popAll(queue)).toEqual([
    [3, 9],
    [5, 2],
  ]);
  queue.push(5, 4);
  expect(popAll(queue)).toEqual([[5, 4]]);
});

const vocabulary = ["a", "ab", [0xe4, 0xb8], "中", "abcdefghij"];

function rankOf(text: string | number[]): number {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : Uint8Array.from(text);
  return createBytePairRanks(vocabulary).rankOf(bytes, 0, bytes.length);
}

it("finds every token at its rank, including those that are not valid UTF-8", () => {
  expect(["a", "ab", [0xe4, 0xb8], "中", "abcdefghij"].map(rankOf)).toEqual([0, 1, 2, 3, 4]);
});

it("finds nothing else", () => {
  expect(["b", "aba", [0xe4], [0xe4, 0xb8, 0xae], "abcdefghi", "abcdefghijk"].map(rankOf)).toEqual(
    Array(6).fill(noRank),
  );
});

it("knows the two-byte tokens by their bytes", () => {
  const ranks = createBytePairRanks(vocabulary);
  expect([ranks.rankOfPair(0x61, 0x62), ranks.rankOfPair(0xe4, 0xb8), ranks.rankOfPair(0x62, 0x61)]).toEqual([
    1,
    2,
    noRank,
  ]);
});

it("leaves out ranks that the vocabulary does not use", () => {
  const sparse: (string | number[])[] = ["a", "b"];
  sparse[3] = "ab";
  const ranks = createBytePairRanks(sparse);
  expect(ranks.rankOf(new TextEncoder().encode("ab"), 0, 2)).toBe(3);
  expect(ranks.rankOf(new Uint8Array(), 0, 0)).toBe(noRank);
});

it("grows with tokens that are longer than usual", () => {
  const long = Array.from({ length: 20 }, (_, index) => String.fromCharCode(0x4e00 + index).repeat(50));
  const ranks = createBytePairRanks(long);
  const bytes = new TextEncoder().encode(long[19]!);
  expect(ranks.rankOf(bytes, 0, bytes.length)).toBe(19);
});
