import { describe, expect, it } from "vitest";
import { billableRequest, createCacheSimulator, priceOf } from "../../core/billing/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { forgetHistory, listHistories } from "../history/index.ts";
import type { CallEvent } from "./call-events.ts";
import { budgetedFetch } from "./fetch.ts";
import { anthropicMarkers } from "./place-markers.ts";
import { createRequestFitter } from "./request-fitter.ts";

const minute = 60_000;
const counter = await createCounter("estimate:claude-5");
const model = "claude-sonnet-5";
const system = "Follow the rules of the project. ".repeat(3_000);

/** An agent that reads a file at each call. */
function messagesOf(calls: number): object[] {
  const steps = Array.from({ length: calls }, (_, index) => [
    {
      role: "assistant",
      content: [{ type: "tool_use", id: `t${index}`, name: "read", input: { path: `${index}.ts` } }],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: `t${index}`, content: `line ${index}\n`.repeat(80) }],
    },
  ]);
  return [{ role: "user", content: "Find the bug." }, ...steps.flat()];
}

interface Run {
  /** The minutes before each call. */
  readonly pauses: readonly number[];
  readonly options?: Parameters<typeof budgetedFetch>[1];
  readonly isNewClient?: boolean;
  readonly fields?: Fields;
}

async function run({ pauses, options = {}, isNewClient = false, fields = {} }: Run) {
  const simulator = createCacheSimulator({ provider: "anthropic", model });
  const bodies: Fields[] = [];
  let [now, cost] = [0, 0];
  const send: typeof fetch = async (_input, init) => {
    const body = JSON.parse(String(init?.body)) as Fields;
    bodies.push(body);
    cost += simulator.bill({ ...billableRequest(body, { counter }), startMs: now }).cost;
    return Response.json({});
  };
  const create = () => budgetedFetch(send, { contextWindow: 500_000, now: () => now, ...options });
  const kept = create();
  for (const [index, pause] of pauses.entries()) {
    now += pause * minute;
    const body = JSON.stringify({ model, max_tokens: 100, system, messages: messagesOf(index), ...fields });
    await (isNewClient ? create() : kept)("http://localhost/v1/messages", { method: "POST", body });
  }
  const lifetimes = bodies.map((each) => anthropicMarkers.readMarkers([each.system, each.messages]));
  return { bodies, cost, lifetimes, hours: lifetimes.filter((all) => all.includes("1h")).length };
}

const pausing = Array.from({ length: 40 }, (_, index) => (index % 8 === 7 ? 20 : 0.5));
const steady = Array.from({ length: 40 }, () => 0.5);

describe("the lifetime of markers", () => {
  it("costs less than either fixed one if there are pauses", async () => {
    const auto = await run({ pauses: pausing });
    expect(auto.cost).toBeLessThan((await run({ pauses: pausing, options: { ttl: "1h" } })).cost);
    expect(auto.cost).toBeLessThan((await run({ pauses: pausing, options: { ttl: "5m" } })).cost);
    for (const lifetimes of auto.lifetimes) expect(lifetimes.length).toBeLessThanOrEqual(4);
  });

  it("is mostly 5 minutes without pauses", async () => {
    const auto = await run({ pauses: steady });
    expect(auto.hours).toBeLessThanOrEqual(3);
    expect(auto.cost).toBeLessThan(1.01 * (await run({ pauses: steady, options: { ttl: "5m" } })).cost);
  });

  it("is the caller's own if the request has markers, and the option's otherwise", async () => {
    const own = { system: [{ type: "text", text: system, cache_control: { type: "ephemeral" } }] };
    expect((await run({ pauses: pausing, fields: own })).hours).toBe(0);
    expect((await run({ pauses: pausing, options: { ttl: "5m" } })).hours).toBe(0);
    const all = await run({ pauses: pausing, options: { ttl: "1h" } });
    expect(new Set(all.lifetimes.flat())).toEqual(new Set(["1h"]));
    const elsewhere = { model: "us.anthropic.claude-sonnet-5-v1:0" };
    expect((await run({ pauses: pausing, fields: elsewhere })).hours).toBe(0);
    expect(() => budgetedFetch(fetch, { ttl: "2h" as "1h" })).toThrow('unknown ttl "2h"');
  });

  it("is 5 minutes where nothing is remembered, and the same in every process with a store", async () => {
    const alone = await run({ pauses: pausing, isNewClient: true });
    const fixed = await run({ pauses: pausing, options: { ttl: "5m" } });
    expect(alone.bodies).toEqual(fixed.bodies);
    const store = createMemoryStore();
    const stored = await run({ pauses: pausing, options: { store, sessionId: "s" }, isNewClient: true });
    expect(stored.bodies).toEqual((await run({ pauses: pausing })).bodies);
    await forgetHistory(store, "s");
    expect(await listHistories(store)).toEqual([]);
    await store.put("history/lifetimes", "s", "{}}");
    expect((await run({ pauses: [0, 1], options: { store, sessionId: "s" } })).bodies).toHaveLength(2);
  });
});

/** Calls every half minute until one writes for an hour, if it may, and then pauses for 20 minutes. */
async function pauseAfterHour(cachePrice: ReturnType<typeof priceOf> | undefined) {
  const events: CallEvent[] = [];
  let now = 0;
  const onCall = (event: CallEvent): unknown => events.push(event);
  const fitter = createRequestFitter<object>({ contextWindow: 60_000, counter, now: () => now, onCall });
  const callOf = (calls: number) => ({
    ...({
      request: {},
      format: "anthropic",
      model,
      messages: messagesOf(calls),
      system: "Be brief.",
      cachePrice,
    } as const),
    ...{ maxOutputTokens: undefined, cacheLifetimeMs: 5 * minute },
  });
  let calls = 110;
  for (let isHour = false; !isHour && calls < 125; calls++) {
    const { lifetime, observe } = await fitter.fit(callOf(calls));
    observe({ input_tokens: 10, cache_creation_input_tokens: 30_000 });
    isHour = lifetime?.ttl === "1h";
    now += minute / 2;
  }
  now += 20 * minute;
  const previewed = await fitter.preview(callOf(calls));
  const fitted = await fitter.fit(callOf(calls));
  fitted.observe({ input_tokens: 30_000 });
  return { previewed, fitted, event: events.at(-1) };
}

describe("a pause after a call that wrote for an hour", () => {
  it("leaves the cache warm, for a count of tokens too", async () => {
    const { previewed, fitted } = await pauseAfterHour(priceOf({ provider: "anthropic", model }));
    expect([fitted.isCold, fitted.reduction.isEpoch]).toEqual([false, false]);
    expect(previewed.messages).toEqual(fitted.reduction.messages);
    const cold = await pauseAfterHour(undefined);
    expect([cold.fitted.isCold, cold.fitted.reduction.isEpoch]).toEqual([true, true]);
    expect(cold.previewed.messages).toEqual(cold.fitted.reduction.messages);
  });

  it("is not named as the cause of a lost cache", async () => {
    const { event } = await pauseAfterHour(priceOf({ provider: "anthropic", model }));
    expect(event?.cacheBreak?.cause).toBe("unknown");
    expect((await pauseAfterHour(undefined)).event?.cacheBreak?.cause).toBe("expired");
  });
});
