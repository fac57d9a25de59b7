// biome-ignore-all lint/correctness/useImportExtensions: the file beside provider.mjs has only its types
import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { createProvider } from "../../../scripts/provider/provider.mjs";
import { bindsThinking } from "../../core/messages/index.ts";
import { claudeFolder } from "./claude-code.ts";

type Hook = (client: unknown, event: unknown, next: (event: unknown) => Promise<unknown>) => Promise<unknown>;
type Answer = (input: Record<string, string>) => object | Promise<object>;
type Block = Record<string, unknown>;

/** The module, loaded anew, and a client whose MCP server gives these answers. */
async function load(answer: Answer, { calls = ["b"] } = {}) {
  vi.resetModules();
  const { register } = await import("./claude-register.ts");
  const hooks: { which: unknown; hook: Hook }[] = [];
  const starts: Hook[] = [];
  const fetches: Hook[] = [];
  register(((event: string, ...rest: [unknown, Hook] | [Hook]) => {
    if (event === "session.start") starts.push(rest[0] as Hook);
    else if (event === "http.fetch") fetches.push(rest[0] as Hook);
    else hooks.push({ which: rest[0], hook: rest[1]! });
  }) as never);
  const asked: Record<string, string>[] = [];
  const $ = {
    mcp: {
      async call(_server: string, _tool: string, input: Record<string, string>) {
        asked.push(input);
        return { content: [{ text: JSON.stringify(await answer(input)) }], isError: false };
      },
    },
    session: {
      id: async () => "s",
      messages: async () => [
        { content: calls.map((id) => ({ type: "tool_use", id, name: "Bash", input: { command: "ls" } })) },
        { content: calls.map((id) => ({ type: "tool_result", tool_use_id: id, content: "text" })) },
      ],
    },
    clock: { sleep: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms / 100).unref()) },
  };
  /** Runs the hooks whose patterns fit, as the client does. */
  const pass = async (tool: string, block: Block, client: object = $): Promise<unknown> => {
    const row = { door: "tool-result", origin: { kind: "tool", tool }, message: { content: [block] } };
    let runs = 0;
    const from =
      (index: number) =>
      (event: unknown): Promise<unknown> => {
        const at = hooks.findIndex(({ which }, each) => each >= index && fits(row, which));
        if (at < 0) return Promise.resolve(event);
        runs++;
        return hooks[at]!.hook(client, event, from(at + 1));
      };
    const { message } = (await from(0)(row)) as typeof row;
    return { content: message.content[0]!.content, runs };
  };
  return { $, pass, asked, fetches, start: (client: object) => starts[0]!(client, {}, async (event) => event) };
}

/** As the client compares: an expression tests a text, a list is one of several, an object is a part of an object, and a
 *  list in the event fits if one of its elements does. */
function fits(value: unknown, which: unknown): boolean {
  if (Array.isArray(which)) return which.some((each) => fits(value, each));
  if (Array.isArray(value)) return value.some((each) => fits(each, which));
  if (which instanceof RegExp) return typeof value === "string" && which.test(value);
  if (typeof which !== "object" || which === null) return value === which;
  return Object.entries(which).every(([key, each]) => fits(Object(value)[key], each));
}

const long = "a line of text\n".repeat(60);
const result = (content: unknown, more: Block = {}): Block => ({
  ...{ type: "tool_result", tool_use_id: "1", content },
  ...more,
});
const shorter: Answer = ({ module_request }) => (module_request === "append" ? { text: "short", bases: ["b"] } : {});
const failed = { is_error: true };

test("a failure and the result of an unknown tool become what the process answers, as a text or as one block", async () => {
  const { pass, asked } = await load(shorter, { calls: ["1", "b"] });
  expect(await pass("Bash", result(long, failed))).toEqual({ content: "short", runs: 1 });
  expect(asked).toEqual([
    {
      ...{ module_request: "append", session_id: "s", agent_id: "", tool_use_id: "1", tool_name: "Bash" },
      ...{ tool_input: '{"command":"ls"}', tool_response: long },
    },
  ]);
  const block = { type: "text", text: long };
  expect(await pass("WebSearch", result([block]))).toMatchObject({ content: [{ type: "text", text: "short" }] });
  await pass("WebSearch", result(long, failed));
  expect(asked).toHaveLength(3);
});

test("other results do not come here, so that they cost nothing", async () => {
  const { pass } = await load(shorter);
  for (const tool of ["Bash", "Read", "Grep", "Edit", "mcp__a__b"]) {
    expect(await pass(tool, result(long))).toEqual({ content: long, runs: 0 });
  }
  expect(await pass("Bash", result("short", failed))).toMatchObject({ runs: 0 });
  expect(await pass("WebSearch", result("short"))).toMatchObject({ runs: 0 });
});

