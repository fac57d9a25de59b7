import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { generateRequest } from "../../../test/generate/generate-request.ts";
import { generateSession } from "../../../test/generate/generate-session.ts";
import { createTrimmer, policyNames } from "../../conversation/history/index.ts";
import { priceOf } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { formatNames, validateRequest } from "../../core/messages/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import type { RecordedSession } from "../sessions/recorded-session.ts";
import { type PreparedSession, prepareSession, prepareStretches, sentKinds } from "./prepare-session.ts";
import { estimateGrowth, replayPolicies, replayReducer, replaySession } from "./replay-session.ts";
import { createInvalidFinder } from "./request-observer.ts";

/** Counts one token per character, so that sums are easy to check. */
const characters: Counter = { name: "characters", count: (text) => text.length };
const estimate = await createCounter("estimate:o200k");

function recorded(messages: readonly object[], more: Partial<RecordedSession> = {}): RecordedSession {
  return { file: "a.jsonl", source: "messages", messages, notes: [], ...more };
}

const generated = (seed: number, turns: number): PreparedSession =>
  prepareSession(recorded(generateSession({ seed, turns }).messages), { counter: estimate });

const text = (role: string, length: number) => ({ role, content: "x".repeat(length) });
const exchange = (id: string, length: number) => [
  { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: {} }] },
  {
    role: "user",
    content: [{ type: "tool_result", tool_use_id: id, content: id.padEnd(length, ".") }],
  },
];

const wide = { window: 1_000_000, reserve: 0, prefixTokens: 5_000 };

describe("billing", () => {
  test("a call writes what is new and reads what was sent before", async () => {
    const messages = [text("user", 96), text("assistant", 46), text("user", 196), text("assistant", 1)];
    const session = prepareSession(recorded(messages), { counter: characters });
    const { calls, totals } = await replaySession(session, { ...wide, policy: "none" });
    // Frames: 3 tokens per request, 4 per message.
    const first = 5_000 + 3 + 100;
    const second = first + 50 + 200;
    expect(calls.map(({ bill }) => [bill.read, bill.write5m, bill.total])).toEqual([
      [0, first, first],
      [first, 250, second],
    ]);
    expect(totals.cost).toBeCloseTo(1.25 * first + 0.05 * first + 1.25 * 250, 6);
    expect(totals).toMatchObject({ calls: 2, breaks: 0, overWindow: 0, invalid: 0, visibleShare: 1 });
  });

  test("lost thinking makes later answers longer, on a model that binds it", async () => {
    const { messages } = generateSession({ seed: 3, turns: 60 });
    const costs = async (model: string) => {
      const session = prepareSession(recorded(messages), { counter: estimate, model });
      const { calls } = await replaySession(session, {
        window: 30_000,
        reserve: 2_000,
        prefixTokens: 0,
        policy: "economic",
      });
      return calls.map(({ bill, isEpoch }) => {
        const { uncached, write5m, write1h, read, cost } = bill;
        const { read: readPrice, write5m: writePrice } = priceOf({ provider: "anthropic", model });
        return { isEpoch, more: cost - (uncached + writePrice * write5m + 2 * write1h + readPrice * read) };
      });
    };
    const bound = await costs("claude-opus-5-5");
    const first = bound.findIndex(({ isEpoch }) => isEpoch);
    expect(first).toBeGreaterThan(0);
    for (const { more } of bound.slice(0, first)) expect(more).toBeCloseTo(0);
    for (const { more } of bound.slice(first)) expect(more).toBeGreaterThan(0.1);
    for (const { more } of await costs("claude-opus-5")) expect(more).toBeCloseTo(0);
  });

  test("a lost cache is written again, and is not a break", async () => {
    const messages = [text("user", 96), text("assistant", 46), text("user", 196), text("assistant", 1)];
    const session = prepareSession(recorded(messages), { counter: characters });
    const { calls, totals } = await replaySession(session, {
      ...wide,
      policy: "none",
      isCold: (call) => call === 1,
    });
    expect(calls[1]?.bill).toMatchObject({ read: 0, write5m: 5_353, isBreak: false });
    expect(totals.breaks).toBe(0);
  });

  test("the session's own system text and tools are part of the prefix", async () => {
    const messages = [text("user", 10), text("assistant", 10)];
    const tools = [{ name: "read", description: "Reads a file", input_schema: { type: "object" } }];
    const plain = prepareSession(recorded(messages), { counter: characters });
    const rich = prepareSession(recorded(messages, { system: "Be brief.", tools }), { counter: characters });
    const total = async (session: PreparedSession) =>
      (await replaySession(session, { ...wide, policy: "none" })).calls[0]?.bill.total ?? 0;
    expect(rich.prefixTokens).toBeGreaterThan(JSON.stringify(tools[0]).length);
    expect((await total(rich)) - (await total(plain))).toBe(rich.prefixTokens);
  });

  test("the model's provider and the user's prices determine the bill", async () => {
    const session = prepareSession(recorded([text("user", 6_000), text("assistant", 1)]), {
      counter: characters,
      model: "gpt-5",
    });
    const cost = async (prices?: Record<string, Record<string, number>>) =>
      (await replaySession(session, { ...wide, policy: "none", prices })).totals.cost;
    const { user } = session.blocksOf(session.messages[0] as object).tokens;
    expect(await cost()).toBe(5_000 + session.frameTokens + user);
    expect(await cost({ openai: { input: 2 } })).toBe(await cost());
    const cached = { ...wide, policy: "none", prices: { "gpt-5": { input: 2, cache_read: 2 } } } as const;
    const twice = prepareSession(recorded([...session.messages, text("user", 1), text("assistant", 1)]), {
      counter: characters,
      model: "gpt-5",
    });
    const { calls } = await replaySession(twice, cached);
    expect(calls[1]?.bill.read).toBeGreaterThan(10_000);
    expect(calls[1]?.bill.cost).toBe(calls[1]?.bill.total);
  });
});

