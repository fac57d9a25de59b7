/** What refusals teach, through the real SDKs and a provider that counts in its own way. */

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { type ProviderOptions, type RunningProvider, startProvider } from "../../../scripts/provider/provider.mjs";
import { toolHistory } from "../../../test/generate/generate-request.ts";
import type { FormatName } from "../../core/messages/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { withContextBudget as withAnthropicBudget } from "./anthropic.ts";
import { budgetedFetch } from "./fetch.ts";
import { withContextBudget as withOpenAiBudget } from "./openai.ts";
import type { RequestFitterOptions } from "./request-fitter.ts";

const contextWindow = 30_000;
const limits = { contextWindow, reserve: 2_000 };
/** A window that is larger than the provider's. */
const wide = { contextWindow: 1_000_000, reserve: 2_000 };
/** After so many files, a session does not fit the provider's window. */
const filled = 20;
const model = "gpt-5";
const claude = "claude-sonnet-5";

const running: RunningProvider[] = [];
afterEach(async () => {
  for (const provider of running.splice(0)) await provider.close();
});

async function start(options: ProviderOptions = {}, format: FormatName = "openai"): Promise<RunningProvider> {
  const { count } = await createCounter("auto", { model: format === "anthropic" ? claude : model });
  const provider = await startProvider({ contextWindow, count, countFactor: 1.4, ...options });
  running.push(provider);
  return provider;
}

type Budget = Omit<RequestFitterOptions<Fields>, "sessionIdOf">;

/** One kind of client: opens one, and sends a request with it. */
interface Door {
  readonly name: string;
  readonly format: FormatName;
  open(url: string, budget: Budget): (request: Fields) => Promise<unknown>;
}

const anthropicAt = (url: string, budget: Budget): Anthropic =>
  withAnthropicBudget(new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 }), budget);
const openAiAt = (url: string, budget: Budget): OpenAI =>
  withOpenAiBudget(new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, maxRetries: 0 }), budget);

// biome-ignore lint/suspicious/noExplicitAny: the request is generated for the format of the door.
type Params = any;
type ChatParams = OpenAI.ChatCompletionCreateParamsStreaming;

const doors: readonly Door[] = [
  {
    name: "Anthropic, whole",
    format: "anthropic",
    open(url, budget) {
      const client = anthropicAt(url, budget);
      return (request) => client.messages.create(request as Params);
    },
  },
  {
    name: "Anthropic, streamed",
    format: "anthropic",
    open(url, budget) {
      const client = anthropicAt(url, budget);
      return (request) => client.messages.stream(request as Params).finalMessage();
    },
  },
  {
    name: "OpenAI chat, streamed",
    format: "openai",
    open(url, budget) {
      const client = openAiAt(url, budget);
      return async (request) => {
        for await (const _ of await client.chat.completions.create({
          ...(request as Params as ChatParams),
          stream: true,
        }));
      };
    },
  },
  {
    name: "OpenAI responses",
    format: "responses",
    open(url, budget) {
      const client = openAiAt(url, budget);
      return (request) => client.responses.create(request as Params);
    },
  },
  {
    name: "fetch",
    format: "anthropic",
    open(url, budget) {
      const fetch = budgetedFetch(globalThis.fetch, budget);
      return async (request) => {
        const response = await fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(request) });
        expect(response.status).toBe(200);
        await response.text();
      };
    },
  },
];

const text = "export function sum(values: number[]): number { return values.reduce((a, b) => a + b, 0); }\n";

function filesOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `// ${index}\n${text.repeat(50)}`);
}

/** The requests of a session in which each call reads one more file. */
function sessionOf(format: FormatName, files: number): Fields[] {
  const { request, messages } = toolHistory(format, filesOf(files));
  const key = format === "responses" ? "input" : "messages";
  const each = (messages.length - 1) / files;
  const ends = Array.from({ length: files }, (_, index) => 1 + each * (index + 1));
  const name = format === "anthropic" ? claude : model;
  return ends.map((end) => ({ ...request, model: name, [key]: messages.slice(0, end) }));
}

interface Case {
  readonly door: Door;
  readonly life: "one client" | "a client for each request, with a store";
  readonly answers: "with numbers" | "without numbers";
  readonly usage: "with usage" | "without usage";
}

const cases: readonly Case[] = doors.flatMap((door) =>
  (["one client", "a client for each request, with a store"] as const).flatMap((life) =>
    (["with numbers", "without numbers"] as const).flatMap((answers) =>
      (["with usage", "without usage"] as const).map((usage) => ({ door, life, answers, usage })),
    ),
  ),
);

