import { afterEach, describe, expect, it } from "vitest";
import {
  createProvider,
  type ProviderOptions,
  playTranscript,
  type RunningProvider,
  readTranscript,
  startProvider,
} from "./provider.mjs";

const words = (count: number) => "word ".repeat(count);
const count = (text: string) => text.split(/\s+/).filter(Boolean).length - 4;

interface Api {
  readonly path: string;
  readonly body: (text: string, more?: object) => object;
  readonly overflow: RegExp;
}

const apis: Record<string, Api> = {
  anthropic: {
    path: "/v1/messages",
    body: (content, more) => ({
      model: "claude-sonnet-5",
      max_tokens: 9,
      messages: [{ role: "user", content }],
      ...more,
    }),
    overflow: /^prompt is too long: 5\d\d tokens > 400 maximum$/,
  },
  chat: {
    path: "/v1/chat/completions",
    body: (content, more) => ({ model: "gpt-5", messages: [{ role: "user", content }], ...more }),
    overflow: /^This model's maximum context length is 400 tokens\. However, your messages resulted in 5\d\d tokens/,
  },
  responses: {
    path: "/v1/responses",
    body: (content, more) => ({ model: "gpt-5", input: [{ role: "user", content }], ...more }),
    overflow: /^Your input exceeds the context window of this model/,
  },
  gemini: {
    path: "/v1beta/models/gemini-3-pro:generateContent",
    body: (text, more) => ({ contents: [{ role: "user", parts: [{ text }] }], ...more }),
    overflow: /^The input token count \(5\d\d\) exceeds the maximum number of tokens allowed \(400\)\.$/,
  },
};

describe.each(Object.entries(apis))("%s", (_, { path, body, overflow }) => {
  it("answers with the script's text and logs the request", async () => {
    const provider = createProvider({ answer: [{ text: "First." }, { text: "Second." }] });
    for (const text of ["First.", "Second.", "Done."]) {
      const { status, json } = await provider.handle({ path, body: body("Go") });
      expect([status, JSON.stringify(json).includes(text)]).toEqual([200, true]);
    }
    expect(provider.calls.map(({ number, status }) => [number, status])).toEqual([
      [1, 200],
      [2, 200],
      [3, 200],
    ]);
    expect(provider.calls[0]?.body).toEqual(body("Go"));
  });

  it("refuses what is too long by its own count", async () => {
    const options = { count, contextWindow: 400 };
    const send = (more: ProviderOptions) =>
      createProvider({ ...options, ...more }).handle({ path, body: body(words(370)) });
    expect((await send({})).status).toBe(200);
    const { status, json } = await send({ countFactor: 1.4 });
    expect(status).toBe(400);
    expect(json.error.message).toMatch(overflow);
    if (path.startsWith("/v1/")) expect(json.error.code ?? "context_length_exceeded").toBe("context_length_exceeded");
  });

  it("fails at the chosen requests", async () => {
    const provider = createProvider({ failures: { 1: 429, 2: 529, 3: 500, 4: "drop" } });
    const send = () => provider.fetch(`http://127.0.0.1${path}`, { method: "POST", body: JSON.stringify(body("Go")) });
    for (const status of [429, 529, 500]) expect((await send()).status).toBe(status);
    await expect(send()).rejects.toThrow("fetch failed");
    expect((await send()).status).toBe(200);
    expect(provider.calls.map(({ status }) => status)).toEqual([429, 529, 500, 0, 200]);
  });

  it("can close a stream in its middle", async () => {
    const place = path.replace(":generate", ":streamGenerate");
    const provider = createProvider({ failures: { 2: "cut" }, answer: () => ({ text: "A long answer" }) });
    const send = async () => {
      const init = { method: "POST", body: JSON.stringify(body("Go", { stream: true })) };
      return (await provider.fetch(`http://127.0.0.1${place}`, init)).text();
    };
    expect(await send()).toContain("answer");
    if (path.includes("gemini")) return;
    await expect(send()).rejects.toThrow("terminated");
  });
});

