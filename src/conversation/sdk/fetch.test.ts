import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type Asked,
  createProvider,
  type RunningProvider,
  startProvider,
  type Turn,
} from "../../../scripts/provider/provider.mjs";
import { ContextError } from "../../core/errors.ts";
import { validateRequest } from "../../core/messages/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import { type BudgetedFetchOptions, budgetedFetch } from "./fetch.ts";
import { testIntegration } from "./integration.contract.ts";
import { anthropicMarkers } from "./place-markers.ts";
import type { TrimEvent } from "./request-fitter.ts";

/** An answer whose usage each API reports in its own shape. */
function answerOf({ path }: Asked, tokens: number): Turn {
  const isChat = path.endsWith("/chat/completions");
  return { text: "Done.", usage: isChat ? { prompt_tokens: tokens } : { input_tokens: tokens } };
}

type Ask = (url: string, fetch: typeof globalThis.fetch) => (params: never, stream: boolean) => Promise<unknown>;

const clients: Record<string, { format: "anthropic" | "openai" | "responses"; ask: Ask }> = {
  "messages of Anthropic": {
    format: "anthropic",
    ask(baseURL, fetch) {
      const client = new Anthropic({ apiKey: "none", baseURL, fetch, maxRetries: 0 });
      return async (params: Anthropic.MessageCreateParamsNonStreaming, stream) => {
        if (!stream) return client.messages.create(params);
        for await (const _ of await client.messages.create({ ...params, stream }));
      };
    },
  },
  "chat completions of OpenAI": {
    format: "openai",
    ask(url, fetch) {
      const client = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, fetch, maxRetries: 0 });
      return async (params: OpenAI.ChatCompletionCreateParamsNonStreaming, stream) => {
        if (!stream) return client.chat.completions.create(params);
        const stream_options = { include_usage: true };
        for await (const _ of await client.chat.completions.create({ ...params, stream, stream_options }));
      };
    },
  },
  "responses of OpenAI": {
    format: "responses",
    ask(url, fetch) {
      const client = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, fetch, maxRetries: 0 });
      return async (params: OpenAI.Responses.ResponseCreateParamsNonStreaming, stream) => {
        if (!stream) return client.responses.create(params);
        for await (const _ of await client.responses.create({ ...params, stream }));
      };
    },
  },
};

for (const [name, { format, ask }] of Object.entries(clients)) {
  // Every request is prepared as by the wrapper of its SDK, which has these tests too. So everyday runs take one API.
  describe(`through fetch, ${name}`, { tags: format === "anthropic" ? [] : ["deep"] }, () => {
    testIntegration({
      name: `plimsoll/fetch, ${name}`,
      format,
      async open({ options, billed }) {
        const server = await startProvider({
          answer: (asked) => answerOf(asked, billed(asked.body)),
          foreignThinking: "accept",
        });
        const send = ask(server.url, budgetedFetch(fetch, options as BudgetedFetchOptions));
        return {
          async ask(request, how) {
            await send(request as never, how === "streamed").catch(asContextError);
            return server.calls.at(-1)?.body ?? {};
          },
          count: () => server.calls.length,
          close: server.close,
        };
      },
    });
  });
}

/** An SDK reports our refusal as the API's own, with status 400. */
function asContextError(error: Error & { status?: number; error?: object }): never {
  expect(error.status).toBe(400);
  expect(error.message).toContain("plimsoll: ");
  // OpenAI's SDK has the inner error, Anthropic's the whole body.
  const body = Object(error.error);
  const { overflow } = body.error ?? body;
  throw new ContextError("context_overflow", error.message, { overflow });
}

