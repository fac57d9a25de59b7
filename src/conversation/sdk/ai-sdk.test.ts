import {
  APICallError,
  generateText,
  jsonSchema,
  type ModelMessage,
  stepCountIs,
  streamText,
  type ToolSet,
  tool,
  wrapLanguageModel,
} from "ai";
import { convertArrayToReadableStream, MockLanguageModelV3 } from "ai/test";
import { describe, expect, it } from "vitest";
import { toolHistory } from "../../../test/generate/generate-request.ts";
import { countMessages, countTools, hashMessage, validateRequest } from "../../core/messages/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import {
  contextBudgetMiddleware,
  contextBudgetPrepareStep,
  type MiddlewareOptions,
  recallTool,
  type TrimEvent,
} from "./ai-sdk.ts";
import { testIntegration } from "./integration.contract.ts";

type Fields = Readonly<Record<string, unknown>>;
type Sent = MockLanguageModelV3["doGenerateCalls"][number];
type Stream = Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"];
type StreamPart = Stream extends ReadableStream<infer Part> ? Part : never;
type Content = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>["content"];

testIntegration({
  name: "plimsoll/ai-sdk",
  format: "ai-sdk",
  async open({ options, billed }) {
    const inner = scriptedModel(
      () => [{ type: "text", text: "Done." }],
      ({ prompt, tools }) => billed({ messages: prompt, tools }),
    );
    const model = wrapLanguageModel({
      model: inner,
      middleware: contextBudgetMiddleware(options as MiddlewareOptions),
    });
    return {
      async ask({ messages, tools = [] }, how) {
        const call = {
          model,
          messages: messages as ModelMessage[],
          tools: toolSet(tools as Fields[]),
          maxRetries: 0,
        };
        if (how === "whole") await generateText(call);
        else await streamText({ ...call, onError: () => undefined }).consumeStream();
        const { prompt, tools: sent } = sentTo(inner).at(-1) as Sent;
        return { messages: prompt, tools: sent };
      },
      count: () => sentTo(inner).length,
      close: async () => undefined,
    };
  },
});

/** Answers each request with `answer`, and reports the usage of `billed`. */
function scriptedModel(answer: (call: number) => Content, billed: (sent: Sent) => number): MockLanguageModelV3 {
  let calls = 0;
  const reply = (sent: Sent) => {
    const content = answer(calls++);
    const isCall = content.some(({ type }) => type === "tool-call");
    const unified: "tool-calls" | "stop" = isCall ? "tool-calls" : "stop";
    return { content, finishReason: { unified, raw: unified }, usage: usageOf(billed(sent)), warnings: [] };
  };
  return new MockLanguageModelV3({
    modelId: "claude-sonnet-5",
    doGenerate: async (sent) => reply(sent),
    doStream: async (sent) => {
      const { content, finishReason, usage } = reply(sent);
      const parts = content.flatMap((part): StreamPart[] => {
        if (part.type === "tool-call") return [part];
        if (part.type !== "text") return [];
        const [id, { text: delta }] = ["1", part];
        return [
          { type: "text-start", id },
          { type: "text-delta", id, delta },
          { type: "text-end", id },
        ];
      });
      return { stream: convertArrayToReadableStream([...parts, { type: "finish", finishReason, usage }]) };
    },
  });
}

function usageOf(total: number) {
  return {
    inputTokens: { total, noCache: total, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  };
}

function sentTo({ doGenerateCalls, doStreamCalls }: MockLanguageModelV3): Sent[] {
  return [...doGenerateCalls, ...doStreamCalls];
}

/** Tools without an implementation. */
function toolSet(tools: readonly Fields[]): ToolSet {
  return Object.fromEntries(
    tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description: String(description), inputSchema: jsonSchema(inputSchema as object) }),
    ]),
  );
}

const contextWindow = 30_000;
const limit = contextWindow / 2;
const steps = 60;
const counter = await createCounter("auto", { model: "claude-sonnet-5" });

