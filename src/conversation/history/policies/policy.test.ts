/** An answer is what the assistant says before the person speaks next. It stays, whoever ran its tools. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { caseCount } from "../../../../test/case-count.ts";
import { countMessages, type FormatName, validateRequest } from "../../../core/messages/index.ts";
import { createCounter } from "../../../core/tokens/index.ts";
import { fill } from "../exchanges.contract.ts";
import { createTrimmer } from "../trimmer.ts";
import { testPolicy } from "./policy.contract.ts";
import { policyNames } from "./policy.ts";
import type { PolicyCase } from "./policy-run.contract.ts";

const counter = await createCounter("estimate:claude-5");
const isDeep = process.env.PLIMSOLL_DEEP === "1";
const asked = 30;
const policies = ["economic", "gentle", "frugal"] as const;

/** The messages of one answer, tools included. */
type Answer = (id: string, said: string, size: number) => readonly object[];
type Said = (text: string) => object;

const text = (words: string) => ({ type: "text", text: words });
const assistant = (...content: object[]) => ({ role: "assistant", content });
const lines = (id: string, size: number) => fill(`line of ${id}\n`, size);
const searched = (id: string, size: number) => [
  { type: "server_tool_use", id, name: "web_search", input: { query: id } },
  {
    type: "web_search_tool_result",
    tool_use_id: id,
    content: [{ type: "web_search_result", url: "https://example.org", title: id, encrypted_content: fill(id, size) }],
  },
];
const cited = (words: string) => ({
  ...text(words),
  citations: [{ type: "web_search_result_location", url: "https://example.org", encrypted_index: "A" }],
});
const ran = (id: string, size: number) => [
  { type: "server_tool_use", id, name: "bash_code_execution", input: { command: `run ${id}` } },
  {
    type: "bash_code_execution_tool_result",
    tool_use_id: id,
    content: { type: "bash_code_execution_result", stdout: lines(id, size), stderr: "", return_code: 0 },
  },
];
const connected = (id: string, size: number) => [
  { type: "mcp_tool_use", id, name: "lookup", server_name: "docs", input: { id } },
  { type: "mcp_tool_result", tool_use_id: id, is_error: false, content: [text(lines(id, size))] },
];
const thought = (id: string) => ({ type: "thinking", thinking: `About ${id}.`, signature: fill(id, 200) });

const ofAnthropic: Readonly<Record<string, Answer>> = {
  "web search": (id, said, size) => [assistant(...searched(id, size), cited(said))],
  "code execution": (id, said, size) => [assistant(text("Let me see."), ...ran(id, size), text(said))],
  "the MCP connector": (id, said, size) => [assistant(thought(id), ...connected(id, size), text(said))],
  "several of them": (id, said, size) => [
    assistant(
      ...[thought(id), ...searched(`${id}a`, size / 2), text("And now?"), ...ran(`${id}b`, size / 2)],
      ...[thought(`${id}b`), text(said)],
    ),
  ],
  "tools of the client beside them": (id, said, size) => [
    assistant(...ran(`${id}a`, size / 2), { type: "tool_use", id: `${id}b`, name: "read", input: {} }),
    { role: "user", content: [{ type: "tool_result", tool_use_id: `${id}b`, content: lines(id, size / 4) }] },
    assistant(...connected(`${id}c`, size / 4), text(said)),
  ],
  "code that calls tools of the client": (id, said, size) => {
    const [call, result] = ran(`${id}a`, size) as [object, object];
    return [
      assistant(call, { type: "tool_use", id: `${id}b`, name: "read", input: {} }),
      { role: "user", content: [{ type: "tool_result", tool_use_id: `${id}b`, content: "ok" }] },
      assistant(result, text(said)),
    ];
  },
};

