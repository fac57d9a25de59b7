import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../store/index.ts";
import { createCounter } from "../../tokens/index.ts";
import {
  type BudgetCall,
  type ContextBudgetOptions,
  createContextBudget,
  type TrimEvent,
} from "./context-budget.ts";

type Call = BudgetCall<object>;

const contextWindow = 40_000;
const minute = 60_000;
// By length, so that the sizes below are plain to see.
const counter = await createCounter("bytes/4");

/** A question and turns that each read a file of 1,000 tokens. */
function history(turns: number, question = "Where is the bug?"): object[] {
  const messages: object[] = [{ role: "user", content: question }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `c${turn}`;
    messages.push(
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `${turn}.ts` } }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: id, content: `${turn} `.repeat(2_000).slice(0, 4_000) },
        ],
      },
    );
  }
  return messages;
}

function call(messages: readonly object[], more: Partial<Call> = {}): Call {
  return {
    request: {},
    format: "anthropic",
    model: "claude-sonnet-5",
    messages,
    maxOutputTokens: undefined,
    cacheLifetimeMs: 5 * minute,
    ...more,
  };
}

function open(options: ContextBudgetOptions<object> = {}) {
  const events: TrimEvent[] = [];
  const clock = { ms: 1_000_000 };
  const budget = createContextBudget<object>({
    contextWindow,
    counter,
    now: () => clock.ms,
    onTrim: (event) => events.push(event),
    ...options,
  });
  const ask = (messages: readonly object[], more: Partial<Call> = {}) => budget.fit(call(messages, more));
  return { ask, events, clock };
}

describe("a cold cache", () => {
  it("is a reason to trim early: a pause, another model, a start in the middle, and nothing else", async () => {
    const { ask, events, clock } = open();
    for (let turns = 0; turns < 16; turns++) await ask(history(turns));
    clock.ms += 5 * minute;
    await ask(history(17));
    expect(events).toHaveLength(0);
    clock.ms += 5 * minute + 1;
    await ask(history(18));
    expect(events).toHaveLength(1);

    const switched = open();
    for (let turns = 0; turns < 18; turns++) await switched.ask(history(turns));
    await switched.ask(history(18), { model: "claude-opus-5" });
    expect(switched.events).toHaveLength(1);

    const resumed = open();
    await resumed.ask(history(18));
    expect(resumed.events).toHaveLength(1);
  });

  it("is none after a restart that the store knows to be a short one", async () => {
    const store = createMemoryStore();
    const first = open({ store, sessionId: "s" });
    for (let turns = 0; turns < 18; turns++) await first.ask(history(turns));
    const second = open({ store, sessionId: "s" });
    second.clock.ms = first.clock.ms + 4 * minute;
    await second.ask(history(18));
    expect(second.events).toHaveLength(0);
    const third = open({ store, sessionId: "s" });
    third.clock.ms = second.clock.ms + 6 * minute;
    await third.ask(history(18));
    expect(third.events).toHaveLength(1);
  });

  it("can be left alone, and has the lifetime that the caller says", async () => {
    const patient = open({ trimWhenCold: false });
    await patient.ask(history(18));
    expect(patient.events).toHaveLength(0);
    const long = open({ cacheLifetimeMs: 60 * minute });
    for (let turns = 0; turns < 18; turns++) await long.ask(history(turns));
    long.clock.ms += 50 * minute;
    await long.ask(history(18));
    expect(long.events).toHaveLength(0);
  });
});

describe("sessions", () => {
  it("are told apart by their first question, or as the caller says", async () => {
    const { ask, events } = open({ sessionIdOf: (request) => Reflect.get(request, "user") });
    await ask(history(30, "first"));
    await ask(history(30, "second"));
    await ask(history(30, "third"), { request: { user: "ada" } });
    const ids = events.map(({ sessionId }) => sessionId);
    expect(new Set(ids).size).toBe(3);
    expect(ids[2]).toBe("ada");
    const named = open({ sessionId: "mine" });
    await named.ask(history(30));
    await named.ask([]);
    expect(named.events[0]?.sessionId).toBe("mine");
  });

  it("keep their decisions when another model answers", async () => {
    const { ask, events } = open();
    const before = await ask(history(30));
    const after = await ask(history(30), { model: "claude-opus-5" });
    expect(after.reduction.messages).toEqual(before.reduction.messages);
    expect(events).toHaveLength(1);
    expect(after.reduction.stats.epochs).toBe(1);
  });

  it("are let go of after a hundred others, and then trimmed anew", async () => {
    const { ask, events } = open();
    await ask(history(30));
    for (let other = 0; other < 99; other++) await ask(history(0, `question ${other}`));
    await ask(history(30));
    expect(events).toHaveLength(1);
    for (let other = 0; other < 100; other++) await ask(history(0, `question ${other}`));
    await ask(history(30));
    expect(events).toHaveLength(2);
  });

  it("write what an epoch decided to the store before the request is given back", async () => {
    const store = createMemoryStore();
    const { ask, events } = open({ store });
    await ask(history(30));
    const record = await store.get("history/checkpoints", events[0]?.sessionId ?? "");
    expect(JSON.parse(record?.value ?? "{}").ledger.epochs).toHaveLength(1);
  });
});

