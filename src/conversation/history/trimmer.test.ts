import type Anthropic from "@anthropic-ai/sdk";
import type { ModelMessage } from "ai";
import type OpenAI from "openai";
import { describe, expect, expectTypeOf, it } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { assistant, exchange, exchanges, user } from "./exchanges.contract.ts";

import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, ...options });
const refusal = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) });

describe("options", () => {
  it.each<[string, Partial<Record<keyof TrimmerOptions, unknown>>]>([
    ["contextWindow is -1", { contextWindow: -1 }],
    ["contextWindow is NaN", { contextWindow: Number.NaN }],
    ["contextWindow is 1.5", { contextWindow: 1.5 }],
    ["contextWindow is undefined", { contextWindow: undefined }],
    ["reserve is -5", { reserve: -5 }],
    ["prefixTokens is Infinity", { prefixTokens: Number.POSITIVE_INFINITY }],
    ["keep is -1", { keep: -1 }],
    ["threshold is 1.1", { threshold: 1.1 }],
    ["threshold is NaN", { threshold: Number.NaN }],
    ['unknown policy "cheap"', { policy: "cheap" }],
    ['unknown format "xml"', { format: "xml" }],
    ['unknown placeholders "long"', { placeholders: "long" }],
    ['unknown isTrimmable "all"', { isTrimmable: "all" }],
    ['unknown sealed "half"', { sealed: "half" }],
  ])("are refused by name: %s", async (message, options) => {
    await expect(create(options as Partial<TrimmerOptions>)).rejects.toThrow(refusal("invalid_argument", message));
  });

  it.each([
    [200_000, 184_000],
    [20_000, 10_000],
  ])(
    "default to the model's counter and keep room for the answer: of %i tokens %i are left",
    async (contextWindow, budget) => {
      const trimmer = await createTrimmer({ contextWindow, model: "claude-sonnet-4-5" });
      expect(trimmer.reduce({ messages: [user("go")] }).stats.budget).toBe(budget);
    },
  );

  it("are refused if they leave nothing for messages, or if the policy does not use them", async () => {
    await expect(create({ reserve: 6_000, prefixTokens: 4_000 })).rejects.toThrow(
      refusal("invalid_argument", "leave nothing for messages"),
    );
    await expect(create({ policy: "rfc", excludeTools: ["ls"] })).rejects.toThrow(
      refusal("invalid_argument", "excludeTools"),
    );
    await expect(create({ threshold: 0.5 })).rejects.toThrow(refusal("invalid_argument", "threshold"));
    await expect(create({ windw: 7 } as Partial<TrimmerOptions>)).rejects.toThrow(refusal("invalid_argument", "windw"));
  });
});

describe("the budget", () => {
  const tools = [{ name: "ls", description: "x".repeat(4_000), input_schema: { type: "object" } }];

  it("is the window without reserve, prefix, system text and tools", async () => {
    const trimmer = await create({ reserve: 1_000, prefixTokens: 500 });
    const budgetWith = (request: object) => trimmer.reduce({ messages: [user("go")], ...request }).stats.budget;
    expect(budgetWith({})).toBe(8_500);
    expect(budgetWith({ system: "" })).toBe(8_500);
    expect(8_500 - budgetWith({ system: "y".repeat(4_000) })).toBeGreaterThanOrEqual(1_000);
    expect(8_500 - budgetWith({ system: [{ type: "text", text: "y".repeat(4_000) }] })).toBeGreaterThanOrEqual(1_000);
    expect(8_500 - budgetWith({ tools })).toBeGreaterThanOrEqual(1_000);
    expect(budgetWith({})).toBe(8_500);
  });

  it("that is used up by tools causes an overflow", async () => {
    const { stats, overflow } = (await create({ contextWindow: 900 })).reduce({
      messages: [user("go")],
      tools,
    });
    expect(stats.budget).toBe(0);
    expect(overflow).toMatchObject({ limit: 0, tokens: stats.after });
  });

  it.each([
    ["system", { system: 7 }],
    ["system", { system: [{ type: "text", text: 7 }] }],
    ["tools", { tools: [{ name: 7 }] }],
    ["tools", { tools: "ls" }],
  ])("refuses a malformed %s, and the next call goes on", async (_name, request) => {
    const trimmer = await create({ format: "anthropic" });
    const messages = [user("go"), ...exchanges(60)];
    const before = trimmer.reduce({ messages });
    expect(() => trimmer.reduce({ messages, ...(request as object) })).toThrow(refusal("invalid_message", ""));
    expect(trimmer.reduce({ messages }).messages).toEqual(before.messages);
  });
});

