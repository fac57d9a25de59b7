import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { chooseFormat, formats } from "./index.ts";

describe("the formats", () => {
  it("do not claim messages of other formats", () => {
    const own: Record<string, object[]> = {
      anthropic: [
        { role: "assistant", content: [{ type: "tool_use", id: "1", name: "ls", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "x" }] },
        { role: "assistant", content: [{ type: "thinking", thinking: "", signature: "" }] },
      ],
      openai: [
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", function: { name: "ls", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c1", content: "x" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "u" } }] },
        { role: "user", content: [{ type: "file", file: { file_id: "f" } }] },
      ],
      responses: [
        { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
        { role: "user", content: [{ type: "input_text", text: "x" }] },
        { type: "function_call", call_id: "c1", name: "ls", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "x" },
        { type: "reasoning", id: "rs_1", summary: [] },
        { type: "web_search_call", id: "ws_1", status: "completed" },
        { type: "item_reference", id: "msg_1" },
      ],
      "ai-sdk": [
        { role: "assistant", content: [{ type: "tool-call", toolCallId: "1", toolName: "ls", input: {} }] },
        { role: "tool", content: [{ type: "tool-result", toolCallId: "1", toolName: "ls", output: {} }] },
        { role: "assistant", content: [{ type: "reasoning", text: "" }] },
        { role: "user", content: [{ type: "file", mediaType: "image/png", data: "AAAA" }] },
        { role: "user", content: [{ type: "image", image: "AAAA" }] },
        { role: "system", content: "x", providerOptions: { anthropic: {} } },
      ],
      gemini: [
        { role: "user", parts: [{ text: "x" }] },
        { role: "model", parts: [{ functionCall: { name: "ls", args: {} } }] },
        { parts: [{ functionResponse: { name: "ls", response: {} } }] },
      ],
    };
    for (const [name, messages] of Object.entries(own)) {
      for (const message of messages) {
        const claiming = formats.filter((format) => format.name !== "rfc" && format.claims(message as Fields));
        expect(
          claiming.map((format) => format.name),
          JSON.stringify(message),
        ).toEqual([name]);
        expect(chooseFormat([message], undefined).name).toBe(name);
      }
    }
  });

  it("leave plain texts and texts in a list to the default", () => {
    for (const content of ["x", [{ type: "text", text: "x" }]]) {
      for (const role of ["system", "user", "assistant"]) {
        expect(formats.filter((format) => format.claims({ role, content }))).toEqual([]);
      }
    }
  });

  it("are chosen by the first message that shows one, and the developer is OpenAI's", () => {
    const formatOf = (...messages: object[]) => chooseFormat(messages, undefined).name;
    const user = { role: "user", content: "go" };
    const developer = { role: "developer", content: "Be brief." };
    expect(formatOf(user, { role: "tool", tool_call_id: "c1", content: "x" })).toBe("openai");
    expect(formatOf(developer, user)).toBe("openai");
    expect(formatOf(developer, user, { type: "function_call" })).toBe("responses");
    expect(formatOf(user, { role: "tool", content: [{ type: "tool_result", content: "x" }] })).toBe("rfc");
    expect(formatOf(user)).toBe("anthropic");
    expect(formatOf()).toBe("anthropic");
  });

  it("do not claim a type that cannot be converted to a string", () => {
    const odd = { toString: 1 };
    for (const content of [[{ type: odd }], [odd], odd])
      expect(formats.filter((format) => format.claims({ role: "user", content }))).toEqual([]);
  });
});