const servers: RunningProvider[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function open(options: BudgetedFetchOptions = {}, reply?: (asked: Asked) => Turn) {
  const events: TrimEvent[] = [];
  const errors: unknown[] = [];
  const server = await startProvider({ answer: reply ?? ((asked) => answerOf(asked, 10)) });
  servers.push(server);
  const budgeted = budgetedFetch(fetch, {
    contextWindow: 30_000,
    onTrim: (event) => events.push(event),
    onError: (error) => errors.push(error),
    ...options,
  });
  return { budgeted, server, events, errors, sent: () => server.calls.at(-1)?.body ?? {} };
}

/** About 750 tokens per turn. */
function bodyOf(turns: number, more: object = {}) {
  const messages: object[] = [{ role: "user", content: "Where is the bug?" }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `toolu_${turn}`;
    const use = { type: "tool_use", id, name: "read", input: { path: `src/${turn}.ts` } };
    const result = { type: "tool_result", tool_use_id: id, content: "let x = 1;\n".repeat(100) };
    messages.push({ role: "assistant", content: [use] }, { role: "user", content: [result] });
  }
  return { model: "claude-sonnet-5", max_tokens: 1_000, messages, ...more };
}

describe("a request", () => {
  const post = (body: unknown) => ({ method: "POST", body: JSON.stringify(body) });

  it.each([
    ["a text", (url: string, body: string) => [url, { method: "POST", body }] as const],
    [
      "a URL and bytes",
      (url: string, body: string) => [new URL(url), { method: "POST", body: Buffer.from(body) }] as const,
    ],
    ["a Request", (url: string, body: string) => [new Request(url, { method: "POST", body })] as const],
    [
      "a Request and other settings",
      (url: string, body: string) => [new Request(url, { method: "POST", body }), { cache: "no-store" }] as const,
    ],
    [
      "a length of its own",
      (url: string, body: string) =>
        [url, { method: "post", body, headers: { "content-length": String(body.length), "x-api-key": "k" } }] as const,
    ],
  ])("is trimmed if it comes as %s", async (_name, make) => {
    const { budgeted, server, sent, events } = await open();
    const [input, init] = make(`${server.url}/v1/messages?beta=true`, JSON.stringify(bodyOf(60)));
    const answer = await budgeted(input, init as RequestInit);
    expect(await answer.json()).toMatchObject({ id: expect.stringMatching(/^msg_/) });
    expect(JSON.stringify(sent())).toContain("[trimmed");
    expect(events).toHaveLength(1);
  });

  it("that fits is sent as the caller wrote it", async () => {
    const calls: unknown[] = [];
    const spy: typeof fetch = async (...args) => {
      calls.push(args);
      return createProvider().fetch(...args);
    };
    const init = post(bodyOf(1));
    await budgetedFetch(spy, { contextWindow: 30_000, breakpoints: "none" })("https://example.org/v1/messages", init);
    expect(calls).toEqual([["https://example.org/v1/messages", init]]);
    expect((calls[0] as unknown[])[1]).toBe(init);
  });

  it("gets cache markers for a model of Anthropic", async () => {
    const { budgeted, server, sent } = await open();
    await budgeted(`${server.url}/v1/messages`, post(bodyOf(2, { system: "Be brief." })));
    expect(anthropicMarkers.readMarkers([sent().system, sent().messages])).toEqual(["5m", "5m", "5m"]);
  });

  it("to any other path, with another method or with a body that is not JSON passes unchanged", async () => {
    const { budgeted, server, sent } = await open({}, () => ({ json: { input_tokens: 7 } }));
    await budgeted(`${server.url}/v1/messages/batches`, post(bodyOf(60)));
    expect(sent()).toEqual(bodyOf(60));
    await budgeted(`${server.url}/v1/messages`);
    const thread = { thread: { type: "continue", previous_message_id: "msg_1" } };
    await budgeted(`${server.url}/v1/messages`, post(bodyOf(60, thread)));
    expect(sent()).toEqual(bodyOf(60, thread));
    const seen: unknown[] = [];
    const spy: typeof fetch = async (...args) => {
      seen.push(args);
      return new Response(null, { status: 204 });
    };
    for (const body of ["no JSON", "[]", "7", new FormData(), new Blob(["{}"])]) {
      const init = { method: "POST", body };
      await budgetedFetch(spy)("https://example.org/v1/messages", init);
      expect((seen.at(-1) as unknown[])[1]).toBe(init);
    }
  });
});

describe("Gemini", () => {
  const contentsOf = (turns: number) => [
    { role: "user", parts: [{ text: "Where is the bug?" }] },
    ...Array.from({ length: turns }, (_, turn) => {
      const call = { name: "read", args: { path: `src/${turn}.ts` } };
      const response = { output: "let x = 1;\n".repeat(100) };
      return [
        { role: "model", parts: [{ functionCall: call, thoughtSignature: `c2lnbmF0dXJl${turn}` }] },
        { role: "user", parts: [{ functionResponse: { name: "read", response } }] },
      ];
    }).flat(),
  ];
  const answer = (promptTokenCount: number) => ({
    candidates: [{ content: { role: "model", parts: [{ text: "Done." }] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount, candidatesTokenCount: 1 },
  });
  const systemInstruction = { parts: [{ text: "Be brief." }] };

  it.each([
    ["generateContent", 13_800],
    ["streamGenerateContent?alt=sse", 13_800],
  ])("is observed and trimmed, and each request stays valid: %s", async (method, billed) => {
    const { budgeted, server, events, sent } = await open({ reserve: 15_000 }, ({ path }) =>
      path.includes("stream")
        ? { events: [`data: ${JSON.stringify(answer(billed))}\r\n\r\n`] }
        : { json: answer(billed) },
    );
    const ask = async (turns: number) => {
      const body = JSON.stringify({ contents: contentsOf(turns), systemInstruction });
      const reply = await budgeted(`${server.url}/v1beta/models/gemini-3-pro:${method}`, { method: "POST", body });
      expect(await reply.text()).toContain("Done.");
    };
    await ask(10);
    expect(events).toEqual([]);
    expect(sent()).toEqual({ contents: contentsOf(10), systemInstruction });
    await ask(12);
    expect(events).toHaveLength(1);
    for (let turns = 12; turns <= 60; turns++) {
      await ask(turns);
      expect(validateRequest({ ...sent(), model: "gemini-3-pro" }, { format: "gemini" })).toEqual([]);
    }
    expect(sent().systemInstruction).toEqual(systemInstruction);
    expect(JSON.stringify(sent())).toContain("[trimmed");
  });

  it("gets a refusal in its own form", async () => {
    const { budgeted, server } = await open();
    const contents = [{ role: "user", parts: [{ text: "All work and no play. ".repeat(20_000) }] }];
    const url = `${server.url}/v1beta/models/gemini-3-pro:generateContent`;
    const reply = await budgeted(url, { method: "POST", body: JSON.stringify({ contents }) });
    expect([reply.status, await reply.json()]).toMatchObject([
      400,
      {
        error: { code: 400, status: "INVALID_ARGUMENT", message: expect.stringContaining("the smallest request has") },
      },
    ]);
    expect(server.calls).toEqual([]);
  });
});

describe("an answer", () => {
  it("keeps status, headers and URL", async () => {
    const { budgeted, server } = await open();
    const answer = await budgeted(`${server.url}/v1/messages`, { method: "POST", body: JSON.stringify(bodyOf(1)) });
    expect([answer.status, answer.ok, answer.url]).toEqual([200, true, `${server.url}/v1/messages`]);
    expect(answer.headers.get("request-id")).toMatch(/^req_/);
  });

  it("that is streamed passes event by event, and ends when the caller stops reading", async () => {
    let isCancelled = false;
    const spy: typeof fetch = async () => {
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode("data: {}\n\n")),
        cancel: () => {
          isCancelled = true;
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    };
    const answer = await budgetedFetch(spy)("https://example.org/v1/messages", {
      method: "POST",
      body: JSON.stringify(bodyOf(1, { stream: true })),
    });
    const reader = answer.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: {}\n\n");
    await reader.cancel();
    await vi.waitFor(() => expect(isCancelled).toBe(true));
  });

  it("of an error is the API's own", async () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const { budgeted, server } = await open({}, () => ({ status: 529, json: error }));
    const answer = await budgeted(`${server.url}/v1/messages`, { method: "POST", body: JSON.stringify(bodyOf(1)) });
    expect([answer.status, await answer.json()]).toEqual([529, error]);
  });
});

describe("a failure of ours", () => {
  const send = (budgeted: typeof fetch, url: string, body: object) =>
    budgeted(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(body) });

  it("does not lose the request: one that cannot be read is sent as it is, and reported", async () => {
    const { budgeted, server, sent, errors } = await open();
    const body = bodyOf(1, { messages: [{ role: "user", content: [{ type: "text", text: 7 }] }] });
    expect((await send(budgeted, server.url, body)).status).toBe(200);
    expect(sent()).toEqual(body);
    expect(errors).toMatchObject([{ code: "invalid_message" }]);
  });

  it("of the store does not send the request untrimmed", async () => {
    const broken = { ...createMemoryStore(), put: () => Promise.reject(new Error("disk full")) };
    const { budgeted, server, sent, errors } = await open({ store: broken });
    await send(budgeted, server.url, bodyOf(60));
    await send(budgeted, server.url, bodyOf(61));
    expect(JSON.stringify(sent())).toContain("[trimmed: ");
    expect(errors).toMatchObject([{ code: "store_unavailable", message: "the store failed: disk full" }]);
  });

  it("to fit has the sizes in the answer, which the SDK's error shows", async () => {
    const { budgeted, server } = await open();
    const body = bodyOf(1, { messages: [{ role: "user", content: "word ".repeat(100_000) }] });
    const client = new Anthropic({ apiKey: "none", baseURL: server.url, fetch: budgeted, maxRetries: 0 });
    const params = body as unknown as Anthropic.MessageCreateParamsNonStreaming;
    const error: unknown = await client.messages.create(params).catch((caught: unknown) => caught);
    const largest = [expect.objectContaining({ path: "messages[0]", role: "user" })];
    expect(error).toMatchObject({
      status: 400,
      error: { error: { overflow: { limit: expect.any(Number), largest } } },
    });
    expect(budgeted.plimsoll.summary()).toMatchObject({ calls: 0, refusals: 1 });
  });

  it("to know the model's window is answered clearly, in the provider's form", async () => {
    const { budgeted, server } = await open({ contextWindow: undefined });
    const answer = await send(budgeted, server.url, bodyOf(1, { model: "mine" }));
    expect([answer.status, await answer.json()]).toEqual([
      400,
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: 'plimsoll: the context window of model "mine" is not known. Pass contextWindow, in tokens.',
        },
      },
    ]);
    expect(server.calls).toEqual([]);
  });

  it("in the options is reported at once", () => {
    expect(() => budgetedFetch(fetch, { contextWindow: 0 })).toThrow("contextWindow is 0");
    expect(() => budgetedFetch(fetch, { onError: "log" } as unknown as BudgetedFetchOptions)).toThrow(
      'onError is "log"',
    );
  });
});
