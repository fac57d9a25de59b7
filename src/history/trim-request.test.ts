import type Anthropic from "@anthropic-ai/sdk";
import type { ModelMessage } from "ai";
import type OpenAI from "openai";
import { describe, expect, expectTypeOf, it } from "vitest";
import { createCounter } from "../tokens/index.ts";
import { exchanges, user } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, ...options });

const item = (index: number) => [
  { type: "function_call" as const, call_id: `c${index}`, name: "ls", arguments: "{}" },
  { type: "function_call_output" as const, call_id: `c${index}`, output: `${index} `.repeat(500) },
];
const items = Array.from({ length: 60 }, (_each, index) => item(index)).flat();

describe("messages of an SDK's type", () => {
  it("come back as such, in a list that the SDK takes", async () => {
    const trimmer = await create();
    const anthropic: Anthropic.MessageParam[] = [{ role: "user", content: "go" }];
    const anthropicRequest: Anthropic.MessageCreateParams = {
      ...{ model: "claude-sonnet-5", max_tokens: 1_000 },
      messages: trimmer.reduce({ messages: anthropic, system: "Be brief." }).messages,
    };
    const chat: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "go" }];
    const chatRequest: OpenAI.ChatCompletionCreateParams = {
      model: "gpt-5",
      messages: trimmer.reduce({ messages: chat }).messages,
    };
    const aiSdk: ModelMessage[] = [{ role: "user", content: "go" }];
    expectTypeOf(trimmer.reduce({ messages: aiSdk }).messages).toEqualTypeOf<ModelMessage[]>();
    expectTypeOf(trimmer.reduce({ messages: [] as object[] }).messages).toEqualTypeOf<object[]>();
    expect([anthropicRequest.messages, chatRequest.messages]).toEqual([anthropic, chat]);
  });

  it("may be the whole request, be it of messages or of responses", async () => {
    const request: Anthropic.MessageCreateParamsNonStreaming = {
      ...{ model: "claude-sonnet-5", max_tokens: 1_000, system: "Be brief." },
      messages: [{ role: "user", content: "go" }],
    };
    const sent = { ...request, messages: (await create()).reduce(request).messages };
    expectTypeOf(sent).toExtend<Anthropic.MessageCreateParamsNonStreaming>();
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: "go" }, ...items];
    const response: OpenAI.Responses.ResponseCreateParams = {
      model: "gpt-5",
      input: (await create()).reduce({ input, instructions: "Be brief." }).messages,
    };
    expect(response.input?.length).toBeLessThan(input.length);
  });
});

describe("a request of OpenAI's responses", () => {
  const question = { role: "user", content: "go" };
  const instructions = "Be brief. ".repeat(200);

  it("is reduced as one with messages and system text is", async () => {
    const reduction = (await create()).reduce({ input: [question, ...items], instructions });
    const named = await create({ format: "responses" });
    expect(reduction).toEqual(named.reduce({ messages: [question, ...items], system: instructions }));
    expect(reduction.stats.epochs).toBe(1);
    expect(reduction.stats.budget).toBeLessThan(9_600);
  });

  it("has its format from the first plain text on", async () => {
    const trimmer = await create();
    expect(trimmer.reduce({ input: "go" }).messages).toEqual([question]);
    const image = { type: "message", role: "user", content: [{ type: "input_text", text: "see" }] };
    expect(trimmer.reduce({ input: [question, image, ...item(0)] }).messages).toHaveLength(4);
  });

  it("may leave its instructions out, or say null", async () => {
    const trimmer = await create();
    const { budget } = trimmer.reduce({ input: [question] }).stats;
    expect(trimmer.reduce({ input: [question], instructions: null }).stats.budget).toBe(budget);
  });
});

describe("a request that is none", () => {
  it.each([
    [{ prompt: "go" }, "messages must be an array, not undefined"],
    [[user("go")], "messages must be an array, not undefined"],
    [undefined, "messages must be an array, not undefined"],
    [{ instructions: "Be brief." }, "messages must be an array, not undefined"],
    [{ input: { role: "user" } }, "input must be an array, not object"],
    [{ messages: null, input: [] }, "messages must be an array, not null"],
  ])("is refused with what to pass: %j", async (request, message) => {
    const trimmer = await create();
    expect(() => trimmer.reduce(request as unknown as { messages: object[] })).toThrow(
      expect.objectContaining({
        ...{ code: "invalid_message", message },
        hint: expect.stringMatching(/messages, system.*input, instructions/),
      }),
    );
    expect(trimmer.reduce({ messages: [user("go"), ...exchanges(1)] }).messages).toHaveLength(3);
  });
});

describe("a developer's text at the beginning", () => {
  const beginning = [
    { role: "developer", content: "Be brief." },
    { role: "user", content: "go" },
  ];
  const chat = [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "a", type: "function", function: { name: "ls", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "a", content: "x" },
  ];

  it.each([
    ["responses", [{ type: "reasoning", id: "rs_1", summary: [] }, ...item(0)]],
    ["openai", chat],
  ] as const)("leaves it open which of OpenAI's formats follows: %s", async (format, work) => {
    const trimmer = await create();
    const said = [...beginning, { role: "assistant", content: "where?" }, { role: "user", content: "there" }];
    for (const messages of [beginning, said, [...said, ...work], [...said, ...work, beginning[1]!]]) {
      const expected = (await create({ format })).reduce({ messages });
      const { stats, messages: sent } = trimmer.reduce({ messages });
      expect(sent).toEqual(messages);
      if (messages.length > said.length) expect(stats).toEqual(expected.stats);
    }
  });
});
