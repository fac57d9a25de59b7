import { describe, expect, test } from "vitest";
import { ContextError } from "../errors.ts";
import { formatNames } from "../messages/index.ts";
import { type Counter, createCounter } from "../tokens/index.ts";
import { generateRequest } from "./generate/generate-request.ts";
import { generateSession } from "./generate/generate-session.ts";
import { sentKinds } from "./message-blocks.ts";
import { replayPolicies } from "./policy-reducer.ts";
import { type PreparedSession, prepareSession } from "./prepare-session.ts";
import { replayReducer, replaySession } from "./replay-session.ts";
import type { RecordedSession } from "./sessions/recorded-session.ts";

/** A token a character, so that sums can be done by hand. */
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
    // Frames: 3 tokens a request, 4 a message.
    const first = 5_000 + 3 + 100;
    const second = first + 50 + 200;
    expect(calls.map(({ bill }) => [bill.read, bill.write5m, bill.total])).toEqual([
      [0, first, first],
      [first, 250, second],
    ]);
    expect(totals.cost).toBeCloseTo(1.25 * first + 0.1 * first + 1.25 * 250, 6);
    expect(totals).toMatchObject({ calls: 2, breaks: 0, overWindow: 0, invalid: 0, visibleShare: 1 });
  });

  test("a lost cache is written again, and is no break", async () => {
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

  test("the model's provider and one's own prices are what is billed", async () => {
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

  test("placeholders stand for content only after an epoch, and what people wrote stays", async () => {
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

  test("kept is what can still be read: all of it until the first epoch, less from then on", async () => {
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

  test("a rewritten history is a cache break, and the marker at the boundary makes it a small one", async () => {
    const { calls, totals } = await replaySession(generated(5, 150), {
      ...{ window: 40_000, reserve: 2_000, prefixTokens: 4_000 },
      policy: "economic",
    });
    const epochs = calls.filter(({ isEpoch }) => isEpoch);
    expect(epochs.length).toBeGreaterThan(2);
    expect(totals.breaks).toBe(epochs.length);
    // The prefix alone is read where the RFC rewrites; here the trimmed beginning is, too.
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

  test("economic stays within the window where sending everything does not", async () => {
    const options = { window: 30_000, reserve: 2_000, prefixTokens: 2_000 };
    const [none, economic] = await Promise.all(
      (["none", "economic"] as const).map((policy) =>
        replaySession(generated(11, 150), { ...options, policy }),
      ),
    );
    expect(none?.totals.overWindow).toBeGreaterThan(50);
    expect(economic?.totals).toMatchObject({ overWindow: 0, invalid: 0 });
    expect(none?.calls.filter(({ bill }) => bill.total > 28_000).length).toBe(none?.totals.overWindow);
  });
});

describe("any reducer", () => {
  test("only the reducer is timed, also one that answers later", async () => {
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

  test("a request that no provider takes is counted, on every call that sends it", async () => {
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

  test("more markers than the provider takes are an error, not a wrong bill", async () => {
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

test.each(formatNames)(
  "a session in the format %s is replayed, and trimmed where it must be",
  async (format) => {
    const { messages } = generateRequest(format, { seed: 2, turns: 60 });
    const session = prepareSession(recorded(messages, { format }), { counter: estimate });
    const options = { window: 24_000, reserve: 2_000, prefixTokens: 1_000 };
    const { totals } = await replaySession(session, { ...options, policy: "economic" });
    expect(session.calls.length).toBeGreaterThan(40);
    expect(totals).toMatchObject({ calls: session.calls.length, overWindow: 0, invalid: 0 });
    expect(totals.visibleShare).toBeLessThan(1);
  },
);
