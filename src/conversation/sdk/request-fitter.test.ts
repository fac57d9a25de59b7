import { describe, expect, it, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { forgetHistory, listHistories } from "../history/index.ts";
import { findContextWindow } from "./context-windows.ts";
import { openCallTimes } from "./conversation.ts";
import { type BudgetCall, createRequestFitter, type RequestFitterOptions, type TrimEvent } from "./request-fitter.ts";

type Call = BudgetCall<object>;

const contextWindow = 40_000;
const minute = 60_000;
// Counts by length, so that the sizes below are easy to check.
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
        content: [{ type: "tool_result", tool_use_id: id, content: `${turn} `.repeat(2_000).slice(0, 4_000) }],
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

function open(options: RequestFitterOptions<object> = {}) {
  const events: TrimEvent[] = [];
  const clock = { ms: 1_000_000 };
  const budget = createRequestFitter<object>({
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
  it("causes an early trim: after a pause, or with another model", async () => {
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
  });

  it("is not assumed of a conversation whose earlier calls are not known", async () => {
    const resumed = open();
    await resumed.ask(history(18));
    expect(resumed.events).toHaveLength(0);
  });

  it("is not assumed after a restart that was short according to the store", async () => {
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

  it("can be ignored, and has the lifetime that the caller sets", async () => {
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

describe("two processes with one store", () => {
  it("send the same bytes for the same history, whichever of them trims it", async () => {
    const store = createMemoryStore();
    const [first, second] = [open({ store, sessionId: "s" }), open({ store, sessionId: "s" })];
    const sent = new Map<number, string>();
    let epochs = 0;
    for (let turns = 0; turns < 120; turns += 1) {
      // Sometimes one of them, sometimes both at once. The other one has not seen the last turns then.
      const asked = [[first], [second], [first, second], [second, second, first]][turns % 4]!;
      const answers = await Promise.all(asked.map(({ ask }) => ask(history(turns))));
      const texts = answers.map(({ reduction }) => JSON.stringify(reduction.messages));
      expect(new Set(texts).size).toBe(1);
      epochs += answers.filter(({ reduction }) => reduction.isEpoch).length;
      sent.set(turns, texts[0]!);
    }
    expect(epochs).toBeGreaterThan(2);
    // A third one that starts now sends what they sent.
    const third = open({ store, sessionId: "s" });
    const { reduction } = await third.ask(history(119));
    expect(JSON.stringify(reduction.messages)).toBe(sent.get(119));
  });
});

describe("sessions", () => {
  it("are distinguished by their first question, or as the caller says", async () => {
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
    const { ask, events } = open({ trimWhenCold: false });
    const before = await ask(history(30));
    const after = await ask(history(30), { model: "claude-opus-5" });
    expect(after.reduction.messages).toEqual(before.reduction.messages);
    expect(events).toHaveLength(1);
    expect(after.reduction.stats.epochs).toBe(before.reduction.stats.epochs);
  });

  it("are dropped after as many others as the option says, and then send the same bytes", async () => {
    const { ask } = open({ maxConversations: 2 });
    for (let turns = 0; turns < 29; turns++) await ask(history(turns));
    const before = await ask(history(30));
    for (const question of ["one", "two"]) await ask(history(0, question));
    const after = await ask(history(30));
    expect(after.reduction.derived).toMatchObject({ isComplete: true });
    expect(after.reduction.messages).toEqual(before.reduction.messages);
  });

  it("are dropped after a hundred others, and then read again", async () => {
    const { ask, events } = open();
    await ask(history(30));
    for (let other = 0; other < 99; other++) await ask(history(0, `question ${other}`));
    await ask(history(30));
    expect(events).toHaveLength(1);
    for (let other = 0; other < 100; other++) await ask(history(0, `question ${other}`));
    await ask(history(30));
    expect(events).toHaveLength(2);
  });

  it("write the decisions of an epoch to the store before the request is returned", async () => {
    const store = createMemoryStore();
    const { ask, events } = open({ store });
    await ask(history(30));
    const record = await store.get("history/checkpoints", events[0]?.sessionId ?? "");
    expect(JSON.parse(record?.value ?? "{}").ledger.epochs).toHaveLength(events[0]?.stats.epochs ?? 0);
  });
});

describe("usage", () => {
  const filled = { input_tokens: 23_500 };

  it("of the last request is observed", async () => {
    const { ask, events } = open();
    for (let turns = 0; turns < 13; turns++) (await ask(history(turns))).observe({ input_tokens: turns * 2_000 });
    expect(events).toHaveLength(1);
  });

  it("of a side question, or of a request that is not the last one, is ignored", async () => {
    const { ask, events } = open({ sessionId: "one" });
    for (let turns = 0; turns < 21; turns++) (await ask(history(turns))).observe({ input_tokens: turns * 1_020 });
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

  it("without input tokens is ignored", async () => {
    const { ask, events } = open();
    for (let turns = 0; turns < 22; turns++) (await ask(history(turns))).observe(undefined);
    expect(events).toHaveLength(0);
  });
});

describe("limits", () => {
  it("keep room for the answer in classes of its size, but at most half of the window", async () => {
    const { ask } = open();
    const budgetOf = async (maxOutputTokens?: number) =>
      (await ask(history(1), { maxOutputTokens })).reduction.stats.budget;
    expect(await budgetOf()).toBe(24_000);
    expect(await budgetOf(50)).toBe(24_000);
    expect(await budgetOf(18_000)).toBe(20_000);
    expect(await budgetOf(100_000)).toBe(20_000);
    const wide = open({ contextWindow: 100_000 });
    for (const maxOutputTokens of [16_001, 20_000, 32_000]) {
      const { reduction: sized } = await wide.ask(history(1), { maxOutputTokens });
      expect(sized.stats.budget).toBe(68_000);
    }
    const { reduction } = await open({ reserve: 1_000 }).ask(history(1), { maxOutputTokens: 18_000 });
    expect(reduction.stats.budget).toBe(39_000);
  });

  it("leave half of a small window for messages", async () => {
    for (const window of [8_192, 16_000, 20_000]) {
      const { reduction } = await open({ contextWindow: window }).ask(history(0), { maxOutputTokens: 500 });
      expect(reduction.stats.budget).toBe(window / 2);
    }
  });

  it("default to the model's own", async () => {
    const own = open({ contextWindow: undefined });
    const budgetOf = async (model: string, maxOutputTokens?: number) =>
      (await own.ask(history(1), { model, maxOutputTokens })).reduction.stats.budget;
    expect(await budgetOf("claude-haiku-4-5")).toBe(184_000);
    expect(await budgetOf("o4-mini")).toBe(184_000);
    await expect(own.ask(history(1), { model: "mine" })).rejects.toThrow('model "mine" is not known');
  });

  it("keep a part of a model's window for answers if the caller wants the whole window", async () => {
    const own = open({ contextWindow: undefined, workingBudget: 2_000_000 });
    const budgetOf = async (maxOutputTokens?: number) =>
      (await own.ask(history(1), { model: "gpt-5", maxOutputTokens })).reduction.stats.budget;
    expect(await budgetOf()).toBe(272_000);
    expect(await budgetOf(128_000)).toBe(272_000);
    expect(await budgetOf(100)).toBe(272_000);
  });

  it("that cannot be met cause an error that names the largest parts", async () => {
    const refused = open().ask([{ role: "user", content: "x".repeat(120_000) }]);
    await expect(refused).rejects.toThrow(
      "the smallest request has 30007 tokens of messages, but only 24000 fit (a window of 40000 less 16000 for " +
        "the answer and 0 for system text, tools and margin). Largest: messages[0] (user text, 30000 tokens).",
    );
    const crowded = open().ask(history(1), { system: "y".repeat(100_000) });
    await expect(crowded).rejects.toThrow(
      /but only 0 fit \(a window of 40000 less 16000 for the answer and 24000 for system text/,
    );
  });
});

describe("the working budget", () => {
  const budgetFor = async (options: RequestFitterOptions<object>, more: Partial<Call> = {}) =>
    (await open({ contextWindow: undefined, ...options }).ask(history(1), more)).reduction.stats.budget;

  it("is 200,000 tokens by default in a window of 400,000 or more, whatever the answer may take", async () => {
    expect(await budgetFor({})).toBe(200_000);
    expect(await budgetFor({}, { maxOutputTokens: 64_000 })).toBe(200_000);
    expect(await budgetFor({}, { model: "gpt-5" })).toBe(200_000);
    expect(await budgetFor({}, { model: "gemini-3-pro" })).toBe(200_000);
    expect(await budgetFor({}, { model: "claude-haiku-4-5" })).toBe(184_000);
  });

  it("gives way to contextWindow, and can be set beside it", async () => {
    expect(await budgetFor({ contextWindow: 1_000_000 })).toBe(984_000);
    expect(await budgetFor({ workingBudget: 300_000 })).toBe(300_000);
    expect(await budgetFor({ contextWindow: 150_000, workingBudget: 100_000 })).toBe(100_000);
    expect(await budgetFor({ contextWindow: 150_000, workingBudget: 300_000 })).toBe(134_000);
  });

  const wide = { contextWindow: 200_000, workingBudget: 20_000 };

  it("grows for a question that does not fit it, and nothing is trimmed for that", async () => {
    const { ask, events } = open(wide);
    const question = "x".repeat(4 * 30_000);
    const { reduction } = await ask(history(1, question));
    expect(reduction.messages).toEqual(history(1, question));
    expect(reduction.stats.budget).toBe(40_000);
    expect(events).toEqual([]);
    await expect(ask([{ role: "user", content: "y".repeat(4 * 200_000) }])).rejects.toThrow("but only 184000 fit");
  });

  it("grows for a result that was just read, and keeps the trims that were sent before", async () => {
    const { ask, events } = open(wide);
    for (let turns = 1; turns <= 25; turns++) await ask(history(turns));
    expect(events).toHaveLength(1);
    const before = (await ask(history(25))).reduction.messages;
    const large = { type: "tool_result", tool_use_id: "c25", content: "z".repeat(4 * 30_000) };
    const call = { role: "assistant", content: [{ type: "tool_use", id: "c25", name: "read", input: {} }] };
    const { reduction } = await ask([...history(25), call, { role: "user", content: [large] }]);
    expect(reduction.messages.slice(0, before.length)).toEqual(before);
    expect(reduction.messages.at(-1)).toEqual({ role: "user", content: [large] });
    expect(events).toHaveLength(1);
  });

  it("grows without writing the undone trim to the store", async () => {
    const store = createMemoryStore();
    const first = open({ ...wide, store, sessionId: "s" });
    const question = "x".repeat(4 * 18_000);
    const sent = (await first.ask(history(8, question))).reduction.messages;
    const again = await open({ ...wide, store, sessionId: "s" }).ask(history(8, question));
    expect(again.reduction.messages).toEqual(sent);
    expect(sent).toEqual(history(8, question));
  });
});

describe("wrong options", () => {
  const create = (options: object) => () => createRequestFitter(options as RequestFitterOptions<object>);

  it.each([
    ["contextWindow is -1", { contextWindow: -1 }],
    ["contextWindow is 0", { contextWindow: 0 }],
    ["contextWindow is 0.5", { contextWindow: 0.5 }],
    ["workingBudget is 0", { workingBudget: 0 }],
    ["contextWindow is NaN", { contextWindow: Number.NaN }],
    ['unknown onOverflow "ignore"', { onOverflow: "ignore" }],
    ['onTrim is "log"', { onTrim: "log" }],
    ['sessionIdOf is "mine"', { sessionIdOf: "mine" }],
    ['cacheLifetimeMs is "5m"', { cacheLifetimeMs: "5m" }],
    ["now is 7", { now: 7 }],
    ['counter is "auto" without count()', { counter: "auto" }],
    ['unknown policy "cheap"', { policy: "cheap" }],
    ["placeholders has no meaning for the policy rfc", { policy: "rfc", placeholders: "descriptive" }],
    ["reserve 20000 and prefixTokens 20000 leave nothing", { contextWindow, reserve: 20_000, prefixTokens: 20_000 }],
    ['unknown option "format"', { format: "anthropic" }],
    ['unknown option "window"', { window: 7 }],
  ])("are refused at once: %s", (message, options) => {
    expect(create(options)).toThrow(message);
  });

  it("are reported with a suggestion, and no options are valid", () => {
    expect(create({ onOverflw: "pass" })).toThrow(
      expect.objectContaining({ code: "invalid_argument", hint: 'Did you mean "onOverflow"?' }),
    );
    expect(create({})).not.toThrow();
  });
});

test("the call times of a session are stored, and deleted with its history", async () => {
  const store = createMemoryStore();
  const first = await openCallTimes(store, "s");
  expect(await first.note("m", 5)).toBeUndefined();
  expect(await (await openCallTimes(store, "s")).note("m", 7)).toBe(5);
  expect(await listHistories(store)).toEqual(["s"]);
  await forgetHistory(store, "s");
  expect(await listHistories(store)).toEqual([]);
  expect(await (await openCallTimes(store, "s")).note("m", 9)).toBeUndefined();
});

test.each(["x", "null", "[]", '{"m":"soon"}'])("times that cannot be read are ignored: %s", async (value) => {
  const store = createMemoryStore();
  await (await openCallTimes(store, "s")).note("m", 5);
  const [id] = await listHistories(store);
  await store.put("history/calls", id!, value);
  expect(await (await openCallTimes(store, "s")).note("m", 7)).toBeUndefined();
});

test("a changed system text is reported if the model refuses thinking for it", async () => {
  const events: object[] = [];
  const fitter = createRequestFitter({
    counter,
    contextWindow,
    sessionId: "s",
    onUnbound: (event) => events.push(event),
  });
  const thinking = { type: "thinking", thinking: "so", signature: "c2ln" };
  const messages = [...history(1), { role: "assistant", content: [thinking, { type: "text", text: "Done." }] }];
  const model = "claude-opus-5-5";
  await fitter.fit(call(messages, { model, system: "It is Monday." }));
  const next = [...messages, { role: "user", content: "Thanks." }];
  const { reduction } = await fitter.fit(call(next, { model, system: "It is Tuesday." }));
  expect(reduction.messages).toEqual(next);
  const change = { systemAt: 6, addedTools: [], removedTools: [], changedTools: [], blocks: 1 };
  expect(events).toEqual([{ sessionId: "s", model, ...change }]);
});

describe("the table of context windows", () => {
  it.each([
    ["claude-opus-5-5", 1_000_000],
    ["us.anthropic.claude-sonnet-5-v1:0", 1_000_000],
    ["claude-haiku-5-5", 1_000_000],
    ["anthropic/claude-opus-4.6", 1_000_000],
    ["claude-sonnet-4-6", 1_000_000],
    ["claude-sonnet-4-5-20250929", 200_000],
    ["claude-opus-4-20250514", 200_000],
    ["claude-3-5-sonnet-20241022", 200_000],
    ["claude-haiku-4-5", 200_000],
    ["gpt-4.1-mini", 1_000_000],
    ["openai/gpt-4o", 128_000],
    ["gpt-5.2-chat-latest", 128_000],
    ["o4-mini", 200_000],
    ["gemini-3.8-flash", 1_048_576],
    ["gemini-4-argon", 1_048_576],
    ["models/gemini-flash-latest", 1_048_576],
    ["claude-mythos-preview", 1_000_000],
    ["arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5-5-v1:0", 1_000_000],
    ["claude-fable-5-2@20261109", 1_000_000],
    ["opus", 200_000],
    ["x-ai/grok-4.7", 500_000],
    ["deepseek/deepseek-v4-pro", 1_000_000],
    ["moonshotai/kimi-k3.1-pro", 1_048_576],
    ["qwen/qwen3.8-max-0902", 1_000_000],
    ["z-ai/glm-5.3", 1_000_000],
  ])("knows that of %s", (model, tokens) => {
    expect(findContextWindow(model)).toEqual({ tokens, maxInput: tokens });
  });

  it.each([
    ["gpt-6.1-sol", { tokens: 1_050_000, maxInput: 922_000 }],
    ["gpt-5.6-terra", { tokens: 1_050_000, maxInput: 922_000 }],
    ["gpt-5.4-mini", { tokens: 400_000, maxInput: 272_000 }],
    ["gpt-5-2025-08-07", { tokens: 400_000, maxInput: 272_000 }],
    ["gpt-5.6-cyber", { tokens: 400_000, maxInput: 272_000 }],
    ["chat-latest", { tokens: 400_000, maxInput: 272_000 }],
  ])("knows that %s keeps a part of it for answers", (model, window) => {
    expect(findContextWindow(model)).toEqual(window);
  });

  it("asks for the window of an unknown model", () => {
    const unknown = () => findContextWindow("deployment-7");
    expect(unknown).toThrow('the context window of model "deployment-7" is not known');
    expect(unknown).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => findContextWindow(undefined)).toThrow("the context window of the model is not known");
    for (const model of ["gpt-4", "gemini-9", "grok-9", "llama-4"]) {
      expect(() => findContextWindow(model)).toThrow(`the context window of model "${model}" is not known`);
    }
  });
});
