import OpenAI, { AzureOpenAI } from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { type Asked, type RunningProvider, startProvider, type Turn } from "../../../scripts/provider/provider.mjs";
import { createMemoryStore } from "../../core/store/index.ts";
import { testIntegration } from "./integration.contract.ts";
import { type OpenAiOptions, recallTool, withContextBudget } from "./openai.ts";
import type { TrimEvent } from "./request-fitter.ts";

/** Without this option, a stream does not report its usage. */
const streamed = { stream: true, stream_options: { include_usage: true } } as const;

testIntegration({
  name: "plimsoll/openai, chat completions",
  format: "openai",
  async open({ options, billed }) {
    const server = await startProvider({ answer: ({ body }) => ({ usage: { prompt_tokens: billed(body) } }) });
    const client = withContextBudget(clientOf(server), options as OpenAiOptions);
    return {
      async ask(request, how) {
        const params = request as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming;
        if (how === "whole") await client.chat.completions.create(params);
        else for await (const _ of await client.chat.completions.create({ ...params, ...streamed }));
        return server.calls.at(-1)?.body ?? {};
      },
      count: () => server.calls.length,
      close: server.close,
    };
  },
});

testIntegration({
  name: "plimsoll/openai, responses",
  format: "responses",
  async open({ options, billed }) {
    const server = await startProvider({ answer: ({ body }) => ({ usage: { input_tokens: billed(body) } }) });
    const client = withContextBudget(clientOf(server), options as OpenAiOptions);
    return {
      async ask(request, how) {
        const params = request as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
        if (how === "whole") await client.responses.create(params);
        else for await (const _ of await client.responses.create({ ...params, stream: true }));
        return server.calls.at(-1)?.body ?? {};
      },
      count: () => server.calls.length,
      close: server.close,
    };
  },
});

function clientOf({ url }: RunningProvider): OpenAI {
  return new OpenAI({ apiKey: "none", baseURL: url, maxRetries: 0 });
}

const servers: RunningProvider[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

type Open = (server: RunningProvider) => OpenAI;

async function open(options: OpenAiOptions = {}, openClient: Open = clientOf, reply = filledAnswer) {
  const events: TrimEvent[] = [];
  const server = await startProvider({ answer: reply });
  servers.push(server);
  const onTrim = (event: TrimEvent) => events.push(event);
  const client = withContextBudget(openClient(server), { contextWindow: 30_000, onTrim, ...options });
  return { client, events, server, sent: () => server.calls.at(-1)?.body ?? {} };
}

/** A usage as if the request almost filled the window. */
function filledAnswer({ path }: Asked): Turn {
  const isResponse = path.includes("/responses");
  return { text: "Done.", usage: isResponse ? { input_tokens: 14_800 } : { prompt_tokens: 14_800 } };
}

const file = "let x = 1;\n".repeat(100);
const question = { role: "user" as const, content: "Where is the bug?" };

function chatParams(turns: number): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const messages: OpenAI.ChatCompletionMessageParam[] = [question];
  for (let turn = 0; turn < turns; turn++) {
    const call = { name: "read", arguments: JSON.stringify({ path: `src/${turn}.ts` }) };
    messages.push(
      { role: "assistant", tool_calls: [{ id: `c${turn}`, type: "function", function: call }] },
      { role: "tool", tool_call_id: `c${turn}`, content: file },
    );
  }
  return { model: "gpt-5", messages };
}

function responseParams(turns: number): OpenAI.Responses.ResponseCreateParamsNonStreaming {
  const input: OpenAI.Responses.ResponseInputItem[] = [question];
  for (let turn = 0; turn < turns; turn++) {
    const call = { name: "read", arguments: JSON.stringify({ path: `src/${turn}.ts` }) };
    input.push(
      { type: "function_call", call_id: `c${turn}`, ...call },
      { type: "function_call_output", call_id: `c${turn}`, output: file },
    );
  }
  return { model: "gpt-5", input };
}

