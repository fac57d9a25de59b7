import { pruneMessages } from "ai";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { benchSession, messageBudget, needsTrimming } from "../bench/history/bench-session.ts";
import { createHull, createLine } from "../bench/history/bound/frontier.ts";
import {
  type BoundOptions,
  type BoundSession,
  fewestBreaks,
  offlineBound,
} from "../bench/history/bound/offline-bound.ts";
import { clearings, trimmedMessages } from "../bench/history/bound/trimmed-messages.ts";
import { goalsOf } from "../bench/history/goals.ts";
import { measureWindow, type Row } from "../bench/history/measure-window.ts";
import { aiSdkPeer } from "../bench/history/peers/ai-sdk.ts";
import { createStopwatch } from "../bench/history/peers/peer.ts";
import { createCacheSimulator } from "../src/core/billing/index.ts";
import { validateRequest } from "../src/core/messages/index.ts";
import { createCounter } from "../src/core/tokens/index.ts";
import { generateSession } from "./generate/generate-session.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const price = { read: 0.1, write: 1.25 };
const prefixTokens = 2_000;

async function generated(seed: number, turns: number) {
  const { messages } = generateSession({ seed, turns });
  const recorded = { file: `${seed}`, source: "messages", format: "anthropic", messages, notes: [] } as const;
  return benchSession(recorded, await createCounter("estimate:o200k"));
}

/** Billed by the simulator, with a marker where the history was cut and, on the call that cuts, where it was cut before. */
function billOf({ messages, calls }: BoundSession, boundaries: readonly number[]): number {
  const simulator = createCacheSimulator({ provider: "anthropic", model: "claude-sonnet-5" });
  let cost = 0;
  for (const [call, length] of calls.entries()) {
    const boundary = boundaries[call]!;
    const blocks = messages.slice(0, length).map((message, index) => {
      const isLeft = index < boundary;
      const tokens = isLeft ? message.leftTokens : message.tokens;
      return { key: `${index} ${isLeft}`, tokens, kind: "text" as const };
    });
    const marks = new Set([0, boundaries[call - 1] ?? 0, boundary, length]);
    const breakpoints = [...marks].map((after) => ({ after, ttl: "5m" as const }));
    const prefix = { key: "prefix", tokens: prefixTokens, kind: "prefix" as const };
    cost += simulator.bill({ blocks: [prefix, ...blocks], breakpoints }).cost;
  }
  return cost;
}

/** Every way to move the boundary, each with its score. */
function everyWay(session: BoundSession, { budget, worth }: BoundOptions): number[] {
  const { messages, calls } = session;
  const sum = (from: number, to: number, value: (index: number) => number): number => {
    let total = 0;
    for (let index = from; index < to; index++) total += value(index);
    return total;
  };
  const tokens = (index: number): number => messages[index]!.tokens;
  const left = (index: number): number => messages[index]!.leftTokens;
  const scores: number[] = [];
  const walk = (boundaries: readonly number[], lost: number): void => {
    const length = calls[boundaries.length];
    if (length === undefined) {
      scores.push(billOf(session, boundaries) + worth * lost);
      return;
    }
    for (let boundary = boundaries.at(-1) ?? 0; boundary < length; boundary++) {
      const isStay = boundary === (boundaries.at(-1) ?? 0);
      if (!isStay && !messages[boundary]!.isEdge) continue;
      if (sum(0, boundary, left) + sum(boundary, length, tokens) > budget) continue;
      const share = sum(0, boundary, (index) => messages[index]!.lostTokens) / sum(0, length, tokens);
      walk([...boundaries, boundary], lost + share);
    }
  };
  walk([], 0);
  return scores;
}

const message = fc.record({
  tokens: fc.integer({ min: 200, max: 3_000 }),
  leftShare: fc.constantFrom(0, 0.1, 0.3, 0.8),
  isEdge: fc.boolean(),
});