describe("OpenAI's chat API", () => {
  const messages = [{ role: "user", content: "Go" }];
  const ask = async (more: object, options: ProviderOptions = {}) => {
    const body = { model: "gpt-5", messages, ...more };
    return createProvider({ answer: () => ({ text: "Done." }), ...options }).handle({
      path: "/v1/chat/completions",
      body,
    });
  };

  it("reports the usage of a stream only on request", async () => {
    const plain = (await ask({ stream: true })).events as string[];
    expect(plain.join("")).not.toContain("usage");
    const told = (await ask({ stream: true, stream_options: { include_usage: true } })).events as string[];
    expect(told.filter((event) => event.includes('"usage":null'))).toHaveLength(3);
    expect(told.at(-2)).toMatch(/"choices":\[\],"usage":\{"prompt_tokens":\d+/);
  });

  it("can be a host that does not know stream_options", async () => {
    const more = { stream: true, stream_options: { include_usage: true } };
    const { status, json } = await ask(more, { refusesStreamOptions: true });
    expect([status, json.error.message]).toEqual([400, expect.stringContaining("stream_options")]);
    expect((await ask({ stream: true }, { refusesStreamOptions: true })).status).toBe(200);
  });

  const call = (id: string) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: {} }],
  });
  const tool = (tool_call_id: string) => ({ role: "tool", tool_call_id, content: "x" });
  it.each<[string, object[], RegExp | undefined]>([
    ["a call and its result", [...messages, call("a"), tool("a")], undefined],
    ["a call without a result", [...messages, call("a"), ...messages], /did not have response messages: a$/],
    ["a call at the end", [...messages, call("a")], /did not have response messages: a$/],
    ["a result without a call", [...messages, tool("a")], /must be a response to a preceeding message/],
    ["an unknown role", [{ role: "robot", content: "x" }], /^Invalid value: 'robot'/],
  ])("judges %s", async (_, list, expected) => {
    const { status, json } = await ask({ messages: list });
    expect(status).toBe(expected === undefined ? 200 : 400);
    if (expected !== undefined) expect(json.error.message).toMatch(expected);
  });
});

describe("the Responses API", () => {
  const call = { type: "function_call", call_id: "a", name: "read", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "a", output: "x" };
  const user = { role: "user", content: "Go" };
  it.each<[string, object, RegExp | undefined]>([
    ["a call and its output", { input: [user, call, output] }, undefined],
    ["an output whose call the API has", { input: [output], previous_response_id: "r" }, undefined],
    ["a call without its output", { input: [user, call] }, /^No tool output found for function call a\.$/],
    [
      "an output without its call",
      { input: [user, output] },
      /^No tool call found for function call output with call_id a\.$/,
    ],
    [
      "reasoning alone",
      { input: [user, { type: "reasoning", id: "rs_1" }, user] },
      /'rs_1' of type 'reasoning' was provided without/,
    ],
    ["reasoning before its call", { input: [user, { type: "reasoning", id: "rs_1" }, call, output] }, undefined],
  ])("judges %s", async (_, fields, expected) => {
    const { status, json } = await createProvider().handle({
      path: "/v1/responses",
      body: { model: "gpt-5", ...fields },
    });
    expect(status).toBe(expected === undefined ? 200 : 400);
    if (expected !== undefined) expect(json.error.message).toMatch(expected);
  });
});

describe("Gemini's API", () => {
  const user = { role: "user", parts: [{ text: "Go" }] };
  const calls = { role: "model", parts: [{ functionCall: { name: "a" } }, { functionCall: { name: "b" } }] };
  const result = (name: string) => ({ role: "user", parts: [{ functionResponse: { name, response: {} } }] });
  it.each<[string, object[], number]>([
    ["calls with their results in two contents", [user, calls, result("a"), result("b")], 200],
    ["a missing result", [user, calls, result("a")], 400],
    ["a result without a call", [user, { role: "model", parts: [{ text: "Hm" }] }, result("a")], 400],
  ])("judges %s", async (_, contents, status) => {
    const { path = "" } = apis.gemini ?? {};
    expect((await createProvider().handle({ path, body: { contents } })).status).toBe(status);
  });
});

