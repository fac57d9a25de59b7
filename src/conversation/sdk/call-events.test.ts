import { describe, expect, it } from "vitest";
import { createCacheSimulator, priceOf } from "../../core/billing/index.ts";
import { createMemoryStore, readEvents } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import type { CallEvent } from "./call-events.ts";
import type { OwnMarkers } from "./compare-costs.ts";
import { type BudgetCall, createRequestFitter, type RequestFitterOptions } from "./request-fitter.ts";

const counter = await createCounter("bytes/4");
const minute = 60_000;
const model = "claude-sonnet-5";

function history(turns: number): object[] {
  const messages: object[] = [{ role: "user", content: "Where is the bug?" }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `c${turn}`;
    messages.push(
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `${turn}.ts` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: `${turn} `.repeat(1_500) }] },
    );
  }
  return messages;
}

type Call = BudgetCall<object>;

/** A client whose provider bills `factor` times what we count, with a cache of its own. */
function open(options: RequestFitterOptions<object> = {}, factor = 1) {
  const events: CallEvent[] = [];
  const clock = { ms: 1_000_000 };
  const fitter = createRequestFitter<object>({
    ...{ contextWindow: 60_000, counter, now: () => clock.ms, onCall: (event) => events.push(event), ...options },
  });
  const provider = createCacheSimulator({ provider: "anthropic", model });
  const ask = async (messages: readonly object[], more: Partial<Call> = {}, usage?: object) => {
    const system = "s".repeat(8_000);
    const ownMarkers: OwnMarkers = { prefix: true, end: true, ttl: "5m" };
    const { reduction, observe } = await fitter.fit({
      ...{ request: {}, format: "anthropic", model, messages, system, ownMarkers },
      ...{ maxOutputTokens: undefined, cacheLifetimeMs: 5 * minute, ...more },
    });
    const bill = provider.bill({
      blocks: [
        { key: JSON.stringify([more.model, more.system, more.tools]), tokens: 2_000 * factor, kind: "prefix" },
        ...reduction.messages.map((message) => {
          const text = JSON.stringify(message);
          return { key: text, tokens: Math.round(counter.count(text) * factor), kind: "text" as const };
        }),
      ],
      breakpoints: [
        { after: 0, ttl: "5m" },
        { after: reduction.messages.length, ttl: "5m" },
      ],
      startMs: clock.ms,
    });
    clock.ms += 10_000;
    const { read, write5m, uncached } = bill;
    const billed = { input_tokens: uncached, cache_read_input_tokens: read, cache_creation_input_tokens: write5m };
    observe(usage ?? { ...billed, output_tokens: 100 });
    return events.at(-1) as CallEvent;
  };
  return { ask, events, clock, fitter };
}

describe("the event of a call", () => {
  it("has what the provider billed, and its price", async () => {
    const { ask } = open();
    await ask(history(5));
    const event = await ask(history(6));
    const price = priceOf({ provider: "anthropic", model });
    const { sentTokens, readTokens = 0, writtenTokens = 0, outputTokens = 0 } = event;
    const tokens = readTokens * price.read + writtenTokens * price.write5m + sentTokens - readTokens - writtenTokens;
    expect(event.usd).toBeCloseTo((tokens * price.input + outputTokens * price.output) / 1e6, 9);
    expect(readTokens).toBeGreaterThan(5_000);
    expect(event).toMatchObject({ model, isEstimate: false, outputTokens: 100, endedAt: 1_020_000 });
    expect(event).toMatchObject({ epoch: undefined, cacheBreak: undefined, learned: undefined });
  });

  it("says that its size is an estimate if the answer reports no usage", async () => {
    const { ask, fitter } = open();
    const event = await ask(history(5), {}, {});
    expect(event).toMatchObject({ isEstimate: true, usd: undefined, readTokens: undefined, untrimmedUsd: undefined });
    expect(event.sentTokens).toBeGreaterThan(5_500);
    expect(event.sentTokens).toBeLessThan(6_500);
    expect(fitter.calls.summary()).toMatchObject({ calls: 1, unpricedCalls: 1, usd: 0, savedUsd: undefined });
  });

  it("has no price for a model that no table knows", async () => {
    const { ask } = open();
    expect(await ask(history(5), { model: "house-model-7b" })).toMatchObject({ usd: undefined, isEstimate: false });
  });

  it("comes once, also if the answer is read twice", async () => {
    const { events, fitter } = open();
    const call = { request: {}, format: "anthropic", model, messages: history(1) } as const;
    const { observe } = await fitter.fit({ ...call, maxOutputTokens: undefined, cacheLifetimeMs: 1 });
    observe({ input_tokens: 5 });
    observe({ input_tokens: 5 });
    expect(events).toHaveLength(1);
  });

  it("has the billed size of an answer for which the provider's own tools ran, which teaches nothing", async () => {
    const searched = { input_tokens: 90_000, output_tokens: 5, server_tool_use: { web_search_requests: 1 } };
    const [plain, other] = [open(), open()];
    expect(await other.ask(history(20), {}, searched)).toMatchObject({ sentTokens: 90_000 });
    await plain.ask(history(20), {}, {});
    for (const turns of [30, 40, 50]) {
      const [one, two] = [await plain.ask(history(turns), {}, {}), await other.ask(history(turns), {}, {})];
      expect(two.sentTokens).toBe(one.sentTokens);
    }
  });
});