/** A loop of 60 steps that each read a file of about 700 tokens. */
function loop(billed: (size: number) => number) {
  const model = scriptedModel(
    (call) =>
      call < steps
        ? [
            {
              type: "tool-call",
              toolCallId: `c${call}`,
              toolName: "read",
              input: `{"path":"src/${call}.ts"}`,
            },
          ]
        : [{ type: "text", text: "Done." }],
    (sent) => billed(sizeOf(sent)),
  );
  const read = tool({
    description: "Reads a file.",
    inputSchema: jsonSchema<{ path: string }>({ type: "object", properties: { path: { type: "string" } } }),
    execute: async ({ path }) => `${path}\n${"let x = 1;\n".repeat(100)}`,
  });
  const stopWhen = stepCountIs(steps + 1);
  return {
    model,
    call: { system: "Be brief.", prompt: "Where is the bug?", tools: { read }, stopWhen, maxRetries: 0 },
  };
}

function sizeOf({ prompt, tools = [] }: Sent): number {
  const options = { format: "ai-sdk", model: "claude-sonnet-5" } as const;
  return countMessages(prompt, counter, options) + countTools(tools, counter, options);
}

function checkLoop(sent: readonly Sent[], epochs: number, { factor = 1, most = limit } = {}): void {
  expect(sent).toHaveLength(steps + 1);
  let breaks = 0;
  for (const [index, each] of sent.entries()) {
    expect(sizeOf(each) * factor).toBeLessThanOrEqual(most);
    expect(validateRequest(each.prompt, { format: "ai-sdk" })).toEqual([]);
    const before = sent[index - 1]?.prompt.map((each) => hashMessage(each)) ?? [];
    const same = before.every((hash, at) => hash === hashMessage(each.prompt[at] ?? {}));
    if (!same) breaks++;
  }
  expect(breaks).toBe(epochs);
  expect(epochs).toBeGreaterThan(1);
  expect(epochs).toBeLessThan(10);
}

describe("a loop of 60 steps", () => {
  it.each(["generateText", "streamText"] as const)("stays within the window: %s", async (name) => {
    const { model: inner, call } = loop((size) => size);
    const events: TrimEvent[] = [];
    const middleware = contextBudgetMiddleware({ contextWindow, onTrim: (event) => events.push(event) });
    const model = wrapLanguageModel({ model: inner, middleware });
    if (name === "generateText") expect((await generateText({ ...call, model })).text).toBe("Done.");
    else expect(await streamText({ ...call, model }).text).toBe("Done.");
    checkLoop(sentTo(inner), events.length);
  });

  it.each(["generateText", "streamText"] as const)("stays within the window with prepareStep: %s", async (name) => {
    // Usage also includes system text and tools, which a step does not show. A difference below 10 % is not corrected.
    const most = 1.1 * limit;
    const { model, call } = loop((size) => size);
    const events: TrimEvent[] = [];
    const prepareStep = contextBudgetPrepareStep({ contextWindow, onTrim: (event) => events.push(event) });
    if (name === "generateText") expect((await generateText({ ...call, model, prepareStep })).text).toBe("Done.");
    else expect(await streamText({ ...call, model, prepareStep }).text).toBe("Done.");
    checkLoop(sentTo(model), events.length, { most });
  });

  it("stays within the window with prepareStep if the provider counts more", async () => {
    const { model, call } = loop((size) => Math.round(size * 1.2));
    const events: TrimEvent[] = [];
    const prepareStep = contextBudgetPrepareStep({ contextWindow, onTrim: (event) => events.push(event) });
    await generateText({ ...call, model, prepareStep });
    checkLoop(sentTo(model), events.length, { factor: 1.2 });
  });
});