describe("every way to ask", () => {
  const ways: Record<string, (client: OpenAI, turns: number) => Promise<unknown>> = {
    "chat.completions.create": (client, turns) => client.chat.completions.create(chatParams(turns)),
    "chat.completions.create, streamed": async (client, turns) => {
      for await (const _ of await client.chat.completions.create({ ...chatParams(turns), ...streamed }));
    },
    "chat.completions.stream": (client, turns) =>
      client.chat.completions.stream({ ...chatParams(turns), ...streamed }).finalChatCompletion(),
    "chat.completions.parse": (client, turns) => client.chat.completions.parse(chatParams(turns)),
    "chat.completions.runTools": (client, turns) =>
      client.chat.completions.runTools({ ...chatParams(turns), tools: [] }).done(),
    "chat.completions.create, with its response": (client, turns) =>
      client.chat.completions.create(chatParams(turns)).withResponse(),
    "responses.create": (client, turns) => client.responses.create(responseParams(turns)),
    "responses.create, streamed": async (client, turns) => {
      for await (const _ of await client.responses.create({ ...responseParams(turns), stream: true }));
    },
    "responses.stream": (client, turns) =>
      client.responses.stream({ ...responseParams(turns), stream: true }).finalResponse(),
    "responses.parse": (client, turns) => client.responses.parse(responseParams(turns)),
    "a client with other options": (client, turns) =>
      client.withOptions({ timeout: 9_000 }).responses.create(responseParams(turns)),
  };

  it.each(Object.entries(ways))("is observed and trimmed: %s", async (_name, ask) => {
    const { client, events, sent } = await open({ sessionId: "s" });
    await ask(client, 10);
    expect(events).toEqual([]);
    expect(sent().messages ?? sent().input).toHaveLength(21);
    await ask(client, 11);
    expect(events).toHaveLength(1);
    expect(JSON.stringify(sent())).toContain("[trimmed: ");
  });

  it("works with Azure's client", async () => {
    const { client, events, server } = await open(
      {},
      ({ url }) => new AzureOpenAI({ endpoint: url, apiKey: "none", apiVersion: "2026-01-01", maxRetries: 0 }),
    );
    await client.chat.completions.create(chatParams(10));
    await client.chat.completions.create(chatParams(11));
    expect(server.calls.at(-1)?.path).toMatch(/^\/openai\/deployments\/gpt-5\/chat\/completions/);
    expect(events).toHaveLength(1);
  });

  it("returns what the SDK returns", async () => {
    const { client } = await open();
    const { data, request_id } = await client.chat.completions.create(chatParams(1)).withResponse();
    expect([data.choices[0]?.message.content, request_id]).toEqual(["Done.", expect.stringMatching(/^req_/)]);
    expect((await client.responses.create(responseParams(1))).output_text).toBe("Done.");
    const stream = client.chat.completions.stream({ ...chatParams(1), stream: true });
    const texts: string[] = [];
    stream.on("content", (text) => texts.push(text));
    expect((await stream.finalMessage()).content).toBe("Done.");
    expect(texts).toEqual(["Do", "ne."]);
  });
});

describe("what is not trimmed", () => {
  it("is a plain text, which may still be too large", async () => {
    const { client, sent, server } = await open();
    await client.responses.create({ model: "gpt-5", input: "Where is the bug?", instructions: "Be brief." });
    expect(sent()).toEqual({ model: "gpt-5", input: "Where is the bug?", instructions: "Be brief." });
    const huge = client.responses.create({ model: "gpt-5", input: "Where is it? ".repeat(10_000) });
    await expect(huge).rejects.toMatchObject({ code: "context_overflow" });
    const instructions = "Be brief. ".repeat(10_000);
    const crowded = client.responses.create({ model: "gpt-5", input: "Where is the bug?", instructions });
    await expect(crowded).rejects.toMatchObject({ code: "context_overflow" });
    expect(server.calls).toHaveLength(1);
  });

  it("is a conversation that the API holds, and a request that does not call a model", async () => {
    const { client, sent } = await open();
    const { input } = responseParams(40);
    await client.responses.create({ model: "gpt-5", input: input as never, previous_response_id: "r1" });
    expect(sent().input).toEqual(input);
    await client.responses.create({ model: "gpt-5", input: input as never, conversation: "c1" });
    expect(sent().input).toEqual(input);
    const embedding = client.embeddings.create({ model: "e", input: "text", encoding_format: "float" });
    await expect(embedding).rejects.toMatchObject({ status: 404 });
    expect(sent().input).toBe("text");
    expect(client).toBeInstanceOf(OpenAI);
  });
});

describe("errors and aborts", () => {
  it("are the SDK's own", async () => {
    const { client } = await open({}, clientOf, () => ({ status: 400, json: { error: { message: "no" } } }));
    await expect(client.responses.create(responseParams(1))).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    await expect(client.chat.completions.stream({ ...chatParams(1), stream: true }).done()).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    );
    const aborted = client.chat.completions.create(chatParams(1), { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
  });

  it("end a stream in the middle", async () => {
    const afterEvent = () => new Promise(() => undefined);
    const { client } = await open({}, clientOf, (asked) => ({ ...filledAnswer(asked), afterEvent }));
    const controller = new AbortController();
    const { signal } = controller;
    const stream = await client.chat.completions.create({ ...chatParams(1), stream: true }, { signal });
    let chunks = 0;
    for await (const _ of stream) {
      chunks++;
      controller.abort();
    }
    expect(chunks).toBe(1);
  });
});

it("the recall tool has the form of both APIs, and takes arguments as JSON", async () => {
  const store = createMemoryStore();
  const { client, server } = await open({ store, sessionId: "s" });
  const { definition, handle } = recallTool({ store, sessionId: "s" });
  await client.chat.completions.create({ ...chatParams(60), tools: [definition] });
  await client.responses.create({
    ...responseParams(1),
    tools: [{ type: "function", strict: false, ...definition.function }],
  });
  expect(server.calls.map(({ body }) => body.tools)).toMatchObject([
    [{ type: "function", function: { name: "recall", parameters: { type: "object" } } }],
    [{ type: "function", name: "recall", parameters: { type: "object" } }],
  ]);
  expect(await handle('{"grep":"let x"}')).toMatch(/^[a-z2-7]{16}:100: let x = 1;$/m);
});
