import { afterEach, describe, expect, it } from "vitest";
import { type RunningProvider, startProvider } from "../../../scripts/provider/provider.mjs";
import { generateRequest } from "../../../test/generate/generate-request.ts";
import { ContextError } from "../../core/errors.ts";
import { validateRequest } from "../../core/messages/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { testIntegration } from "./integration.contract.ts";
import { createRequestServer, type RequestServer, type RequestServerOptions } from "./serve-requests.ts";

const paths = { anthropic: "/v1/messages", openai: "/v1/chat/completions", responses: "/v1/responses" };

/** A message and its answer as lines of JSON. */
async function exchange(server: RequestServer, message: object): Promise<Fields> {
  return JSON.parse(JSON.stringify(await server.answer(JSON.parse(JSON.stringify(message)))));
}

/** What an agent in another language does: it has the request fitted, sends it, and reports what came back. */
async function ask(
  server: RequestServer,
  api: keyof typeof paths,
  at: { url: string; request: Fields },
): Promise<void> {
  let fitted = await exchange(server, { request: at.request, api });
  for (;;) {
    if (fitted.error !== undefined) throw asContextError(fitted.error as Fields);
    if (fitted.request === null) return;
    const response = await fetch(`${at.url}${paths[api]}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(fitted.request),
    });
    const body = (await response.json()) as Fields;
    const { call } = fitted;
    if (response.ok) return void (await exchange(server, { call, usage: body.usage }));
    fitted = await exchange(server, { call, refusal: { status: response.status, body } });
  }
}

function asContextError({ code, message, hint, overflow }: Fields): ContextError {
  return new ContextError(code as "context_overflow", String(message), { hint: String(hint), overflow } as object);
}

for (const api of ["anthropic", "openai", "responses"] as const) {
  // Every request is prepared as by the wrapper of its SDK, which has these tests too. So everyday runs take one API.
  describe(`through a request server, ${api}`, { tags: api === "openai" ? [] : ["deep"] }, () => {
    testIntegration({
      name: `plimsoll serve, ${api}`,
      format: api,
      async open({ options, billed }) {
        const provider = await startProvider({
          answer: ({ body }) => {
            const tokens = billed(body);
            return { text: "Done.", usage: api === "openai" ? { prompt_tokens: tokens } : { input_tokens: tokens } };
          },
          foreignThinking: "accept",
        });
        const server = createRequestServer(options as RequestServerOptions);
        return {
          async ask(request) {
            await ask(server, api, { url: provider.url, request });
            return provider.calls.at(-1)?.body ?? {};
          },
          count: () => provider.calls.length,
          close: provider.close,
        };
      },
    });
  });
}

const providers: RunningProvider[] = [];
afterEach(async () => {
  for (const provider of providers.splice(0)) await provider.close();
});

describe("a request server", () => {
  it("answers with the tokens, the price and the event of a call", async () => {
    const server = createRequestServer({});
    const { request } = generateRequest("anthropic", { seed: 1, turns: 6 });
    const fitted = await exchange(server, { id: "a", request });
    expect(fitted).toMatchObject({ id: "a", call: "c1", trimmed: false });
    const { before, after } = fitted.tokens as { before: number; after: number };
    expect(before).toBeGreaterThan(1_000);
    expect(after).toBe(before);
    const usage = { input_tokens: 100, cache_creation_input_tokens: before, output_tokens: 5 };
    const { event } = await exchange(server, { call: "c1", usage });
    expect(event).toMatchObject({ sentTokens: before + 100, writtenTokens: before, outputTokens: 5 });
    expect((event as { usd: number }).usd).toBeGreaterThan(0);
    // The usage of a call is taken once.
    expect(await exchange(server, { id: 7, call: "c1", usage })).toMatchObject({
      id: 7,
      error: { code: "invalid_argument", message: 'there is no open call "c1"' },
    });
  });

  it("learns from a refusal, and says so if nothing else can be sent", async () => {
    const server = createRequestServer({ contextWindow: 60_000 });
    const { request } = generateRequest("anthropic", { seed: 2, turns: 60 });
    const first = await exchange(server, { request });
    const refusal = { status: 400, body: { error: { message: "prompt is too long: 50000 tokens > 45000 maximum" } } };
    const second = await exchange(server, { call: first.call, refusal });
    expect((second.tokens as { after: number }).after).toBeLessThan((first.tokens as { after: number }).after);
    expect(validateRequest(second.request as object)).toEqual([]);
    const other = await exchange(server, { call: first.call, refusal: { status: 400, body: "bad temperature" } });
    expect(other).toEqual({ call: first.call, request: null });
  });

  it.each([
    ["anthropic", { system: "s", messages: [{ role: "user", content: "hi" }] }],
    ["anthropic", { model: "claude-sonnet-5", messages: [{ role: "user", content: "hi" }] }],
    ["openai", { model: "claude-sonnet-5", messages: [{ role: "system", content: "s" }] }],
    ["openai", { model: "gpt-5.6", messages: [{ role: "user", content: "hi" }] }],
    ["responses", { model: "gpt-5.6", input: "hi" }],
    ["gemini", { contents: [{ role: "user", parts: [{ text: "hi" }] }] }],
  ])("takes a request of %s for one", async (api, request) => {
    const server = createRequestServer({ contextWindow: 100_000, breakpoints: "auto" });
    const known = createRequestServer({ contextWindow: 100_000, breakpoints: "auto", api: api as "openai" });
    expect((await exchange(server, { request })).request).toEqual((await exchange(known, { request })).request);
    const isMarked = JSON.stringify((await exchange(server, { request })).request).includes("cache_control");
    expect(isMarked).toBe(api === "anthropic");
  });

  it("forgets the oldest calls if the requests of all that are open are large", async () => {
    const server = createRequestServer({});
    const padding = "x".repeat(90_000_000);
    const request = { model: "gpt-5.6", messages: [{ role: "user", content: "hi" }], padding };
    for (let call = 1; call <= 3; call++) expect(await server.answer({ request })).toMatchObject({ call: `c${call}` });
    expect(await server.answer({ call: "c1", usage: {} })).toMatchObject({ error: { code: "invalid_argument" } });
    expect(await server.answer({ call: "c2", usage: {} })).not.toHaveProperty("error");
    expect(await server.answer({ call: "c3", usage: {} })).not.toHaveProperty("error");
  });

  it.each([
    ["a text", "the message is no JSON object"],
    [{}, "there is neither request nor call"],
    [{ request: "x" }, "request is no object"],
    [{ request: { model: "gpt-5.6" } }, "the request has no messages"],
    [{ request: { messages: [] }, api: "grpc" }, 'api is "grpc"'],
    [{ request: { messages: [] }, session: 7 }, "session is 7"],
    [{ call: "c9", usage: {} }, 'there is no open call "c9"'],
    [{ request: { model: "unheard-of", messages: [{ role: "user", content: "hi" }] } }, /unheard-of/],
    [{ request: { model: "claude-sonnet-5", messages: [{ role: "user", content: 7 }] } }, /messages\[0\]/],
  ])("says what is wrong with %j", async (message, expected) => {
    const { error } = await createRequestServer({}).answer(message);
    expect((error as Fields).message).toMatch(expected);
    expect((error as Fields).hint).not.toBe("");
  });

  it("forgets calls whose usage never comes", async () => {
    const server = createRequestServer({});
    const request = { model: "claude-sonnet-5", max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
    for (let number = 1; number <= 1_001; number++) await server.answer({ request });
    expect(await server.answer({ call: "c1", usage: {} })).toHaveProperty("error");
    expect(await server.answer({ call: "c2", usage: {} })).not.toHaveProperty("error");
  });
});

describe("compression for a gateway", () => {
  it("gives every server the same bytes for a growing conversation, valid and within the window", async () => {
    const { messages, request } = generateRequest("openai", { seed: 4, turns: 80 });
    const servers = [0, 1].map(() => createRequestServer({ contextWindow: 40_000, store: createMemoryStore() }));
    let before: readonly string[] = [];
    let breaks = 0;
    for (let length = 2; length <= messages.length; length++) {
      if ((messages[length] as Fields | undefined)?.role === "tool") continue;
      const body = { model: request.model, messages: messages.slice(0, length) };
      const [first, ...others] = await Promise.all(servers.map((server) => server.compress(body)));
      for (const other of others) expect(other).toEqual(first);
      const compressed = first!.messages as object[];
      const sent = compressed.map((message) => JSON.stringify(message));
      if (before.some((message, index) => sent[index] !== message)) breaks += 1;
      before = sent;
      expect(validateRequest({ messages: compressed }, { format: "openai" })).toEqual([]);
      expect(first?.tokens_after).toBeLessThan(40_000);
      expect(first).not.toHaveProperty("tools");
    }
    expect(breaks).toBeGreaterThan(0);
    expect(breaks).toBeLessThan(8);
  });

  it("reports how much it saved, in the gateway's words", async () => {
    const { messages } = generateRequest("openai", { seed: 4, turns: 80 });
    const server = createRequestServer({ contextWindow: 40_000 });
    const answer = await server.compress({ model: "my-router/alias", messages });
    const { tokens_before: whole, tokens_after: left, compression_ratio: ratio } = answer as Record<string, number>;
    expect(whole).toBeGreaterThan(40_000);
    expect(ratio).toBeCloseTo(left! / whole!);
    expect(JSON.stringify(answer.messages)).not.toMatch(/hash=[0-9a-f]{24}/);
  });

  it("leaves no signed thinking behind a change that a Claude model would refuse", async () => {
    const { messages } = generateRequest("openai", { seed: 4, turns: 80 });
    const history = messages.map((message, index) => {
      const block = { type: "thinking", thinking: `thought ${index}`, signature: "A".repeat(200) };
      return (message as Fields).role === "assistant" ? { ...message, thinking_blocks: [block] } : message;
    }) as Fields[];
    const server = createRequestServer({ contextWindow: 40_000 });
    /** What each thinking is bound to: the request that it answered, without earlier thinking. */
    const bound = new Map<string, string>();
    const formOf = (list: readonly Fields[]) =>
      JSON.stringify(list.map(({ thinking_blocks: _blocks, ...message }) => message));
    let kept = 0;
    let trimmed = 0;
    for (const [index, message] of history.entries()) {
      if (message.role !== "assistant") continue;
      const before = history.slice(0, index);
      const answer = await server.compress({ model: "anthropic/claude-sonnet-5-5", messages: before });
      const sent = answer.messages as Fields[];
      for (const [place, { thinking_blocks: blocks }] of sent.entries()) {
        if (blocks === undefined) continue;
        expect(formOf(sent.slice(0, place)) === bound.get(JSON.stringify(blocks)), `message ${place}`).toBe(true);
        kept += 1;
      }
      bound.set(JSON.stringify(message.thinking_blocks), formOf(sent));
      if (sent.some((each, place) => each !== before[place])) trimmed += 1;
    }
    expect(kept).toBeGreaterThan(100);
    expect(trimmed).toBeGreaterThan(0);
  });

  it("returns what cannot fit as it is, with the sizes", async () => {
    const messages = [{ role: "user", content: "word ".repeat(60_000) }];
    const answer = await createRequestServer({ contextWindow: 40_000 }).compress({ model: "gpt-5.6", messages });
    expect(answer.messages).toBe(messages);
    expect(answer).toMatchObject({ compression_ratio: 1, overflow: { tokens: expect.any(Number) } });
  });

  it("refuses what has no messages", async () => {
    await expect(createRequestServer({}).compress({ model: "gpt-5.6" })).rejects.toThrow("messages is no list");
  });
});