function isEveryday({ door, life, answers, usage }: Case): boolean {
  if (usage === "with usage") return door.format === "openai" && life === "one client" && answers === "with numbers";
  return door.format === "openai" || (life === "one client" && answers === "with numbers");
}

describe("a counter that is wrong by 40 %", () => {
  for (const each of cases) {
    const { door, life, answers, usage } = each;
    const title = `costs at most one refused call: ${door.name}, ${life}, ${answers}, ${usage}`;
    it(title, { tags: isEveryday(each) ? [] : ["deep"] }, async () => {
      const isReported = usage === "with usage";
      const provider = await start(
        {
          answer: () => ({ text: "Done.", ...(!isReported && { usage: { input_tokens: 0, output_tokens: 0 } }) }),
          overflowNumbers: answers === "with numbers",
          refusesStreamOptions: !isReported,
        },
        door.format,
      );
      const isOne = life === "one client";
      const budget = { ...limits, sessionId: "s", ...(!isOne && { store: createMemoryStore() }) };
      const one = door.open(provider.url, budget);
      const calls = sessionOf(door.format, 33);
      for (const call of calls) await (isOne ? one : door.open(provider.url, budget))(call);
      const refusals = provider.refusals().map(({ refusal = "" }) => refusal);
      const asked = refusals.filter((text) => text.includes("stream_options")).length;
      expect(asked).toBe(door.format === "openai" && !isReported ? 1 : 0);
      // With usage, the session has learned before its window is full.
      expect(refusals.length - asked).toBe(isReported ? 0 : 1);
      expect(provider.calls).toHaveLength(calls.length + refusals.length);
    });
  }
});

/** A request that the provider refuses. */
const filledCall = (format: FormatName): Params => sessionOf(format, filled).at(-1);