describe("the offline bound", () => {
  it("costs what the cheapest of all ways is billed", () => {
    const drawn = fc.tuple(
      fc.array(message, { minLength: 6, maxLength: 13 }),
      fc.integer({ min: 3_000, max: 8_000 }),
      fc.constantFrom(0, 2_000, 40_000),
    );
    let trims = 0;
    fc.assert(
      fc.property(drawn, ([all, budget, worth]) => {
        const messages = all.map(({ tokens, leftShare, isEdge }, index) => {
          const leftTokens = Math.floor(tokens * leftShare);
          return {
            ...{ tokens, leftTokens, lostTokens: tokens, isAssistant: index % 2 === 1 },
            isEdge: index === 0 || isEdge,
          };
        });
        const calls = messages.flatMap((_, index) => (index % 2 === 1 ? index : []));
        // Nothing but the newest message is protected.
        const options = { budget, worth, price, prefixTokens, protect: { turns: 1, share: 0 } };
        const { cost, keptShares, boundaries, over } = offlineBound({ messages, calls }, options);
        fc.pre(over === 0);
        const moves = boundaries.filter((boundary, index) => index > 0 && boundary !== boundaries[index - 1]);
        const fewest = fewestBreaks({ messages, calls }, options);
        expect(fewest).toBeLessThanOrEqual(moves.length);
        const protecting = { ...options, protect: { turns: 2, share: 0.3 } };
        expect(fewest).toBeLessThanOrEqual(fewestBreaks({ messages, calls }, protecting));
        const scores = everyWay({ messages, calls }, options);
        expect(cost).toBeCloseTo(billOf({ messages, calls }, boundaries), 4);
        expect(cost + worth * (calls.length - keptShares)).toBeCloseTo(Math.min(...scores), 4);
        if (boundaries.some((boundary) => boundary > 0)) trims++;
      }),
      { numRuns: isDeep ? 2_000 : 60 },
    );
    expect(trims).toBeGreaterThan(20);
  });

  it("of a whole session stays within the window, and costs more the more is kept", async () => {
    const session = await generated(5, 80);
    const budget = messageBudget(session, 64_000);
    for (const clearing of clearings) {
      const messages = trimmedMessages(session.prepared, clearing);
      const results = [0, 10_000, 100_000].map((worth) => {
        return offlineBound({ messages, calls: session.prepared.calls }, { budget, worth, price, prefixTokens });
      });
      for (const { over } of results) expect(over).toBe(0);
      const [least, some, most] = results;
      expect(some!.cost).toBeGreaterThan(least!.cost);
      expect(most!.cost).toBeGreaterThan(some!.cost);
      expect(some!.keptShares).toBeGreaterThan(least!.keptShares);
      expect(most!.keptShares).toBeGreaterThan(some!.keptShares);
    }
  });
});

describe("cost at a kept share", () => {
  const points = [
    { kept: 0.2, cost: 1 },
    { kept: 0.4, cost: 4 },
    { kept: 0.6, cost: 3 },
    { kept: 0.5, cost: 5 },
  ];

  it("lies on the line from point to point, and nowhere beyond its ends", () => {
    const line = createLine(points);
    expect(line(0.3)).toBeCloseTo(2.5);
    expect(line(0.5)).toBe(5);
    expect(line(0.2)).toBe(1);
    expect([line(0.1), line(0.7)]).toEqual([undefined, undefined]);
  });

  it("lies on the hull below all points; keeping less never costs more", () => {
    const hull = createHull(points);
    expect(hull(0.4)).toBeCloseTo(2);
    expect(hull(0.1)).toBe(1);
    expect(hull(0.7)).toBeUndefined();
  });
});

