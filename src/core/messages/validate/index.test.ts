import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { caseCount } from "../../../../test/case-count.ts";
import type { Fields } from "../../text/index.ts";
import { createConversation, readParts, type Step } from "../conversation.contract.ts";
import { formats } from "../formats/index.ts";
import { generateSession } from "../formats/message-format.contract.ts";
import { formatNames, type MessageFormat, type Part, type Role } from "../message-format.ts";
import { normaliseMessages } from "../normalise-messages.ts";
import { formatOfRequest, validateRequest } from "./index.ts";

const runs = caseCount({ few: 20, deep: 500, long: 2_000 });
const user = { role: "user", content: "hi" };

describe("what is validated", () => {
  it("is a list of messages, or a request", () => {
    expect(validateRequest([user])).toEqual([]);
    expect(validateRequest({ messages: [user] })).toEqual([]);
    expect(validateRequest({ input: [user] })).toEqual([]);
    expect(validateRequest({ input: "hi" })).toEqual([]);
  });

  it("is refused if it is neither", () => {
    const wrong: [unknown, string][] = [
      [null, "request must be an array or an object, not null"],
      [7, "request must be an array or an object, not a number"],
      ["hi", "request must be an array or an object, not a string"],
      [{}, "request has neither messages, input nor contents"],
      [{ model: "claude-opus-4-5" }, "request has neither messages, input nor contents"],
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
  it("is reported as a problem, with the path of what is malformed", () => {
    const messages = [user, null, { role: "nobody", content: "x" }, { role: "user", content: [{ type: "text" }] }];
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
    expect(validateRequest({ input: null, messages: null })).toMatchObject([{ path: "messages", rule: "shape" }]);
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
    expect(validateRequest({ messages: [user], tools: {} })).toMatchObject([{ path: "tools", rule: "shape" }]);
  });

  it("of one message does not prevent checks of the others, or cause problems in them", () => {
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

  it("can be set to every name", () => {
    const contents = [{ role: "user", parts: [{ text: "Hello" }] }];
    for (const format of formatNames) {
      expect(validateRequest(format === "gemini" ? contents : [user], { format })).toEqual([]);
    }
    expect(formatOfRequest({ contents })).toBe("gemini");
  });
});

describe("a valid session", () => {
  const session = fc.record({ turns: fc.integer({ min: 1, max: 12 }), seed: fc.nat(1000) });

  it("has no problem, strict or not, and is not changed", () => {
    const check = ({ turns, seed }: { turns: number; seed: number }) => {
      const messages = generateSession(turns, seed);
      const before = JSON.stringify(messages);
      expect(validateRequest(messages, { strict: true })).toEqual([]);
      expect(JSON.stringify(messages)).toBe(before);
    };
    fc.assert(fc.property(session, check), { numRuns: runs });
  });

  it("has exactly one problem if one call or one result is removed", () => {
    const check = ({ turns, seed }: { turns: number; seed: number }, pick: number, isCall: boolean) => {
      const messages = generateSession(turns, seed) as { content: { type: string }[] }[];
      const turn = pick % turns;
      const [index, type] = isCall ? [1 + 2 * turn, "tool_use"] : [2 + 2 * turn, "tool_result"];
      const content = messages[index]!.content.filter((block) => block.type !== type);
      // A user message without its only block would be empty.
      const replaced = content.length > 0 ? content : [{ type: "text", text: "never mind" }];
      const damaged = messages.with(index, { ...messages[index]!, content: replaced });
      const rules = validateRequest(damaged).map(({ rule }) => rule);
      expect(rules).toEqual([isCall ? "orphan-result" : "unanswered-call"]);
    };
    fc.assert(fc.property(session, fc.nat(), fc.boolean(), check), { numRuns: runs });
  });
});

it("reports every one of very many problems", () => {
  const messages = new Array(200_000).fill({ role: "user", content: "" });
  expect(validateRequest(messages)).toHaveLength(200_001);
});

it("never throws, whatever a list contains", () => {
  const check = (messages: unknown[], strict: boolean) => {
    for (const format of formatNames) {
      for (const { path, message, rule } of validateRequest(messages, { format, strict })) {
        expect(path).toMatch(/^(messages|input|tools|system|compaction|cache_control)/);
        expect(message).not.toBe("");
        expect(rule).toMatch(/^[a-z]+(-[a-z]+)*$/);
      }
    }
  };
  const type = fc.constantFrom("text", "tool_use", "tool_result", "thinking", "tool-call", "tool-result", "x");
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

/** Properties of every history, however broken, in every format. */
const numRuns = caseCount({ few: 20, deep: 2_000, long: 10_000 });

// Few ids, so that they are reused, answered twice, late or never.
const id = fc.constantFrom("c1", "c2", "c1_2");
const ids = fc.array(id, { maxLength: 3 });
const text = fc.constantFrom("", " \n", "hello", "well then", "\ud800");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("user"), text }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("assistant"), text, calls: ids }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("results"), calls: ids, text }) },
  fc.record({ kind: fc.constant("system"), text }),
);
const ownWords = /^(?:\(start\)$|\(empty\)$|\[late tool output\])/;

const each = formats.map((format) => [format.name, format] as const);

describe.each(each)("normalised %s messages", (name, format) => {
  const normalise = (messages: readonly object[]) => normaliseMessages(messages, { format: name });
  const checkAll = (check: (messages: object[]) => void) =>
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => check(createConversation(name, steps))),
      { numRuns },
    );

  it("do not change when normalised again, and the input is not changed", () => {
    checkAll((messages) => {
      const once = deepFreeze(normalise(deepFreeze(messages)));
      expect(normalise(once)).toBe(once);
    });
  });

  it("have the same beginning, however the history continues after a turn", () => {
    checkAll((messages) => {
      const whole = normalise(messages);
      const roles = messages.map((message) => format.read(message as Fields, "message").role);
      for (let end = 0; end <= messages.length; end++) {
        const isTurn = roles[end] === "assistant" && roles[end - 1] !== "assistant";
        if (end < messages.length && !isTurn) continue;
        const begun = normalise(messages.slice(0, end));
        expect(whole.slice(0, begun.length)).toEqual(begun);
      }
    });
  });

  it("keep all text of the user and the system, in order", () => {
    const words = (messages: readonly object[], role: Role) =>
      readParts(messages, format)
        .filter((each) => each.role === role && each.part.kind === "text" && each.text.trim() !== "")
        .map((each) => each.text)
        .filter((said) => !ownWords.test(said));
    checkAll((messages) => {
      const normalised = normalise(messages);
      for (const role of ["user", "system"] as const) {
        expect(words(normalised, role)).toEqual(words(messages, role));
      }
    });
  });

  it("answer each call once, before any other content, and have no other results", () => {
    checkAll((messages) => {
      expect(pairingProblems(normalise(messages), format)).toEqual([]);
    });
  });

  it("are valid", () => {
    checkAll((messages) => {
      const normalised = normalise(messages);
      if (normalised.length > 0) expect(validateRequest(normalised, { format: name })).toEqual([]);
    });
  });

  it("begin with a user, have no blank text, and lose no output", () => {
    checkAll((messages) => {
      const normalised = readParts(normalise(messages), format);
      expect(normalised.find(({ role }) => role !== "system")?.role ?? "user").toBe("user");
      for (const { part, text } of normalised) if (part.kind === "text") expect(text.trim()).not.toBe("");
      const all = normalised.map(({ text }) => text).join("\n");
      const outputs = readParts(messages, format).filter(({ part }) => part.kind === "tool_result");
      // The first of two results for one call may be dropped.
      const last = new Map(outputs.map(({ part, text }) => [part.callId, text]));
      for (const output of last.values()) expect(all).toContain(output);
    });
  });
});

function pairingProblems(messages: readonly object[], format: MessageFormat): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  const open = new Set<string>();
  const expectAnswers = () => {
    if (open.size > 0) problems.push(`not answered at once: ${[...open]}`);
  };
  const visit = ({ kind, callId = "" }: Part, role: Role) => {
    if (kind === "tool_result") return open.delete(callId) || problems.push(`not open: ${callId}`);
    if (role !== "assistant") expectAnswers();
    if (kind !== "tool_call") return;
    if (seen.has(callId)) problems.push(`used again: ${callId}`);
    seen.add(callId);
    open.add(callId);
  };
  for (const message of messages) {
    const { role, parts } = format.read(message as Fields, "message");
    // A turn can continue after a call only in a list of items.
    if (role === "assistant" && format.name !== "responses") expectAnswers();
    for (const part of parts) visit(part, role);
  }
  expectAnswers();
  return problems;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const field of Object.values(value)) deepFreeze(field);
    Object.freeze(value);
  }
  return value;
}
