import { describe, expect, it } from "vitest";
import { countTools } from "../count-messages.ts";
import { characterCounter } from "./message-format.contract.ts";

describe("OpenAI tools", () => {
  const parameters = { type: "object", properties: { path: { type: "string" } } };
  const definition = { name: "read", description: "Reads a file.", parameters };
  const json = JSON.stringify(definition).length;
  const count = (tools: object[], format: "openai" | "responses") => countTools(tools, characterCounter(), { format });

  it("count by the JSON of their definitions, nested or flat, and 12 once", () => {
    expect(count([{ type: "function", function: { ...definition, strict: true } }], "openai")).toBe(12 + json);
    expect(count([{ type: "function", ...definition, strict: true }], "responses")).toBe(12 + json);
    const custom = { name: "patch", description: "Patches.", format: { type: "text" } };
    expect(count([{ type: "custom", custom }], "openai")).toBe(12 + JSON.stringify(custom).length);
    expect(count([{ type: "custom", ...custom }], "responses")).toBe(12 + JSON.stringify(custom).length);
  });

  it("count those that the provider holds by their JSON and a constant", () => {
    const search = { type: "web_search" };
    expect(count([search], "responses")).toBe(12 + 700 + JSON.stringify(search).length);
  });

  it("are refused in the wrong shape, with their path", () => {
    expect(() => count([{ type: "function", ...definition }], "openai")).toThrow(
      "tools[0].function must be an object, not undefined",
    );
    expect(() => count([{ type: "function", function: definition }], "responses")).toThrow(
      "tools[0].name must be a string, not undefined",
    );
  });
});