test("the hook's note in Read becomes the text that the process has", async () => {
  const { pass } = await load(({ module_request }) => (module_request === "complete" ? { text: "delta" } : {}));
  const note = "1\t[plimsoll shortens this result. To see it, make the same call again.]";
  expect(await pass("Read", result(note))).toEqual({ content: "delta", runs: 1 });
  expect(await pass("Read", result(note.replace("1", "50")))).toMatchObject({ runs: 0 });
  expect(await pass("Bash", result(note))).toEqual({ content: note, runs: 0 });
  const none = await load(() => ({}));
  expect(await none.pass("Read", result(note))).toEqual({ content: note, runs: 1 });
});

test("references to tools, images and several blocks are never touched", async () => {
  const { pass } = await load(shorter);
  for (const content of [
    [{ type: "tool_reference", tool_name: "x" }],
    [{ type: "image" }],
    [
      { type: "text", text: long },
      { type: "text", text: "b" },
    ],
  ]) {
    expect(await pass("Bash", result(content, failed))).toMatchObject({ content });
  }
});

test("a result that refers to a call which the context lost stays whole, and the process is told", async () => {
  const { pass, asked } = await load(shorter, { calls: ["1", "other"] });
  expect(await pass("Bash", result(long, failed))).toMatchObject({ content: long });
  expect(asked.map(({ module_request }) => module_request)).toEqual(["append", "lost_calls"]);
  expect(asked[1]?.tool_input).toBe('["b"]');
});

test("a process that is missing, fails or never answers leaves the result as it is", async () => {
  const { pass, $ } = await load(shorter);
  const calls = [
    async () => Promise.reject(new Error("no connected MCP tool")),
    async () => ({ content: [{ text: "not JSON" }], isError: false }),
    () => new Promise(() => {}),
  ];
  for (const call of calls) {
    expect(await pass("Bash", result(long, failed), { ...$, mcp: { call } })).toMatchObject({ content: long });
  }
});

test("while a call is unanswered the module asks nothing and waits for nothing, and then goes on", async () => {
  const { pass, $ } = await load(shorter);
  let asked = 0;
  let wake = (): void => {};
  const call = () => {
    asked++;
    const answer = { content: [{ text: '{"text":"short"}' }], isError: false };
    if (asked > 1) return Promise.resolve(answer);
    return new Promise((resolve) => {
      wake = () => resolve(answer);
    });
  };
  const client = { ...$, mcp: { call } };
  for (let attempt = 0; attempt < 6; attempt++)
    expect(await pass("Bash", result(long, failed), client)).toMatchObject({ content: long });
  expect(asked).toBe(1);
  wake();
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(await pass("Bash", result(long, failed), client)).toMatchObject({ content: "short" });
});

test("a process that fails at once is asked again for the next result", async () => {
  const { pass, $ } = await load(shorter);
  let asked = 0;
  const call = async () => {
    asked++;
    throw new Error("crashed");
  };
  for (let attempt = 0; attempt < 6; attempt++) await pass("Bash", result(long, failed), { ...$, mcp: { call } });
  expect(asked).toBe(6);
});

test("the module introduces itself when the process is there, and the session does not wait for it", async () => {
  const { start, $ } = await load(() => ({}));
  let attempts = 0;
  const introduced = new Promise<object>((resolve) => {
    const call = async (_server: string, _tool: string, input: object) => {
      if (attempts++ < 3) throw new Error("not connected");
      resolve(input);
      return { content: [{ text: "{}" }], isError: false };
    };
    void start({ ...$, mcp: { call } });
  });
  expect(await introduced).toEqual({ module_request: "module_ready", session_id: "s" });
  const never = { ...$, mcp: { call: () => new Promise(() => {}) } };
  expect(await start(never)).toEqual({});
});

