import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { accuracyOf, contextErrors } from "../bench/accuracy.ts";
import { chunkText } from "../bench/tokens/chunk-text.ts";
import { measureAccuracy } from "../bench/tokens/measure-accuracy.ts";
import { createSession } from "../bench/tokens/measure-turns.ts";
import { medianOf } from "../bench/tokens/processor-time.ts";
import { type BenchText, splitInHalves } from "../bench/tokens/texts.ts";
import { countMessages } from "../src/core/messages/index.ts";

const runs = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300;

describe("chunks", () => {
  it("together are the text, each within its limit and none half a character", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "\n", "😀", "漢", "long word"), maxLength: 200 });
    const check = (whole: string, maxUnits: number) => {
      const chunks = chunkText(whole, maxUnits);
      expect(chunks.join("")).toBe(whole);
      for (const chunk of chunks) {
        expect(chunk.length).toBeGreaterThan(0);
        expect(chunk.length).toBeLessThanOrEqual(maxUnits);
        expect(chunk).not.toMatch(/\p{Surrogate}/u);
      }
    };
    fc.assert(fc.property(text, fc.integer({ min: 2, max: 50 }), check), { numRuns: runs });
  });

  it("end at a line break unless that would halve them", () => {
    expect(chunkText("one\ntwo\nthree\n", 10)).toEqual(["one\ntwo\n", "three\n"]);
    expect(chunkText("a\nbcdefghijkl", 10)).toEqual(["a\nbcdefghi", "jkl"]);
    expect(chunkText("abcd\nefghi", 5)).toEqual(["abcd\n", "efghi"]);
    expect(chunkText("", 5)).toEqual([]);
  });
});

describe("errors", () => {
  it("are a signed mean, a mean and the 95th percentile, in percent", () => {
    const errors = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? 1 : -1) * (at + 1) * 0.01);
    const { bias, mean, p95 } = accuracyOf(errors);
    expect(bias).toBeCloseTo(-0.5);
    expect(mean).toBeCloseTo(10.5);
    expect(p95).toBeCloseTo(19);
  });

  it("of contexts are those of sums, so that large texts weigh more", () => {
    const errors = contextErrors([110, 1], [100, 2]);
    expect(errors).toHaveLength(500);
    for (const error of errors) expect(error).toBeGreaterThan(0.05);
    expect(contextErrors([5, 7], [5, 7])).toEqual(new Array(500).fill(0));
  });

  it("are taken by category and against each truth that a counter has, mismatches where it claims to be exact", () => {
    const texts: BenchText[] = [
      { category: "b", text: "four", tokens: { o200k: 4 } },
      { category: "a", text: "four", tokens: { o200k: 2 } },
    ];
    const length = { name: "length", count: (text: string) => text.length, forget: () => {} };
    const counters = [
      { ...length, truths: ["o200k", "claude-5"] as const, exact: false },
      { ...length, name: "sure", truths: ["o200k"] as const, exact: true },
    ];
    const { accuracy, mismatches } = measureAccuracy(texts, counters);
    expect(accuracy.slice(0, 3)).toEqual([
      { counter: "length", truth: "o200k", of: "a", texts: 1, bias: 100, mean: 100, p95: 100 },
      { counter: "length", truth: "o200k", of: "b", texts: 1, bias: 0, mean: 0, p95: 0 },
      { counter: "length", truth: "o200k", of: "all texts", texts: 2, bias: 50, mean: 50, p95: 100 },
    ]);
    expect(accuracy).toHaveLength(4);
    expect(mismatches).toEqual([{ counter: "sure", truth: "o200k", texts: 2, mismatches: 1 }]);
  });
});

describe("the timed texts", () => {
  it("are the second half of every category, and the warm-up the first", () => {
    const texts = ["x1", "y1", "x2", "y2", "y3"].map((text) => ({ category: text[0]!, text, tokens: {} }));
    const { seen, unseen } = splitInHalves(texts);
    expect(seen.map(({ text }) => text)).toEqual(["x1", "y1", "y2"]);
    expect(unseen.map(({ text }) => text)).toEqual(["x2", "y3"]);
  });

  it("have a median between the middle ones where their number is even", () => {
    expect(medianOf([9, 1, 5])).toBe(5);
    expect(medianOf([9, 1, 5, 3])).toBe(4);
  });

  it("make a session of 400 messages that can be counted", () => {
    const session = createSession([{ category: "x", text: "word ".repeat(500), tokens: {} }]);
    expect(session).toHaveLength(400);
    const tokens = countMessages(session, { name: "test:length", count: (text) => text.length });
    expect(tokens).toBeGreaterThan(200 * 2_500);
  });
});
