import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type BillableRequest,
  type Breakpoint,
  type CacheSimulatorOptions,
  createCacheSimulator,
} from "./cache-simulator.ts";
import type { BillableBlock, BlockKind, LookbackMode } from "./prefix-chain.ts";

const minute = 60_000;

/** The kind is `text` by default. Keys are the letters, so `abc` begins like `abd`. */
function blocks(letters: string, tokens = 1_000, kind: BlockKind = "text"): BillableBlock[] {
  return [...letters].map((key) => ({ key, tokens, kind }));
}

function markers(...places: number[]): Breakpoint[] {
  return places.map((place) => ({ after: place, ttl: "5m" }));
}

function anthropic(options: Partial<CacheSimulatorOptions> = {}) {
  // A low minimum keeps the figures round.
  const prices = { "claude-sonnet-5": { min_prefix: 1_000 } };
  return createCacheSimulator({ provider: "anthropic", model: "claude-sonnet-5", prices, ...options });
}

describe("a cache with breakpoints", () => {
  it("writes the first request of a growing conversation, then reads it and writes only what is new", () => {
    const { bill } = anthropic();
    expect(bill({ blocks: blocks("sab"), breakpoints: markers(0, 2) })).toEqual({
      read: 0,
      write5m: 3_000,
      write1h: 0,
      uncached: 0,
      total: 3_000,
      cost: 3_750,
      usd: 0.0075,
      isBreak: false,
      isAssumed: false,
    });
    const second = bill({ blocks: blocks("sabcd"), breakpoints: markers(0, 4) });
    // 3,000 · 0.1 + 2,000 · 1.25
    expect(second).toMatchObject({ read: 3_000, write5m: 2_000, uncached: 0, cost: 2_800, isBreak: false });
  });

  it("bills what follows the last breakpoint as plain input, and everything without one", () => {
    const { bill } = anthropic();
    expect(bill({ blocks: blocks("sab"), breakpoints: markers(1) })).toMatchObject({
      write5m: 2_000,
      uncached: 1_000,
    });
    expect(bill({ blocks: blocks("sab"), breakpoints: [] })).toMatchObject({
      read: 0,
      uncached: 3_000,
      cost: 3_000,
    });
  });

  it("reads up to an edit only if a breakpoint was there, and reports a break", () => {
    const marked = anthropic();
    marked.bill({ blocks: blocks("sabcd"), breakpoints: markers(0, 2, 4) });
    const kept = marked.bill({ blocks: blocks("sabXd"), breakpoints: markers(0, 2, 4) });
    expect(kept).toMatchObject({ read: 3_000, write5m: 2_000, isBreak: true });
    const unmarked = anthropic();
    unmarked.bill({ blocks: blocks("sabcd"), breakpoints: markers(0, 4) });
    const lost = unmarked.bill({ blocks: blocks("sabXd"), breakpoints: markers(0, 4) });
    expect(lost).toMatchObject({ read: 1_000, write5m: 4_000, isBreak: true });
  });

  it("writes nothing below the model's minimum", () => {
    const { bill } = anthropic({ model: "claude-opus-4-5" });
    const small = { blocks: blocks("abcd", 1_000), breakpoints: markers(3) };
    expect(bill(small)).toMatchObject({ write5m: 0, uncached: 4_000, cost: 4_000 });
    expect(bill(small)).toMatchObject({ read: 0, uncached: 4_000, isBreak: false });
    const enough = { blocks: blocks("abcd", 1_024), breakpoints: markers(2, 3) };
    expect(bill(enough)).toMatchObject({ write5m: 4_096, uncached: 0 });
    expect(bill(enough)).toMatchObject({ read: 4_096, cost: 409.6 });
  });

  it("charges mixed lifetimes as read up to A, an hour up to B, five minutes up to C", () => {
    const { bill } = anthropic();
    const breakpoints: Breakpoint[] = [
      { after: 0, ttl: "1h" },
      { after: 2, ttl: "1h" },
      { after: 4, ttl: "5m" },
    ];
    const first = bill({ blocks: blocks("sabcde"), breakpoints });
    expect(first).toMatchObject({ read: 0, write1h: 3_000, write5m: 2_000, uncached: 1_000 });
    expect(first.cost).toBe(3_000 * 2 + 2_000 * 1.25 + 1_000);
    const second = bill({ blocks: blocks("sXbcde"), breakpoints });
    expect(second).toMatchObject({ read: 1_000, write1h: 2_000, write5m: 2_000, uncached: 1_000 });
    const third = bill({ blocks: blocks("sXbcdef"), breakpoints: [{ after: 6, ttl: "5m" }] });
    expect(third).toMatchObject({ read: 5_000, write1h: 0, write5m: 2_000, uncached: 0 });
  });

  it("looks back 20 positions, the breakpoint being the first", () => {
    const letters = "abcdefghijklmnopqrstuvwxyz";
    for (const [appended, read] of [
      [19, 2_000],
      [20, 0],
    ] as const) {
      const { bill } = anthropic();
      bill({ blocks: blocks("ab"), breakpoints: markers(1) });
      const length = 2 + appended;
      const next = bill({ blocks: blocks(letters.slice(0, length)), breakpoints: markers(length - 1) });
      expect(next).toMatchObject({ read, isBreak: read === 0 });
    }
  });

  it("counts a run of tool calls or of results as one position, or each block when asked to", () => {
    const turn = [...blocks("cdefghijklm", 100, "tool_call"), ...blocks("nopqrstuvwx", 100, "tool_result")];
    const read = (lookbackMode: "positions" | "blocks") => {
      const { bill } = anthropic({ lookbackMode });
      bill({ blocks: blocks("ab"), breakpoints: markers(1) });
      return bill({ blocks: [...blocks("ab"), ...turn], breakpoints: markers(23) }).read;
    };
    expect(read("positions")).toBe(2_000);
    expect(read("blocks")).toBe(0);
  });

  it("searches from each breakpoint in turn", () => {
    const { bill } = anthropic();
    bill({ blocks: blocks("abc"), breakpoints: markers(2) });
    const far = blocks("abcdefghijklmnopqrstuvwxyz");
    expect(bill({ blocks: far, breakpoints: markers(10, 25) }).read).toBe(3_000);
  });

  it("keeps an entry for its lifetime from the start of the request that wrote or read it", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(1) };
    bill({ ...request, startMs: 0, firstByteMs: 2 * minute });
    expect(bill({ ...request, startMs: 4.9 * minute }).read).toBe(2_000);
    expect(bill({ ...request, startMs: 9.8 * minute }).read).toBe(2_000);
    const late = bill({ ...request, startMs: 14.8 * minute });
    expect(late).toMatchObject({ read: 0, write5m: 2_000, isBreak: false });
    expect(bill({ ...request, startMs: 15 * minute }).read).toBe(2_000);
  });

  it("keeps an hour's entry for an hour, and for an hour more when a five-minute breakpoint reads it", () => {
    const { bill } = anthropic();
    bill({ blocks: blocks("ab"), breakpoints: [{ after: 1, ttl: "1h" }], startMs: 0 });
    expect(bill({ blocks: blocks("abc"), breakpoints: markers(2), startMs: 59 * minute }).read).toBe(2_000);
    expect(bill({ blocks: blocks("abd"), breakpoints: markers(2), startMs: 118 * minute }).read).toBe(2_000);
    expect(bill({ blocks: blocks("abe"), breakpoints: markers(2), startMs: 178 * minute }).read).toBe(0);
  });

  it("makes an entry readable when the answer starts, so that requests sent together all write", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(1) };
    expect(bill({ ...request, startMs: 0, firstByteMs: 900 }).write5m).toBe(2_000);
    expect(bill({ ...request, startMs: 10, firstByteMs: 500 })).toMatchObject({
      write5m: 2_000,
      isBreak: false,
    });
    expect(bill({ ...request, startMs: 499, firstByteMs: 800 }).write5m).toBe(2_000);
    expect(bill({ ...request, startMs: 500, firstByteMs: 600 }).read).toBe(2_000);
  });

  it("continues at the time of the last answer if no time is given", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(1) };
    bill({ ...request, startMs: 100 * minute, firstByteMs: 101 * minute });
    expect(bill(request)).toMatchObject({ read: 2_000 });
    expect(bill({ ...request, startMs: 106 * minute })).toMatchObject({ read: 0 });
  });

  it("forgets everything when it is cold, and does not report a break", () => {
    const { bill } = anthropic();
    const request = { blocks: blocks("ab"), breakpoints: markers(0, 1) };
    bill(request);
    expect(bill({ ...request, isCold: true })).toMatchObject({ read: 0, write5m: 2_000, isBreak: false });
    expect(bill(request).read).toBe(2_000);
  });

  it("notices a block list that was changed in place", () => {
    const { bill } = anthropic();
    const list = blocks("abc");
    bill({ blocks: list, breakpoints: markers(0, 2) });
    list[1] = { key: "X", tokens: 1_000, kind: "text" };
    list.push(...blocks("d"));
    expect(bill({ blocks: list, breakpoints: markers(0, 3) })).toMatchObject({ read: 1_000, write5m: 3_000 });
    list.length = 2;
    expect(bill({ blocks: list, breakpoints: markers(0, 1) })).toMatchObject({ read: 1_000, total: 2_000 });
  });

  it("distinguishes keys: numbers from their text, integers from fractions, large from small", () => {
    const keys = [1, "1", 1.5, "1.5", 2 ** 32 + 1, -1, 2 ** 53, "", "a", "b", 0];
    const { bill } = anthropic();
    for (const key of keys) {
      const request = { blocks: [{ key, tokens: 2_000, kind: "text" as const }], breakpoints: markers(0) };
      expect(bill(request).read).toBe(0);
      expect(bill(request).read).toBe(2_000);
    }
  });

  it("bills a GPT-5.6 request by its breakpoints, however far apart they are", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5.6-terra" });
    const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ";
    expect(bill({ blocks: blocks("ab"), breakpoints: markers(1) })).toMatchObject({
      write5m: 2_000,
      cost: 2_500,
    });
    const far = bill({ blocks: blocks(letters), breakpoints: markers(35), startMs: 29 * minute });
    expect(far).toMatchObject({ read: 2_000, write5m: 34_000 });
    expect(bill({ blocks: blocks("aX"), breakpoints: markers(1) }).read).toBe(0);
  });

  it.each([
    [markers(0, 1, 2, 3, 4), "5 breakpoints cannot be billed"],
    [markers(5), "a breakpoint after block 5 of 5 cannot be billed"],
    [markers(-1), "after block -1"],
    [markers(0.5), "after block 0.5"],
    [
      [
        { after: 0, ttl: "5m" },
        { after: 1, ttl: "1h" },
      ],
      "a 1h breakpoint after block 1, which follows a 5m one",
    ],
    [
      [
        { after: 1, ttl: "1h" },
        { after: 1, ttl: "5m" },
      ],
      "two lifetimes after block 1",
    ],
    [[{ after: 1, ttl: "2h" }], 'the lifetime "2h"'],
  ] as [Breakpoint[], string][])("refuses the breakpoints %j", (breakpoints, message) => {
    const request = { blocks: blocks("abcde"), breakpoints };
    expect(() => anthropic().bill(request)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) }),
    );
  });

  it("treats two breakpoints at the same place as one", () => {
    const request = { blocks: blocks("abcde"), breakpoints: markers(4, 0, 1, 2, 4, 4) };
    expect(anthropic().bill(request)).toMatchObject({ write5m: 5_000 });
  });

  it("refuses invalid times, tokens and modes", () => {
    const request = { blocks: blocks("a"), breakpoints: [] };
    const bill = (more: object) => () => anthropic().bill({ ...request, ...more });
    expect(bill({ startMs: Number.NaN })).toThrow("cannot be billed");
    expect(bill({ startMs: 5, firstByteMs: 4 })).toThrow("starts at 5 ms and is answered at 4 ms");
    expect(bill({ blocks: blocks("ab", -1) })).toThrow("blocks[0].tokens is -1");
    expect(() => anthropic({ lookbackMode: "turns" as "blocks" })).toThrow('unknown lookback mode "turns"');
  });
});