describe("a lost cache", () => {
  it("has its cause: a trim, a pause, another model, other tools or system text", async () => {
    const { ask, clock } = open({ trimWhenCold: false });
    const tools = [{ name: "read", description: "Reads.", input_schema: { type: "object" } }];
    for (const turns of [1, 8, 14, 20]) expect((await ask(history(turns))).cacheBreak).toBeUndefined();
    expect(await ask(history(21), { tools })).toMatchObject({ cacheBreak: { cause: "system or tools" } });
    expect((await ask(history(22), { tools })).cacheBreak).toBeUndefined();
    expect(await ask(history(23), { tools, model: "claude-opus-5" })).toMatchObject({ cacheBreak: { cause: "model" } });
    await ask(history(24), { tools });
    clock.ms += 6 * minute;
    const { cacheBreak } = await ask(history(25), { tools });
    expect(cacheBreak?.cause).toBe("expired");
    expect(cacheBreak?.tokens).toBeGreaterThan(20_000);
    const trimmed = await ask(history(60), { tools });
    expect(trimmed).toMatchObject({ epoch: "full", cacheBreak: { cause: "epoch" } });
  });

  it("without a cause that can be seen from here is unknown", async () => {
    const { ask } = open();
    await ask(history(10));
    const usage = { input_tokens: 10_000, cache_read_input_tokens: 0, output_tokens: 5 };
    expect(await ask(history(11), {}, usage)).toMatchObject({ cacheBreak: { cause: "unknown" } });
  });

  it("explains an early trim", async () => {
    const { ask, clock } = open();
    for (const turns of [10, 20, 35]) await ask(history(turns));
    clock.ms += 6 * minute;
    expect(await ask(history(36))).toMatchObject({ epoch: "cold", cacheBreak: { cause: "expired" } });
  });
});