describe("a call", () => {
  const prompt = "Where is the bug?";
  const open = (inner: MockLanguageModelV3, options: MiddlewareOptions = { contextWindow }) =>
    wrapLanguageModel({ model: inner, middleware: contextBudgetMiddleware(options) });

  it("that fits keeps the objects of its prompt", async () => {
    const inner = scriptedModel(
      () => [{ type: "text", text: "Done." }],
      () => 10,
    );
    const params = {
      prompt: [{ role: "user" as const, content: [{ type: "text" as const, text: prompt }] }],
    };
    await open(inner, { contextWindow, breakpoints: "none" }).doGenerate(params);
    expect(inner.doGenerateCalls[0]).toBe(params);
  });

  it("streams part by part", async () => {
    let sent = 0;
    const inner = new MockLanguageModelV3({
      modelId: "claude-sonnet-5",
      doStream: async () => ({
        stream: new ReadableStream(
          {
            pull(controller) {
              if (sent === 3) controller.close();
              else controller.enqueue({ type: "text-delta", id: "1", delta: String(sent++) });
            },
          },
          { highWaterMark: 0 },
        ),
      }),
    });
    const { stream } = await open(inner).doStream({ prompt: [] });
    const reader = stream.getReader();
    for (let index = 0; index < 3; index++) {
      expect((await reader.read()).value).toMatchObject({ delta: String(index) });
      // At most one part may wait in the pipe.
      expect(sent).toBeLessThanOrEqual(index + 2);
    }
    expect((await reader.read()).done).toBe(true);
  });

  it("passes on errors and abort signals", async () => {
    const failing = new MockLanguageModelV3({
      modelId: "claude-sonnet-5",
      doGenerate: async ({ abortSignal }) => {
        abortSignal?.throwIfAborted();
        throw new RangeError("overloaded");
      },
    });
    const call = { model: open(failing), prompt, maxRetries: 0 };
    await expect(generateText(call)).rejects.toThrow(RangeError);
    const abortSignal = AbortSignal.abort(new TypeError("stopped"));
    await expect(generateText({ ...call, abortSignal })).rejects.toThrow(TypeError);
  });

  it("is billed for an hour if the provider says that it wrote for one", async () => {
    const costs: (number | undefined)[] = [];
    for (const name of ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"]) {
      const inputTokens = { total: 9_000, noCache: 0, cacheRead: 0, cacheWrite: 9_000 };
      const usage = { ...usageOf(0), inputTokens, raw: { cache_creation: { [name]: 9_000 } } };
      const doGenerate = { content: [], finishReason: { unified: "stop", raw: "stop" } as const, usage, warnings: [] };
      const inner = new MockLanguageModelV3({ modelId: "claude-sonnet-5", doGenerate });
      await open(inner, { contextWindow, onCall: ({ usd }) => costs.push(usd) }).doGenerate({ prompt: [] });
    }
    expect((costs[1] ?? 0) / (costs[0] ?? 1)).toBeCloseTo(2 / 1.25, 2);
  });

  it("may report no usage", async () => {
    const inner = scriptedModel(
      () => [{ type: "text", text: "Done." }],
      () => 10,
    );
    const silent = {
      ...inner,
      modelId: "claude-sonnet-5",
      doGenerate: async () => ({ ...answer, usage: undefined }),
    };
    const answer = await inner.doGenerate({ prompt: [] });
    const model = open(silent as unknown as MockLanguageModelV3);
    expect(await model.doGenerate({ prompt: [] })).toMatchObject({ content: answer.content });
  });

  it("of an unknown model fails and asks for contextWindow", async () => {
    const inner = new MockLanguageModelV3({ modelId: "mine" });
    const asked = generateText({ model: open(inner, {}), prompt, maxRetries: 0 });
    await expect(asked).rejects.toThrow('the context window of model "mine" is not known');
    expect(() => contextBudgetMiddleware({ contextWindow: 0 })).toThrow("contextWindow is 0");
    expect(() => contextBudgetPrepareStep({ contextWindow: 0 })).toThrow("contextWindow is 0");
  });

  it("gets its session from what the SDK passes on", async () => {
    const inner = scriptedModel(
      () => [{ type: "text", text: "Done." }],
      () => 10,
    );
    const events: TrimEvent[] = [];
    const model = open(inner, {
      contextWindow: 20_000,
      onOverflow: "pass",
      onTrim: (event) => events.push(event),
      sessionIdOf: ({ providerOptions }) => providerOptions?.app?.user as string | undefined,
    });
    const messages: ModelMessage[] = [
      { role: "user", content: prompt },
      { role: "assistant", content: "All is well. ".repeat(3_000) },
      { role: "user", content: "Really?" },
    ];
    await generateText({ model, messages, providerOptions: { app: { user: "ada" } } });
    expect(events.map(({ sessionId }) => sessionId)).toEqual(["ada"]);
  });
});

