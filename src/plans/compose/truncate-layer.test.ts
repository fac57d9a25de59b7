import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { type Counter, counterNames, createCounter } from "../../core/tokens/index.ts";
import { createTextLayer } from "./compose.ts";
import { countUpTo, findLargest } from "./truncate-layer.ts";

/** How many characters were counted in all. */
function watched(counter: Counter): { readonly counter: Counter; counted(): number } {
  let counted = 0;
  const count = (text: string): number => {
    counted += text.length;
    return counter.count(text);
  };
  return { counter: { name: counter.name, count }, counted: () => counted };
}

test.each(counterNames)("%s: the tokens up to the limit, and more than that above it", async (name) => {
  const counter = await createCounter(name);
  for (const text of ["", "word ".repeat(900), " ".repeat(9_000), "x".repeat(500), "中文\n".repeat(400)]) {
    const tokens = counter.count(text);
    expect(countUpTo(counter, text, tokens)).toBe(tokens);
    expect(countUpTo(counter, text, tokens + 1)).toBe(tokens);
    if (tokens > 0) expect(countUpTo(counter, text, tokens - 1)).toBeGreaterThanOrEqual(tokens);
  }
});

test("of a text with few tokens per character, little more than the kept part is counted", async () => {
  const { counter, counted } = watched(await createCounter("exact:o200k"));
  const largest = 1_000;
  expect(countUpTo(counter, " ".repeat(5_000_000), largest)).toBe(Number.POSITIVE_INFINITY);
  // A token is at most 128 of them.
  expect(counted()).toBeLessThan(largest * 128 * 1.3);
});

test("a counter that finds almost no tokens is called only a few times", () => {
  const { counter, counted } = watched({ name: "one", count: (text) => Math.min(1, text.length) });
  expect(countUpTo(counter, "x".repeat(1_000_000), 10)).toBe(1);
  expect(counted()).toBeLessThan(2_500_000);
});

test("the largest number within the limit is found, by few counts where tokens grow evenly", () => {
  const property = fc.property(
    fc.nat(1_000_000),
    fc.nat(1_000_000),
    fc.integer({ min: 1, max: 9 }),
    (largest, limit, size) => {
      let counts = 0;
      const tokensAt = (number: number): number => {
        counts++;
        return Math.ceil(number / size);
      };
      const expected = Math.min(largest, limit * size);
      expect(findLargest({ limit, largest, first: limit * 4, tokensAt })).toBe(expected);
      expect(counts).toBeLessThanOrEqual(25);
    },
  );
  fc.assert(property);
});

test("the result fits even if tokens grow in steps or shrink once", () => {
  const property = fc.property(
    fc.array(fc.integer({ min: -2, max: 9 }), { minLength: 2 }),
    fc.nat(60),
    (steps, limit) => {
      let sum = 0;
      const tokens = steps.map((step, index) => {
        sum = index === 0 ? 0 : Math.max(0, sum + step);
        return sum;
      });
      const found = findLargest({
        limit,
        largest: tokens.length - 1,
        first: 3,
        tokensAt: (at) => tokens[at]!,
      });
      expect(tokens[found]).toBeLessThanOrEqual(limit);
      if (found < tokens.length - 1) expect(tokens[found + 1]).toBeGreaterThan(limit);
    },
  );
  fc.assert(property);
});

test("numbers far above the result are never tried", () => {
  const asked: number[] = [];
  findLargest({
    ...{ limit: 1_000, largest: 10_000_000, first: 4_000 },
    tokensAt(number) {
      asked.push(number);
      return number / 10;
    },
  });
  expect(Math.max(...asked)).toBeLessThanOrEqual(20_000);
});

/** A token a byte, so that the limits of the examples are their lengths. */
const bytes: Counter = { name: "bytes", count: (text) => Buffer.byteLength(text) };
const fitTo = (text: string, limit: number) => createTextLayer(text, { counter: bytes, maxTokens: 1_000 }).fit(limit);
const textOf = (text: string, limit: number): string => fitTo(text, limit).text;

