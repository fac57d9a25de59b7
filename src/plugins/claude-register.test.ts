import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";

type Hook = (client: unknown, row: unknown, next: (row: unknown) => Promise<unknown>) => Promise<unknown>;
type Answer = (input: Record<string, string>) => object;

/** The module, loaded anew, and a client whose MCP server gives these answers. */
async function load(answer: Answer, { session = "s", messages = [] as object[] } = {}) {
  vi.resetModules();
  const { register } = await import("./claude-register.ts");
  const doors = new Map<string, Hook>();
  register(((_: string, { door }: { door: string }, hook: Hook) => doors.set(door, hook)) as never);
  const $ = {
    mcp: {
      async call(_server: string, _tool: string, input: Record<string, string>) {
        return { content: [{ text: JSON.stringify(answer(input)) }], isError: false };
      },
    },
    session: { id: async () => session, messages: async () => messages },
    clock: { sleep: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms / 100).unref()) },
  };
  const pass = (door: string, content: object[], client: object = $) =>
    doors.get(door)!(
      client,
      { message: { role: "user", content }, agentId: undefined },
      async (row) => row,
    ) as Promise<{
      message: { content: { content: unknown }[] };
    }>;
  return { $, pass };
}

const use = (id: string) => ({ type: "tool_use", id, name: "Bash", input: { command: "ls" } });
const result = (tool_use_id: string, content: unknown) => ({ type: "tool_result", tool_use_id, content });
const shorter: Answer = ({ module_request }) => (module_request === "append" ? { text: "short", bases: ["b"] } : {});

test("a result becomes what the process answers, as a text or as one block", async () => {
  const { pass } = await load(shorter, { session: "one", messages: [{ content: [{ type: "tool_use", id: "b" }] }] });
  await pass("response", [use("1"), use("2")]);
  expect((await pass("tool-result", [result("1", "long")])).message.content).toEqual([result("1", "short")]);
  const block = [{ type: "text", text: "long" }];
  expect((await pass("tool-result", [result("2", block)])).message.content[0]?.content).toEqual([
    { type: "text", text: "short" },
  ]);
});

test("the row stays the same object if nothing is to be changed", async () => {
  const { pass } = await load(() => ({}), { session: "two" });
  await pass("response", [use("1")]);
  const content = [result("1", "long")];
  expect((await pass("tool-result", content)).message.content).toBe(content);
});

test("references to tools, images and several blocks are never touched", async () => {
  const { pass } = await load(shorter, { session: "three", messages: [{ content: [{ id: "b" }] }] });
  for (const content of [
    [{ type: "tool_reference", tool_name: "x" }],
    [{ type: "image" }],
    [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ],
  ]) {
    await pass("response", [use("1")]);
    expect((await pass("tool-result", [result("1", content)])).message.content[0]?.content).toBe(content);
  }
});

test("a result that refers to a call which the context lost stays whole, and the process is told", async () => {
  const asked: string[] = [];
  const answer: Answer = (input) => {
    asked.push(input.module_request ?? "");
    return shorter(input);
  };
  const { pass } = await load(answer, { session: "four", messages: [{ content: [{ id: "other" }] }] });
  await pass("response", [use("1")]);
  expect((await pass("tool-result", [result("1", "long")])).message.content).toEqual([result("1", "long")]);
  expect(asked).toEqual(["module_ready", "append", "lost_calls"]);
});

test("a process that is missing, fails or never answers leaves the result as it is", async () => {
  const { pass, $ } = await load(shorter, { session: "five" });
  await pass("response", [use("1"), use("2"), use("3")]);
  const calls = [
    async () => Promise.reject(new Error("no connected MCP tool")),
    async () => ({ content: [{ text: "not JSON" }], isError: false }),
    () => new Promise(() => {}),
  ];
  for (const [index, call] of calls.entries()) {
    const client = { ...$, mcp: { call } };
    const content = [result(String(index + 1), "long")];
    expect((await pass("tool-result", content, client)).message.content).toBe(content);
  }
});

test("a session whose process does not know the module is left to the hooks", async () => {
  const { pass, $ } = await load(shorter, { session: "six" });
  await pass("response", [use("1")], { ...$, mcp: { call: async () => Promise.reject(new Error("not connected")) } });
  const content = [result("1", "long")];
  expect((await pass("tool-result", content)).message.content).toBe(content);
});

test("after three failures in a row the module asks no more", async () => {
  const { pass, $ } = await load(shorter, { session: "seven" });
  let asked = 0;
  const call = async () => {
    asked++;
    throw new Error("crashed");
  };
  for (let attempt = 0; attempt < 6; attempt++) await pass("response", [use("1")], { ...$, mcp: { call } });
  expect(asked).toBe(3);
});

test("the shipped module is the built one, and imports nothing", () => {
  const shipped = readFileSync(new URL("../../plugins/claude-code/hooks/register.js", import.meta.url), "utf8");
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
