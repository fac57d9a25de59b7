import { expect, test } from "vitest";
import { type Counter, counterNames, createCounter } from "../../tokens/index.ts";
import { countUpTo } from "./count-up-to.ts";

/** How many characters were counted in all. */
function watched(counter: Counter): { readonly counter: Counter; counted(): number } {
  let counted = 0;
  const count = (text: string): number => {
    counted += text.length;
    return counter.count(text);
  };
  return { counter: { name: counter.name, count }, counted: () => counted };
}

test.each(counterNames)("%s: the tokens up to the most, and more than that above it", async (name) => {
  const counter = await createCounter(name);
  for (const text of ["", "word ".repeat(900), " ".repeat(9_000), "x".repeat(500), "中文\n".repeat(400)]) {
    const tokens = counter.count(text);
    expect(countUpTo(counter, text, tokens)).toBe(tokens);
    expect(countUpTo(counter, text, tokens + 1)).toBe(tokens);
    if (tokens > 0) expect(countUpTo(counter, text, tokens - 1)).toBeGreaterThanOrEqual(tokens);
  }
});

test("of what has few tokens hardly more is counted than may stay", async () => {
  const { counter, counted } = watched(await createCounter("exact:o200k"));
  const most = 1_000;
  expect(countUpTo(counter, " ".repeat(5_000_000), most)).toBe(Number.POSITIVE_INFINITY);
  // A token is at most 128 of them.
  expect(counted()).toBeLessThan(most * 128 * 1.3);
});

test("a counter that finds next to nothing in a text is asked a few times", () => {
  const { counter, counted } = watched({ name: "one", count: (text) => Math.min(1, text.length) });
  expect(countUpTo(counter, "x".repeat(1_000_000), 10)).toBe(1);
  expect(counted()).toBeLessThan(2_500_000);
});
