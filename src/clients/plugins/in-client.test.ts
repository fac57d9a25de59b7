import { describe, expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createInClient, type HookSettings, type InClient } from "./in-client.ts";
import { type OpenCodeMessage, openCodeHooks, openCodeView } from "./opencode-hooks.ts";
import { type PiApi, type PiContext, type PiMessage, piView, registerPi } from "./pi-hooks.ts";
import { listPluginSessions } from "./plugin-sessions.ts";

const source = (name: string, lines = 80): string =>
  Array.from({ length: lines }, (_, n) => `export const ${name}${n} = compute(${n}, "some text");`).join("\n");

function open(settings: HookSettings = {}, store: Store = createMemoryStore()): InClient {
  return createInClient({ client: "opencode", settings, openStore: async () => store, waitMs: 20_000 });
}

/** A session of opencode: each turn reads a file through the hooks, and its result is stored as opencode stores it. */
function openCodeSession(plugin: InClient, sessionID = "ses_1") {
  const hooks = openCodeHooks(plugin);
  const messages: OpenCodeMessage[] = [];
  const add = (role: string, parts: OpenCodeMessage["parts"]) => {
    const info = { id: `msg_${messages.length}`, role, sessionID, model: { modelID: "claude-sonnet-4-5" } };
    messages.push({ info, parts });
  };
  add("user", [{ type: "text", text: "Do it." }]);
  return {
    hooks,
    messages,
    async read(name: string, text = source(name)): Promise<string> {
      const callID = `call_${messages.length}`;
      const input = { filePath: `/project/${name}.ts` };
      const answer = { title: name, output: text, metadata: {} };
      await hooks["tool.execute.before"]({ tool: "read", sessionID, callID }, { args: input });
      await hooks["tool.execute.after"]({ tool: "read", sessionID, callID, args: input }, answer);
      const state = { status: "completed", input, output: answer.output, title: name };
      const parts = [
        { type: "step-start" },
        { type: "text", text: "Reading." },
        { type: "tool", callID, tool: "read", state },
      ];
      add("assistant", [...parts, { type: "step-finish" }]);
      return answer.output;
    },
    async request(): Promise<OpenCodeMessage[]> {
      const output = { messages: structuredClone(messages) };
      await hooks["experimental.chat.messages.transform"]({}, output);
      return output.messages;
    },
  };
}

const outputsOf = (messages: readonly OpenCodeMessage[]): string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap(({ type, state }) => (type === "tool" ? String((state as { output: string }).output) : [])),
  );

