import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "rolldown";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { estimateTokens, reduceContextWithBudget } from "../../conversation/history/index.ts";
import { ContextError } from "../../core/errors.ts";
import { type BudgetedTool, createSession } from "../../results/session/index.ts";
import {
  type AgentState,
  type ContextHookOptions,
  createBudgetHook,
  createContextHook,
  createDefaultHooks,
  createHookRegistry,
  type Hook,
  type HookContext,
  type HookOutcome,
  type LifecycleEvent,
  lifecycleEvents,
} from "./hooks.ts";

const systemPrompt = "You are a careful engineer. ".repeat(10);
const tools = [{ name: "ls", description: "lists files", input_schema: { type: "object" } }];

function history(turns: number): object[] {
  return Array.from({ length: turns }, (_, turn) => [
    { role: "user", content: `question ${turn}` },
    { role: "assistant", content: [{ type: "tool_use", id: `c${turn}`, name: "ls", args: { turn } }] },
    { role: "tool", content: [{ type: "tool_result", tool_use_id: `c${turn}`, content: "x".repeat(700) }] },
    { role: "assistant", content: `answer ${turn}: ${"y".repeat(300)}` },
  ]).flat();
}

async function runHook(state: AgentState, limit: number, options?: ContextHookOptions): Promise<AgentState> {
  const registry = createHookRegistry();
  registry.register("before_inference", createContextHook(options));
  expect(await registry.run("before_inference", { model: { limit: { context: limit } }, state })).toBe("continue");
  return state;
}

describe("the budget hook", () => {
  const model = { limit: { context: 200_000 } };
  const list: BudgetedTool = {
    name: "list",
    description: "Lists files.",
    inputSchema: { type: "object", properties: { max_files: { type: "integer" } } },
    ...{ itemTokens: 100, itemUnit: "files", limitParameter: "max_files", compress: () => "Listed." },
    run: async () => ({ fields: {}, itemsName: "files", items: ["x".repeat(20_000)], offset: 0 }),
  };
  const open = () => createSession({ tools: [list], hints: "schema", now: () => 0, model: "claude-sonnet-5" });
  const question = { role: "user", content: "Where is the bug?" };

  it("gives the request the session's tools and records what is in it", async () => {
    const session = await open();
    const state: AgentState = { messages: [question], systemPrompt, tools: [...tools] };
    const hook = createBudgetHook(session);
    expect(await hook({ model, state }, "before_inference")).toBe("continue");
    expect(state.systemPrompt).toBe(systemPrompt);
    expect(state.tools).toEqual([
      tools[0],
      {
        name: "list",
        description: "Lists files. Current budget allows ~80 files.",
        // Nothing is known yet of the size of an item, so no default cuts the first listing.
        input_schema: { type: "object", properties: { max_files: { type: "integer" } } },
      },
    ]);
    const { system, user } = session.status().ledger;
    expect(user.used).toBe(session.countTokens(question.content));
    expect(system.used).toBeGreaterThan(session.countTokens(systemPrompt));
    await hook({ model, state }, "after_tool");
    expect(state.tools).toHaveLength(2);
  });

  it("puts the current warning at the end of the system prompt, once", async () => {
    const session = await open();
    const state: AgentState = { messages: [question], systemPrompt };
    const hook = createBudgetHook(session);
    const run = async (user: number) => {
      await session.record("user", user);
      state.messages = [question, { role: "tool", content: [] }];
      await hook({ model, state: Object.assign(state, structuredClone(state)) }, "before_inference");
      return state.systemPrompt!.slice(systemPrompt.length);
    };
    expect(await run(52_000)).toMatch(/^\n\n\[Budget Alert: ~17k tokens remaining\. [^\]]*\]$/);
    expect(await run(62_000)).toMatch(/^\n\n\[Budget Alert: ~7k tokens remaining\. [^\]]*\]$/);
    expect(await run(0)).toBe("");
  });

  it("begins a turn with a message of the user, and only then", async () => {
    const session = await open();
    const hook = createBudgetHook(session);
    const state: AgentState = { messages: [question] };
    await hook({ model, state }, "before_inference");
    await session.call("list", {});
    state.messages = [question, { role: "assistant", content: [] }, { role: "tool", content: [] }];
    await hook({ model, state }, "before_inference");
    expect(session.status().ledger.tool_results.used).toBeGreaterThan(1_000);
    state.messages = [...state.messages, { role: "assistant", content: "There." }, question];
    await hook({ model, state }, "before_inference");
    expect(session.status().ledger.tool_results.used).toBe(0);
    expect(session.status().ledger.history.used).toBeGreaterThan(0);
  });
});