describe("cache markers", () => {
  const short = { anthropic: { cacheControl: { type: "ephemeral" } } };
  type Prompt = Sent["prompt"];
  const done = () =>
    scriptedModel(
      () => [{ type: "text", text: "Done." }],
      () => 10,
    );
  const ask = async (inner: MockLanguageModelV3, options: MiddlewareOptions, call: Partial<Sent>) => {
    const model = wrapLanguageModel({
      model: inner,
      middleware: contextBudgetMiddleware({ contextWindow, ...options }),
    });
    await model.doGenerate({ prompt: promptOf(2), ...call });
    return sentTo(inner).at(-1) as Sent;
  };
  const promptOf = (turns: number): Prompt => [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "Where is the bug?" }] },
    ...Array.from({ length: turns }, (_, index): Prompt => {
      const names = { toolCallId: `c${index}`, toolName: "read" };
      const output = { type: "text" as const, value: "let x = 1;\n".repeat(200) };
      return [
        { role: "assistant", content: [{ type: "tool-call", ...names, input: { path: "a.ts" } }] },
        { role: "tool", content: [{ type: "tool-result", ...names, output }] },
      ];
    }).flat(),
  ];
  const markedIn = (prompt: Prompt) =>
    prompt.flatMap(({ providerOptions }, index) => (providerOptions?.anthropic?.cacheControl ? [index] : []));

  it("are placed after the system text, before the last turn and at the end by default, for a model of Anthropic", async () => {
    const { prompt } = await ask(done(), {}, {});
    expect(markedIn(prompt)).toEqual([0, 4, 5]);
    expect(prompt[0]).toEqual({ role: "system", content: "Be brief.", providerOptions: short });
    const other = new MockLanguageModelV3({ modelId: "gpt-5", doGenerate: done().doGenerate });
    expect(markedIn((await ask(other, {}, {})).prompt)).toEqual([]);
    expect(markedIn((await ask(done(), { breakpoints: "follow" }, {})).prompt)).toEqual([]);
    expect(markedIn((await ask(done(), { breakpoints: "none" }, {})).prompt)).toEqual([]);
  });

  it("are placed where the history was cut, and are never more than four", async () => {
    const inner = done();
    const middleware = contextBudgetMiddleware({ contextWindow, keep: 1 });
    const model = wrapLanguageModel({ model: inner, middleware });
    for (let turns = 1; turns <= 40; turns++) {
      await model.doGenerate({ prompt: promptOf(turns) });
      const { prompt } = sentTo(inner).at(-1) as Sent;
      expect(markedIn(prompt).length).toBeLessThanOrEqual(4);
      expect(markedIn(prompt)).toContain(prompt.length - 1);
    }
    expect(markedIn((sentTo(inner).at(-1) as Sent).prompt).length).toBeGreaterThan(2);
  });

  it("leave those of the caller, use only free slots, and follow the lifetime of an hour", async () => {
    const hour = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } };
    const own = promptOf(2).with(5, { ...promptOf(2)[5], providerOptions: hour } as Prompt[number]);
    const { prompt } = await ask(done(), {}, { prompt: own });
    expect(prompt[5]).toBe(own[5]);
    expect(prompt[0]?.providerOptions).toEqual(hour);
    const full = promptOf(2).map((message, index) =>
      index < 4 ? { ...message, providerOptions: short } : message,
    ) as Prompt;
    expect(markedIn((await ask(done(), {}, { prompt: full })).prompt)).toEqual([0, 1, 2, 3]);
    const automatic = await ask(done(), {}, { providerOptions: short });
    expect(markedIn(automatic.prompt)).toEqual([0, 4]);
  });

  it("are placed by prepareStep too, and a wrong mode is refused at once", async () => {
    const { model, call } = loop((size) => size);
    await generateText({ ...call, model, prepareStep: contextBudgetPrepareStep({ contextWindow }) });
    for (const { prompt } of sentTo(model)) expect(markedIn(prompt)).toContain(prompt.length - 1);
    const wrong = { breakpoints: "all" } as unknown as MiddlewareOptions;
    expect(() => contextBudgetMiddleware(wrong)).toThrow('unknown breakpoints "all"');
  });
});