describe("OpenAI's cache", () => {
  const minute = 60_000;
  async function bill(model: string) {
    const clock = { now: 0 };
    const provider = createProvider({ count, now: () => clock.now });
    const ask = async (contents: (string | object[])[], more: object = {}) => {
      const messages = contents.map((content) => ({ role: "user", content }));
      await provider.handle({ path: "/v1/chat/completions", body: { model, messages, ...more } });
      return provider.calls.at(-1)?.tokens;
    };
    return { ask, clock };
  }

  it("reads long prefixes in steps of 128 tokens, and writes for nothing, on older models", async () => {
    const { ask, clock } = await bill("gpt-5");
    await ask([words(900)]);
    expect(await ask([words(900)])).toMatchObject({ read: 0 });
    await ask([words(2_000)]);
    const later = await ask([words(2_000), "And now?"]);
    expect(later?.read).toBeGreaterThan(1_700);
    expect((later?.read ?? 1) % 128).toBe(0);
    expect(later).toMatchObject({ write5m: 0, write1h: 0 });
    clock.now += 11 * minute;
    expect(await ask([words(2_000)])).toMatchObject({ read: 0 });
  });

  it("writes at the end of a request and reads exactly there from GPT-5.6 on", async () => {
    const { ask, clock } = await bill("gpt-5.6-sol");
    const first = await ask([words(2_000)]);
    expect(first).toMatchObject({ read: 0, uncached: 0 });
    const written = first?.write5m ?? 0;
    expect(written).toBeGreaterThanOrEqual(2_000);
    expect(await ask([words(2_000), "And now?"])).toMatchObject({ read: written, uncached: 0 });
    expect(await ask([`${words(2_000)}more`])).toMatchObject({ read: 0 });
    clock.now += 31 * minute;
    expect(await ask([words(2_000)])).toMatchObject({ read: 0 });
    expect(await ask([words(500)])).toMatchObject({ read: 0, write5m: 0 });
  });

  it("writes at marked blocks alone in explicit mode", async () => {
    const { ask } = await bill("gpt-6.1-sol");
    const options = { prompt_cache_options: { mode: "explicit", ttl: "12h" } };
    expect(await ask([words(2_000)], options)).toMatchObject({ write5m: 0, write1h: 0 });
    expect(await ask([words(2_000)], options)).toMatchObject({ read: 0 });
    const marked = [{ type: "text", text: words(2_000), prompt_cache_breakpoint: { type: "ephemeral" } }];
    const first = await ask([marked, "And now?"], options);
    expect(first?.write1h).toBeGreaterThanOrEqual(2_000);
    expect(await ask([marked, "And then?"], options)).toMatchObject({ read: first?.write1h, write1h: 0 });
  });
});

describe("a server", () => {
  let running: RunningProvider | undefined;
  afterEach(async () => running?.close());

  it("answers on loopback as the direct call does, and drops connections", async () => {
    running = await startProvider({ failures: { 2: "drop", 3: "cut" }, answer: () => ({ text: "Hello there." }) });
    expect(running.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const { path = "", body } = apis.anthropic ?? {};
    const send = (more: object = {}) =>
      fetch(`${running?.url}${path}`, { method: "POST", body: JSON.stringify(body?.("Go", more)) });
    const first = await send();
    expect(first.headers.get("request-id")).toMatch(/^req_/);
    expect(await first.json()).toMatchObject({ content: [{ text: "Hello there." }], usage: { output_tokens: 50 } });
    await expect(send()).rejects.toThrow();
    await expect(send({ stream: true }).then((each) => each.text())).rejects.toThrow();
    expect(await (await send({ stream: true })).text()).toContain('"text":"Hello "');
    expect(await (await fetch(`${running.url}/v1/models`)).json()).toEqual({ object: "list", data: [] });
    expect((await fetch(`${running.url}/v1/else`, { method: "POST", body: "{}" })).status).toBe(404);
  });
});

describe("a transcript", () => {
  const lines = [
    { meta: {} },
    { role: "system", content: [{ type: "text", text: "Be brief." }] },
    { role: "user", content: [{ type: "text", text: "Go" }], meta_message: true },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", signature: "foreign" },
        { type: "tool_use", id: "a", name: "read", input: {} },
        { type: "tool_use", id: "b", name: "read", input: {} },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "b", content: "x" }] },
    { role: "assistant", content: [{ type: "redacted_thinking", data: "foreign" }] },
    { role: "assistant", content: [{ type: "tool_use", id: "a", name: "list", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "y" }] },
    { role: "user", content: [{ type: "text", text: "And?" }] },
    { role: "assistant", content: [{ type: "text", text: "Done." }] },
  ];

  it("is played turn by turn with the thinking that the provider signed", async () => {
    const provider = createProvider();
    const transcript = readTranscript(lines.map((line) => JSON.stringify(line)).join("\n"));
    expect(transcript.tools).toMatchObject([{ name: "read" }, { name: "list" }]);
    const { calls, messages } = await playTranscript(transcript, async (request) => {
      const body = { model: "claude-opus-5-5", max_tokens: 9, ...request };
      const { json } = await provider.handle({ path: "/v1/messages", body: JSON.parse(JSON.stringify(body)) });
      return json;
    });
    expect(provider.refusals()).toEqual([]);
    expect(calls).toBe(3);
    expect(messages.filter(({ content }) => JSON.stringify(content).includes('"signature"'))).toHaveLength(3);
    expect(JSON.stringify(messages)).not.toContain("foreign");
  });
});