describe("the context hook", () => {
  it("fits the history beside the system prompt and the reserved output", async () => {
    const messages = history(20);
    const limit = 20_000;
    const state = await runHook({ messages, systemPrompt, tools }, limit);
    const system = { role: "system", content: systemPrompt };
    const expected = reduceContextWithBudget(messages, {
      contextWindow: limit - estimateTokens([system]) - 16_000,
      tools,
      keepLastNAssistantMessages: 50,
      contextBudgetThreshold: 0.8,
    });
    expect(expected.metadata?.trimmed_up_to_message_index).toBeGreaterThan(0);
    expect(state).toEqual({
      messages,
      systemPrompt,
      tools,
      metadata: expected.metadata,
      llmInput: { messages: [system, ...expected.messages], maxTokens: 16_000, tools },
    });
    expect(state.messages).toBe(messages);
  });

  it("is in the default registry, where it keeps 10 answers", async () => {
    const messages = history(20);
    const state: AgentState = { messages };
    const hooks = createDefaultHooks({ reservedOutputTokens: 1_000 });
    expect(await hooks.run("before_inference", { model: { limit: { context: 9_000 } }, state })).toBe("continue");
    const expected = reduceContextWithBudget(messages, { contextWindow: 8_000 });
    expect(state.llmInput!.messages).toEqual(expected.messages);
    expect(state.metadata).toEqual(expected.metadata);
  });

  it("takes its options, and does without system prompt and tools", async () => {
    const messages = history(20);
    const options = {
      keepLastNAssistantMessages: 4,
      contextBudgetThreshold: 0.5,
      reservedOutputTokens: 1_000,
    };
    const { llmInput, metadata } = await runHook({ messages }, 9_000, options);
    const { reservedOutputTokens: _, ...others } = options;
    const expected = reduceContextWithBudget(messages, { contextWindow: 8_000, ...others });
    expect(llmInput).toEqual({ messages: expected.messages, maxTokens: 1_000 });
    expect(metadata).toEqual({ trimmed_up_to_message_index: messages.length - 7 });
  });

  it("adds no metadata while nothing was trimmed, also if a checkpoint has null", async () => {
    const state = await runHook({ messages: history(2), systemPrompt }, 200_000);
    expect("metadata" in state).toBe(false);
    expect(state.llmInput?.messages).toHaveLength(9);
    const foreign = JSON.parse('{"messages":[{"role":"user","content":"hi"}],"metadata":null}') as AgentState;
    await runHook(foreign, 200_000);
    expect(foreign.llmInput?.messages).toHaveLength(1);
  });

  it("never uses a window below 0, and reports the overflow until everything fits", async () => {
    const messages = history(2);
    const state = await runHook({ messages, systemPrompt }, 1_000);
    expect(state.metadata).toEqual({ trimmed_up_to_message_index: 8 });
    const tokens = estimateTokens(state.llmInput?.messages.slice(1) ?? []);
    expect(state.overflow).toEqual({ tokens, threshold: 0 });
    await runHook(state, 200_000);
    expect("overflow" in state).toBe(false);
    expect(state.metadata).toEqual({ trimmed_up_to_message_index: 8 });
  });

  it("changes nothing at other events", () => {
    const hook = createContextHook();
    const state: AgentState = Object.freeze({ messages: history(2), systemPrompt });
    const context: HookContext = { model: { limit: { context: 0 } }, state };
    for (const event of lifecycleEvents.filter((each) => each !== "before_inference")) {
      expect(hook(context, event)).toBe("continue");
    }
    expect(state).toEqual({ messages: history(2), systemPrompt });
  });

  it("refuses wrong options when it is made, a model without a limit and malformed messages when it runs", async () => {
    expect(() => createContextHook({ reservedOutputTokens: -1 })).toThrow(
      "reservedOutputTokens must be a number of tokens",
    );
    expect(() => createContextHook({ keepLastNAssistantMessages: -1 })).toThrow("keepLastNAssistantMessages must be");
    expect(() => createContextHook({ contextBudgetThreshold: 2 })).toThrow("contextBudgetThreshold must be");
    await expect(runHook({ messages: [] }, Number.NaN)).rejects.toThrow(
      "model.limit.context must be a number of tokens",
    );
    const wrongPrompt = { messages: [], systemPrompt: 1 } as unknown as AgentState;
    await expect(runHook(wrongPrompt, 1)).rejects.toThrow("state.systemPrompt must be a string, not 1");
    const malformed: AgentState = { messages: [{ role: "user" }] };
    await expect(runHook(malformed, 1)).rejects.toThrow("messages[0].content must be a string or an array");
    expect(malformed).toEqual({ messages: [{ role: "user" }] });
  });
});