describe("usage", () => {
  const filled = { input_tokens: 23_500 };

  it("of the last request is taken into account", async () => {
    const { ask, events } = open();
    for (let turns = 0; turns < 13; turns++)
      (await ask(history(turns))).observe({ input_tokens: turns * 2_000 });
    expect(events).toHaveLength(1);
  });

  it("of a side question, or of a request that was overtaken, is not", async () => {
    const { ask, events } = open({ sessionId: "one" });
    for (let turns = 0; turns < 21; turns++)
      (await ask(history(turns))).observe({ input_tokens: turns * 1_020 });
    const side = await ask([{ role: "user", content: "A title, please." }]);
    side.observe({ input_tokens: 20 });
    await ask(history(21));
    expect(events).toHaveLength(0);

    const other = open({ sessionId: "one" });
    for (let turns = 0; turns < 12; turns++) await other.ask(history(turns));
    const overtaken = await other.ask(history(12));
    await other.ask(history(13));
    overtaken.observe(filled);
    await other.ask(history(14));
    expect(other.events).toHaveLength(0);
  });

  it("that says nothing changes nothing", async () => {
    const { ask, events } = open();
    for (let turns = 0; turns < 22; turns++) (await ask(history(turns))).observe(undefined);
    expect(events).toHaveLength(0);
  });
});

describe("limits", () => {
  it("keep room for the longest answer that was asked for, and half of the window at most", async () => {
    const { ask } = open();
    const budgetOf = async (maxOutputTokens?: number) =>
      (await ask(history(1), { maxOutputTokens })).reduction.stats.budget;
    expect(await budgetOf()).toBe(24_000);
    expect(await budgetOf(18_000)).toBe(22_000);
    expect(await budgetOf(50)).toBe(22_000);
    expect(await budgetOf(100_000)).toBe(20_000);
    const { reduction } = await open({ reserve: 1_000 }).ask(history(1), { maxOutputTokens: 18_000 });
    expect(reduction.stats.budget).toBe(39_000);
  });

  it("leave half of a small window for messages", async () => {
    for (const window of [8_192, 16_000, 20_000]) {
      const { reduction } = await open({ contextWindow: window }).ask(history(0), { maxOutputTokens: 500 });
      expect(reduction.stats.budget).toBe(window / 2);
    }
  });

  it("are the model's own where the caller says nothing", async () => {
    const own = open({ contextWindow: undefined });
    const budgetOf = async (model: string, maxOutputTokens?: number) =>
      (await own.ask(history(1), { model, maxOutputTokens })).reduction.stats.budget;
    expect(await budgetOf("claude-haiku-4-5")).toBe(184_000);
    expect(await budgetOf("gpt-5")).toBe(272_000);
    expect(await budgetOf("gpt-5", 128_000)).toBe(272_000);
    expect(await budgetOf("gpt-5", 100)).toBe(272_000);
    await expect(own.ask(history(1), { model: "mine" })).rejects.toThrow('model "mine" is not known');
  });

  it("that cannot be met are an error with what takes the room", async () => {
    const refused = open().ask([{ role: "user", content: "x".repeat(120_000) }]);
    await expect(refused).rejects.toThrow(
      "the smallest request has 30007 tokens of messages, and 24000 fit (a window of 40000 less 16000 for the answer and 0 " +
        "for system text, tools and margin). Largest: messages[0] (user text, 30000 tokens).",
    );
    const crowded = open().ask(history(1), { system: "y".repeat(100_000) });
    await expect(crowded).rejects.toThrow(
      /and 0 fit \(a window of 40000 less 16000 for the answer and 24000 for system text/,
    );
  });
});

describe("wrong options", () => {
  const create = (options: object) => () => createContextBudget(options as ContextBudgetOptions<object>);

  it.each([
    ["contextWindow is -1", { contextWindow: -1 }],
    ["contextWindow is 0", { contextWindow: 0 }],
    ["contextWindow is 0.5", { contextWindow: 0.5 }],
    ["contextWindow is NaN", { contextWindow: Number.NaN }],
    ['unknown onOverflow "ignore"', { onOverflow: "ignore" }],
    ["onTrim is of type string", { onTrim: "log" }],
    ["sessionIdOf is of type string", { sessionIdOf: "mine" }],
    ["cacheLifetimeMs is 5m", { cacheLifetimeMs: "5m" }],
    ["now is of type number", { now: 7 }],
    ['counter is "auto" without count()', { counter: "auto" }],
    ['unknown policy "cheap"', { policy: "cheap" }],
    ["placeholders has no meaning for the policy rfc", { policy: "rfc", placeholders: "descriptive" }],
    [
      "reserve 20000 and prefixTokens 20000 leave nothing",
      { contextWindow, reserve: 20_000, prefixTokens: 20_000 },
    ],
    ['unknown option "format"', { format: "anthropic" }],
    ['unknown option "window"', { window: 7 }],
  ])("are refused at once: %s", (message, options) => {
    expect(create(options)).toThrow(message);
  });

  it("are told with what was meant, and none at all is right", () => {
    expect(create({ onOverflw: "pass" })).toThrow(
      expect.objectContaining({ code: "invalid_argument", hint: 'Did you mean "onOverflow"?' }),
    );
    expect(create({})).not.toThrow();
  });
});
