import { describe, expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { exchange, exchanges, user } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";

const counter = await createCounter("bytes/4");
const tool = (name: string) => ({ name, input_schema: { type: "object" } });
const open = (model: string) => createTrimmer({ contextWindow: 100_000, counter, format: "anthropic", model });
const messages = [user("go"), ...exchanges(3, { thinking: 40 })];
const longer = [...messages, ...exchanges(1, { thinking: 40 }, 3)];
const countThinking = (sent: readonly object[]) =>
  (sent as readonly { readonly content: readonly { readonly type: string }[] }[])
    .flatMap(({ content }) => content)
    .filter(({ type }) => type === "thinking").length;

describe("system text and tools of a model that binds thinking", () => {
  test("are reported when they change, with what differs", async () => {
    const { reduce } = await open("claude-opus-5-5");
    const before = { messages, system: "Monday", tools: [tool("read"), tool("run")] };
    expect(reduce(before).unbound).toBeUndefined();
    expect(reduce({ ...before, tools: [tool("run"), tool("read")] }).unbound).toBeUndefined();
    const { unbound, messages: sent } = reduce({
      messages: longer,
      system: "Tuesday",
      tools: [tool("read"), tool("find")],
    });
    expect(unbound).toEqual({ systemAt: 0, addedTools: ["find"], removedTools: ["run"], changedTools: [], blocks: 4 });
    expect(sent).toEqual(longer);
    expect(
      reduce({ messages: longer, system: "Tuesday", tools: [tool("read"), tool("find")] }).unbound,
    ).toBeUndefined();
  });

  test("are compared each with the call before, also where only one of them changed", async () => {
    const { reduce } = await open("claude-opus-5-5");
    const tools = [tool("read")];
    const unchanged = { addedTools: [], removedTools: [], changedTools: [] };
    expect(reduce({ messages, tools }).unbound).toBeUndefined();
    const systemAdded = reduce({ messages, tools, system: "Monday" });
    expect(systemAdded.unbound).toEqual({ ...unchanged, systemAt: 0, blocks: 3 });
    const toolAdded = reduce({ messages, tools: [...tools, tool("run")], system: "Monday" });
    expect(toolAdded.unbound).toEqual({ ...unchanged, addedTools: ["run"], blocks: 3 });
    const systemLonger = reduce({ messages, tools: [...tools, tool("run")], system: "Monday noon" });
    expect(systemLonger.unbound).toEqual({ ...unchanged, systemAt: 6, blocks: 3 });
  });

  test("are reported with the thinking that was made before the change, and not with later thinking", async () => {
    const { reduce } = await open("claude-opus-5-5");
    reduce({ messages: messages.slice(0, 3), system: "Monday" });
    expect(reduce({ messages, system: "Tuesday" }).unbound?.blocks).toBe(2);
  });

  test("are reported with the thinking that is still sent", async () => {
    const options = { contextWindow: 12_000, reserve: 0, counter, format: "anthropic" } as const;
    const { reduce } = await createTrimmer({ ...options, model: "claude-opus-5-5" });
    const long = [user("go")];
    let trimmed = false;
    for (let index = 0; index < 200; index++) {
      long.push(...exchange(index, { thinking: 400 }));
      const { messages: sent, unbound } = reduce({ messages: long, system: `call ${index}` });
      if (index > 0) expect(unbound?.blocks ?? 0).toBe(countThinking(sent));
      trimmed ||= sent.length < long.length;
    }
    expect(trimmed).toBe(true);
  });

  test("may change while there is no thinking, and on older models", async () => {
    const plain = [user("go"), ...exchanges(3)];
    const silent = await open("claude-opus-5-5");
    silent.reduce({ messages: plain, system: "Monday" });
    expect(silent.reduce({ messages: plain, system: "Tuesday" }).unbound).toBeUndefined();
    const older = await open("claude-opus-5");
    older.reduce({ messages, system: "Monday" });
    expect(older.reduce({ messages, system: "Tuesday" }).unbound).toBeUndefined();
  });
});
