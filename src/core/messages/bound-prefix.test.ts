import { describe, expect, test } from "vitest";
import { findBindingChange } from "./bound-prefix.ts";

const tool = (name: string, more: object = {}) => ({ name, description: `Does ${name}.`, ...more });

describe("findBindingChange", () => {
  test.each([
    ["a string and one text block", { system: "You help." }, { system: [{ type: "text", text: "You help." }] }],
    ["cache markers", { tools: [tool("a")] }, { tools: [tool("a", { cache_control: { type: "ephemeral" } })] }],
    [
      "the order of tools and keys",
      { tools: [tool("a"), tool("b")] },
      { tools: [tool("b"), { description: "Does a.", name: "a" }] },
    ],
    ["white space around a text", { system: "You help." }, { system: [{ type: "text", text: "\nYou help. " }] }],
    [
      "a text of white space",
      { system: "You help." },
      {
        system: [
          { type: "text", text: "You help." },
          { type: "text", text: " " },
        ],
      },
    ],
    [
      "a tool that is loaded on demand",
      { tools: [tool("a")] },
      { tools: [tool("a"), tool("b", { defer_loading: true })] },
    ],
  ])("ignores %s", (_what, before, after) => {
    expect(findBindingChange(before, after)).toBeUndefined();
  });

  test("says what differs", () => {
    const before = { system: "Today is Monday.", tools: [tool("read"), tool("write"), tool("run")] };
    const after = { system: "Today is Tuesday.", tools: [tool("read"), tool("run", { strict: true }), tool("find")] };
    expect(findBindingChange(before, after)).toEqual({
      systemAt: 9,
      addedTools: ["find"],
      removedTools: ["write"],
      changedTools: ["run"],
    });
    expect(findBindingChange({ system: "a  b" }, { system: "a b" })).toMatchObject({ systemAt: 2 });
  });
});