it("a model reads what was trimmed with the recall tool", async () => {
  const source = { store: createMemoryStore(), sessionId: "s" };
  const { definition, handle, instructions } = recallTool(source);
  const inner = scriptedModel(
    (call): Content => {
      const toolCallId = `c${call}`;
      if (call < 40) return [{ type: "tool-call", toolCallId, toolName: "read", input: `{"path":"src/${call}.ts"}` }];
      if (call > 40) return [{ type: "text", text: "Done." }];
      return [{ type: "tool-call", toolCallId, toolName: "recall", input: '{"grep":"src/1.ts"}' }];
    },
    (sent) => sizeOf(sent),
  );
  const model = wrapLanguageModel({
    model: inner,
    middleware: contextBudgetMiddleware({ contextWindow, ...source }),
  });
  const { call } = loop((size) => size);
  const { name, description, inputSchema } = definition;
  const recall = tool({ description, inputSchema: jsonSchema(inputSchema), execute: handle });
  await generateText({ ...call, model, system: instructions, tools: { ...call.tools, [name]: recall } });
  expect(JSON.stringify(sentTo(inner).at(-1)?.prompt.at(-1))).toMatch(/[a-z2-7]{16}:1: src\/1\.ts/);
});

describe("a call that the provider refuses", () => {
  const message =
    "This model's maximum context length is 30000 tokens. However, your messages resulted in 40000 tokens.";
  const refusal = new APICallError({
    ...{ message, url: "", requestBodyValues: {}, statusCode: 400 },
    responseBody: JSON.stringify({ error: { message } }),
  });
  const messages = toolHistory(
    "ai-sdk",
    Array.from({ length: 40 }, () => "let x = 1;\n".repeat(120)),
  ).messages;
  const finish: StreamPart = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: usageOf(9_000) };
  const answer: StreamPart[] = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Done." },
    { type: "text-end", id: "1" },
    finish,
  ];
  const open = (inner: MockLanguageModelV3) => ({
    model: wrapLanguageModel({ model: inner, middleware: contextBudgetMiddleware({ contextWindow: 1_000_000 }) }),
    ...{ messages: messages as ModelMessage[], maxRetries: 0, onError: () => undefined },
  });
  const sizesOf = (inner: MockLanguageModelV3) => sentTo(inner).map(({ prompt }) => JSON.stringify(prompt).length);

  it("is generated from a shorter prompt", async () => {
    const inner: MockLanguageModelV3 = new MockLanguageModelV3({
      doGenerate: async () => {
        if (inner.doGenerateCalls.length === 1) throw refusal;
        const content: Content = [{ type: "text", text: "Done." }];
        return { content, finishReason: { unified: "stop", raw: "stop" }, usage: usageOf(9_000), warnings: [] };
      },
    });
    expect((await generateText(open(inner))).text).toBe("Done.");
    const [first, second] = sizesOf(inner);
    expect(second).toBeLessThan(Number(first) * 0.8);
  });

  it("is streamed from a shorter prompt, also if the refusal is the stream's first part", async () => {
    const start: StreamPart = { type: "stream-start", warnings: [] };
    for (const refuse of [
      () => Promise.reject(refusal),
      async () => ({ stream: convertArrayToReadableStream([start, { type: "error" as const, error: refusal }]) }),
    ]) {
      const inner: MockLanguageModelV3 = new MockLanguageModelV3({
        doStream: async () =>
          inner.doStreamCalls.length === 1 ? refuse() : { stream: convertArrayToReadableStream([start, ...answer]) },
      });
      expect(await streamText(open(inner)).text).toBe("Done.");
      const [first, second] = sizesOf(inner);
      expect(second).toBeLessThan(Number(first) * 0.8);
    }
  });

  it("fails with the SDK's own error if it is refused again", async () => {
    const inner = new MockLanguageModelV3({ doGenerate: () => Promise.reject(refusal) });
    const thrown = await generateText(open(inner)).catch((error: unknown) => error);
    expect(thrown).toBe(refusal);
    expect((thrown as Error).cause).toMatchObject({ code: "context_overflow" });
    expect(inner.doGenerateCalls).toHaveLength(2);
  });
});
