import fc from "fast-check";
import { expect, test } from "vitest";
import { createWindow } from "./define-tool.ts";

test("counts every item, and keeps those after the offset without gaps", () => {
  const run = fc.record({
    sizes: fc.array(fc.nat(20), { maxLength: 30 }),
    offset: fc.nat(35),
    limit: fc.option(fc.nat(10), { nil: undefined }),
    maxCharacters: fc.option(fc.nat(60), { nil: undefined }),
  });
  const check = ({
    sizes,
    ...options
  }: {
    sizes: number[];
    offset: number;
    limit?: number;
    maxCharacters?: number;
  }) => {
    const window = createWindow<number>(options);
    for (const [index, size] of sizes.entries()) window.offer(() => index, size);
    const kept = window.items;
    expect(window.total()).toBe(sizes.length);
    expect(kept).toEqual(kept.map((_, index) => options.offset + index));
    expect(kept.length).toBeLessThanOrEqual(options.limit ?? sizes.length);
    const characters = kept.reduce((sum, index) => sum + (sizes[index] ?? 0), 0);
    if (kept.length > 1) expect(characters).toBeLessThanOrEqual(options.maxCharacters ?? Number.POSITIVE_INFINITY);
    expect(window.more()).toBe(sizes.length > options.offset + kept.length);
    const next = sizes[options.offset + kept.length];
    if (next !== undefined && kept.length < (options.limit ?? sizes.length) && kept.length > 0) {
      expect(characters + next).toBeGreaterThan(options.maxCharacters ?? 0);
    }
  };
  fc.assert(fc.property(run, check), { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 300 });
});

test("keeps one item however long it is, and never creates an item that it does not keep", () => {
  const window = createWindow<string>({ offset: 1, maxCharacters: 10 });
  const made: string[] = [];
  for (const text of ["skipped", "much longer than ten", "next"]) {
    window.offer(() => {
      made.push(text);
      return text;
    }, text.length);
  }
  expect(window.items).toEqual(["much longer than ten"]);
  expect(made).toEqual(["much longer than ten"]);
});