describe("the format", () => {
  const call = { id: "a", type: "function", function: { name: "ls", arguments: "{}" } };
  const chat = [
    { role: "user", content: "go" },
    { role: "assistant", content: "where?" },
    { role: "user", content: "there" },
  ];
  const work = [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "a", content: "x" },
  ];

  it("may show only after some messages of plain text", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages: chat });
    const { messages, stats } = trimmer.reduce({ messages: [...chat, ...work] });
    expect(messages).toEqual([...chat, ...work]);
    const fresh = (await create({ format: "openai" })).reduce({ messages: [...chat, ...work] });
    expect(stats).toEqual(fresh.stats);
  });

  it("may show in a history that took the place of a longer one", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages: [...chat, assistant("ok"), user("more"), assistant("ok")] });
    const compacted = [chat[0]!, ...work];
    expect(trimmer.reduce({ messages: compacted }).messages).toEqual(compacted);
  });
});

describe("malformed messages", () => {
  it.each([undefined, null, "go", { messages: [] }])("that are not a list are refused: %j", async (messages) => {
    const trimmer = await create();
    const reduce = () => trimmer.reduce({ messages: messages as unknown as object[] });
    expect(reduce).toThrow(refusal("invalid_message", "messages"));
    trimmer.reduce({ messages: [user("go"), ...exchanges(2)] });
    expect(reduce).toThrow(refusal("invalid_message", "messages must be an array"));
    expect(trimmer.reduce({ messages: [user("go")] }).messages).toHaveLength(1);
  });

  it("never leave a half-trimmed history, and neither does an isPinned that throws", async () => {
    let isBroken = true;
    const isPinned = (_message: object, index: number) => {
      if (isBroken && index > 20) throw new Error("no such session");
      return false;
    };
    // Ids of the failed call are not used again.
    const trimmer = await create({ isPinned, placeholders: "plain" });
    const messages = [user("go"), ...exchanges(60)];
    expect(() => trimmer.reduce({ messages })).toThrow("no such session");
    expect((await trimmer.checkpoint()).ledger.epochs).toEqual([]);
    isBroken = false;
    const { messages: sent, stats } = trimmer.reduce({ messages });
    expect(stats.epochs).toBe(1);
    const fresh = await create({ placeholders: "plain" });
    expect(sent).toEqual(fresh.reduce({ messages }).messages);
    expect(decisionsOf(await trimmer.checkpoint())).toEqual(decisionsOf(await fresh.checkpoint()));
  });

  it("that could be read in part do not affect later calls", async () => {
    let input: object = {};
    for (let depth = 0; depth < 600; depth++) input = { input };
    const deep = { role: "assistant", content: [{ type: "tool_use", id: "deep", name: "ls", input }] };
    for (const broken of [deep, null as unknown as object]) {
      for (const policy of ["economic", "rfc"] as const) {
        const trimmer = await create({ policy });
        const messages = [user("go"), ...exchanges(40)];
        trimmer.reduce({ messages });
        const fork = [...messages.slice(0, 9), ...exchanges(40, { result: 1_000 }, 100)];
        const reduce = () => trimmer.reduce({ messages: [...fork.slice(0, 31), broken] });
        expect(reduce).toThrow(refusal("invalid_message", "messages[31]"));
        const fresh = await create({ policy });
        fresh.reduce({ messages });
        const { messages: sent, stats } = trimmer.reduce({ messages: fork });
        expect(fresh.reduce({ messages: fork })).toMatchObject({ messages: sent, stats });
      }
    }
  });
});

it("an empty history is sent unchanged", async () => {
  for (const policy of ["economic", "rfc"] as const) {
    const { messages, stats, overflow } = (await create({ policy })).reduce({ messages: [] });
    expect({ messages, after: stats.after, overflow }).toEqual({
      messages: [],
      after: 0,
      overflow: undefined,
    });
  }
});

it("a caller may keep one list and append to it", async () => {
  const trimmer = await create({ format: "anthropic" });
  const [list, copies] = [[user("go")], await create({ format: "anthropic" })];
  for (let index = 0; index < 80; index++) {
    list.push(...exchange(index));
    expect(trimmer.reduce({ messages: list })).toEqual(copies.reduce({ messages: [...list] }));
  }
});

/** Entries without their ids, because ids of a failed call are not used again. */
function decisionsOf({ ledger }: Checkpoint): object[] {
  return ledger.epochs.map(({ entries }) =>
    entries.map(({ message, part, decision }) => ({ message, part, decision })),
  );
}

const item = (index: number) => [
  { type: "function_call" as const, call_id: `c${index}`, name: "ls", arguments: "{}" },
  { type: "function_call_output" as const, call_id: `c${index}`, output: `${index} `.repeat(500) },
];
const items = Array.from({ length: 60 }, (_each, index) => item(index)).flat();

describe("messages of an SDK's type", () => {
  it("are returned with that type, in a list that the SDK accepts", async () => {
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

  it("may be a whole request, for messages or for responses", async () => {
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

  it("is reduced like one with messages and system text", async () => {
    const reduction = (await create()).reduce({ input: [question, ...items], instructions });
    const named = await create({ format: "responses" });
    expect(reduction).toEqual(named.reduce({ messages: [question, ...items], system: instructions }));
    expect(reduction.stats.epochs).toBe(3);
    expect(reduction.stats.budget).toBeLessThan(9_600);
  });

  it("has its format from the first plain text", async () => {
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

describe("an invalid request", () => {
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