it("what the AI SDK leaves of a session is valid, the session's own objects where nothing is missing", async () => {
  const session = await generated(3, 30);
  const stopwatch = createStopwatch();
  const { messages, calls } = session.prepared;
  const reduce = aiSdkPeer("", pruneMessages).open(session, { budget: 0, stopwatch });
  const length = calls.at(-1)!;
  const sent = await reduce(messages.slice(0, length), { isCold: false });
  expect(validateRequest(sent.messages, { format: "anthropic" })).toEqual([]);
  expect(sent.messages.slice(-3)).toEqual(messages.slice(length - 3, length));
  expect(sent.messages.at(-1)).toBe(messages[length - 1]);
  expect(sent.keptShare).toBeGreaterThan(0.02);
  expect(sent.keptShare).toBeLessThan(0.8);
  expect(stopwatch.elapsedMs).toBeGreaterThan(0);
});

it("a window is measured on the sessions that need trimming and on those that fit", { tags: ["deep"] }, async () => {
  const sessions = [await generated(1, 70), await generated(2, 5)];
  expect(sessions.map((session) => needsTrimming(session, 64_000))).toEqual([true, false]);
  const options = { window: 64_000, peers: [], isQuick: true, progress: () => {} };
  const { rows, needing, fitting } = await measureWindow(sessions, options);
  expect([needing, fitting]).toEqual([1, 1]);
  const named = (name: string): Row => rows.find((row) => row.name === name)!;
  expect(named("none")).toMatchObject({ needing: 1, fitting: 1, breaksPer100: 0, quotes: { all: 1, far: 1 } });
  const economic = named("economic");
  expect(economic.toLine).toBeCloseTo(1, 6);
  expect(economic.toBound).toBeGreaterThan(0.95);
  expect(economic.toBound).toBeLessThan(1.5);
  expect(economic).toMatchObject({ fitting: 1, overWindow: 0, invalid: 0 });
  expect(named("rfc").breaksPer100).toBeGreaterThan(economic.breaksPer100);
});

it("a goal that is missed says so, and a peer that is invalid or too large is no rival", () => {
  const all = { all: 1, far: 1 };
  const row = (name: string, facts: Partial<Row> = {}): Row => ({
    ...{ name, kind: "policy", needing: 0.5, fitting: 1, kept: 0.5, toLine: 1, toBound: 1.1 },
    ...{ overWindow: 0, invalid: 0, breaksPer100: 1, msPerTurn: 1, refetchesPer100: 1, filesNamed: 1 },
    ...{ quotes: all, names: all, edits: all },
    ...facts,
  });
  const peer = { kind: "peer", toLine: 0.9 } as const;
  const rows = [
    row("rfc", { needing: 0.8 }),
    row("economic"),
    row("cheap", peer),
    row("broken", { ...peer, invalid: 1 }),
    row("large", { ...peer, overWindow: 1 }),
  ];
  const line = [
    { kept: 0.4, cost: 0.4 },
    { kept: 0.6, cost: 0.6 },
  ];
  const sizes = { window: 64_000, needing: 1, calls: 9, fitting: 1 };
  const window = { ...sizes, rows, line, bound: [], fewestBreaksPer100: { protecting: 1, newestOnly: 1 } };
  const time = { messages: 1, milliseconds: 1, plain: 0.1, epoch: 1, epochs: 1 };
  const peers = { messages: 400, known: 1, counted: 1, peers: [] };
  const goals = goalsOf([window], {
    peers,
    scaling: { short: time, long: time, ratio: 1 },
    reparsed: [],
  });
  const missed = goals.filter(({ met }) => !met).map(({ goal }) => goal);
  expect(missed).toEqual([
    "64k: economic ÷ offline bound at equal kept share, at most 1.05",
    "64k: economic ÷ offline bound at equal kept share (floor), at most 1.08",
    "64k: cheap ÷ economic at equal kept share, at least 1",
  ]);
  const toRfc = goals.find(({ goal }) => goal.includes("÷ rfc"));
  expect(toRfc).toMatchObject({ met: true, measured: 0.625 });
});
