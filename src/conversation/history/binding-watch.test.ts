import { describe, expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { exchanges, user } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";

const counter = await createCounter("bytes/4");
const tool = (name: string) => ({ name, input_schema: { type: "object" } });
const open = (model: string) => createTrimmer({ contextWindow: 100_000, counter, format: "anthropic", model });
const messages = [user("go"), ...exchanges(3, { thinking: 40 })];
const longer = [...messages, ...exchanges(1, { thinking: 40 }, 3)];

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