const reasoning = (id: string) => ({
  type: "reasoning",
  id: `rs_${id}`,
  summary: [],
  encrypted_content: fill(id, 300),
});
const message = (id: string, words: string) => ({
  type: "message",
  id: `msg_${id}`,
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: words, annotations: [] }],
});
const hosted: Readonly<Record<string, (id: string, size: number) => object>> = {
  web_search: (id, size) => ({
    type: "web_search_call",
    id: `ws_${id}`,
    status: "completed",
    action: {
      type: "search",
      query: id,
      sources: [{ type: "url", url: fill("https://example.org/", size) }],
    },
  }),
  file_search: (id, size) => ({
    type: "file_search_call",
    id: `fs_${id}`,
    status: "completed",
    queries: [id],
    results: [{ file_id: "f", filename: "a.md", score: 1, text: lines(id, size) }],
  }),
  mcp_call: (id, size) => ({
    type: "mcp_call",
    id: `mcp_${id}`,
    server_label: "docs",
    name: "lookup",
    arguments: "{}",
    output: lines(id, size),
  }),
  code_interpreter: (id, size) => ({
    type: "code_interpreter_call",
    id: `ci_${id}`,
    container_id: "c",
    status: "completed",
    code: "print(1)",
    outputs: [{ type: "logs", logs: lines(id, size) }],
  }),
};
const ofResponses: Readonly<Record<string, Answer>> = {
  ...Object.fromEntries(
    Object.entries(hosted).map(([name, call]): [string, Answer] => [
      name,
      (id, said, size) => [reasoning(id), call(id, size), message(id, said)],
    ]),
  ),
  "several of them": (id, said, size) => [
    reasoning(id),
    hosted.web_search!(id, size / 2),
    reasoning(`${id}b`),
    hosted.mcp_call!(id, size / 2),
    reasoning(`${id}c`),
    message(id, said),
  ],
  "tools of the client beside them": (id, said, size) => [
    reasoning(id),
    hosted.web_search!(id, size / 2),
    { type: "function_call", id: `fc_${id}`, call_id: id, name: "read", arguments: "{}" },
    { type: "function_call_output", call_id: id, output: lines(id, size / 2) },
    hosted.file_search!(id, size / 2),
    message(id, said),
  ],
};

const provided = (id: string, size: number) => {
  const fields = { toolCallId: id, toolName: "web_search", providerExecuted: true };
  return [
    { type: "tool-call", ...fields, input: { query: id } },
    { type: "tool-result", ...fields, output: { type: "text", value: lines(id, size) } },
  ];
};
const stored = (itemId: string) => ({ providerOptions: { openai: { itemId } } });
const ofAiSdk: Readonly<Record<string, Answer>> = {
  "tools of the provider": (id, said, size) => [assistant(...provided(id, size), text(said))],
  "tools and items of the provider": (id, said, size) => [
    assistant({ type: "reasoning", text: `About ${id}.`, ...stored(`rs_${id}`) }, ...provided(id, size), {
      ...text(said),
      ...stored(`msg_${id}`),
    }),
  ],
  "tools of the client beside them": (id, said, size) => [
    assistant(...provided(`${id}a`, size / 2), {
      type: "tool-call",
      toolCallId: id,
      toolName: "read",
      input: {},
    }),
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: id,
          toolName: "read",
          output: { type: "text", value: lines(id, size / 4) },
        },
      ],
    },
    assistant(...provided(`${id}b`, size / 4), text(said)),
  ],
};

const person: Said = (words) => ({ role: "user", content: [text(words)] });
const formats: readonly (readonly [FormatName, Readonly<Record<string, Answer>>, Said])[] = [
  ["anthropic", ofAnthropic, person],
  ["responses", ofResponses, (words) => ({ role: "user", content: words })],
  ["ai-sdk", ofAiSdk, person],
];
const cases = formats.flatMap(([format, answers, said]) => {
  const kinds = Object.entries(answers);
  const mixed: Answer = (id, ...rest) => kinds[Number(id.slice(1)) % kinds.length]![1](id, ...rest);
  return [...kinds, ["a mixture", mixed] as const].flatMap(([name, answer]) =>
    [8, 30].map((words) => ({ format, name, answer, said, words })),
  );
});

describe.each(policies)("%s", (policy) => {
  it.each(cases)("keeps every answer of $words words beside $name, $format", async ({ format, ...each }) => {
    const trimmer = await createTrimmer({ contextWindow: 24_000, reserve: 4_000, counter, format, policy });
    const messages: object[] = [];
    const answers: string[] = [];
    for (let turn = 0; turn < (isDeep ? asked : 20); turn++) {
      messages.push(each.said(`question ${turn}`));
      const { messages: sent, overflow, stats } = trimmer.reduce({ messages });
      expect(overflow).toBeUndefined();
      expect(stats.after).toBeLessThanOrEqual(stats.budget);
      expect(validateRequest(sent, { format, strict: true })).toEqual([]);
      const shown = JSON.stringify(sent);
      expect(answers.filter((answer) => !shown.includes(answer))).toEqual([]);
      const answer = Array.from({ length: each.words }, (_word, at) => `answer ${turn}.${at}`).join(" ");
      answers.push(answer);
      messages.push(...each.answer(`t${turn}`, answer, 3_000 + ((turn * 977) % 4_000)));
    }
    expect((await trimmer.checkpoint()).ledger.epochs.length).toBeGreaterThan(0);
  });
});

