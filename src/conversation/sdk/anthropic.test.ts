import Anthropic from "@anthropic-ai/sdk";
import { afterEach, describe, expect, it } from "vitest";
import { type Asked, type RunningProvider, startProvider, type Turn } from "../../../scripts/provider/provider.mjs";
import { validateRequest } from "../../core/messages/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import { type AnthropicOptions, recallTool, withContextBudget } from "./anthropic.ts";
import { testIntegration } from "./integration.contract.ts";
import { anthropicMarkers } from "./place-markers.ts";
import type { TrimEvent } from "./request-fitter.ts";

const { readMarkers } = anthropicMarkers;

type Params = Anthropic.MessageCreateParamsNonStreaming;

testIntegration({
  name: "plimsoll/anthropic",
  format: "anthropic",
  async open({ options, billed }) {
    const server = await startProvider({ answer: ({ body }) => answer(billed(body)), foreignThinking: "accept" });
    const client = withContextBudget(clientOf(server), options as AnthropicOptions);
    return {
      async ask(request, how) {
        const params = request as unknown as Params;
        if (how === "whole") await client.messages.create(params);
        else for await (const _ of await client.messages.create({ ...params, stream: true }));
        return server.calls.at(-1)?.body ?? {};
      },
      count: () => server.calls.length,
      close: server.close,
    };
  },
});

function answer(input_tokens: number): Turn {
  return { text: "Done.", usage: { input_tokens, output_tokens: 5 } };
}

function clientOf({ url }: RunningProvider): Anthropic {
  return new Anthropic({ apiKey: "none", baseURL: url, maxRetries: 0 });
}

const servers: RunningProvider[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const contextWindow = 30_000;

async function open(options: AnthropicOptions = {}, reply?: (asked: Asked) => Turn) {
  const events: TrimEvent[] = [];
  const server = await startProvider({ answer: reply ?? (() => answer(13_800)) });
  servers.push(server);
  const budget = { contextWindow, onTrim: (event: TrimEvent) => events.push(event), ...options };
  const client = withContextBudget(clientOf(server), budget);
  return { client, events, sent: () => server.calls.at(-1)?.body ?? {}, server };
}

/** A store that counts what is written to it. */
function watchedStore() {
  const store = createMemoryStore();
  let writes = 0;
  const watch = <Method extends (...args: never[]) => unknown>(method: Method) =>
    ((...args) => {
      writes += 1;
      return method(...args);
    }) as Method;
  const { put, update, append } = store;
  return { store: { ...store, put: watch(put), update: watch(update), append: watch(append) }, writes: () => writes };
}

/** About 750 tokens per turn. */
function paramsOf(turns: number, more: Partial<Params> = {}): Params {
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Where is the bug?" }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `toolu_${turn}`;
    messages.push(
      {
        role: "assistant",
        content: [{ type: "tool_use", id, name: "read", input: { path: `src/${turn}.ts` } }],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: id, content: "let x = 1;\n".repeat(100) }],
      },
    );
  }
  return { model: "claude-sonnet-5", max_tokens: 1_000, messages, ...more };
}