/** A session that is stored, and resumed by another process, sends the same bytes as one that never stopped. */
const root = mkdtempSync(join(tmpdir(), "plimsoll-resume-"));
const bundle = join(root, "agent.mjs");
const limit = 24_000;

/** The child does what an agent does after a restart: read the checkpoint, append the next turn, run the hooks. */
const child = `
import { readFileSync } from "node:fs";
const [bundle, checkpoint, turn] = process.argv.slice(-3);
const { createContextHook, createHookRegistry } = await import(bundle);
const state = JSON.parse(readFileSync(checkpoint, "utf8"));
state.messages = [...state.messages, ...JSON.parse(readFileSync(turn, "utf8"))];
const registry = createHookRegistry();
registry.register("before_inference", createContextHook());
await registry.run("before_inference", { model: { limit: { context: ${limit} } }, state });
process.stdout.write(JSON.stringify(state));
`;

// Bundled here and not taken from dist/: the child runs the sources of this very run. Packages are loaded only where they are
// needed, which is nowhere here.
beforeAll(async () => {
  const input = fileURLToPath(new URL("./index.ts", import.meta.url));
  const output = { dir: root, entryFileNames: "agent.mjs", chunkFileNames: "[name]-[hash].mjs" };
  await build({ input, output, external: /^[^./]/, platform: "node", logLevel: "silent" });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function turn(index: number): object[] {
  return [
    { role: "user", content: `question ${index} 😀 \ud83d` },
    {
      role: "assistant",
      content: [
        { type: "text", text: "é".repeat(200) },
        { type: "tool_use", id: `c${index}`, name: "ls", args: { index } },
      ],
    },
    {
      role: "tool",
      content: [{ type: "tool_result", tool_use_id: `c${index}`, content: "x".repeat(index % 2 === 0 ? 3_000 : 30) }],
    },
    { role: "assistant", content: `<checkpoint_id>cp-${index}</checkpoint_id>\nanswer ${index}` },
  ];
}

async function infer(state: AgentState): Promise<string> {
  const registry = createHookRegistry();
  registry.register("before_inference", createContextHook());
  await registry.run("before_inference", { model: { limit: { context: limit } }, state });
  return JSON.stringify(state);
}

async function resume(checkpoint: string, messages: readonly object[]): Promise<string> {
  const files = [join(root, "checkpoint.json"), join(root, "turn.json")] as const;
  writeFileSync(files[0], checkpoint);
  writeFileSync(files[1], JSON.stringify(messages));
  const args = ["--input-type=module", "-e", child, "--", pathToFileURL(bundle).href, ...files];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 64 << 20 });
  return stdout;
}

test("a checkpoint resumed in a new process gives the same bytes, at rest and when the boundary moves", {
  tags: ["deep"],
}, async () => {
  const state: AgentState = {
    messages: [],
    systemPrompt: "Be brief.",
    tools: [{ name: "ls", input_schema: {} }],
  };
  const boundaries: unknown[] = [];
  for (let index = 0; index < 18; index++) {
    const checkpoint = JSON.stringify(state);
    state.messages = [...state.messages, ...turn(index)];
    const here = await infer(state);
    boundaries.push(state.metadata?.trimmed_up_to_message_index);
    if (index >= 8) expect(await resume(checkpoint, turn(index))).toBe(here);
  }
  const resumed = boundaries.slice(8);
  expect(resumed[0]).toBeUndefined();
  expect(resumed.some((each, index) => each !== undefined && each === resumed[index - 1])).toBe(true);
  expect(new Set(resumed).size).toBeGreaterThan(2);
});

