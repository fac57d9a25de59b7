import { describe, expect, it } from "vitest";
import { createProvider } from "./provider.mjs";

const headers = { "anthropic-beta": "compact-2026-09-04" };
const request = { type: "summarize" };
const result = (tool_use_id: string) => ({
  role: "user",
  content: [{ type: "tool_result", tool_use_id, content: "x" }],
});

/** Two turns on a model that binds thinking, and then a summary of everything but the last exchange. */
async function compacted() {
  const provider = createProvider({
    answer: ({ body, number }) =>
      body.compaction === undefined
        ? { calls: [{ id: `t${number}`, name: "read", input: {} }] }
        : { text: "We looked." },
  });
  const fixed = { model: "claude-opus-5-5", max_tokens: 9, system: "Be brief." };
  const ask = async (messages: object[], more: object = {}, sent: Record<string, string> = headers) =>
    provider.handle({
      path: "/v1/messages",
      headers: sent,
      body: JSON.parse(JSON.stringify({ ...fixed, messages, ...more })),
    });
  const messages: { role: string; content: unknown }[] = [{ role: "user", content: "Where is the bug?" }];
  for (let turn = 1; turn <= 3; turn++) {
    const { json } = await ask(messages);
    messages.push({ role: "assistant", content: json.content }, result(`t${turn}`));
  }
  const { json } = await ask(messages.slice(0, 5), { compaction: request });
  const summary = { role: "assistant", content: json.content };
  return { ask, messages, json, summary, kept: messages.slice(5) };
}

describe("compaction on demand", () => {
  it("answers with one signed block, and bills it apart", async () => {
    const { json } = await compacted();
    expect(json).toMatchObject({ stop_reason: "compaction", content: [{ type: "compaction", content: "We looked." }] });
    expect(json.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 });
    expect(json.usage.iterations).toMatchObject([{ type: "compaction", output_tokens: 50 }]);
    expect(json.usage.iterations[0].input_tokens).toBeGreaterThan(0);
  });

  it("keeps the thinking of the turns after it valid, unless they were changed", async () => {
    const { ask, summary, kept } = await compacted();
    expect(JSON.stringify(kept)).toContain('"thinking"');
    expect(await ask([summary, ...kept])).toMatchObject({ status: 200 });
    expect(await ask([summary, ...kept], { system: "Be long." })).toMatchObject({ status: 400 });
    const { messages } = await compacted();
    expect(await ask([summary, ...messages.slice(3)])).toMatchObject({ status: 400 });
  });

  it.each<[string, object, RegExp]>([
    ["stop sequences", { stop_sequences: ["x"] }, /`stop_sequences` is not allowed/],
    ["a format", { output_config: { format: {} } }, /`output_config.format`/],
    ["context edits", { context_management: { edits: [] } }, /`context_management`/],
    ["a remaining budget", { task_budget: { remaining: 1 } }, /`task_budget.remaining`/],
    ["long instructions", { compaction: { ...request, instructions: "x".repeat(16_385) } }, /at most 16384/],
  ])("is refused with %s", async (_, more, text) => {
    const { ask, messages } = await compacted();
    const { status, json } = await ask(messages, { compaction: request, ...more });
    expect([status, json.error.message]).toEqual([400, expect.stringMatching(text)]);
  });

  it("is refused without its header, out of place, changed, forged, or with nothing to do", async () => {
    const { ask, messages, summary, kept } = await compacted();
    const block = (fields: object) => ({
      role: "assistant",
      content: [{ ...(summary.content[0] as object), ...fields }],
    });
    const refusals: [Promise<{ json?: { error: { message: string } } }>, RegExp][] = [
      [ask(messages, { compaction: request }, {}), /^compaction: Extra inputs/],
      [ask([summary, ...kept], {}, {}), /'compaction' is not permitted/],
      [ask([messages[0] as object, summary, ...kept]), /^compaction_block_misplaced/],
      [ask([block({ content: "Other." }), ...kept]), /^compaction_content_mismatch/],
      [ask([block({ signature: "x" }), ...kept]), /^compaction_signature_invalid/],
      [ask([{ ...summary, role: "user" }], { compaction: request }), /^compaction_nothing_to_summarize/],
    ];
    for (const [reply, text] of refusals) expect((await reply).json?.error.message).toMatch(text);
  });
});

it("OpenAI's compaction returns the user's messages and one sealed item, which it accepts later", async () => {
  const provider = createProvider();
  const input = [
    { role: "user", content: "Where is the bug?" },
    { role: "assistant", content: "Here." },
  ];
  const { json } = await provider.handle({ path: "/v1/responses/compact", body: { model: "gpt-5", input } });
  expect(json.output).toMatchObject([{ role: "user" }, { type: "compaction" }]);
  const next = (output: object[]) =>
    provider.handle({ path: "/v1/responses", body: { model: "gpt-5", input: output } });
  expect((await next(json.output)).status).toBe(200);
  expect((await next([{ ...json.output[1], encrypted_content: "x" }])).status).toBe(400);
});