describe("a request that was refused once", () => {
  it("is one call for every helper of Anthropic's SDK", async () => {
    const helpers: ((client: Anthropic, call: Params) => Promise<unknown>)[] = [
      (client, call) => client.messages.create(call),
      async (client, call) => (await client.messages.create(call).withResponse()).data,
      async (client, call) => (await client.messages.create(call).asResponse()).json(),
      (client, call) => client.messages.stream(call).finalMessage(),
      (client, call) => client.messages.parse(call),
      (client, call) => client.beta.messages.create(call),
      (client, call) => client.beta.messages.toolRunner({ ...call, tools: [] }).runUntilDone(),
    ];
    for (const ask of helpers) {
      const provider = await start({ answer: () => ({ text: "Done." }) }, "anthropic");
      const answer = await ask(anthropicAt(provider.url, wide), { ...filledCall("anthropic") });
      expect(answer).toMatchObject({ content: [{ type: "text", text: "Done." }], stop_reason: "end_turn" });
      expect(provider.calls.map(({ status }) => status)).toEqual([400, 200]);
    }
  });

  it("is one call for every helper of OpenAI's SDK", async () => {
    const helpers: ((client: OpenAI, call: Params) => Promise<unknown>)[] = [
      (client, call) => client.chat.completions.create(call),
      async (client, call) => (await client.chat.completions.create(call).withResponse()).data,
      async (client, call) => (await client.chat.completions.create(call).asResponse()).json(),
      (client, call) => client.chat.completions.parse({ ...call, tools: [] }),
      (client, call) => client.chat.completions.stream(call).finalChatCompletion(),
    ];
    for (const ask of helpers) {
      const provider = await start();
      const answer = await ask(openAiAt(provider.url, wide), filledCall("openai"));
      expect(answer).toMatchObject({ choices: [{ message: { content: "Done." } }] });
      expect(provider.calls.map(({ status }) => status)).toEqual([400, 200]);
    }
    const provider = await start();
    const stream = openAiAt(provider.url, wide).responses.stream(filledCall("responses"));
    expect((await stream.finalResponse()).output_text).toBe("Done.");
    expect(provider.calls.map(({ status }) => status)).toEqual([400, 200]);
  });

  it("leaves rate limits and failures of the server to the SDK", async () => {
    const provider = await start({ failures: { 1: 429, 3: 500 } }, "anthropic");
    const inner = new Anthropic({ apiKey: "none", baseURL: provider.url, maxRetries: 1 });
    const answer = await withAnthropicBudget(inner, wide).messages.create(filledCall("anthropic"));
    expect(answer.stop_reason).toBe("end_turn");
    expect(provider.calls.map(({ status }) => status)).toEqual([429, 400, 500, 200]);
  });

  it("is sent again for each of several calls at once", async () => {
    const provider = await start({}, "anthropic");
    const client = anthropicAt(provider.url, wide);
    const calls = sessionOf("anthropic", filled + 2).slice(filled - 1);
    await Promise.all(calls.map((call) => client.messages.create(call as Params)));
    expect(provider.calls.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(provider.calls.length).toBeLessThanOrEqual(6);
  });
});

describe("a refusal", () => {
  it("that comes again is the caller's own error, with what was tried as its cause", async () => {
    const error = { type: "invalid_request_error", message: "prompt is too long: 40000 tokens > 30000 maximum" };
    const provider = await start(
      { answer: () => ({ status: 400, json: { type: "error", error } }), contextWindow: 1_000_000 },
      "anthropic",
    );
    const client = anthropicAt(provider.url, wide);
    const thrown = await client.messages.create(filledCall("anthropic")).catch((each: unknown) => each);
    expect(thrown).toBeInstanceOf(Anthropic.BadRequestError);
    expect(thrown).toMatchObject({ status: 400, error: { error }, cause: { code: "context_overflow" } });
    expect(String((thrown as Error).cause)).toMatch(
      /one with 40000 tokens \(it accepts 30000\), which was trimmed again/,
    );
    expect(provider.calls).toHaveLength(2);
  });

  it("that comes again is the caller's own response through fetch, and reported", async () => {
    const json = { error: { message: "prompt is too long: 40000 tokens > 30000 maximum" } };
    const provider = await start({ answer: () => ({ status: 400, json }), contextWindow: 1_000_000 }, "anthropic");
    const errors: unknown[] = [];
    const fetch = budgetedFetch(globalThis.fetch, { ...wide, onError: (each) => errors.push(each) });
    const body = JSON.stringify(filledCall("anthropic"));
    const response = await fetch(`${provider.url}/v1/messages`, { method: "POST", body });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual(json);
    expect(errors).toMatchObject([{ code: "context_overflow" }]);
  });

  it("that no table knows, or that leaves nothing to trim, passes untouched", async () => {
    const json = { type: "error", error: { type: "invalid_request_error", message: "That is not allowed." } };
    const unknown = await start({ answer: () => ({ status: 400, json }), contextWindow: 1_000_000 }, "anthropic");
    const sent = anthropicAt(unknown.url, limits).messages.create(filledCall("anthropic"));
    await expect(sent).rejects.toMatchObject({ status: 400, error: json });
    expect(await sent.catch((error: Error) => error.cause)).toBeUndefined();
    expect(unknown.calls).toHaveLength(1);
    const provider = await start({ contextWindow: 100 }, "anthropic");
    const messages = [{ role: "user" as const, content: text.repeat(100) }];
    const short = anthropicAt(provider.url, limits).messages.create({ model: claude, max_tokens: 10, messages });
    await expect(short).rejects.toThrow(/prompt is too long/);
    expect(provider.calls).toHaveLength(1);
  });

  it.each([
    ["with numbers", true],
    ["without numbers", false],
  ])("for a window that is smaller than assumed is learned once, %s", async (_name, overflowNumbers) => {
    const provider = await start({ overflowNumbers, countFactor: 1 }, "anthropic");
    const client = anthropicAt(provider.url, wide);
    for (const call of sessionOf("anthropic", 55).slice(10)) await client.messages.create(call as Params);
    expect(provider.refusals()).toHaveLength(1);
  });

  it("for the bytes of a request makes it smaller", async () => {
    const tooLarge = {
      type: "error",
      error: { type: "request_too_large", message: "Request exceeds the maximum size" },
    };
    const answer = ({ text: sent }: { readonly text: string }) =>
      sent.length > 100_000 ? { status: 413, json: tooLarge } : { text: "Done." };
    const provider = await start({ answer, contextWindow: 1_000_000 }, "anthropic");
    const client = anthropicAt(provider.url, wide);
    await client.messages.create(sessionOf("anthropic", 23).at(-1) as Params);
    expect(provider.calls.map(({ status }) => status)).toEqual([413, 200]);
  });

  it("as the first event of a stream is not shown to the caller", async () => {
    const error = {
      message:
        "Trying to keep the first 40000 tokens when context the overflows. However, the model is loaded with context length of only 30000 tokens",
    };
    const refused = { events: [`event: error\ndata: ${JSON.stringify({ error })}\n\n`] };
    const provider = await start({ answer: [refused, { text: "Done." }], contextWindow: 1_000_000 });
    const stream = openAiAt(provider.url, wide).chat.completions.stream(filledCall("openai"));
    expect(await stream.finalContent()).toBe("Done.");
    expect(provider.calls).toHaveLength(2);
  });
});

describe("usage in a chat stream", () => {
  const chunksOf = async (client: OpenAI, more: object = {}): Promise<unknown[][]> => {
    const params = { model, messages: [{ role: "user" as const, content: "Hi" }], stream: true as const, ...more };
    const [left, right] = (await client.chat.completions.create(params)).tee();
    const all = async (stream: AsyncIterable<unknown>): Promise<unknown[]> => {
      const chunks: unknown[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      return chunks;
    };
    return Promise.all([left, right].map(all));
  };

  it("is asked for, and the caller's chunks are as without asking, also through tee", async () => {
    const provider = await start({ run: "r" });
    const plain = new OpenAI({ apiKey: "none", baseURL: `${provider.url}/v1` });
    const expected = await chunksOf(plain);
    const shown = await chunksOf(openAiAt(provider.url, limits));
    expect(provider.calls.map(({ body }) => body.stream_options)).toEqual([undefined, { include_usage: true }]);
    const withoutId = (lists: unknown[][]) => lists.map((list) => list.map((each) => ({ ...Object(each), id: "" })));
    expect(withoutId(shown)).toEqual(withoutId(expected));
  });

  it("is shown to a caller who asks for it, and not asked for if the caller forbids it", async () => {
    const provider = await start();
    const client = openAiAt(provider.url, limits);
    const [shown] = await chunksOf(client, { stream_options: { include_usage: true } });
    expect(shown?.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } });
    await chunksOf(client, { stream_options: { include_usage: false } });
    expect(provider.calls.at(-1)?.body.stream_options).toEqual({ include_usage: false });
  });

  it("is not asked for again on a host that refuses it, by any conversation of the client", async () => {
    const provider = await start({ refusesStreamOptions: true });
    const client = openAiAt(provider.url, limits);
    for (const content of ["One?", "Two?", "Three?"]) {
      const [chunks] = await chunksOf(client, { messages: [{ role: "user", content }] });
      expect(chunks?.length).toBeGreaterThan(1);
    }
    expect(provider.calls.map(({ status }) => status)).toEqual([400, 200, 200, 200]);
  });
});

