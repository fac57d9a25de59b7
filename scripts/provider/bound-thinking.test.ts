import { describe, expect, it } from "vitest";
import { createProvider, type Fields, type Provider, type ProviderOptions } from "./provider.mjs";

type Block = Record<string, unknown>;
interface Message {
  role: string;
  content: string | Block[];
}
interface Body {
  model: string;
  max_tokens: number;
  system?: unknown;
  tools?: Block[];
  thinking?: Fields;
  messages: Message[];
}

const beta = { "anthropic-beta": "thinking-binding-controls-2026-08-01" };
const model = "claude-opus-5-5";
const tool = (name: string, more: Block = {}): Block => ({ name, description: name, input_schema: {}, ...more });

async function ask(provider: Provider, body: Body, headers = {}) {
  // What a client sends is a copy.
  return provider.handle({ path: "/v1/messages", headers, body: JSON.parse(JSON.stringify(body)) });
}

/** A conversation of three answers, each with signed thinking and a call, as the client has it. */
async function talk(options: ProviderOptions = {}, more: Partial<Body> = {}) {
  const provider = createProvider({
    answer: ({ number }) => ({
      calls: [{ name: "read", id: `t${number}`, input: { path: `f${number}`, deep: { a: 1, b: 2 } } }],
    }),
    ...options,
  });
  const body: Body = {
    model,
    max_tokens: 100,
    system: "Be brief.",
    tools: [tool("read"), tool("write")],
    messages: [{ role: "user", content: "Where is the bug?" }],
    ...more,
  };
  for (let turn = 1; turn <= 3; turn++) {
    const { json } = await ask(provider, body);
    body.messages.push({ role: "assistant", content: json.content });
    const result = { type: "tool_result", tool_use_id: `t${turn}`, content: `text ${turn}` };
    body.messages.push({ role: "user", content: [result] });
  }
  return { provider, body };
}

const blocks = (body: Body, message: number) => body.messages[message]?.content as Block[];
const isThinking = ({ type }: Block) => type === "thinking";
const without = (body: Body, ...turns: number[]) => {
  for (const turn of turns) {
    const message = body.messages[turn * 2 - 1] as Message;
    message.content = (message.content as Block[]).filter((block) => !isThinking(block));
  }
};