describe("an automatic cache", () => {
  it("reads the common beginning with any earlier request, in steps of 128 tokens from 1,024 on", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    expect(bill({ blocks: blocks("ab"), breakpoints: [] })).toMatchObject({
      read: 0,
      uncached: 2_000,
      cost: 2_000,
    });
    const next = bill({ blocks: blocks("abc"), breakpoints: [] });
    // 2,000 is 15 steps and 80 tokens.
    expect(next).toMatchObject({ read: 1_920, write5m: 0, uncached: 1_080, isBreak: false });
    expect(next.cost).toBeCloseTo(192 + 1_080);
    expect(bill({ blocks: blocks("aXc"), breakpoints: [] })).toMatchObject({ read: 0, isBreak: true });
    expect(bill({ blocks: blocks("abcd"), breakpoints: [] })).toMatchObject({ read: 2_944, isBreak: false });
  });

  it("forgets after its lifetime, and cannot read a request in progress", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    const request = { blocks: blocks("abcd"), breakpoints: [] };
    bill({ ...request, startMs: 0, firstByteMs: 1_000 });
    expect(bill({ ...request, startMs: 999 })).toMatchObject({ read: 0, isBreak: false });
    expect(bill({ ...request, startMs: 1_000 }).read).toBe(3_968);
    expect(bill({ ...request, startMs: 1_000 + 60 * minute })).toMatchObject({ read: 0, isBreak: false });
    expect(bill({ ...request, isCold: true })).toMatchObject({ read: 0, isBreak: false });
  });

  it("remembers the last 16 requests", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    const send = (letter: string) => bill({ blocks: blocks(letter, 2_048), breakpoints: [] }).read;
    for (const letter of "abcdefghijklmnopq") expect(send(letter)).toBe(0);
    expect(send("b")).toBe(2_048);
    expect(send("a")).toBe(0);
  });

  it("reports that hits of Gemini are assumed", () => {
    const { bill, price } = createCacheSimulator({ provider: "gemini", model: "gemini-3.8-flash" });
    expect(price.rules.isAssumed).toBe(true);
    expect(bill({ blocks: blocks("abcde"), breakpoints: markers(1) })).toMatchObject({
      read: 0,
      isAssumed: false,
    });
    const next = bill({ blocks: blocks("abcdef"), breakpoints: [] });
    expect(next).toMatchObject({ read: 5_000, isAssumed: true });
  });
});

