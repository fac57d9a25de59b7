import { describe, expect, it } from "vitest";
import { createProvider, type ProviderOptions } from "./provider.mjs";

const minute = 60_000;
const short = { type: "ephemeral" };
const hour = { type: "ephemeral", ttl: "1h" };
const words = (count: number, word = "word") => `${word} `.repeat(count);
const text = (content: string, cache_control?: object) => ({
  type: "text",
  text: content,
  ...(cache_control && { cache_control }),
});
/** A request whose tokens can be computed: one for each word, none around a block. */
const question = (...blocks: object[]) => [{ role: "user", content: blocks }];

function open(more: ProviderOptions = {}, model = "claude-sonnet-5") {
  const clock = { now: 1_000_000 };
  const provider = createProvider({
    now: () => clock.now,
    count: (each) => each.split(/\s+/).filter(Boolean).length - 4,
    ...more,
  });
  const ask = async (messages: object[], rest: object = {}) => {
    await provider.handle({ path: "/v1/messages", body: { model, max_tokens: 9, messages, ...rest } });
    const { tokens, refusal } = provider.calls.at(-1) ?? {};
    expect(refusal).toBeUndefined();
    const { output: _, ...input } = tokens ?? { output: 0 };
    return input;
  };
  return { ask, clock, provider };
}

const nothing = { uncached: 0, write5m: 0, write1h: 0, read: 0 };

describe("an entry", () => {
  const marked = question(text(words(2_000), short));

  it("is written at a marker and read by the next request", async () => {
    const { ask } = open();
    expect(await ask(marked)).toEqual({ ...nothing, write5m: 2_000 });
    expect(await ask(question(text(words(2_000)), text(words(100), short)))).toEqual({
      ...nothing,
      read: 2_000,
      write5m: 100,
    });
    expect(await ask(question(text(words(2_000)), text(words(100)), text(words(7))))).toEqual({
      ...nothing,
      uncached: 2_107,
    });
  });

  it("is not found by another prefix, model, tool list or thinking setting", async () => {
    const { ask } = open();
    const tools = [{ name: "read", description: words(50), input_schema: {} }];
    await ask(marked);
    expect(await ask(question(text(words(2_000, "other"), short)))).toMatchObject({ read: 0 });
    expect(await ask(marked, { model: "claude-sonnet-4-6" })).toMatchObject({ read: 0 });
    expect(await ask(marked, { tools })).toMatchObject({ read: 0 });
    expect(await ask(marked, { thinking: { type: "adaptive" } })).toMatchObject({ read: 0 });
    expect(await ask(marked)).toMatchObject({ read: 2_000 });
  });

  it.each([
    [short, 5 * minute],
    [hour, 60 * minute],
  ])("lives as long as its marker says after each use: %j", async (marker, lifetime) => {
    const { ask, clock } = open();
    const messages = question(text(words(2_000), marker));
    await ask(messages);
    for (let use = 0; use < 3; use++) {
      clock.now += lifetime - 1;
      expect(await ask(messages)).toMatchObject({ read: 2_000 });
    }
    clock.now += lifetime;
    expect(await ask(messages)).toMatchObject({ read: 0 });
  });

  it.each([
    ["claude-sonnet-5", 1_024],
    ["claude-sonnet-5-5", 512],
    ["claude-haiku-5-5", 512],
    ["claude-haiku-4-5", 4_096],
    ["claude-opus-4-7", 2_048],
    ["claude-opus-4-6", 4_096],
    ["claude-opus-5-5", 512],
    ["claude-opus-6", 512],
  ])("needs a prefix of a minimum length on %s: %i", async (model, minimum) => {
    const { ask } = open({}, model);
    expect(await ask(question(text(words(minimum - 1), short)))).toEqual({ ...nothing, uncached: minimum - 1 });
    expect(await ask(question(text(words(minimum), short)))).toEqual({ ...nothing, write5m: minimum });
  });
});

