import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { generateSession } from "../formats/message-format.contract.ts";
import { formatNames } from "../message-format.ts";
import { formatOfRequest, validateRequest } from "./validate-request.ts";

const runs = process.env.PLIMSOLL_DEEP === "1" ? 2_000 : 100;
const user = { role: "user", content: "hi" };

describe("what is validated", () => {
  it("is a list of messages, or a request that holds it", () => {
    expect(validateRequest([user])).toEqual([]);
    expect(validateRequest({ messages: [user] })).toEqual([]);
    expect(validateRequest({ input: [user] })).toEqual([]);
    expect(validateRequest({ input: "hi" })).toEqual([]);
  });

  it("is refused when it is neither", () => {
    const wrong: [unknown, string][] = [
      [null, "request must be an array or an object, not null"],
      [7, "request must be an array or an object, not a number"],
      ["hi", "request must be an array or an object, not a string"],
      [{}, "request has neither messages nor input"],
      [{ model: "claude-opus-4-5" }, "request has neither messages nor input"],
    ];
    for (const [value, message] of wrong) {
      const validate = () => validateRequest(value as object);
      expect(validate).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      expect(validate).toThrow(message);
    }
  });

  it("is refused with options that do not exist or contradict each other", () => {
    const wrong: [object, string][] = [
      [{ provider: "openia" }, 'unknown provider "openia"'],
      [{ format: "xml" }, 'unknown message format "xml"'],
      [{ strict: "yes" }, 'strict must be true or false, not "yes"'],
      [{ provider: "anthropic", format: "openai" }, 'anthropic has no message format "openai"'],
      [{ provider: "openai", format: "anthropic" }, 'openai has no message format "anthropic"'],
    ];
    for (const [options, message] of wrong) {
      const validate = () => validateRequest([user], options);
      expect(validate).toThrow(expect.objectContaining({ code: "invalid_argument" }));
      expect(validate).toThrow(message);
    }
  });
});

describe("the shape", () => {
  it("is a problem of its own, with the path of what is malformed", () => {
    const messages = [
      user,
      null,
      { role: "nobody", content: "x" },
      { role: "user", content: [{ type: "text" }] },
    ];
    expect(validateRequest(messages, { format: "anthropic" })).toEqual([
      { path: "messages[1]", rule: "shape", message: "must be an object, not null", severity: "error" },
      expect.objectContaining({ path: "messages[2].role", rule: "shape" }),
      expect.objectContaining({
        path: "messages[3].content[0].text",
        message: "must be a string, not undefined",
      }),
    ]);
  });

  it("of the list itself is a problem, and so is an empty list", () => {
    expect(validateRequest({ messages: 5 })).toMatchObject([{ path: "messages", rule: "shape" }]);
    expect(validateRequest({ input: null, messages: null })).toMatchObject([
      { path: "messages", rule: "shape" },
    ]);
    expect(validateRequest({ input: 5 })).toMatchObject([{ path: "input", rule: "shape" }]);
    expect(validateRequest([])).toMatchObject([{ path: "messages", rule: "no-messages" }]);
    expect(validateRequest({ messages: [] })).toMatchObject([{ path: "messages", rule: "no-messages" }]);
  });

  it("of tools is checked too", () => {
    const tools = [{ name: "ls", input_schema: {} }, { description: "nameless" }, 7];
    expect(validateRequest({ messages: [user], tools })).toMatchObject([
      { path: "tools[1].name", rule: "shape" },
      { path: "tools[2]", rule: "shape" },
    ]);
    expect(validateRequest({ messages: [user], tools: {} })).toMatchObject([
      { path: "tools", rule: "shape" },
    ]);
  });

  it("of one message leaves the others checked, without blaming its neighbours", () => {
    const call = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "ls", input: {} }] };
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "a" }] };
    const lost = { role: "user", content: [{ type: "tool_result", tool_use_id: "lost" }] };
    expect(validateRequest([user, { role: 7 }, result])).toMatchObject([{ path: "messages[1].role" }]);
    expect(validateRequest([user, call, { role: 7 }, call, lost])).toMatchObject([
      { path: "messages[2].role", rule: "shape" },
      { path: "messages[3].content[0].id", rule: "unanswered-call" },
      { path: "messages[4].content[0].tool_use_id", rule: "orphan-result" },
    ]);
  });
});