describe("speed", { tags: ["perf"] }, () => {
  it.each(["anthropic", "openai"] as const)("bills 1,000 blocks with two more in at most 20 µs (%s)", (provider) => {
    const model = provider === "openai" ? "gpt-5" : "claude-sonnet-5";
    const { bill } = createCacheSimulator({ provider, model });
    const history: BillableBlock[] = Array.from({ length: 1_000 }, (_none, index) => ({
      key: `block ${index}`,
      tokens: 100,
      kind: index % 3 === 0 ? "tool_call" : "tool_result",
    }));
    let leastMs = Number.POSITIVE_INFINITY;
    // Repeat until it holds: other tests share the processor.
    for (let round = 0; round < 20 || (round < 400 && leastMs >= 0.02); round++) {
      const requests = Array.from({ length: 5 }, () => {
        history.push({ key: history.length, tokens: 100, kind: "text" }, { key: "end", tokens: 9, kind: "text" });
        return { blocks: [...history], breakpoints: markers(0, history.length - 1) };
      });
      const start = performance.now();
      for (const request of requests) bill(request);
      leastMs = Math.min(leastMs, (performance.now() - start) / requests.length);
    }
    expect(leastMs * 1_000).toBeLessThan(20);
  });
});

/** A slow second implementation of the rules: prefixes are joined texts, and every position is visited. */
const runs = { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 80 };
const minPrefix = 1_000;

/** Grows, shortens and edits a history of few different blocks, so that it often repeats an earlier state. */
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

it("bills any sequence of requests like the slow implementation, and every token once", () => {
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

it.each(["claude-sonnet-5", "gpt-6-sol", "gpt-5"])("bills equal blocks like identical ones (%s)", (model) => {
  fc.assert(
    fc.property(steps, (all) => {
      const provider = model.startsWith("gpt") ? "openai" : "anthropic";
      const [same, equal] = [createCacheSimulator({ provider, model }), createCacheSimulator({ provider, model })];
      for (const request of requestsOf(all)) {
        expect(equal.bill(structuredClone(request))).toEqual(same.bill(request));
      }
    }),
    runs,
  );
});

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
    const isOneMore = place < from && mode === "positions" && kind !== "text" && kind === blocks[place + 1]!.kind;
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