describe("what is sent", () => {
  test.each(replayPolicies)("%s: tokens by kind add up to what is billed", async (policy) => {
    const session = generated(7, 80);
    const { calls } = await replaySession(session, {
      ...{ window: 40_000, reserve: 4_000, prefixTokens: 2_000 },
      policy,
    });
    for (const { tokens, bill } of calls) {
      expect(sentKinds.reduce((sum, kind) => sum + tokens[kind], 0)).toBeCloseTo(bill.total, 6);
      expect(Math.min(...Object.values(tokens))).toBeGreaterThanOrEqual(0);
    }
    expect(calls.length).toBe(80);
  });

  test("placeholders appear only after an epoch, and what people wrote stays", async () => {
    const session = generated(3, 120);
    const options = { window: 32_000, reserve: 2_000, prefixTokens: 2_000 };
    const none = await replaySession(session, { ...options, policy: "none" });
    for (const policy of ["economic", "rfc"] as const) {
      const { calls } = await replaySession(session, { ...options, policy });
      const first = calls.findIndex(({ isEpoch }) => isEpoch);
      expect(first).toBeGreaterThan(0);
      expect(calls.slice(0, first).every(({ tokens }) => tokens.placeholders === 0)).toBe(true);
      expect(calls[first]?.tokens.placeholders).toBeGreaterThan(0);
      expect(calls.map(({ tokens }) => tokens.user)).toEqual(none.calls.map(({ tokens }) => tokens.user));
    }
  });

  test("everything can be read until the first epoch, and less from then on", async () => {
    const { calls, totals } = await replaySession(generated(3, 120), {
      ...{ window: 32_000, reserve: 2_000, prefixTokens: 2_000 },
      policy: "economic",
    });
    const first = calls.findIndex(({ isEpoch }) => isEpoch);
    expect(calls.slice(0, first).every(({ keptShare }) => keptShare === 1)).toBe(true);
    expect(calls[first]?.keptShare).toBeLessThan(0.8);
    const mean = calls.reduce((sum, { keptShare }) => sum + keptShare, 0) / calls.length;
    expect(totals.visibleShare).toBeCloseTo(mean, 12);
  });

  test("a rewritten history is a cache break, and the marker at the boundary limits its cost", async () => {
    const { calls, totals } = await replaySession(generated(5, 150), {
      ...{ window: 40_000, reserve: 2_000, prefixTokens: 4_000 },
      policy: "economic",
    });
    const epochs = calls.filter(({ isEpoch }) => isEpoch);
    expect(epochs.length).toBeGreaterThan(2);
    expect(totals.breaks).toBe(epochs.length);
    // The RFC rewrites everything after the prefix. Here the trimmed beginning is read too.
    expect(epochs.filter(({ bill }) => bill.read > 4_100).length).toBeGreaterThan(epochs.length / 2);
    const rfc = await replaySession(generated(5, 150), {
      ...{ window: 40_000, reserve: 2_000, prefixTokens: 4_000 },
      policy: "rfc",
    });
    const rewritten = rfc.calls.filter(({ bill }) => bill.isBreak);
    expect(rewritten.length).toBeGreaterThan(2);
    const readOnlyPrefix = rewritten.filter(({ bill }) => bill.read === rfc.calls[0]?.tokens.prefix);
    expect(readOnlyPrefix.length).toBeGreaterThan(0.9 * rewritten.length);
  });

  test("economic stays within the window, unlike sending everything", async () => {
    const options = { window: 30_000, reserve: 2_000, prefixTokens: 2_000 };
    const [none, economic] = await Promise.all(
      (["none", "economic"] as const).map((policy) => replaySession(generated(11, 150), { ...options, policy })),
    );
    expect(none?.totals.overWindow).toBeGreaterThan(50);
    expect(economic?.totals).toMatchObject({ overWindow: 0, invalid: 0 });
    expect(none?.calls.filter(({ bill }) => bill.total > 28_000).length).toBe(none?.totals.overWindow);
  });
});