describe("the cut", () => {
  it("is at a line", () => {
    const text = "line one\nline two\nline three\nline four";
    expect(fitTo(text, 30)).toEqual({
      ...{
        text: "line one\nline two\n[truncated]",
        tokens: 29,
        truncated: true,
        omitted: 2,
        isBelowLeast: false,
        overflow: 0,
      },
    });
    expect(textOf(text, 28)).toBe("line one\n[truncated]");
    expect(textOf(text, 38)).toBe(text);
    expect(textOf(text.replaceAll("\n", "\r\n"), 35)).toBe("line one\r\nline two\n[truncated]");
  });

  it("is at a word in a line of its own, and at a character in a word", () => {
    expect(textOf("hello wonderful world", 20)).toBe("hello\n[truncated]");
    expect(textOf("hello\twonderful\tworld of tabs", 28)).toBe("hello\twonderful\n[truncated]");
    expect(textOf("x".repeat(30), 20)).toBe("xxxxxxxx\n[truncated]");
  });

  it("gives up at most three quarters of what fits for a whole line or word", () => {
    expect(textOf(`title\n${"words ".repeat(20)}`, 60)).toBe(`title\n${"words ".repeat(7).trimEnd()}\n[truncated]`);
    expect(textOf(`a ${"x".repeat(100)}`, 40)).toBe(`a ${"x".repeat(26)}\n[truncated]`);
  });

  it("never splits a character", () => {
    expect(textOf("😀😀😀😀😀😀", 22)).toBe("😀😀\n[truncated]");
    expect(textOf("中文字符中文字符", 20)).toBe("中文\n[truncated]");
  });

  it("leaves nothing where not even one character fits beside the marker", () => {
    for (const limit of [0, 1, 5, 12])
      expect(fitTo("hello world this is long", limit)).toMatchObject({ text: "", tokens: 0, omitted: 1 });
    expect(textOf("hello world this is long", 13)).toBe("h\n[truncated]");
  });

  it("counts the lines that are not whole, blank ones not", () => {
    expect(fitTo("one\n\ntwo\n \nthree\nfour five six seven eight", 21)).toMatchObject({
      text: "one\n\ntwo\n[truncated]",
      omitted: 2,
    });
    expect(fitTo(`one two ${"x".repeat(50)}\nlast`, 25).omitted).toBe(2);
  });
});

describe("white space around the text", () => {
  it("is kept while it fits, and goes before anything else does", () => {
    const text = "\n \n\n  one\ntwo\n\n";
    expect(textOf(text, text.length)).toBe(text);
    const whole = {
      text: "  one\ntwo",
      tokens: 9,
      truncated: false,
      omitted: 0,
      isBelowLeast: false,
      overflow: 0,
    };
    expect(fitTo(text, text.length - 1)).toEqual(whole);
    expect(fitTo(text, 9)).toEqual(whole);
    expect(fitTo(`${"\n".repeat(50)}one\n${"two ".repeat(9)}`, 20)).toMatchObject({
      text: "one\n[truncated]",
      omitted: 1,
    });
  });

  it("may be more than the whole budget", () => {
    for (const space of ["\n", " ", "\r\n", "\t \n", "\u2003"]) {
      const edge = space.repeat(5_000);
      const layer = createTextLayer(`${edge}one${edge}`, { counter: bytes, maxTokens: 1_000 });
      expect(layer.need).toBe(3);
      expect(layer.fit(3)).toMatchObject({ text: "one", truncated: false, omitted: 0 });
    }
  });
});

describe("a fence", () => {
  it("that is cut is closed before the marker, in its column", () => {
    expect(textOf("a\n```js\nlet x;\nlet y;\nlet z;\n```\n\nmore of it\n", 40)).toBe(
      "a\n```js\nlet x;\nlet y;\n```\n[truncated]",
    );
    const item = "- ~~~~\n  one\n  two\n  three\n  ~~~~\n";
    expect(textOf(item, 32)).toBe("- ~~~~\n  one\n  ~~~~\n[truncated]");
  });

  it("is removed if none of its code stays", () => {
    expect(textOf("before it\n```js\nlet something = somethingElse;\n```\n", 30)).toBe("before it\n[truncated]");
    expect(textOf("```js\nlet something = somethingElse;\n```\n", 20)).toBe("");
  });

  it("that the text itself leaves open is closed in a layer that is whole", () => {
    expect(fitTo("a\n```\nb\n", 100)).toMatchObject({ text: "a\n```\nb\n```", truncated: false, omitted: 0 });
    expect(textOf("a\n```", 100)).toBe("a\n```\n```");
    // Its closing counts.
    expect(fitTo("a\n```\nbbbbbbbbb", 15).truncated).toBe(true);
  });
});

it("of a text of megabytes only the part that may stay is counted", async () => {
  const counter = await createCounter("bytes/4");
  let counted = 0;
  const counting: Counter = {
    name: "counting",
    count(text) {
      counted += text.length;
      return counter.count(text);
    },
  };
  const layer = createTextLayer("some words of a line\n".repeat(500_000), {
    counter: counting,
    maxTokens: 10_000,
  });
  expect(layer.need).toBe(Number.POSITIVE_INFINITY);
  expect(layer.fit(10_000).tokens).toBeGreaterThan(9_990);
  expect(counted).toBeLessThan(1_000_000);
});