describe("an answer whose tools are gone", () => {
  const sentOf = async (format: FormatName, answer: Answer, said: Said) => {
    const trimmer = await createTrimmer({ contextWindow: 24_000, reserve: 4_000, counter, format });
    const turns = Array.from({ length: asked }, (_each, turn) => [
      said(`question ${turn}`),
      ...answer(`t${turn}`, `answer ${turn}`, 4_000),
    ]);
    return trimmer.reduce({ messages: [...turns.flat(), said("and now?")] }).messages;
  };
  const [[, , fromPerson], [, , fromItem]] = formats as [(typeof formats)[0], (typeof formats)[0]];

  it("has no id with which the provider would require the reasoning before it", async () => {
    const { id: _id, ...bare } = message("t0", "answer 0");
    const sent = await sentOf("responses", ofResponses.web_search!, fromItem);
    expect(sent.slice(0, 3)).toEqual([fromItem("question 0"), bare, fromItem("question 1")]);
    expect(sent.slice(-4)).toContainEqual(message("t29", "answer 29"));
    const parts = await sentOf("ai-sdk", ofAiSdk["tools and items of the provider"]!, fromPerson);
    expect(parts[1]).toEqual(assistant({ ...text("answer 0"), providerOptions: { openai: {} } }));
  });

  it("has no citations of removed content", async () => {
    const sent = await sentOf("anthropic", ofAnthropic["web search"]!, fromPerson);
    expect(sent[1]).toEqual(assistant(text("answer 0")));
    expect(sent.at(-2)).toEqual(assistant(...searched("t29", 4_000), cited("answer 29")));
  });

  it("becomes a placeholder if it is long, as beside other tools", async () => {
    const long: Answer = (id, said, size) => ofAnthropic["code execution"]!(id, `${said} ${lines(id, 2_000)}`, size);
    const sent = await sentOf("anthropic", long, fromPerson);
    expect(sent[1]).toEqual(assistant(text(expect.stringMatching(/^\[trimmed: text, \d+ lines\]$/))));
    expect(validateRequest(sent, { format: "anthropic", strict: true })).toEqual([]);
  });
});

const numRuns = caseCount({ few: 1, deep: 25, long: 100 });

describe.each(policyNames)("beside tools of the provider, %s", (policy) => {
  for (const [format] of formats) testPolicy(policy, format, { numRuns, cases: drawCase });
});

/** Sessions with short and long answers beside every kind of tool, in windows that hold only a part. */
function drawCase(format: FormatName): fc.Arbitrary<PolicyCase> {
  const [, answers, said] = formats.find(([name]) => name === format)!;
  const turn = fc.record({
    answer: fc.constantFrom(...Object.values(answers)),
    words: fc.nat({ max: 400 }),
    size: fc.oneof(fc.nat({ max: 400 }), fc.nat({ max: 8_000 })),
    isCold: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 9),
    isRestart: fc.integer({ min: 0, max: 4 }).map((drawn) => drawn === 4),
  });
  const share = fc.double({ min: 0.05, max: 1.2, noNaN: true });
  const keep = fc.nat({ max: 12 });
  return fc.record({ turns: fc.array(turn, { minLength: 1, maxLength: 16 }), share, keep }).map((drawn) => {
    const messages: object[] = [said("question")];
    const calls = drawn.turns.map(({ answer, words, size, isCold, isRestart }, index) => {
      const { length } = messages;
      const told = Array.from({ length: words + 1 }, (_word, at) => `answer${index}.${at}`).join(" ");
      messages.push(...answer(`t${index}`, told, size), said(`question ${index}`));
      return { length, isCold, isRestart };
    });
    const contextWindow = Math.ceil(1 + drawn.share * countMessages(messages, counter, { format }));
    const options = { contextWindow, reserve: 0, counter, keep: drawn.keep };
    return { format, messages, calls, options };
  });
}