describe("the prefix of a thinking block", () => {
  const ignored: Record<string, (body: Body) => void> = {
    "a cache marker": (body) => {
      (blocks(body, 2)[0] as Block).cache_control = { type: "ephemeral" };
      (body.tools?.[0] as Block).cache_control = { type: "ephemeral" };
    },
    "the order of keys": (body) => {
      const use = blocks(body, 1)[1] as Block;
      use.input = { deep: { b: 2, a: 1 }, path: "f1" };
    },
    "a number's notation": (body) => {
      Object.assign(body, JSON.parse(JSON.stringify(body).replace('"a":1', '"a":1.0')));
    },
    "a string instead of a text block": (body) => {
      body.system = [{ type: "text", text: "Be brief." }];
      (blocks(body, 2)[0] as Block).content = [{ type: "text", text: "text 1" }];
    },
    "white space around a text": (body) => {
      body.system = "\n Be brief. ";
    },
    "a text of white space inside a result": (body) => {
      (blocks(body, 2)[0] as Block).content = [
        { type: "text", text: "text 1" },
        { type: "text", text: " \n" },
      ];
    },
    "the order of tools": (body) => body.tools?.reverse(),
    "a deferred tool that nothing loads": (body) => body.tools?.push(tool("later", { defer_loading: true })),
    "other parameters": (body) => {
      body.max_tokens = 7;
      Object.assign(body, { tool_choice: { type: "none" }, output_config: { effort: "low" } });
    },
  };
  it.each(Object.entries(ignored))("may differ in %s", async (_, change) => {
    const { provider, body } = await talk();
    change(body);
    expect(await ask(provider, body)).toMatchObject({ status: 200 });
    expect(provider.calls.at(-1)?.dropped).toEqual([]);
  });

  const counted: Record<string, [(body: Body) => void, RegExp]> = {
    "the system text": [(body) => (body.system = "Be  brief."), /^messages\.1\.content\.0: .*system prompt changed/],
    "a tool's description": [(body) => Object.assign(body.tools?.[1] as Block, { description: "x" }), /list of tools/],
    "a new tool": [(body) => body.tools?.push(tool("other")), /^messages\.1\.content\.0: .*list of tools/],
    "a missing tool": [(body) => body.tools?.pop(), /list of tools/],
    "the question": [
      (body) => Object.assign(body.messages[0] as Message, { content: "Where?" }),
      /^messages\.1\.content\.0/,
    ],
    "a call's input": [
      (body) => Object.assign(blocks(body, 1)[1] as Block, { input: { path: "f1" } }),
      /^messages\.3\./,
    ],
    "a cache_control inside an input": [
      (body) =>
        Object.assign(blocks(body, 1)[1] as Block, { input: { path: "f1", deep: { a: 1, b: 2 }, cache_control: 1 } }),
      /^messages\.3\./,
    ],
    "a result's text": [
      (body) => Object.assign(blocks(body, 2)[0] as Block, { content: "[trimmed]" }),
      /^messages\.3\./,
    ],
    ids: [
      (body) => {
        Object.assign(blocks(body, 1)[1] as Block, { id: "x" });
        Object.assign(blocks(body, 2)[0] as Block, { tool_use_id: "x" });
      },
      /^messages\.3\./,
    ],
    "an error flag": [(body) => Object.assign(blocks(body, 2)[0] as Block, { is_error: true }), /^messages\.3\./],
    "an added block": [(body) => blocks(body, 2).push({ type: "text", text: "Go on." }), /^messages\.3\./],
    "an added message": [
      (body) => body.messages.splice(1, 0, { role: "user", content: "Hello?" }),
      /^messages\.2\.content\.0/,
    ],
    "a removed exchange": [(body) => body.messages.splice(1, 2), /^messages\.1\.content\.0: .*A message before/],
  };
  it.each(Object.entries(counted))("must not differ in %s", async (_, [change, text]) => {
    const { provider, body } = await talk();
    change(body);
    const { status, json } = await ask(provider, body);
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ type: "invalid_request_error", message: expect.stringMatching(text) });
    expect(json.error.message).toContain("Invalid `signature` in `thinking` block. The block is bound to a different");
    expect(provider.refusals()).toHaveLength(1);
  });

  it("counts a deferred tool from the place on where a result loads it", async () => {
    const tools = [tool("search"), tool("later", { defer_loading: true })];
    const load = (body: Body) =>
      Object.assign(blocks(body, 4)[0] as Block, { content: [{ type: "tool_reference", tool_name: "later" }] });
    const { provider, body } = await talk({}, { tools });
    without(body, 3);
    load(body);
    const { json } = await ask(provider, body);
    body.messages.push(
      { role: "assistant", content: json.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t4" }] },
    );
    expect(await ask(provider, body)).toMatchObject({ status: 200 });
    Object.assign(body.tools?.[1] as Block, { description: "changed" });
    const changed = await ask(provider, body);
    expect(changed.json.error.message).toMatch(/^messages\.7\.content\.0/);
  });
});

