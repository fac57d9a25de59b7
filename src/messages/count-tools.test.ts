import { describe, expect, it } from "vitest";
import { countTools } from "./count-tools.ts";
import { callCounter, characterCounter } from "./formats/message-format.contract.ts";
import type { ToolChoice } from "./message-format.ts";

const input_schema = { type: "object", properties: { path: { type: "string" } } };
const read = { name: "read", description: "Reads a file.", input_schema };

describe("countTools", () => {
  it("counts a definition's JSON and the tool prompt of the model", () => {
    const json = JSON.stringify(read).length;
    const count = (model: string | undefined, toolChoice?: ToolChoice) =>
      countTools([read], characterCounter(), { model, toolChoice });
    expect(count("claude-opus-4-8")).toBe(290 + json);
    expect(count("claude-opus-4-8", "any")).toBe(410 + json);
    expect(count("anthropic/claude-sonnet-4.5")).toBe(496 + json);
    expect(count("claude-opus-4-1-20250805")).toBe(313 + json);
    expect(count("claude-sonnet-4-20250514")).toBe(313 + json);
    expect(count("claude-sonnet-5-20260630")).toBe(354 + json);
    expect(count("claude-sonnet-5-5")).toBe(675 + json);
    expect(count("claude-opus-4-9")).toBe(675 + json);
    expect(count("claude-next")).toBe(675 + json);
    expect(count(undefined, "any")).toBe(804 + json);
    expect(count("claude-opus-4-8", "tool")).toBe(410 + json);
    expect(count("claude-opus-4-8", "none")).toBe(290 + json);
  });

  it.each(["required", "", "constructor", { type: "any" }])("refuses %j as a tool choice", (toolChoice) => {
    const options = { toolChoice: toolChoice as ToolChoice };
    for (const format of ["anthropic", "rfc"] as const) {
      expect(() => countTools([read], characterCounter(), { ...options, format })).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          hint: "Tool choices are auto, any, tool, none.",
        }),
      );
    }
  });

  it("counts the provider's own tools by their fixed size and their JSON", () => {
    const bash = { type: "bash_20250124", name: "bash" };
    const search = { type: "web_search_20250305", name: "web_search" };
    const json = JSON.stringify(bash).length + JSON.stringify(search).length;
    const cached = { ...search, cache_control: { type: "ephemeral" } };
    expect(countTools([bash, cached], characterCounter(), { model: "claude-opus-4-8" })).toBe(
      290 + 245 + 700 + json,
    );
  });

  it("counts RFC tools as name, description and schema, a fifth on top, and 8 each", () => {
    const chars = "read".length + "Reads a file.".length + JSON.stringify(input_schema).length;
    const tokens = countTools([read, { name: "ls" }], characterCounter(), { format: "rfc" });
    expect(tokens).toBe(Math.ceil(chars * 1.2) + 8 + Math.ceil(2 * 1.2) + 8);
  });

  it("is 0 only for no tools", () => {
    expect(countTools([], characterCounter())).toBe(0);
    expect(countTools([{ name: "" }], characterCounter())).toBeGreaterThan(290);
  });

  it("counts a definition once, and again when anything in it was changed", () => {
    const counter = callCounter();
    const tool: Record<string, unknown> = { ...read };
    const first = countTools([tool], counter);
    expect(countTools([tool], counter)).toBe(first);
    expect(counter.calls).toBe(1);
    tool.description = "Reads a file quickly.";
    expect(countTools([tool], counter)).toBe(first + " quickly".length);
    tool.name = "read_quickly";
    expect(countTools([tool], counter)).toBe(first + " quickly".length + "_quickly".length);
    tool.input_schema = { type: "object", properties: {} };
    const emptied = countTools([tool], counter);
    expect(emptied).toBeLessThan(first);
    Object.assign(tool.input_schema as object, { properties: { path: {} } });
    expect(countTools([tool], counter)).toBe(emptied + '"path":{}'.length);
  });

  it("names the path of what is malformed", () => {
    const count = (tools: unknown) => () => countTools(tools as object[], characterCounter());
    expect(count([read, 7])).toThrow("tools[1] must be an object, not a number");
    expect(count([{ description: "x" }])).toThrow("tools[0].name must be a string, not undefined");
    expect(count("x")).toThrow("tools must be an array, not a string");
  });
});