describe("any reducer", () => {
  test("only the reducer is timed, even if it is asynchronous", async () => {
    let clock = 0;
    const session = generated(1, 10);
    const { totals } = await replayReducer(
      session,
      async (messages) => {
        clock += 5;
        return { messages, isEpoch: false, keptShare: 1, breakpoints: [] };
      },
      { ...wide, now: () => clock },
    );
    expect(totals).toMatchObject({ calls: 10, msPerTurn: 5 });
  });

  test("a pause is offered after each call, and waited for", async () => {
    const order: string[] = [];
    await replayReducer(
      generated(1, 3),
      (messages) => {
        order.push("call");
        return { messages, isEpoch: false, keptShare: 1, breakpoints: [] };
      },
      {
        ...wide,
        async pause() {
          await Promise.resolve();
          order.push("pause");
        },
      },
    );
    expect(order).toEqual(["call", "pause", "call", "pause", "call", "pause"]);
  });

  test("an invalid request is counted on every call that sends it", async () => {
    const messages = [text("user", 5), ...exchange("a", 40), ...exchange("b", 40), text("assistant", 5)];
    const session = prepareSession(recorded(messages), { counter: characters });
    const withoutResult = session.messages.map((message, index) => (index === 2 ? text("user", 3) : message));
    const { calls, totals } = await replayReducer(
      session,
      (history) => ({
        ...{
          messages: withoutResult.slice(0, history.length),
          isEpoch: false,
          keptShare: 1,
          breakpoints: [],
        },
      }),
      wide,
    );
    expect(calls.map(({ isInvalid }) => isInvalid)).toEqual([false, true, true]);
    expect(totals.invalid).toBe(2);
  });

  test("more markers than the provider accepts are an error", async () => {
    const session = generated(1, 10);
    const replay = replayReducer(
      session,
      (messages) => ({
        messages,
        isEpoch: false,
        keptShare: 1,
        breakpoints: [...messages.keys()].slice(0, 5),
      }),
      wide,
    );
    await expect(replay).rejects.toThrow(ContextError);
  });
});

test.each(formatNames)("a session in the format %s is replayed, and trimmed if needed", async (format) => {
  const { messages } = generateRequest(format, { seed: 2, turns: 60 });
  const session = prepareSession(recorded(messages, { format }), { counter: estimate });
  const options = { window: 24_000, reserve: 2_000, prefixTokens: 1_000 };
  const { totals } = await replaySession(session, { ...options, policy: "economic" });
  expect(session.calls.length).toBeGreaterThan(40);
  expect(totals).toMatchObject({ calls: session.calls.length, overWindow: 0, invalid: 0 });
  expect(totals.visibleShare).toBeLessThan(1);
});

const runs = process.env.PLIMSOLL_DEEP === "1" ? 400 : 6;

/** A history that a careless reducer sends: messages are missing, and sometimes all are rewritten. */
function carelessRequests(seed: number, cuts: readonly number[], gaps: readonly number[]): object[][] {
  const { messages } = generateSession({ seed, turns: 30 });
  const requests: object[][] = [];
  let sent: object[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "assistant") {
      if (cuts.includes(requests.length)) sent = sent.slice(0, 1).concat(sent.slice(2));
      requests.push([...sent]);
    }
    if (!gaps.includes(index)) sent.push(message);
  }
  return requests;
}

function unchangedIn(requests: readonly object[][], index: number): number {
  const [before, now] = [requests[index - 1] ?? [], requests[index] ?? []];
  const differs = now.findIndex((message, at) => message !== before[at]);
  return differs < 0 ? now.length : differs;
}