describe("thinking that the provider refuses", () => {
  const bound = "claude-opus-5-5";
  const answer = ({ number }: { readonly number: number }) => ({
    ...{ thinking: `Thought ${number}.`, text: `Answer ${number}.` },
  });

  it("is dropped after the caller's own change, once and for the conversation", async () => {
    const provider = await start({ answer, contextWindow: 1_000_000 }, "anthropic");
    const store = createMemoryStore();
    const open = () => anthropicAt(provider.url, { ...limits, sessionId: "s", store });
    let client = open();
    const messages: Anthropic.MessageParam[] = [];
    const ask = async (content: string): Promise<void> => {
      messages.push({ role: "user", content });
      const reply = await client.messages.create({ model: bound, max_tokens: 2_000, messages: [...messages] });
      messages.push({ role: "assistant", content: reply.content as Anthropic.ContentBlockParam[] });
    };
    for (const content of ["One?", "Two?", "Three?"]) await ask(content);
    messages[2] = { role: "user", content: "Two, please?" };
    await ask("Four?");
    expect(provider.refusals().map(({ refusal }) => refusal)).toEqual([
      expect.stringContaining("bound to a different conversation"),
    ]);
    const thinkingIn = (): number[] => {
      const sent = (provider.calls.at(-1)?.body.messages ?? []) as Anthropic.MessageParam[];
      return sent.flatMap(({ content }, index) =>
        Array.isArray(content) && content.some(({ type }) => type === "thinking") ? [index] : [],
      );
    };
    expect(thinkingIn()).toEqual([1]);
    await ask("Five?");
    client = open();
    await ask("Six?");
    expect(thinkingIn()).toEqual([1, 7, 9]);
    expect(provider.refusals()).toHaveLength(1);
    expect(JSON.stringify(provider.calls.map(({ body }) => body))).not.toContain("block_binding");
  });
});