describe("every way to ask", () => {
  const ways: Record<string, (client: Anthropic, params: Params) => Promise<unknown>> = {
    "messages.create": (client, params) => client.messages.create(params),
    "messages.create, streamed": async (client, params) => {
      for await (const _ of await client.messages.create({ ...params, stream: true }));
    },
    "messages.stream": (client, params) => client.messages.stream(params).finalMessage(),
    "messages.parse": (client, params) => client.messages.parse(params),
    "messages.create, with its response": (client, params) => client.messages.create(params).withResponse(),
    "beta.messages.create": (client, params) => client.beta.messages.create(params),
    "beta.messages.stream": (client, params) => client.beta.messages.stream(params).finalMessage(),
    "beta.messages.toolRunner": (client, params) =>
      client.beta.messages.toolRunner({ ...params, tools: [] }).runUntilDone(),
    "a client with other options": (client, params) => client.withOptions({ timeout: 9_000 }).messages.create(params),
  };

  it.each(Object.entries(ways))("is observed and trimmed: %s", async (_name, ask) => {
    const { client, events, sent } = await open({ sessionId: "s" });
    await ask(client, paramsOf(10));
    expect(events).toEqual([]);
    expect(sent().messages).toHaveLength(21);
    await ask(client, paramsOf(12));
    expect(events).toHaveLength(1);
    expect(JSON.stringify(sent().messages)).toContain("[trimmed: ");
  });

  it.each([false, true])("keeps every request of a tool runner within the window, streamed: %s", async (stream) => {
    const steps = 40;
    const requests = () => server.calls.map(({ body }) => body as unknown as Params);
    const { client, events, server } = await open({ reserve: 4_000 }, ({ body }) => {
      const call = server.calls.length;
      const use = {
        type: "tool_use",
        id: `toolu_${call}`,
        name: "read",
        input: { path: `src/${call}.ts` },
      };
      const content = call < steps ? [use] : [{ type: "text", text: "Done." }];
      const usage = {
        input_tokens: Math.round(JSON.stringify(body.messages).length / 3.5),
        output_tokens: 5,
      };
      return { content, usage };
    });
    const ran: string[] = [];
    const read = {
      type: "custom" as const,
      name: "read",
      input_schema: { type: "object" as const },
      parse: (input: unknown) => input as { path: string },
      run: ({ path }: { path: string }) => {
        ran.push(path);
        return "let x = 1;\n".repeat(300);
      },
    };
    const messages = [{ role: "user" as const, content: "Where is the bug?" }];
    const params = { model: "claude-sonnet-5", max_tokens: 1_000, messages, tools: [read] };
    const answer = await client.beta.messages.toolRunner({ ...params, stream }).runUntilDone();
    expect(answer.content).toMatchObject([{ type: "text", text: "Done." }]);
    expect(ran).toHaveLength(steps - 1);
    expect(requests()).toHaveLength(steps);
    expect(events.length).toBeGreaterThan(1);
    expect(events.length).toBeLessThan(steps / 3);
    for (const body of requests()) {
      expect(body).not.toHaveProperty("thread");
      expect(JSON.stringify(body.messages).length / 3.5).toBeLessThan(contextWindow - 4_000);
      expect(validateRequest(body, { format: "anthropic" })).toEqual([]);
      expect(body.messages[0]).toMatchObject({ role: "user" });
      expect(JSON.stringify(body.messages[0])).toContain("Where is the bug?");
    }
  });

  it("does not change a thread that the caller starts", async () => {
    const { client, sent } = await open();
    await client.beta.messages.thread(paramsOf(60)).send();
    expect(sent()).toMatchObject({ thread: { type: "create" }, messages: paramsOf(60).messages });
  });

  it("returns what the SDK returns", async () => {
    const { client } = await open();
    const { data, response, request_id } = await client.messages.create(paramsOf(1)).withResponse();
    expect(data.content).toEqual([{ type: "text", text: "Done." }]);
    expect(Reflect.get(data, "_request_id")).toBe(request_id);
    expect([response.status, request_id]).toEqual([200, expect.stringMatching(/^req_/)]);
    const raw = await client.messages.create(paramsOf(1)).asResponse();
    expect(await raw.json()).toMatchObject({ id: expect.stringMatching(/^msg_/) });
    const texts: string[] = [];
    const message = await client.messages
      .stream(paramsOf(1))
      .on("text", (text) => texts.push(text))
      .finalMessage();
    expect(texts).toEqual(["Do", "ne."]);
    expect(message.content).toMatchObject([{ text: "Done." }]);
  });

  it("does not change requests that do not call a model", async () => {
    const { client, server } = await open();
    expect(client).toBeInstanceOf(Anthropic);
    await client.models.list();
    expect(server.calls.at(-1)?.path).toBe("/v1/models");
  });

  it.each(["messages", "beta"] as const)("counts the request as it would be sent (%s)", async (door) => {
    const { store, writes } = watchedStore();
    const options: AnthropicOptions = { store, sessionId: "s", breakpoints: "none", intake: { pageTokens: 200 } };
    const { client, sent, events, server } = await open(options);
    const count = async (turns: number) => {
      const { max_tokens: _none, ...params } = paramsOf(turns);
      const { input_tokens } = await (door === "beta" ? client.beta : client).messages.countTokens(params);
      expect(input_tokens).toBeLessThan(contextWindow);
      expect(server.calls.at(-1)?.path).toContain("/v1/messages/count_tokens");
      return sent();
    };
    let epochs = 0;
    for (const turns of [1, 4, 10, 12, 40, 41, 60]) {
      const before = [writes(), events.length];
      const counted = await count(turns);
      expect(await count(turns)).toEqual(counted);
      expect([writes(), events.length]).toEqual(before);
      await client.messages.create(paramsOf(turns));
      expect(counted.messages).toEqual(sent().messages);
      epochs += events.length - Number(before[1]);
    }
    expect(epochs).toBeGreaterThan(1);
    expect(client.plimsoll.summary()).toMatchObject({ calls: 7, epochs });
  });

  it("counts without remembering a conversation, and with the decisions that are in the store", async () => {
    const store = createMemoryStore();
    const first = await open({ store, sessionId: "s", breakpoints: "none" });
    for (const turns of [10, 40]) await first.client.messages.create(paramsOf(turns));
    const second = await open({ store, sessionId: "s", breakpoints: "none" });
    const { max_tokens: _none, ...params } = paramsOf(40);
    await second.client.messages.countTokens(params);
    expect(second.sent().messages).toEqual(first.sent().messages);
  });

  it("does not change a conversation that the API holds", async () => {
    const { client, sent } = await open();
    const thread = { type: "continue", previous_message_id: "msg_1" };
    await client.beta.messages.create({ ...paramsOf(60), thread } as unknown as Params);
    expect(sent().messages).toEqual(paramsOf(60).messages);
  });
});