describe("the run of thinking blocks", () => {
  it.each([[[1]], [[1, 2]], [[3]], [[2, 3]], [[1, 2, 3]], [[1, 3]]])("may lose turns %j", async (turns) => {
    const { provider, body } = await talk();
    without(body, ...turns);
    expect(await ask(provider, body)).toMatchObject({ status: 200 });
  });

  it("must not have a gap", async () => {
    const { provider, body } = await talk();
    without(body, 2);
    const { json } = await ask(provider, body);
    expect(json.error.message).toMatch(/^messages\.5\.content\.0: .*missing or in another place/);
  });

  it("fails every block after a gap", async () => {
    const { provider, body } = await talk();
    const { json } = await ask(provider, body);
    body.messages.push(
      { role: "assistant", content: json.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t4" }] },
    );
    without(body, 2);
    body.thinking = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
    const dropped = await ask(provider, body, beta);
    expect(paths(dropped.json)).toEqual(["messages.5.content.0", "messages.7.content.0"]);
  });

  it("must not be reordered", async () => {
    const answer = [{ thinking: ["one", "two"], calls: [{ name: "read", id: "t1", input: {} }] }];
    const provider = createProvider({ answer });
    const messages: Message[] = [{ role: "user", content: "Go" }];
    const body: Body = { model, max_tokens: 9, tools: [tool("read")], messages };
    const { json } = await ask(provider, body);
    const [one, two, use] = json.content;
    messages.push(
      { role: "assistant", content: [one, two, use] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1" }] },
    );
    expect(await ask(provider, body)).toMatchObject({ status: 200 });
    messages[1] = { role: "assistant", content: [two, one, use] };
    const { json: refused } = await ask(provider, body);
    expect(refused.error.message).toMatch(/^messages\.1\.content\.1: /);
    // Every later block fails too, also the next one in its place.
    messages[1] = { role: "assistant", content: [one, two, use] };
    const { json: third } = await ask(provider, body);
    messages.push({ role: "assistant", content: third.content }, { role: "user", content: "Go on" });
    messages[1] = { role: "assistant", content: [two, one, use] };
    body.thinking = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
    expect(paths((await ask(provider, body, beta)).json)).toEqual(["messages.1.content.1", "messages.3.content.0"]);
  });

  it("fails what was made while a block was away, once the block is back", async () => {
    const { provider, body } = await talk();
    const whole = structuredClone(body.messages);
    without(body, 1, 2, 3);
    const { json } = await ask(provider, body);
    const rest: Message[] = [
      { role: "assistant", content: json.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t4" }] },
    ];
    expect(await ask(provider, { ...body, messages: [...body.messages, ...rest] })).toMatchObject({ status: 200 });
    const back = await ask(provider, { ...body, messages: [...whole, ...rest] });
    expect(back.json.error.message).toMatch(/^messages\.7\.content\.0: /);
  });

  it("is valid again for what was made after a trim", async () => {
    const { provider, body } = await talk();
    Object.assign(blocks(body, 2)[0] as Block, { content: "[trimmed]" });
    without(body, 2, 3);
    for (let turn = 4; turn < 7; turn++) {
      const { json, status } = await ask(provider, body);
      expect(status).toBe(200);
      const result = { type: "tool_result", tool_use_id: `t${turn}`, content: "more" };
      body.messages.push({ role: "assistant", content: json.content }, { role: "user", content: [result] });
    }
    expect(blocks(body, 11).filter(isThinking)).toHaveLength(1);
  });
});

const paths = (json: { input_transformations: { path: string }[] }) =>
  json.input_transformations.map(({ path }) => path);
const trim = (body: Body) => Object.assign(blocks(body, 2)[0] as Block, { content: "[trimmed]" });

describe("a mismatch", () => {
  const old = Date.UTC(2026, 0, 1);
  it.each([
    ["claude-fable-5-2", 400, 400],
    ["claude-mythos-5-2", 400, 400],
    ["claude-mythos-5-1", 400, 400],
    ["claude-fable-5-1", 400, 200],
    ["claude-opus-5-5", 400, 200],
    ["claude-sonnet-5-5", 400, 200],
    ["us.anthropic.claude-haiku-5-5-v1:0", 400, 200],
    ["claude-opus-6", 400, 400],
    ["claude-next", 400, 400],
    ["claude-opus-5", 200, 200],
    ["claude-sonnet-4-5-20250929", 200, 200],
  ] as const)("on %s is %i for a new account and %i for an older one", async (name, young, older) => {
    for (const [accountCreated, status] of [
      [Date.UTC(2026, 8, 1), young],
      [old, older],
    ] as const) {
      const { provider, body } = await talk({ accountCreated }, { model: name, thinking: { type: "adaptive" } });
      trim(body);
      expect((await ask(provider, body)).status).toBe(status);
      const count = await provider.handle({ path: "/v1/messages/count_tokens", body: { ...body } });
      expect(count.status).toBe(status);
    }
  });

  it("is recorded for an older account if the header is sent", async () => {
    const { provider, body } = await talk({ accountCreated: old });
    trim(body);
    const { json } = await ask(provider, body, beta);
    expect(json.input_transformations).toEqual(
      [3, 5].map((index) => {
        const path = `messages.${index}.content.0`;
        return { type: "thinking_mismatch_allowed", path, reason: "prefix_binding_mismatch" };
      }),
    );
    expect((await ask(provider, body)).json).not.toHaveProperty("input_transformations");
  });

  it("is an error for an older account too if the request has the field", async () => {
    const { provider, body } = await talk({ accountCreated: old });
    trim(body);
    body.thinking = { type: "adaptive", block_binding: {} };
    const { status, json, headers } = await ask(provider, body, beta);
    expect(status).toBe(400);
    expect(json.error.message).not.toContain("needs the header");
    expect(headers).toMatchObject({
      "anthropic-thinking-prefix-mismatch": "block=messages.3.content.0;kind=messages;pattern=edited",
    });
  });

  it("drops the blocks on request, says so if the header is sent, and streams it", async () => {
    const { provider, body } = await talk();
    trim(body);
    body.thinking = { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } };
    expect(await ask(provider, body)).toMatchObject({
      status: 400,
      json: { error: { message: "block_binding: Extra inputs are not permitted" } },
    });
    const { json, status } = await ask(provider, body, beta);
    expect(status).toBe(200);
    expect(paths(json)).toEqual(["messages.3.content.0", "messages.5.content.0"]);
    expect(provider.calls.at(-1)?.dropped).toHaveLength(2);
    const { events } = await ask(provider, { ...body, stream: true } as Body, beta);
    const [start = ""] = events as string[];
    expect(start).toContain('"input_transformations":[{"type":"thinking_dropped"');
    // What was made while blocks were dropped is valid later.
    body.messages.push(
      { role: "assistant", content: json.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t5" }] },
    );
    expect(paths((await ask(provider, body, beta)).json)).toEqual(["messages.3.content.0", "messages.5.content.0"]);
  });

  it("needs adaptive thinking for the field on Sonnet 5.5", async () => {
    const { provider, body } = await talk({}, { model: "claude-sonnet-5-5" });
    body.thinking = { type: "disabled", block_binding: {} };
    expect((await ask(provider, body, beta)).status).toBe(400);
    body.thinking = { type: "adaptive", block_binding: {} };
    expect((await ask(provider, body, beta)).status).toBe(200);
  });
});

describe("a thinking block itself", () => {
  const shown = { thinking: { type: "adaptive", display: "summarized" } };

  it("must not be altered", async () => {
    const { provider, body } = await talk({}, shown);
    for (const [message, text] of [
      [1, /^messages\.1\.content\.0: Invalid `signature` in `thinking` block$/],
      [5, /blocks in the latest assistant message cannot be modified/],
    ] as const) {
      const changed = structuredClone(body);
      Object.assign(blocks(changed, message)[0] as Block, { thinking: "other" });
      expect((await ask(provider, changed)).json.error.message).toMatch(text);
      Object.assign(blocks(changed, message)[0] as Block, { ...blocks(body, message)[0], signature: "" });
      expect((await ask(provider, changed)).json.error.message).toMatch(text);
    }
  });

  it("has no text by default on models that bind it, and one on request", async () => {
    const hidden = await talk();
    expect(blocks(hidden.body, 1)[0]).toMatchObject({ thinking: "", signature: expect.stringMatching(/.{40}/) });
    const { body } = await talk({}, shown);
    expect(blocks(body, 1)[0]).toMatchObject({ thinking: expect.stringMatching(/\w/) });
  });

  it.each([
    ["claude-opus-5-5", "claude-fable-5-1", true],
    ["claude-fable-5-1", "claude-opus-5-5", false],
    ["claude-fable-5-2", "claude-fable-5-1", false],
    ["claude-fable-5-1", "claude-mythos-5-2", true],
    ["claude-haiku-5-5", "claude-sonnet-5-5", true],
    ["claude-sonnet-5-5", "claude-haiku-5-5", false],
    ["claude-sonnet-5", "claude-sonnet-5-5", true],
  ])("of %s is read by %s: %s", async (author, reader, isRead) => {
    const { provider, body } = await talk({}, { model: author, thinking: { type: "adaptive" } });
    const { json } = await ask(provider, { ...body, model: reader }, beta);
    const reasons = json.input_transformations?.map(({ reason }: { reason: string }) => reason) ?? [];
    expect(reasons).toEqual(isRead ? [] : Array(3).fill("model_binding_mismatch"));
  });

  it("is dropped for another account where it is tied to one", async () => {
    const { body } = await talk({}, { model: "claude-fable-5-2" });
    const other = createProvider({ organization: "two" });
    const { json } = await ask(other, body, beta);
    expect(json.input_transformations).toMatchObject(Array(3).fill({ reason: "organization_binding_mismatch" }));
  });
});
