/** The simulator against the rules written down once more, slowly: prefixes as joined texts, every position walked. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { type BillableRequest, createCacheSimulator } from "../cache-simulator.ts";
import type { BillableBlock, LookbackMode } from "./prefix-chain.ts";
import type { Breakpoint } from "./prompt-cache.ts";

const runs = { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 200 };
const minute = 60_000;
const minPrefix = 1_000;

/** Grows, shortens and edits one history of few different blocks, so that it often comes back to what it was. */
const step = fc.record({
  keep: fc.nat(60),
  add: fc.array(
    fc.record({
      key: fc.constantFrom("a", "b"),
      tokens: fc.constant(300),
      kind: fc.constantFrom("text" as const, "tool_call" as const, "tool_result" as const),
    }),
    { maxLength: 30 },
  ),
  marks: fc.array(fc.nat(60), { maxLength: 3 }),
  longMarks: fc.nat(3),
  waitMs: fc.oneof(fc.nat(minute), fc.nat(70 * minute)),
  answerMs: fc.oneof(fc.constant(0), fc.nat(minute)),
  isCold: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;
const steps = fc.array(step, { maxLength: 12 });

it("bills any sequence of requests as a plain reading of the rules does, every token once", () => {
  const seen = { reads: 0, breaks: 0 };
  fc.assert(
    fc.property(steps, fc.constantFrom<LookbackMode>("positions", "blocks"), (all, lookbackMode) => {
      const prices = { anthropic: { min_prefix: minPrefix } };
      const { bill } = createCacheSimulator({ provider: "anthropic", prices, lookbackMode });
      const expected = createReference(lookbackMode);
      for (const request of requestsOf(all)) {
        const { read, write5m, write1h, uncached, total, isBreak } = bill(request);
        expect({ read, write5m, write1h, uncached }).toEqual(expected(request));
        expect(read + write5m + write1h + uncached).toBe(total);
        if (read > 0) seen.reads++;
        if (isBreak) seen.breaks++;
      }
    }),
    runs,
  );
  expect(seen.reads).toBeGreaterThan(runs.numRuns / 2);
  expect(seen.breaks).toBeGreaterThan(runs.numRuns / 20);
});

it.each(["claude-sonnet-5", "gpt-6-sol", "gpt-5"])(
  "bills equal blocks like the same blocks (%s)",
  (model) => {
    fc.assert(
      fc.property(steps, (all) => {
        const provider = model.startsWith("gpt") ? "openai" : "anthropic";
        const [same, equal] = [
          createCacheSimulator({ provider, model }),
          createCacheSimulator({ provider, model }),
        ];
        for (const request of requestsOf(all)) {
          expect(equal.bill(structuredClone(request))).toEqual(same.bill(request));
        }
      }),
      runs,
    );
  },
);

function requestsOf(all: readonly Step[]): BillableRequest[] {
  let history: BillableBlock[] = [];
  let startMs = 0;
  return all.map(({ keep, add, marks, longMarks, waitMs, answerMs, isCold }) => {
    history = [...history.slice(0, keep), ...add];
    const places = new Set([...marks.map((mark) => mark % history.length), history.length - 1]);
    const sorted = history.length === 0 ? [] : [...places].sort((first, second) => first - second);
    const breakpoints = sorted.map((after, index): Breakpoint => {
      return { after, ttl: index < longMarks ? "1h" : "5m" };
    });
    startMs += waitMs;
    return { blocks: history, breakpoints, startMs, firstByteMs: startMs + answerMs, isCold };
  });
}

interface Entry {
  readonly text: string;
  lifetimeMs: number;
  expiresMs: number;
  availableMs: number;
}

function createReference(mode: LookbackMode) {
  let entries: Entry[] = [];
  return ({ blocks, breakpoints, startMs = 0, firstByteMs = 0, isCold }: BillableRequest) => {
    entries = isCold ? [] : entries.filter(({ expiresMs }) => expiresMs > startMs);
    const marks = breakpoints.filter(({ after }) => tokensOf(blocks, after) >= minPrefix);
    const ready = entries.filter(({ availableMs }) => availableMs <= startMs);
    const within = marks.toReversed().flatMap(({ after }) => placesBack(blocks, after, mode));
    const hit = within.find((place) => ready.some(({ text }) => text === textOf(blocks, place)));
    const used = ready.find(({ text }) => hit !== undefined && text === textOf(blocks, hit));
    if (used) used.expiresMs = Math.max(used.expiresMs, startMs + used.lifetimeMs);
    for (const { after, ttl } of marks) {
      const lifetimeMs = ttl === "1h" ? 60 * minute : 5 * minute;
      const text = textOf(blocks, after);
      const entry = entries.find((each) => each.text === text);
      if (entry) again(entry, { startMs, firstByteMs, lifetimeMs });
      else entries.push({ text, lifetimeMs, expiresMs: startMs + lifetimeMs, availableMs: firstByteMs });
    }
    return chargeOf(blocks, marks, hit);
  };
}

function tokensOf(blocks: readonly BillableBlock[], last: number): number {
  return blocks.slice(0, last + 1).reduce((sum, { tokens }) => sum + tokens, 0);
}

function textOf(blocks: readonly BillableBlock[], last: number): string {
  return blocks
    .slice(0, last + 1)
    .map(({ key }) => key)
    .join("");
}

function placesBack(blocks: readonly BillableBlock[], from: number, mode: LookbackMode): number[] {
  const places: number[] = [];
  let left = 20;
  for (let place = from; place >= 0; place--) {
    const { kind } = blocks[place]!;
    const isOneMore =
      place < from && mode === "positions" && kind !== "text" && kind === blocks[place + 1]!.kind;
    if (!isOneMore && left-- === 0) break;
    places.push(place);
  }
  return places;
}

function again(
  entry: Entry,
  { startMs, firstByteMs, lifetimeMs }: { startMs: number; firstByteMs: number; lifetimeMs: number },
): void {
  if (entry.availableMs > startMs) {
    entry.availableMs = Math.min(entry.availableMs, firstByteMs);
    entry.lifetimeMs = Math.max(entry.lifetimeMs, lifetimeMs);
  }
  entry.expiresMs = Math.max(entry.expiresMs, startMs + entry.lifetimeMs);
}

function chargeOf(blocks: readonly BillableBlock[], marks: readonly Breakpoint[], hit: number | undefined) {
  const a = hit === undefined ? 0 : tokensOf(blocks, hit);
  const ends = (some: readonly Breakpoint[]) => some.map(({ after }) => tokensOf(blocks, after));
  const b = Math.max(a, ...ends(marks.filter(({ ttl }) => ttl === "1h")));
  const c = Math.max(a, ...ends(marks));
  return { read: a, write5m: c - b, write1h: b - a, uncached: tokensOf(blocks, blocks.length) - c };
}