describe("a stream", () => {
  it("passes event by event", async () => {
    const gates = Array.from({ length: 7 }, gate);
    const afterEvent = (index: number) => gates[index]?.promise;
    const { client } = await open({}, () => ({ ...answer(5), afterEvent }));
    let index = 0;
    // The server sends the next event only after this one has come through.
    for await (const _ of await client.messages.create({ ...paramsOf(1), stream: true })) {
      gates[index++]?.resolve(undefined);
    }
    expect(index).toBe(gates.length);
  });

  it("ends when it is aborted, and when the caller stops reading", async () => {
    const afterEvent = (index: number) => (index < 2 ? undefined : new Promise(() => undefined));
    const { client } = await open({}, () => ({ ...answer(5), afterEvent }));
    const controller = new AbortController();
    const stream = await client.messages.create({ ...paramsOf(1), stream: true }, { signal: controller.signal });
    const seen: string[] = [];
    for await (const { type } of stream) {
      seen.push(type);
      if (type === "content_block_delta") controller.abort();
    }
    expect(seen.at(-1)).toBe("content_block_delta");
    const second = await client.messages.create({ ...paramsOf(1), stream: true });
    for await (const _ of second) break;
    expect(second.controller.signal.aborted).toBe(true);
  });
});

function gate() {
  let resolve: (value: unknown) => void = () => undefined;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe("errors", () => {
  it("of the API are the SDK's own", async () => {
    const error = { type: "error", error: { type: "invalid_request_error", message: "no" } };
    const { client } = await open({}, () => ({ status: 400, json: error }));
    await expect(client.messages.create(paramsOf(1))).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    await expect(client.messages.stream(paramsOf(1)).finalMessage()).rejects.toBeInstanceOf(Anthropic.BadRequestError);
  });

  it("of an abort are the SDK's own", async () => {
    const { client, server } = await open();
    const aborted = client.messages.create(paramsOf(1), { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    expect(server.calls).toEqual([]);
  });

  it("of a malformed or too large request reach the caller before anything is sent", async () => {
    const { client, server } = await open();
    const malformed = paramsOf(1, { messages: [{ role: "user", content: 7 as never }] });
    await expect(client.messages.create(malformed)).rejects.toMatchObject({ code: "invalid_message" });
    const huge = paramsOf(1, { system: "Be brief. ".repeat(20_000) });
    await expect(client.messages.create(huge)).rejects.toMatchObject({ code: "context_overflow" });
    const streamed = client.messages.stream(huge).finalMessage();
    await expect(streamed).rejects.toMatchObject({ cause: { code: "context_overflow" } });
    expect(server.calls).toEqual([]);
  });

  it("of wrong options come at once", () => {
    const client = new Anthropic({ apiKey: "none" });
    const options = { breakpoints: "all" } as unknown as AnthropicOptions;
    expect(() => withContextBudget(client, options)).toThrow('unknown breakpoints "all"');
    expect(() => withContextBudget(client, { contextWindow: -1 })).toThrow("contextWindow is -1");
    const misspelt = { breakpoint: "auto" } as AnthropicOptions;
    expect(() => withContextBudget(client, misspelt)).toThrow(
      expect.objectContaining({ hint: 'Did you mean "breakpoints"?' }),
    );
  });
});

describe("the provider's cache", () => {
  const short = { type: "ephemeral" } as const;
  const system = [{ type: "text" as const, text: "Be brief.", cache_control: short }];

  // A usage of 0 is ignored, so the counter's own sizes apply.
  const silent = () => answer(0);

  it.each([
    ["claude-sonnet-5", undefined, 1],
    ["us.anthropic.claude-sonnet-5-v1:0", undefined, 1],
    ["deepseek-chat", undefined, 0],
    ["deepseek-chat", "auto", 1],
    ["claude-sonnet-5", "follow", 0],
    ["claude-sonnet-5", "none", 0],
  ] as const)("gets markers by default only from a model of Anthropic: %s, %s", async (model, breakpoints, count) => {
    const { client, sent } = await open({ breakpoints });
    await client.messages.create(paramsOf(2, { model, system: "Be brief." }));
    expect(readMarkers(sent().system)).toHaveLength(count);
    expect(readMarkers((sent().messages as object[]).at(-1))).toHaveLength(count);
  });

  it("is used and the request stays small with no option at all", async () => {
    const server = await startProvider({ answer: silent });
    servers.push(server);
    const client = withContextBudget(clientOf(server));
    await client.messages.create(paramsOf(400));
    const body = server.calls.at(-1)?.body ?? {};
    expect(readMarkers(body.messages).length).toBeGreaterThan(0);
    expect(JSON.stringify(body).length / 3.5).toBeLessThan(200_000);
    expect(JSON.stringify(paramsOf(400)).length / 3.5).toBeGreaterThan(100_000);
  });

  it("gets markers at the end, before the last turn and where the history was cut, on requests that use it", async () => {
    const { client, events, sent } = await open({ breakpoints: "follow" }, silent);
    const marked = () => (sent().messages as object[]).map((each) => readMarkers(each).length);
    for (let turns = 1; events.length === 0; turns++) {
      await client.messages.create(paramsOf(turns, { system }));
      expect(validateRequest(sent(), { provider: "anthropic" })).toEqual([]);
      expect(marked().at(-1)).toBe(1);
      expect(marked().filter((count) => count > 0)).toHaveLength(2 + events.length);
    }
  });

  it("is cold after its lifetime, which the markers set", async () => {
    let now = 1_000_000;
    for (const [marker, minutes] of [
      [short, 6],
      [{ ...short, ttl: "1h" as const }, 61],
    ] as const) {
      const { client, events } = await open({ now: () => now }, silent);
      const params = (turns: number) => paramsOf(turns, { cache_control: marker });
      for (let turns = 1; turns <= 12; turns++) await client.messages.create(params(turns));
      now += (minutes - 2) * 60_000;
      await client.messages.create(params(13));
      expect(events).toHaveLength(0);
      now += minutes * 60_000;
      await client.messages.create(params(14));
      expect(events).toHaveLength(1);
    }
  });
});

it("a model reads what was trimmed with the recall tool", async () => {
  const source = { store: createMemoryStore(), sessionId: "s" };
  const recall = recallTool(source);
  const { client, events, server } = await open({ ...source, reserve: 4_000 }, ({ body }) => {
    const call = server.calls.length;
    const use = (name: string, input: object) => [{ type: "tool_use", id: `toolu_${call}`, name, input }];
    const usage = { input_tokens: Math.round(JSON.stringify(body.messages).length / 3.5), output_tokens: 5 };
    const done = [{ type: "text", text: "Done." }];
    const content =
      call < 40 ? use("read", { path: `src/${call}.ts` }) : call === 40 ? use("recall", { grep: "file 1:" }) : done;
    return { content, usage };
  });
  const run = { parse: (input: unknown) => input as { path: string } };
  const read = {
    ...{ ...run, type: "custom" as const, name: "read", input_schema: { type: "object" as const } },
    run: ({ path }: { path: string }) => `file ${path.slice(4, -3)}: ${"let x = 1;\n".repeat(300)}`,
  };
  const tools = [read, { ...recall.definition, ...run, type: "custom" as const, run: recall.handle }];
  const system = `You look for bugs. ${recall.instructions}`;
  const messages = [{ role: "user" as const, content: "Where is the bug?" }];
  const params = { model: "claude-sonnet-5", max_tokens: 1_000, system, messages, tools };
  await client.beta.messages.toolRunner(params).runUntilDone();
  expect(events.length).toBeGreaterThan(0);
  const last = server.calls.at(-1)?.body ?? {};
  expect(JSON.stringify((last.messages as object[]).at(-1))).toMatch(/[a-z2-7]{16}:1: file 1: let x = 1;/);
  expect(last.tools).toMatchObject([{ name: "read" }, { name: "recall", input_schema: { type: "object" } }]);
  expect(validateRequest(last, { format: "anthropic" })).toEqual([]);
});