test("each call is reported as invalid exactly if its whole request is", () => {
  const numbers = fc.uniqueArray(fc.nat(60), { maxLength: 3 });
  fc.assert(
    fc.property(fc.nat(1_000), numbers, numbers, (seed, cuts, gaps) => {
      const requests = carelessRequests(seed, cuts, gaps);
      const finder = createInvalidFinder("anthropic");
      for (const [index, request] of requests.entries()) finder.add(request, unchangedIn(requests, index));
      const rulesOf = (request: object[]) => validateRequest(request, { format: "anthropic" }).map(({ rule }) => rule);
      for (const [index, rule] of finder.finish().entries()) {
        const rules = rulesOf(requests[index] as object[]);
        if (rule === undefined) expect(rules).toEqual([]);
        else expect(rules).toContain(rule);
      }
    }),
    { numRuns: runs },
  );
});

test("a session without calls has no problems", () => {
  expect(createInvalidFinder("anthropic").finish()).toEqual([]);
});

describe("stretches", () => {
  const before = [text("user", 96), text("assistant", 46), text("user", 196), text("assistant", 50)];
  const summary = [text("user", 30), text("assistant", 10)];
  const stretches = (session: Partial<RecordedSession>) =>
    prepareStretches(recorded([], session), { counter: characters }) as [PreparedSession, ...PreparedSession[]];

  test("are replayed one after the other: after a compaction none sends what was sent", async () => {
    const parts = stretches({ messages: summary, earlier: [{ messages: before }] });
    const { calls, totals } = await replaySession(parts, { ...wide, policy: "none" });
    expect(totals).toMatchObject({ calls: 3, breaks: 0 });
    // The prefix is still in the cache.
    expect(calls.map(({ bill }) => [bill.read, bill.total])).toEqual([
      [0, 5_103],
      [5_103, 5_353],
      [5_003, 5_037],
    ]);
  });

  test("count only their own answers, and read the history that they share from the cache", async () => {
    const messages = [...before.slice(0, 2), text("user", 296), text("assistant", 20)];
    const parts = stretches({ messages, answersFrom: 3, earlier: [{ messages: before }] });
    const { calls } = await replaySession(parts, { ...wide, policy: "none" });
    expect(calls.map(({ bill }) => [bill.read, bill.total])).toEqual([
      [0, 5_103],
      [5_103, 5_353],
      [5_103, 5_453],
    ]);
  });

  test("without calls are left out", () => {
    expect(stretches({ messages: before, earlier: [{ messages: [text("user", 5)] }] })).toHaveLength(1);
  });

  test("have their own tools, or those of the session", () => {
    const tools = [{ name: "read", description: "Reads a file", input_schema: { type: "object" } }];
    const parts = stretches({ messages: summary, tools, earlier: [{ messages: before, tools: [] }] });
    expect(parts.map(({ prefixTokens }) => prefixTokens > 0)).toEqual([false, true]);
  });
});

test("an invalid request names the rule that it breaks", async () => {
  const session = prepareSession(recorded([text("user", 5), text("assistant", 5)]), { counter: characters });
  const orphan = { role: "user", content: [{ type: "tool_result", tool_use_id: "x", content: "lost" }] };
  const sent = { messages: [orphan], isEpoch: false, keptShare: 1, breakpoints: [] };
  const { totals } = await replayReducer(session, () => sent, { ...wide });
  expect(totals).toMatchObject({ invalid: 1, invalidRules: { "orphan-result": 1 } });
});

// A replay tells the trimmer how many messages are unchanged. A user's requests are compared message by message.
test.each(policyNames)("%s sends in a replay what it sends to a caller whose messages are compared", async (policy) => {
  const options = { window: 12_000, reserve: 2_000, prefixTokens: 500 };
  const session = generated(7, 150);
  const { format, counter, frameTokens } = session;
  const settings = { reserve: 2_000, prefixTokens: 500, format, counter, sealed: "readable" } as const;
  const trimmer = await createTrimmer({ contextWindow: 12_000, policy, ...settings });
  const compared = await replayReducer(
    session,
    (messages, { isCold }) => {
      const { stats, isEpoch, breakpoints, ...sent } = trimmer.reduce({ messages: [...messages] }, { isCold });
      const keptShare = (stats.kept - frameTokens) / (stats.before - frameTokens);
      return { ...sent, isEpoch, keptShare, breakpoints: policy.startsWith("rfc") ? [] : breakpoints };
    },
    options,
  );
  const replay = await replaySession(session, { ...options, policy });
  expect(replay.calls.some(({ isEpoch }) => isEpoch)).toBe(true);
  expect(replay).toEqual(compared);
});

test("answers get longer with each loss of thinking, at most as if every answer had one", () => {
  expect(estimateGrowth(0, 9)).toBe(0);
  expect(estimateGrowth(1, 1)).toBe(0.045);
  expect(estimateGrowth(200, 200)).toBeCloseTo(0.103);
  expect(estimateGrowth(3, 101)).toBeCloseTo(0.045 + 0.058 * 0.02);
});
