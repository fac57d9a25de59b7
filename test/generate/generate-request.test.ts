import { describe, expect, it } from "vitest";
import { createMessageLens, formatNames, validateRequest } from "../../src/core/messages/index.ts";
import { generateRequest } from "./generate-request.ts";
import { generateSession } from "./generate-session.ts";
import { isCall, isResult } from "./read-blocks.ts";

const counter = { name: "test:characters", count: (text: string) => text.length };
const options = { seed: 5, turns: 40 };
const session = generateSession(options);

describe.each(formatNames)("a generated request in the %s format", (format) => {
  const { messages, request } = generateRequest(format, options);
  const lens = createMessageLens(messages, { counter });
  const parts = messages.flatMap((message, index) => lens.read(message, index).parts);

  it("is recognised for what it is", () => {
    expect(lens.format).toBe(format);
    const keys: Record<string, string> = { responses: "input", gemini: "contents" };
    expect(request[keys[format] ?? "messages"]).toBe(messages);
  });

  it("has every call and result of the session, under the same ids", () => {
    const blocks = session.messages.flatMap(({ content }) => content);
    const ids = (kind: string) => parts.filter((part) => part.kind === kind).map((part) => part.callId);
    expect(ids("tool_call")).toEqual(blocks.filter(isCall).map(({ id }) => id));
    expect(ids("tool_result")).toEqual(blocks.filter(isResult).map((each) => each.tool_use_id));
  });

  it("has thinking wherever the format has any", () => {
    const hasThinking = parts.some(({ kind }) => kind === "thinking");
    expect(hasThinking).toBe(format !== "openai" && format !== "rfc");
  });

  it("holds nothing that JSON cannot", () => {
    expect(JSON.parse(JSON.stringify(request))).toEqual(request);
  });

  it("is valid", () => {
    for (const profile of ["coding", "search", "chat"] as const) {
      const generated = generateRequest(format, { ...options, profile });
      expect(validateRequest(generated.request, { format, strict: true })).toEqual([]);
    }
  });

  it("ends with what the assistant is to answer", () => {
    expect(lens.read(messages.at(-1)!, messages.length - 1).role).not.toBe("assistant");
  });
});

describe("the system prompt of a generated request", () => {
  it("is a field of the requests of Anthropic and Gemini, and a message everywhere else", () => {
    const roles = (format: (typeof formatNames)[number]) =>
      (generateRequest(format, { ...options, profile: "chat" }).messages as { role?: string }[]).map(
        ({ role }) => role,
      );
    expect(generateRequest("anthropic", { ...options, profile: "chat" }).request.system).toBeDefined();
    expect(roles("anthropic")).not.toContain("system");
    for (const format of formatNames.filter((each) => each !== "anthropic" && each !== "gemini"))
      expect(roles(format)[0]).toBe("system");
  });
});