describe("what a call would have cost untrimmed", () => {
  it.each([1, 1.3])(
    "is known while the simulation agrees with the bill (%f tokens for each counted)",
    async (factor) => {
      const { ask, events, fitter } = open({}, factor);
      const without = createCacheSimulator({ provider: "anthropic", model });
      let untrimmed = 0;
      for (let turns = 1; turns < 120; turns++) {
        const messages = history(turns);
        const { usd = 0, untrimmedUsd } = await ask(messages);
        const blocks = messages.map((message) => {
          const text = JSON.stringify(message);
          return { key: text, tokens: Math.round(counter.count(text) * factor), kind: "text" as const };
        });
        const bill = without.bill({
          blocks: [{ key: "system", tokens: 2_000 * factor, kind: "prefix" }, ...blocks],
          breakpoints: [{ after: blocks.length, ttl: "5m" }],
        });
        if (untrimmedUsd === undefined) continue;
        untrimmed += untrimmedUsd - usd;
        // The first calls have little to compare.
        if (turns > 10) expect(Math.abs(untrimmedUsd / (bill.usd + (100 * 15) / 1e6) - 1)).toBeLessThan(0.1);
      }
      const { comparedCalls, savedUsd, epochs } = fitter.calls.summary();
      expect(comparedCalls).toBeGreaterThan(80);
      expect(epochs).toBeGreaterThan(0);
      expect(savedUsd).toBeCloseTo(untrimmed, 9);
      expect(savedUsd).toBeGreaterThan(0.1);
      expect(events).toHaveLength(119);
    },
  );

  it("is not known if the provider bills something else than what is simulated", async () => {
    const { ask, fitter } = open();
    for (let turns = 1; turns < 30; turns++) {
      // A provider that loses its cache every other time.
      const total = 2_000 + 800 * turns;
      const read = turns % 2 === 0 ? total - 800 : 0;
      const usage = { input_tokens: 0, cache_read_input_tokens: read, cache_creation_input_tokens: total - read };
      const event = await ask(history(turns), {}, { ...usage, output_tokens: 5 });
      if (turns > 4) expect(event.untrimmedUsd).toBeUndefined();
    }
    expect(fitter.calls.summary().comparedCalls).toBeLessThan(5);
  });

  it("is not known for a request that the model would have refused", async () => {
    const { ask } = open({ contextWindow: 60_000 });
    const small = { model: "claude-haiku-4-5" };
    for (let turns = 1; turns <= 400; turns += 57) {
      const { untrimmedUsd } = await ask(history(turns), small);
      if (turns > 300) expect(untrimmedUsd).toBeUndefined();
    }
  });
});

describe("the sum of the calls", () => {
  it("adds up every conversation, and counts requests that were not sent", async () => {
    const { ask, events, fitter } = open();
    for (const turns of [1, 20, 60]) await ask(history(turns));
    await ask([{ role: "user", content: "Another question" }]);
    const huge = [{ role: "user", content: "x".repeat(400_000) }];
    const refusal = await ask(huge).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "context_overflow", overflow: { limit: expect.any(Number) } });
    const add = (name: "sentTokens" | "readTokens" | "writtenTokens" | "usd") =>
      events.reduce((sum, event) => sum + (event[name] ?? 0), 0);
    expect(fitter.calls.summary()).toMatchObject({
      ...{ calls: 4, sentTokens: add("sentTokens"), readTokens: add("readTokens"), usd: add("usd") },
      ...{ writtenTokens: add("writtenTokens"), epochs: 1, refusals: 1, unpricedCalls: 0 },
    });
    expect(fitter.calls.summary().breaks).toMatchObject({ epoch: 1, model: 0 });
  });
});

describe("the events in the store", () => {
  it("have the same numbers, and nothing that anybody said", async () => {
    const store = createMemoryStore();
    const { ask, events } = open({ store, sessionId: "s" });
    for (const turns of [1, 20, 60]) await ask(history(turns));
    await ask([{ role: "user", content: "x".repeat(400_000) }]).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    const stored = await readEvents(store);
    expect(stored.map(({ kind }) => kind)).toEqual(["call", "call", "trim", "call", "error"]);
    const calls = stored.filter(({ kind }) => kind === "call");
    for (const [index, { sessionId, callId, numbers, source, client }] of calls.entries()) {
      const { sentTokens, readTokens, usd } = events[index]!;
      expect(numbers).toMatchObject({ model, sentTokens, readTokens, usd, ms: 10_000 });
      expect({ sessionId, callId, source, client }).toEqual({
        ...{ sessionId: "s", callId: events[index]?.callId, source: "sdk", client: "sdk" },
      });
    }
    expect(stored[2]?.numbers).toMatchObject({ reason: "full", epochs: 1 });
    expect(stored[2]?.callId).toBe(calls[2]?.callId);
    expect(stored.at(-1)?.numbers).toMatchObject({ name: "context_overflow" });
    expect(JSON.stringify(stored)).not.toContain("bug");
  });
});