describe("results in opencode", () => {
  test("nothing refers to what was compacted while the store was busy", async () => {
    const kept = createMemoryStore();
    let isBusy = false;
    const update: Store["update"] = async (...args) => {
      if (isBusy) throw new Error("the store is busy");
      return kept.update(...args);
    };
    const { read, hooks } = openCodeSession(open({}, { ...kept, update }));
    await read("a");
    isBusy = true;
    await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "ses_1" } } }, {});
    isBusy = false;
    expect(await read("a")).toBe(source("a"));
    expect(await read("a")).toMatch(/^\[[a-z2-7]{4}: Same text/);
  });

  test("nothing refers to what opencode has cleared, however far back the rest is", async () => {
    const { read, request, messages } = openCodeSession(open());
    await read("a");
    await read("b");
    for (let each = 0; each < 40; each++) await read(`more${each}`, source(`more${each}`, 60));
    await request();
    expect(await read("b")).toMatch(/^\[[a-z2-7]{4}: Same text/);
    const part = messages[1]?.parts.find(({ type }) => type === "tool") as { state: Record<string, unknown> };
    part.state.time = { compacted: 1 };
    await request();
    expect(await read("a")).toBe(source("a"));
    expect(await read("more1", source("more1", 60))).toMatch(/^\[[a-z2-7]{4}: Same text/);
  });

  test("a repeated result becomes a note, a changed one a delta, a long one a page", async () => {
    const { read } = openCodeSession(open({ maxResultTokens: 3_000 }));
    expect(await read("a")).toBe(source("a"));
    expect(await read("a")).toMatch(/^\[[a-z2-7]{4}: Same text as the result of read \/project\/a\.ts above/);
    expect(await read("c")).toBe(source("c"));
    expect(await read("a", source("a").replace("a40 =", "changed ="))).toMatch(/\[[a-z2-7]{4} 1-40\]\n.*changed/);
    expect(await read("b", source("b", 400))).toMatch(/\[[a-z2-7]{4}: The whole result has 400 lines/);
  });

  test("a text of an MCP server's tool is shortened in its content", async () => {
    const { hooks, read } = openCodeSession(open());
    await read("a");
    const answer = { content: [{ type: "text", text: source("a"), annotations: {} }] };
    await hooks["tool.execute.after"]({ tool: "files_read", sessionID: "ses_1", callID: "c", args: {} }, answer);
    expect(answer.content).toMatchObject([
      { type: "text", text: expect.stringMatching(/^\[[a-z2-7]{4}: Same text/), annotations: {} },
    ]);
  });

  test("a long text of an MCP server becomes a page that opencode does not cut, and only its lines count", async () => {
    const { hooks, read } = openCodeSession(open({ maxResultTokens: 1_000_000 }));
    const lines = Array.from({ length: 3_000 }, (_, n) => `a line of the server, number ${n}`);
    const answer = { content: [{ type: "text", text: lines.join("\n") }] };
    await hooks["tool.execute.after"]({ tool: "t_lines", sessionID: "ses_1", callID: "c", args: {} }, answer);
    const text = answer.content[0]?.text ?? "";
    expect(text.split("\n").length).toBeLessThanOrEqual(2_000);
    expect(text).toMatch(/plimsoll recall [a-z2-7]{16}/);
    const middle = lines.slice(1_500, 1_700).join("\n");
    expect(await read("m", middle)).toBe(middle);
  });

  test("each session has a context of its own, and compaction empties it", async () => {
    const plugin = open();
    const main = openCodeSession(plugin);
    await main.read("a");
    expect(await openCodeSession(plugin, "ses_sub").read("a")).toBe(source("a"));
    await main.hooks.event({ event: { type: "session.compacted", properties: { sessionID: "ses_1" } } }, undefined);
    expect(await main.read("a")).toBe(source("a"));
  });

  test("parallel calls do not refer to each other, nor to a call whose result may come before theirs", async () => {
    const { hooks, read, request, messages } = openCodeSession(open());
    const begin = (tool: string, callID: string, filePath: string) =>
      hooks["tool.execute.before"]({ tool, sessionID: "ses_1", callID }, { args: { filePath } });
    const end = async (tool: string, callID: string, filePath: string) => {
      const answer = { output: source("a") };
      await hooks["tool.execute.after"]({ tool, sessionID: "ses_1", callID, args: { filePath } }, answer);
      const state = { status: "completed", input: { filePath }, output: answer.output };
      messages.push({ info: { role: "assistant" }, parts: [{ type: "tool", tool, callID, state }] });
      return answer.output;
    };
    await begin("cat", "1", "a.ts");
    await begin("show", "2", "a.ts");
    expect(await end("show", "2", "a.ts")).toBe(source("a"));
    expect(await end("cat", "1", "a.ts")).toBe(source("a"));
    await request();
    expect(await read("a")).toMatch(/^\[[a-z2-7]{4}: Same text/);
    // The model calls `read` together with others that have not ended. Their results may be sent first.
    await begin("read", "3", "/project/a.ts");
    await begin("cat", "4", "a.ts");
    await begin("show", "5", "a.ts");
    expect(await read("b", source("a"))).toBe(source("a"));
    // Calls that never end are forgotten in the next turn.
    await request();
    expect(await read("c", source("a"))).toMatch(/^\[[a-z2-7]{4}: Same text/);
  });

  test("what the plugin did is counted for its session", async () => {
    const store = createMemoryStore();
    const { read } = openCodeSession(open({}, store));
    await read("a");
    await read("a");
    await expect
      .poll(() => listPluginSessions(store, "opencode"))
      .toMatchObject([{ sessionId: "ses_1", results: 2, duplicates: 1 }]);
  });
});

describe("a hook never fails or hangs", () => {
  test("with a store that cannot be opened, results and messages stay as they are", async () => {
    const openStore = () => Promise.reject(new Error("broken"));
    const session = openCodeSession(createInClient({ client: "opencode", settings: { trim: 8_000 }, openStore }));
    for (let turn = 0; turn < 12; turn++) expect(await session.read("a")).toBe(source("a"));
    expect(await session.request()).toEqual(session.messages);
  });

  test("with a store that never answers, results and messages stay as they are", async () => {
    const openStore = () => new Promise<Store>(() => {});
    const session = openCodeSession(createInClient({ client: "opencode", settings: { trim: 8_000 }, openStore }));
    expect(await session.read("a")).toBe(source("a"));
    expect(await session.request()).toEqual(session.messages);
  });

  test.each([[{}], [{ output: 7 }], [{ content: [{ type: "image" }] }], [undefined]])(
    "with the answer %j",
    async (answer) => {
      const { hooks } = openCodeSession(open());
      const before = structuredClone(answer);
      await hooks["tool.execute.after"]({ tool: "x", sessionID: "s", callID: "c" }, answer as object);
      await hooks["experimental.chat.messages.transform"]({}, answer as never);
      expect(answer).toEqual(before);
    },
  );
});

describe("a trimmed history", () => {
  test("only grows between trims, in one process and in the next", async () => {
    const store = createMemoryStore();
    let session = openCodeSession(open({ trim: 16_000 }, store));
    let previous = "[";
    const breaks: number[] = [];
    for (let turn = 0; turn < 30; turn++) {
      await session.read(`f${turn}_`);
      const sent = JSON.stringify(await session.request());
      if (!sent.startsWith(previous.slice(0, -1))) breaks.push(turn);
      previous = sent;
      if (turn !== 17) continue;
      await expect.poll(() => store.get("history/checkpoints", "ses_1")).toBeDefined();
      const next = openCodeSession(open({ trim: 16_000 }, store));
      next.messages.splice(0, 1, ...session.messages);
      session = next;
    }
    expect(breaks.length).toBeGreaterThan(0);
    expect(breaks.length).toBeLessThan(6);
    expect(breaks).not.toContain(18);
  });

  test("is left alone without the setting, and below the limit", async () => {
    for (const settings of [{}, { trim: 200_000 }, { trim: "window" } as const]) {
      const session = openCodeSession(open(settings));
      for (let turn = 0; turn < 20; turn++) await session.read(`f${turn}_`);
      expect(await session.request()).toEqual(session.messages);
    }
  });

  test("is trimmed at the model's own limit once the client has told it", async () => {
    const session = openCodeSession(open({ trim: "window" }));
    for (let turn = 0; turn < 20; turn++) await session.read(`f${turn}_`);
    const model = { id: "claude-sonnet-4-5", limit: { context: 40_000, output: 8_000 } };
    await session.hooks["chat.params"]({ model }, undefined);
    expect(outputsOf(await session.request()).filter((text) => text.startsWith("[trimmed")).length).toBeGreaterThan(0);
  });

  test("gives a note its original back when the text that it refers to is removed", async () => {
    const store = createMemoryStore();
    const session = openCodeSession(open({ trim: 16_000 }, store));
    await session.read("base");
    for (let turn = 0; turn < 11; turn++) await session.read(`f${turn}_`);
    expect(await session.read("base")).toMatch(/^\[[a-z2-7]{4}: Same text/);
    const sent = outputsOf(await session.request());
    const whole = sent.filter((text) => text === source("base")).length;
    const notes = sent.filter((text) => text.includes(": Same text")).length;
    expect({ isTrimmed: sent.some((text) => text.startsWith("[trimmed")), whole, notes }).toEqual({
      ...{ isTrimmed: true, whole: 1, notes: 0 },
    });
    expect(outputsOf(await session.request())).toEqual(sent);
  });

  test("tells the shell its session and the model how to recall", async () => {
    for (const settings of [{ trim: 16_000 }, {}]) {
      const { hooks } = openCodeSession(open(settings));
      const [shell, prompt] = [{ env: {} }, { system: ["You are an agent."] }];
      await hooks["shell.env"]({ cwd: "/", sessionID: "ses_1" }, shell);
      await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, prompt);
      expect(shell.env).toEqual("trim" in settings ? { PLIMSOLL_SESSION: "ses_1" } : {});
      expect(prompt.system.slice(1)).toEqual("trim" in settings ? [expect.stringContaining("plimsoll recall ID")] : []);
    }
  });
});

describe("views", () => {
  test("what is not trimmed comes back as the same objects", () => {
    const parts = [
      ...[
        { type: "text", text: "x" },
        { type: "reasoning", text: "hm" },
        { type: "patch", hash: "1" },
      ],
      ...[
        { type: "file", mime: "image/png", url: "data:image/png;base64,AAAA" },
        { type: "text", text: "y", ignored: true },
      ],
      {
        type: "tool",
        callID: "1",
        tool: "bash",
        state: { status: "error", input: { command: "ls" }, error: "denied" },
      },
      { type: "tool", callID: "2", tool: "bash", state: { status: "running", input: {} } },
    ];
    const messages = [{ info: { role: "assistant" }, parts }];
    const shown = openCodeView.show(messages, (_, text) => text) as { content: object[] }[];
    expect(shown.map(({ content }) => content.length)).toEqual([5, 2]);
    const [first] = openCodeView.apply(messages, find(shown), []);
    expect(first).toBe(messages[0]);
  });

  test("pi's messages of every kind come back as the same objects", () => {
    const messages: PiMessage[] = [
      { role: "user", content: "hello" },
      { role: "compactionSummary", summary: "so far" },
      { role: "bashExecution", command: "ls", output: "a" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "toolCall", id: "1", name: "ls", arguments: {} },
        ],
      },
      { role: "toolResult", toolCallId: "1", content: [{ type: "text", text: "a" }] },
      {
        role: "toolResult",
        toolCallId: "2",
        content: [
          { type: "text", text: "a" },
          { type: "image", data: "AAAA", mimeType: "image/png" },
        ],
      },
    ];
    const shown = piView.show(messages, (_, text) => text) as { content: object[] }[];
    const back = piView.apply(messages, find(shown), []);
    for (const [index, message] of messages.entries()) expect(back[index]).toBe(message);
  });

  /** Finds a block by its place, as the trimmer's answer does. */
  function find(shown: readonly { content: object[] }[]) {
    const blocks = shown.flatMap(({ content }) => content);
    const place = Object.getOwnPropertySymbols(blocks[0])[0] as symbol;
    return (name: string) => blocks.find((block) => (block as Record<symbol, unknown>)[place] === name) as never;
  }
});

test("pi: results are shortened, histories trimmed, and compaction forgets", async () => {
  type Handler = Parameters<Parameters<typeof registerPi>[0]["on"]>[1];
  const handlers = new Map<string, Handler>();
  registerPi({ on: (event, handler) => handlers.set(event, handler) }, open({ trim: 12_000 }));
  const context: PiContext = {
    sessionManager: { getSessionId: () => "pi_1" },
    model: { id: "claude-sonnet-4-5", contextWindow: 200_000, maxTokens: 8_000 },
  };
  const messages: PiMessage[] = [{ role: "user", content: "Do it." }];
  const read = async (name: string) => {
    const toolCallId = `call_${messages.length}`;
    const content = [{ type: "text", text: source(name) }];
    const call = { toolCallId, toolName: "read", input: { path: `${name}.ts` }, content };
    await handlers.get("tool_call")?.(call, context);
    const answer = await handlers.get("tool_result")?.(call, context);
    messages.push({
      role: "assistant",
      content: [{ type: "toolCall", id: toolCallId, name: "read", arguments: call.input }],
    });
    messages.push({ role: "toolResult", toolCallId, toolName: "read", content, ...answer });
    return answer;
  };
  const begin = (toolCallId: string) =>
    handlers.get("tool_call")?.({ toolCallId, toolName: "read", input: { path: "a.ts" } }, context);
  expect(await read("a")).toBeUndefined();
  // Another call of the same turn may show the file first.
  await begin("parallel");
  expect(await read("a")).toBeUndefined();
  await handlers.get("context")?.({ messages: structuredClone(messages) }, context);
  expect(await read("a")).toMatchObject({ content: [{ text: expect.stringMatching(/^\[[a-z2-7]{4}: Same text/) }] });
  await handlers.get("session_compact")?.({}, context);
  expect(await read("a")).toBeUndefined();
  for (let turn = 0; turn < 12; turn++) await read(`f${turn}_`);
  const sent = (await handlers.get("context")?.({ messages: structuredClone(messages) }, context)) as {
    messages: PiMessage[];
  };
  expect(JSON.stringify(sent.messages)).toContain("[trimmed: read f");
  expect(sent.messages.at(-1)).toEqual(messages.at(-1));
  expect(await handlers.get("before_agent_start")?.({ systemPrompt: "You are pi." }, context)).toEqual({
    systemPrompt: expect.stringMatching(/^You are pi\.\n\n.*plimsoll recall ID/),
  });
});

describe("old images", () => {
  const note = "[An image was here. Only the newest images are sent. Call the tool again to see it.]";

  test("opencode: at least the newest stay, and they go several at a time", async () => {
    const { hooks } = openCodeSession(open({ images: 2 }));
    const image = { type: "file", mime: "image/png", url: "data:image/png;base64,AAAA" };
    const pdf = { type: "file", mime: "application/pdf", url: "data:application/pdf;base64,AAAA" };
    const shot = (index: number): OpenCodeMessage => {
      const state = { status: "completed", input: {}, output: `shot ${index}`, attachments: [image, pdf] };
      const info = { id: `m${index}`, role: "assistant", sessionID: "ses_1" };
      return { info, parts: [{ type: "tool", callID: `c${index}`, tool: "shot", state }] };
    };
    const user: OpenCodeMessage = { info: { id: "u", role: "user", sessionID: "ses_1" }, parts: [image] };
    const sent = async (count: number) => {
      const output = { messages: [user, ...Array.from({ length: count }, (_, index) => shot(index))] };
      await hooks["experimental.chat.messages.transform"]({}, output);
      return output.messages;
    };
    const stateOf = ({ parts }: OpenCodeMessage) => parts[0]?.state as { readonly attachments: readonly object[] };
    const imagesIn = (messages: readonly OpenCodeMessage[]) =>
      messages.slice(1).map((message) => stateOf(message).attachments.length - 1);
    expect(imagesIn(await sent(3))).toEqual([1, 1, 1]);
    expect(imagesIn(await sent(4))).toEqual([0, 0, 1, 1]);
    expect(imagesIn(await sent(5))).toEqual([0, 0, 1, 1, 1]);
    const six = await sent(6);
    expect(imagesIn(six)).toEqual([0, 0, 0, 0, 1, 1]);
    expect(six[0]).toBe(user);
    expect(stateOf(six[1]!)).toMatchObject({ output: `shot 0\n${note}`, attachments: [pdf] });
  });

  test("pi: an old image becomes a text, and without the option nothing changes", async () => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    const messages: PiMessage[] = Array.from({ length: 4 }, (_, index) => ({
      ...{ role: "toolResult", toolCallId: `c${index}`, toolName: "read" },
      content: [{ type: "text", text: `shot ${index}` }, image],
    }));
    const context: PiContext = { sessionManager: { getSessionId: () => "s" } };
    const sent = async (settings: HookSettings) => {
      let answer: Promise<object | undefined> | undefined;
      const on: PiApi["on"] = (event, handler) => {
        if (event === "context") answer = handler({ messages }, context);
      };
      registerPi({ on }, open(settings));
      return (await answer) as { messages: PiMessage[] } | undefined;
    };
    expect(await sent({})).toBeUndefined();
    const old = (text: string) => [
      { type: "text", text },
      { type: "text", text: note },
    ];
    const reduced = await sent({ images: 2 });
    expect(reduced?.messages.map(({ content }) => content)).toEqual([
      old("shot 0"),
      old("shot 1"),
      messages[2]?.content,
      messages[3]?.content,
    ]);
  });

  const signed = ["claude-opus-5-5", "claude-opus-5"];

  test.each(signed)("pi: thinking that was made with them goes with them, if %s refuses it", async (id) => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    const messages: PiMessage[] = Array.from({ length: 5 }, (_, index) => [
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: `think ${index}`, thinkingSignature: "s" },
          { type: "toolCall", id: `c${index}`, name: "read", arguments: {} },
        ],
      },
      { role: "toolResult", toolCallId: `c${index}`, toolName: "read", content: [image] },
    ]).flat();
    const context: PiContext = { sessionManager: { getSessionId: () => "s" }, model: { id } };
    let answer: Promise<object | undefined> | undefined;
    const on: PiApi["on"] = (event, handler) => {
      if (event === "context") answer = handler({ messages }, context);
    };
    registerPi({ on }, open({ images: 2 }));
    const { messages: sent } = (await answer) as { messages: PiMessage[] };
    const left = JSON.stringify(sent).match(/think \d/g);
    expect(left).toEqual(
      id === "claude-opus-5-5" ? ["think 0", "think 4"] : [0, 1, 2, 3, 4].map((each) => `think ${each}`),
    );
  });

  test.each(signed)("opencode: thinking that was made with them goes with them, if %s refuses it", async (modelID) => {
    const { hooks } = openCodeSession(open({ images: 2 }));
    const image = { type: "file", mime: "image/png", url: "data:image/png;base64,AAAA" };
    const shot = (index: number): OpenCodeMessage => {
      const state = { status: "completed", input: {}, output: `shot ${index}`, attachments: [image] };
      const reasoning = { type: "reasoning", text: `think ${index}`, metadata: { anthropic: { signature: "s" } } };
      const info = { id: `m${index}`, role: "assistant", sessionID: "ses_1" };
      return { info, parts: [reasoning, { type: "tool", callID: `c${index}`, tool: "shot", state }] };
    };
    const info = { id: "u", role: "user", sessionID: "ses_1", model: { modelID } };
    const user: OpenCodeMessage = { info, parts: [{ type: "text", text: "go" }] };
    const output = { messages: [user, ...Array.from({ length: 5 }, (_, index) => shot(index))] };
    await hooks["experimental.chat.messages.transform"]({}, output);
    const left = JSON.stringify(output.messages).match(/think \d/g);
    expect(left).toEqual(
      modelID === "claude-opus-5-5" ? ["think 0", "think 4"] : [0, 1, 2, 3, 4].map((each) => `think ${each}`),
    );
  });
});