describe("the format", () => {
  it("comes from the caller, the provider, the messages, or the model, in this order", () => {
    const chat = { role: "assistant", content: null, tool_calls: [] };
    const item = { type: "function_call", call_id: "a", name: "ls", arguments: "{}" };
    const part = {
      role: "assistant",
      content: [{ type: "tool-call", toolCallId: "a", toolName: "ls", input: {} }],
    };
    expect(formatOfRequest([chat], { format: "rfc" })).toBe("rfc");
    expect(formatOfRequest([chat], { provider: "anthropic" })).toBe("anthropic");
    expect(formatOfRequest([user], { provider: "openai" })).toBe("openai");
    expect(formatOfRequest([item], { provider: "openai" })).toBe("responses");
    expect(formatOfRequest({ input: [user] })).toBe("responses");
    expect(formatOfRequest([chat])).toBe("openai");
    expect(formatOfRequest([user, part])).toBe("ai-sdk");
    expect(formatOfRequest({ messages: [user], model: "gpt-5" })).toBe("openai");
    expect(formatOfRequest({ messages: [user], model: "claude-opus-5" })).toBe("anthropic");
    expect(formatOfRequest([user])).toBe("anthropic");
  });

  it("of every name can be asked for", () => {
    for (const format of formatNames) expect(validateRequest([user], { format })).toEqual([]);
  });
});

describe("a session that is whole", () => {
  const session = fc.record({ turns: fc.integer({ min: 1, max: 12 }), seed: fc.nat(1000) });

  it("has no problem, strict or not, and is left as it is", () => {
    const check = ({ turns, seed }: { turns: number; seed: number }) => {
      const messages = generateSession(turns, seed);
      const before = JSON.stringify(messages);
      expect(validateRequest(messages, { strict: true })).toEqual([]);
      expect(JSON.stringify(messages)).toBe(before);
    };
    fc.assert(fc.property(session, check), { numRuns: runs });
  });

  it("has exactly one problem when one call or one result is taken out", () => {
    const check = ({ turns, seed }: { turns: number; seed: number }, pick: number, isCall: boolean) => {
      const messages = generateSession(turns, seed) as { content: { type: string }[] }[];
      const turn = pick % turns;
      const [index, type] = isCall ? [1 + 2 * turn, "tool_use"] : [2 + 2 * turn, "tool_result"];
      const content = messages[index]!.content.filter((block) => block.type !== type);
      // A user's message without its only block would be an empty message.
      const replaced = content.length > 0 ? content : [{ type: "text", text: "never mind" }];
      const damaged = messages.with(index, { ...messages[index]!, content: replaced });
      const rules = validateRequest(damaged).map(({ rule }) => rule);
      expect(rules).toEqual([isCall ? "orphan-result" : "unanswered-call"]);
    };
    fc.assert(fc.property(session, fc.nat(), fc.boolean(), check), { numRuns: runs });
  });
});

it("tells every one of very many problems", () => {
  const messages = new Array(200_000).fill({ role: "user", content: "" });
  expect(validateRequest(messages)).toHaveLength(200_001);
});

it("never throws for whatever stands in a list", () => {
  const check = (messages: unknown[], strict: boolean) => {
    for (const format of formatNames) {
      for (const { path, message, rule } of validateRequest(messages, { format, strict })) {
        expect(path).toMatch(/^(messages|input|tools|system|compaction|cache_control)/);
        expect(message).not.toBe("");
        expect(rule).toMatch(/^[a-z]+(-[a-z]+)*$/);
      }
    }
  };
  const type = fc.constantFrom(
    "text",
    "tool_use",
    "tool_result",
    "thinking",
    "tool-call",
    "tool-result",
    "x",
  );
  const block = fc.record({ type, id: fc.jsonValue(), content: fc.jsonValue(), tool_use_id: fc.jsonValue() });
  const message = fc.record({
    role: fc.constantFrom("user", "assistant", "system", "tool", 7),
    type: fc.constantFrom(undefined, "reasoning", "function_call", "function_call_output", "message"),
    content: fc.oneof(fc.array(fc.oneof(block, fc.jsonValue())), fc.jsonValue()),
    tool_calls: fc.constantFrom(undefined, [], [{}], "x"),
  });
  fc.assert(fc.property(fc.array(fc.oneof(message, fc.jsonValue())), fc.boolean(), check), {
    numRuns: runs * 3,
  });
});