interface Trace {
  readonly ran: string[];
}

const named =
  (name: string, outcome: HookOutcome = "continue"): Hook<Trace> =>
  ({ ran }, event) => {
    ran.push(`${name} ${event}`);
    return outcome;
  };

describe("a hook registry", () => {
  it("runs the hooks of an event in order, each when the one before is done", async () => {
    const registry = createHookRegistry<Trace>();
    registry.register("before_tool", async (context, event) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return named("slow")(context, event);
    });
    registry.register("before_tool", named("fast"));
    registry.register("after_tool", named("other"));
    const trace: Trace = { ran: [] };
    await expect(registry.run("before_tool", trace)).resolves.toBe("continue");
    expect(trace.ran).toEqual(["slow before_tool", "fast before_tool"]);
  });

  it("knows every event, and runs nothing if nothing is registered", async () => {
    const registry = createHookRegistry<Trace>();
    for (const event of lifecycleEvents) {
      const trace: Trace = { ran: [] };
      expect(await registry.run(event, trace)).toBe("continue");
      registry.register(event, named("hook"));
      await registry.run(event, trace);
      expect(trace.ran).toEqual([`hook ${event}`]);
    }
  });

  it("ends at the first hook that says stop", async () => {
    const registry = createHookRegistry<Trace>();
    for (const hook of [named("a"), named("b", "stop"), named("c")]) registry.register("session_start", hook);
    const trace: Trace = { ran: [] };
    expect(await registry.run("session_start", trace)).toBe("stop");
    expect(trace.ran).toEqual(["a session_start", "b session_start"]);
  });

  it("ends with the error of a hook that throws, now or later", async () => {
    const error = new Error("disk full");
    const failing: readonly Hook<Trace>[] = [
      () => {
        throw error;
      },
      () => Promise.reject(error),
    ];
    for (const hook of failing) {
      const registry = createHookRegistry<Trace>();
      registry.register("session_end", hook);
      registry.register("session_end", named("after"));
      const trace: Trace = { ran: [] };
      await expect(registry.run("session_end", trace)).rejects.toBe(error);
      expect(trace.ran).toEqual([]);
    }
  });

  it("does not change a run in which a hook registers another one", async () => {
    const registry = createHookRegistry<Trace>();
    registry.register("before_inference", (context, event) => {
      registry.register("before_inference", named("late"));
      return named("first")(context, event);
    });
    const trace: Trace = { ran: [] };
    await registry.run("before_inference", trace);
    expect(trace.ran).toEqual(["first before_inference"]);
    await registry.run("before_inference", trace);
    expect(trace.ran.slice(1)).toEqual(["first before_inference", "late before_inference"]);
  });

  it("continues after a hook that returns nothing", async () => {
    const registry = createHookRegistry<Trace>();
    registry.register("before_tool", ({ ran }) => {
      ran.push("quiet");
    });
    registry.register("before_tool", async ({ ran }) => {
      await Promise.resolve();
      ran.push("quiet later");
    });
    registry.register("before_tool", named("last", "stop"));
    const trace: Trace = { ran: [] };
    expect(await registry.run("before_tool", trace)).toBe("stop");
    expect(trace.ran).toEqual(["quiet", "quiet later", "last before_tool"]);
  });

  it("refuses an unknown event, a hook that is not a function, and an unknown answer", async () => {
    const registry = createHookRegistry<Trace>();
    const unknown = "before_lunch" as LifecycleEvent;
    expect(() => registry.register(unknown, named("a"))).toThrow('unknown lifecycle event "before_lunch"');
    await expect(registry.run(unknown, { ran: [] })).rejects.toThrow(ContextError);
    expect(() => registry.register("before_tool", {} as Hook<Trace>)).toThrow(
      "a hook must be a function, not a object",
    );
    registry.register("before_tool", (() => false) as unknown as Hook<Trace>);
    await expect(registry.run("before_tool", { ran: [] })).rejects.toThrow("a hook for before_tool returned false");
  });
});