test("the shipped module is the built one, and imports nothing", () => {
  const shipped = readFileSync(new URL("../../../plugins/claude-code/hooks/register.js", import.meta.url), "utf8");
  const names = [
    ...readFileSync(new URL("./claude-register.ts", import.meta.url), "utf8").matchAll(
      /^(?:export |async )*function (\w+)/gm,
    ),
  ];
  expect(names.length).toBeGreaterThan(5);
  for (const [, name] of names) expect(shipped).toContain(`function ${name}(`);
  expect(shipped).not.toMatch(/\bimport\b[\s(]|process\.|require\(/);
  expect(shipped.length).toBeLessThan(1_048_576);
});

const body = JSON.stringify({ model: "m", messages: [{ content: "a" }, { content: "b" }], tools: [{}] });
const request = { url: "http://127.0.0.1/v1/messages?beta=true", init: { method: "POST", headers: {}, body } };
const engine = { origin: { plugin: "engine" } };

test("a request of the client goes out with the messages that our process chose", async () => {
  const { $, fetches, asked } = await load(() => ({ messages: [1, { content: "short" }] }));
  const next = Object.assign(async (event: unknown) => event, engine);
  const sent = (await fetches[0]!($, request, next)) as typeof request;
  expect(JSON.parse(sent.init.body)).toEqual({
    model: "m",
    messages: [{ content: "b" }, { content: "short" }],
    tools: [{}],
  });
  expect(asked[0]).toMatchObject({ module_request: "trim", session_id: "s", tool_response: body });
  const others = [
    [{ ...request, url: "http://127.0.0.1/v1/messages/count_tokens" }, next],
    [request, Object.assign(async (event: unknown) => event, { origin: { plugin: "other" } })],
  ] as const;
  for (const [event, pass] of others) expect(await fetches[0]!($, event, pass)).toBe(event);
  expect(asked).toHaveLength(1);
});

/** Sends requests whose message number `trimmed` was shortened by the process, which answers while `isAwake`. */
async function loadTrim() {
  const state = { isAwake: true, numbers: [] as string[] };
  const { $, fetches } = await load(({ tool_input }) => {
    if (!state.isAwake) return new Promise(() => {});
    state.numbers.push(tool_input!);
    return { messages: [{ role: "user", content: "short" }, 1, 2] };
  });
  const next = Object.assign(async (event: unknown) => event, engine);
  const send = async (messages: readonly object[], agent = "") => {
    const headers = agent === "" ? {} : { "x-claude-code-agent-id": agent };
    const init = { ...request.init, headers, body: JSON.stringify({ model: "m", messages, tools: [{}] }) };
    const sent = (await fetches[0]!($, { ...request, init }, next)) as typeof request;
    return JSON.parse(sent.init.body).messages as object[];
  };
  return { state, send };
}

const marked = (text: string) => [{ type: "text", text, cache_control: { type: "ephemeral" } }];
const plain = (text: string) => [{ type: "text", text }];
const history: object[] = [
  { role: "user", content: "a very long result" },
  { role: "assistant", content: "b" },
  { role: "user", content: marked("c") },
];

test("a late process: the request repeats the last one, adds what is new, and says so later", async () => {
  const { state, send } = await loadTrim();
  expect(await send(history)).toEqual([{ role: "user", content: "short" }, history[1], history[2]]);
  state.isAwake = false;
  const longer = [...history.slice(0, 2), { role: "user", content: "c" }, { role: "assistant", content: marked("d") }];
  const expected = [
    { role: "user", content: "short" },
    history[1],
    { role: "user", content: plain("c") },
    { role: "assistant", content: marked("d") },
  ];
  expect(await send(longer)).toEqual(expected);
  const longest = [...longer.slice(0, 3), { role: "assistant", content: "d" }, { role: "user", content: marked("e") }];
  expect(await send(longest)).toEqual([
    ...expected.slice(0, 3),
    { role: "assistant", content: plain("d") },
    { role: "user", content: marked("e") },
  ]);
  // Another agent and a rewound conversation have nothing to repeat.
  expect(await send(longest, "agent")).toEqual(longest);
  expect(await send([{ role: "user", content: "other" }])).toEqual([{ role: "user", content: "other" }]);
});

test("the process hears how many requests went without it", async () => {
  const calls: string[] = [];
  const { $, fetches } = await load(({ tool_input }) => {
    calls.push(tool_input!);
    if (calls.length === 2) throw new Error("gone");
    return { messages: [0, 1] };
  });
  const next = Object.assign(async (event: unknown) => event, engine);
  for (let turn = 0; turn < 4; turn++) await fetches[0]!($, request, next);
  const none = '{"repeated":0,"whole":0}';
  const one = '{"repeated":1,"whole":0}';
  expect(calls).toEqual([none, none, one, one]);
});

test("a request stays as it is if our process fails, or if the client refuses another one", async () => {
  const failing = await load(() => Promise.reject(new Error("gone")));
  const next = Object.assign(async (event: unknown) => event, engine);
  expect(await failing.fetches[0]!(failing.$, request, next)).toBe(request);
  const { $, fetches, asked } = await load(() => ({ messages: [1] }));
  const refusing = Object.assign(async (event: unknown) => {
    if (event !== request) throw new Error("refused");
    return event;
  }, engine);
  for (let turn = 0; turn < 4; turn++) expect(await fetches[0]!($, request, refusing)).toBe(request);
  expect(asked).toHaveLength(2);
  const offline = Object.assign(() => Promise.reject(new Error("offline")), engine);
  const other = await load(() => ({ messages: [1] }));
  for (let turn = 0; turn < 4; turn++)
    await expect(other.fetches[0]!(other.$, request, offline)).rejects.toThrow("offline");
  expect(other.asked).toHaveLength(4);
});

test("with --images, old images become notes, as many at once as stay, and other requests pass as they are", async () => {
  const text = claudeFolder({ deltas: true, images: 2 })["hooks/register.js"] as string;
  const register = new Function(`${text.replace("export function", "function")}; return register;`)();
  let change: Hook | undefined;
  register((event: string, hook: Hook) => {
    if (event === "http.fetch") change = hook;
  });
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
  const shot = (id: number) => ({
    type: "tool_result",
    tool_use_id: `${id}`,
    content: [{ type: "text", text: "ok" }, image],
  });
  const attached = { role: "user", content: [image] };
  const next = Object.assign(async (event: unknown) => event, engine);
  const send = async (count: number) => {
    const shots = Array.from({ length: count }, (_, id) => ({ role: "user", content: [shot(id)] }));
    const messages = [attached, { role: "user", content: "go" }, ...shots];
    const event = {
      ...request,
      init: { ...request.init, body: JSON.stringify({ model: "m", messages, tools: [{}] }) },
    };
    const sent = (await change!({}, event, next)) as typeof request;
    const kept = JSON.parse(sent.init.body).messages as { content: Block[] }[];
    expect(kept[0]).toEqual(attached);
    return kept.slice(2).map(({ content }) => (JSON.stringify(content).includes("aGk=") ? "image" : "note"));
  };
  expect(await send(3)).toEqual(["image", "image", "image"]);
  expect(await send(4)).toEqual(["note", "note", "image", "image"]);
  expect(await send(5)).toEqual(["note", "note", "image", "image", "image"]);
  expect(await send(6)).toEqual(["note", "note", "note", "note", "image", "image"]);
  const plain = { ...request, init: { ...request.init, body: "not JSON" } };
  expect(await change!({}, plain, next)).toBe(plain);
});

const models = [
  "claude-opus-5-5",
  "claude-opus-5",
  "claude-sonnet-4-5-20250929",
  "claude-fable-5-20260601",
  "us.anthropic.claude-haiku-5-5-v1:0",
];

test.each(models)("with --images, no thinking stays that %s would refuse, and other thinking does", async (model) => {
  const text = claudeFolder({ deltas: true, images: 2 })["hooks/register.js"] as string;
  const register = new Function(`${text.replace("export function", "function")}; return register;`)();
  let change: Hook | undefined;
  register((event: string, hook: Hook) => {
    if (event === "http.fetch") change = hook;
  });
  const provider = createProvider({
    checks: false,
    answer: ({ number }) => ({ thinking: "so", calls: [{ name: "shot", input: {}, id: `t${number}` }] }),
  });
  const next = Object.assign(async (event: unknown) => event, engine);
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } };
  const messages: object[] = [{ role: "user", content: "go" }];
  const kept: number[] = [];
  for (let turn = 1; turn <= 9; turn++) {
    const body = JSON.stringify({
      model,
      max_tokens: 9,
      thinking: { type: "adaptive" },
      messages,
      tools: [{ name: "shot", input_schema: {} }],
    });
    const sent = (await change!({}, { ...request, init: { ...request.init, body } }, next)) as typeof request;
    kept.push(sent.init.body.split('"type":"thinking"').length - 1);
    const { json, status } = await provider.handle({ path: "/v1/messages", body: JSON.parse(sent.init.body) });
    expect({ turn, status, refusals: provider.refusals().map(({ refusal }) => refusal) }).toEqual({
      turn,
      status: 200,
      refusals: [],
    });
    const result = {
      type: "tool_result",
      tool_use_id: `t${turn}`,
      content: [{ type: "text", text: `shot ${turn}` }, image],
    };
    messages.push({ role: "assistant", content: json.content }, { role: "user", content: [result] });
  }
  expect(provider.calls.flatMap(({ dropped }) => dropped)).toEqual([]);
  expect(kept).toEqual(bindsThinking(model) ? [0, 1, 2, 3, 1, 2, 1, 2, 1] : [0, 1, 2, 3, 4, 5, 6, 7, 8]);
});
