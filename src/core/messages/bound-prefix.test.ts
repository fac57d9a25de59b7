import { describe, expect, test } from "vitest";
import { blockForm, contentForm, findBindingChange } from "./bound-prefix.ts";

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
    ["a system text that is absent, null or empty", {}, { system: "" }],
    ["a system text of null", { system: null }, { system: "" }],
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

  test.each([
    ["an added tool", {}, { tools: [tool("a")] }, { addedTools: ["a"] }],
    ["a removed tool", { tools: [tool("a")] }, {}, { removedTools: ["a"] }],
    ["a changed tool", { tools: [tool("a")] }, { tools: [tool("a", { strict: true })] }, { changedTools: ["a"] }],
    ["an exchanged tool", { tools: [tool("a")] }, { tools: [tool("b")] }, { addedTools: ["b"], removedTools: ["a"] }],
    [
      "an added and a changed tool",
      { tools: [tool("a")] },
      { tools: [tool("a", { strict: true }), tool("b")] },
      { addedTools: ["b"], changedTools: ["a"] },
    ],
  ])("names %s below the same system text", (_what, before, after, change) => {
    const none = { addedTools: [], removedTools: [], changedTools: [] };
    expect(findBindingChange({ system: "You help.", ...before }, { system: "You help.", ...after })).toEqual({
      ...none,
      ...change,
    });
  });

  test("finds the first other character of the trimmed texts", () => {
    expect(findBindingChange({ system: " a b" }, { system: "a c" })).toMatchObject({ systemAt: 2 });
    const cited = [{ type: "text", text: "a", citations: { enabled: true } }];
    expect(findBindingChange({ system: "a" }, { system: cited })).toMatchObject({ systemAt: 1 });
  });
});

describe("the form of a block", () => {
  test("is JSON with sorted keys, without fields that are undefined", () => {
    expect(blockForm({ type: "x", b: [1, { d: null, c: undefined }], a: null })).toBe(
      '{"a":null,"b":[1,{"d":null}],"type":"x"}',
    );
    expect(blockForm({ type: "x", a: [1] })).not.toBe(blockForm({ type: "x", a: { 0: 1 } }));
  });

  test("leaves out white space only around the text of a text block", () => {
    expect(blockForm({ type: "text", text: " a " })).toBe(blockForm({ type: "text", text: "a" }));
    expect(blockForm({ type: "other", text: " a " })).not.toBe(blockForm({ type: "other", text: "a" }));
    expect(blockForm({ type: "text", text: 5 })).toBe('{"text":5,"type":"text"}');
  });

  test("has the content of a result in one form, and that of no other block", () => {
    const list = [{ type: "text", text: "x" }];
    expect(blockForm({ type: "tool_result", content: "x" })).toBe(blockForm({ type: "tool_result", content: list }));
    expect(blockForm({ type: "tool_result", content: "x" })).not.toBe(blockForm({ type: "tool_result", content: "y" }));
    expect(blockForm({ type: "document", content: "x" })).not.toBe(blockForm({ type: "document", content: list }));
  });

  test("is missing for everything that is no block", () => {
    expect(contentForm([null, "x", { type: "text", text: "a" }])).toEqual(['{"text":"a","type":"text"}']);
    expect(contentForm(null)).toEqual([]);
  });
});