describe("the look back", () => {
  const start = text(words(2_000), short);
  const plain = text(words(2_000));
  const fill = (count: number) => Array.from({ length: count }, (_, index) => text(`fill ${index}`));

  it("reaches the 20th position and not the 21st", async () => {
    for (const [between, read] of [
      [18, 2_000],
      [19, 0],
    ] as const) {
      const { ask } = open();
      await ask(question(start));
      expect(await ask(question(plain, ...fill(between), text("end", short)))).toMatchObject({ read });
    }
  });

  it("goes on at the next marker", async () => {
    const { ask } = open();
    await ask(question(start));
    expect(await ask(question(start, ...fill(40), text("end", short)))).toMatchObject({ read: 2_000 });
  });

  it("takes a run of calls and a run of results as one position each", async () => {
    const { ask } = open();
    const ids = Array.from({ length: 30 }, (_, index) => `t${index}`);
    await ask(question(start));
    const calls = ids.map((id) => ({ type: "tool_use", id, name: "read", input: {} }));
    const results = ids.map((tool_use_id) => ({ type: "tool_result", tool_use_id, content: "text" }));
    const messages = [
      { role: "user", content: [plain] },
      { role: "assistant", content: calls },
      { role: "user", content: [...results.slice(0, -1), { ...results.at(-1), cache_control: short }] },
    ];
    expect(await ask(messages)).toMatchObject({ read: 2_000 });
  });
});

describe("the bill", () => {
  it("splits writes by lifetime and charges what follows the last marker", async () => {
    const { ask, provider } = open({ prices: { "claude-sonnet-5": { input: 2, output: 10 } }, outputTokens: 100 });
    const blocks = [text(words(2_000), hour), text(words(300), short), text(words(40))];
    expect(await ask(question(...blocks))).toEqual({ uncached: 40, write5m: 300, write1h: 2_000, read: 0 });
    expect(provider.calls[0]?.dollars).toBeCloseTo((40 * 2 + 300 * 2.5 + 2_000 * 4 + 100 * 10) / 1e6, 10);
    expect(await ask(question(...blocks))).toEqual({ uncached: 40, write5m: 0, write1h: 0, read: 2_300 });
    expect(provider.calls[1]?.dollars).toBeCloseTo((40 * 2 + 2_300 * 0.2 + 100 * 10) / 1e6, 10);
  });

  it("is reported as the API reports it, also in a stream", async () => {
    const { provider } = open();
    const body = { model: "claude-sonnet-5", max_tokens: 9, messages: question(text(words(2_000), hour)) };
    const { json } = await provider.handle({ path: "/v1/messages", body });
    expect(json.usage).toEqual({
      input_tokens: 0,
      cache_creation_input_tokens: 2_000,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 2_000 },
      output_tokens: 50,
    });
    const { events } = await provider.handle({ path: "/v1/messages", body: { ...body, stream: true } });
    expect([...(events as string[])][0]).toContain('"cache_read_input_tokens":2000');
  });

  it("marks the last block if the request asks for it at its top", async () => {
    const { ask } = open();
    expect(await ask(question(text(words(2_000))), { cache_control: short })).toMatchObject({ write5m: 2_000 });
  });

  it("leaves out thinking that is dropped, and the cache starts again there", async () => {
    const { ask, provider } = open({
      answer: () => ({ content: [{ type: "thinking", thinking: words(500) }, text("Yes.")] }),
    });
    const shown = {
      type: "adaptive",
      display: "summarized",
      block_binding: { prefix_mismatch_behavior: "drop_block" },
    };
    const rest = {
      model: "claude-opus-5-5",
      thinking: shown,
      anthropic_beta: ["thinking-binding-controls-2026-08-01"],
    };
    const first = [{ role: "user", content: [text(words(2_000), short)] }];
    const { json } = await provider.handle({ path: "/v1/messages", body: { ...rest, max_tokens: 9, messages: first } });
    const later = [...first, { role: "assistant", content: json.content }, ...question(text("And now?", short))];
    expect(await ask(later, rest)).toEqual({ ...nothing, read: 2_000, write5m: 503 });
    const moved = [{ role: "user", content: [text(words(2_000), short), text("Hm")] }, ...later.slice(1)];
    expect(await ask(moved, rest)).toEqual({ ...nothing, read: 2_000, write5m: 4 });
  });
});
