import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createArgumentsCounter, createTextCounter, type TextCounter } from "./count-cache.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";

const textOf = (index: number, length = 100) => `${index} `.padEnd(length, "abc");
// Of one length, and different in a place that no sample looks at.
const alike = (index: number) => `${"line of output ".repeat(100)}${10_000 + index}${" ok".repeat(300)}`;

/** Counts characters, and how often it was asked. */
function createTally(): { calls: number; count(text: string): number } {
  const tally = {
    calls: 0,
    count(text: string): number {
      tally.calls++;
      return text.length;
    },
  };
  return tally;
}

function countAll(texts: TextCounter, contents: readonly string[]): void {
  texts.restart();
  // A copy of each, as JSON.parse makes them.
  for (const text of JSON.parse(JSON.stringify(contents))) expect(texts.count(text)).toBe(text.length);
}

describe("the text cache", () => {
  it("counts a text once, and the same text made anew not again", () => {
    const tally = createTally();
    const { count } = createTextCounter(tally.count);
    expect([count(textOf(1)), count(textOf(1)), count(textOf(2))]).toEqual([100, 100, 100]);
    expect(tally.calls).toBe(2);
  });

  it("tells texts apart that differ in any one character", () => {
    const base = "x".repeat(5000);
    const check = (at: number) => {
      const { count } = createTextCounter((text) => text.split("y").length);
      const other = `${base.slice(0, at)}y${base.slice(at + 1)}`;
      expect([count(base), count(other), count(base), count(other)]).toEqual([1, 2, 1, 2]);
    };
    fc.assert(fc.property(fc.nat(4999), check), { numRuns: deep ? 5000 : 200 });
  });

  it("remembers any number of texts that are almost the same, in any order", () => {
    const tally = createTally();
    const texts = createTextCounter(tally.count);
    const contents = Array.from({ length: 400 }, (_, index) => alike(index));
    countAll(texts, contents);
    expect(tally.calls).toBe(400);
    countAll(texts, contents);
    countAll(texts, contents.toReversed());
    countAll(texts, contents.slice(100));
    expect(tally.calls).toBe(400);
  });

  it("counts only the new texts of a history where some were added, replaced, repeated or left out", () => {
    const text = fc.nat(30).map(alike);
    const check = (histories: string[][]) => {
      const tally = createTally();
      const texts = createTextCounter(tally.count);
      for (const history of histories) countAll(texts, history);
      expect(tally.calls).toBe(new Set(histories.flat()).size);
    };
    fc.assert(fc.property(fc.array(fc.array(text, { maxLength: 40 }), { maxLength: 6 }), check), {
      numRuns: deep ? 2000 : 50,
    });
  });

  it("starts anew when it is full", () => {
    const tally = createTally();
    const { count } = createTextCounter(tally.count, 10_000);
    for (let index = 0; index < 20; index++) count(textOf(index));
    count(textOf(0));
    expect(tally.calls).toBe(20);
    for (let index = 20; index < 40; index++) count(textOf(index));
    count(textOf(0));
    expect(tally.calls).toBe(41);
  });

  it("does not grow with the number of look-ups", () => {
    const tally = createTally();
    const texts = createTextCounter(tally.count, 10_000);
    for (let index = 0; index < 5000; index++) texts.count("ok");
    expect(tally.calls).toBeGreaterThan(2);
    expect(tally.calls).toBeLessThan(20);
  });

  it("does not keep a text beyond its size", () => {
    const tally = createTally();
    const { count } = createTextCounter(tally.count, 1000);
    count("x".repeat(1001));
    count("x".repeat(1001));
    expect(tally.calls).toBe(2);
  });
});

describe("the arguments cache", () => {
  it("counts arguments once, whatever object they come in", () => {
    const tally = createTally();
    const { count } = createArgumentsCounter(tally.count);
    const flat = { path: "a.ts", line: 3, all: true, filter: null };
    const nested = { edits: [{ old: "x", new: ["y", { z: 1 }] }] };
    for (const args of [flat, nested, flat, nested, flat]) {
      expect(count(structuredClone(args), "")).toBe(JSON.stringify(args).length);
    }
    expect(tally.calls).toBe(2);
  });

  it("is not fooled by an owner who changes the object afterwards", () => {
    const { count } = createArgumentsCounter((text) => text.split("y").length - 1);
    const args = { edits: [{ text: "x".repeat(100) }] };
    expect(count(args, "")).toBe(0);
    for (let at = 0; at < 100; at++) {
      args.edits[0] = { text: `${"x".repeat(at)}y${"x".repeat(99 - at)}` };
      expect(count(args, "")).toBe(1);
    }
  });

  it("counts any arguments as their JSON, twice the same", () => {
    const odd = fc.oneof(fc.double(), fc.constant(undefined), fc.date());
    const value = fc.oneof(fc.jsonValue(), odd, fc.array(odd));
    const flat = fc.dictionary(fc.constantFrom("a", "b", "c"), value);
    const { count } = createArgumentsCounter(createTally().count);
    const check = (args: unknown) => {
      const expected = JSON.stringify(args).length;
      expect([count(args, ""), count(structuredClone(args), "")]).toEqual([expected, expected]);
    };
    fc.assert(fc.property(fc.oneof(flat, fc.jsonValue()), check), { numRuns: deep ? 10_000 : 500 });
    check(new Date(0));
    check([1, 2]);
  });

  it("counts what JSON leaves out as nothing", () => {
    const { count } = createArgumentsCounter((text) => text.length);
    expect([count(() => 1, ""), count(undefined, ""), count(() => 1, "")]).toEqual([0, 0, 0]);
  });
});
