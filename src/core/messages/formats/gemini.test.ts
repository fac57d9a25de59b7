import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { countMessages, countTools } from "../count-messages.ts";
import { normaliseMessages } from "../normalise-messages.ts";
import { validateRequest } from "../validate/index.ts";
import { geminiFormat } from "./gemini.ts";
import { characterCounter, testMessageFormat } from "./message-format.contract.ts";

const anyText = fc.string({ unit: "binary" });
const signed = { requiredKeys: [] as [] };
const signature = fc.record({ thoughtSignature: fc.base64String({ minLength: 4 }) }, signed);
const text = fc.tuple(fc.record({ text: fc.string({ minLength: 1 }) }), signature).map(([a, b]) => ({ ...a, ...b }));
const thought = fc.record({ text: anyText, thought: fc.constant(true) });
const media = fc.record({
  inlineData: fc.record({
    mimeType: fc.constantFrom("image/png", "application/pdf", "audio/wav"),
    data: fc.base64String(),
  }),
});
const file = fc.record({ fileData: fc.record({ mimeType: fc.constant("video/mp4"), fileUri: fc.webUrl() }) });
const call = fc
  .tuple(fc.record({ id: fc.string(), name: fc.string(), args: fc.dictionary(fc.string(), fc.jsonValue()) }), signature)
  .map(([functionCall, rest]) => ({ functionCall, ...rest }));
const response = fc.record({
  functionResponse: fc.record({
    id: fc.string(),
    name: fc.string(),
    response: fc.oneof(fc.record({ output: anyText }), fc.dictionary(fc.string(), fc.jsonValue())),
  }),
});
const code = fc.record({ executableCode: fc.record({ language: fc.constant("PYTHON"), code: fc.string() }) });
const user = fc.record({ role: fc.constant("user"), parts: fc.array(fc.oneof(text, media, file, response)) });
const bare = fc.record({ parts: fc.array(text) });
const model = fc.record({ role: fc.constant("model"), parts: fc.array(fc.oneof(text, thought, call, code)) });

const hologram = { hologram: { beam: "blue" } };

testMessageFormat({
  format: geminiFormat,
  message: fc.oneof(user, model, model, bare),
  sample: { role: "model", parts: [{ functionCall: { name: "ls", args: {} } }] },
  malformed: [
    [{ role: "assistant", parts: [] }, 'messages[1].role "assistant" is not a role'],
    [{ role: "user" }, "messages[1].parts must be an array, not undefined"],
    [{ role: "user", parts: [7] }, "messages[1].parts[0] must be an object, not a number"],
    [{ role: "user", parts: [{ text: 7 }] }, "messages[1].parts[0].text must be a string"],
    [{ role: "model", parts: [{ functionCall: {} }] }, "messages[1].parts[0].functionCall.name must be a string"],
  ],
  unknown: { message: { role: "user", parts: [hologram] }, part: hologram },
});

const read = (message: object) => geminiFormat.read(message as Fields, "contents[0]").parts;
const trim = { action: "replace", text: "[trimmed]" } as const;

describe("Gemini contents", () => {
  it("pair calls and responses without ids by name and order", () => {
    const calls = read({ role: "model", parts: ["a", "b", "a"].map((name) => ({ functionCall: { name, args: {} } })) });
    const results = read({
      role: "user",
      parts: ["a", "b", "a"].map((name) => ({ functionResponse: { name, response: { output: "x" } } })),
    });
    expect(results.map(({ callId }) => callId)).toEqual(calls.map(({ callId }) => callId));
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(3);
    expect(geminiFormat.toolResult({ callId: calls[0]?.callId ?? "", toolName: "a" }, "x")).toEqual({
      role: "user",
      parts: [{ functionResponse: { name: "a", response: { output: "x" } } }],
    });
  });

  it("keep the signature of a trimmed call and of a text", () => {
    const message = {
      role: "model",
      parts: [
        { text: "Looking.", thoughtSignature: "a" },
        { functionCall: { name: "ls", args: { path: "src" } }, thoughtSignature: "b" },
        { text: "", thoughtSignature: "c" },
      ],
    };
    expect(
      geminiFormat.edit(
        message,
        new Map([
          [0, trim],
          [1, trim],
        ]),
      ),
    ).toEqual({
      role: "model",
      parts: [
        { text: "[trimmed]", thoughtSignature: "a" },
        { functionCall: { name: "ls", args: { trimmed: "[trimmed]" } }, thoughtSignature: "b" },
        { text: "", thoughtSignature: "c" },
      ],
    });
    expect(read(message).map(({ kind }) => kind)).toEqual(["text", "tool_call", "text"]);
    expect(normaliseMessages([{ role: "user", parts: [{ text: "Hi" }] }, message]).at(1)).toBe(message);
  });

  it("count a response by its text, and functions by their JSON", () => {
    const message = { role: "user", parts: [{ functionResponse: { name: "ls", response: { output: "12345" } } }] };
    expect(countMessages([message], characterCounter())).toBe(3 + 4 + 9 + 5);
    const functions = [{ name: "ls", description: "Lists files." }];
    const count = (tools: object[]) => countTools(tools, characterCounter(), { format: "gemini" });
    expect(count([{ functionDeclarations: functions }])).toBe(JSON.stringify(functions).length);
    expect(count([{ googleSearch: {} }])).toBeGreaterThan(700);
  });

  it("are repaired: a missing response is added, and calls that share an id get their own", () => {
    const call = { role: "model", parts: [{ functionCall: { id: "1", name: "ls", args: {} } }] };
    const answer = { role: "user", parts: [{ functionResponse: { id: "1", name: "ls", response: { output: "x" } } }] };
    const start = { role: "user", parts: [{ text: "Go." }] };
    const repaired = normaliseMessages([start, call, answer, call, answer]);
    expect(repaired.slice(0, 3)).toEqual([start, call, answer]);
    expect(repaired.slice(3)).toEqual([
      { role: "model", parts: [{ functionCall: { id: "1_2", name: "ls", args: {} } }] },
      { role: "user", parts: [{ functionResponse: { id: "1_2", name: "ls", response: { output: "x" } } }] },
    ]);
    const bare = { role: "model", parts: [{ functionCall: { name: "ls", args: {} } }] };
    const reply = { role: "user", parts: [{ functionResponse: { name: "ls", response: { output: "x" } } }] };
    const valid = [start, bare, reply, bare, reply];
    expect(normaliseMessages(valid)).toBe(valid);
    expect(normaliseMessages([start, call, { role: "user", parts: [{ text: "Stop." }] }]).at(-1)).toEqual({
      role: "user",
      parts: [{ functionResponse: { id: "1", name: "ls", response: { output: "[no result]" } } }, { text: "Stop." }],
    });
  });
});

describe("a Gemini request", () => {
  const start = { role: "user", parts: [{ text: "Where is the bug?" }] };
  const call = (name: string, more: object = {}) => ({ functionCall: { name, args: {} }, ...more });
  const answer = (name: string) => ({ functionResponse: { name, response: { output: "x" } } });
  const rules = (contents: object[], more: object = {}, strict = false) =>
    validateRequest({ contents, ...more }, { strict }).map(({ rule, path }) => `${rule} ${path}`);

  it("is valid if each call is answered in the next content", () => {
    const parts = [call("ls"), call("ls"), call("cat")];
    const answers = [answer("ls"), answer("cat"), answer("ls")];
    expect(rules([start, { role: "model", parts }, { role: "user", parts: answers }], {}, true)).toEqual([]);
  });

  it("is refused with an unanswered call, a response without a call, and an empty content", () => {
    expect(rules([start, { role: "model", parts: [call("ls")] }, start])).toEqual([
      "unanswered-call contents[1].parts[0].functionCall",
    ]);
    expect(rules([start, { role: "model", parts: [call("ls")] }])).toEqual([
      "unanswered-call contents[1].parts[0].functionCall",
    ]);
    expect(rules([start, { role: "user", parts: [answer("ls")] }])).toEqual([
      "orphan-result contents[1].parts[0].functionResponse",
    ]);
    expect(rules([start, { role: "model", parts: [] }, start])).toEqual(["empty-message contents[1].parts"]);
    expect(rules([{ role: "user", parts: [call("ls")] }])).toEqual(["block-role contents[0].parts[0].functionCall"]);
  });

  it("to Gemini 3 needs the signatures of the calls since the user spoke", () => {
    const step = (more: object) => [
      { role: "model", parts: [call("ls", more), call("ls")] },
      { role: "user", parts: [answer("ls"), answer("ls")] },
    ];
    const contents = [start, ...step({}), start, ...step({ thoughtSignature: "a" }), ...step({})];
    expect(rules(contents, { model: "gemini-3-pro" })).toEqual(["thought-signature contents[6].parts[0]"]);
    expect(rules(contents, { model: "gemini-2.5-pro" })).toEqual([]);
  });

  it("alternates between user and model, if the check is strict", () => {
    const model = { role: "model", parts: [{ text: "x" }] };
    expect(rules([model, start, start], {}, true)).toEqual([
      "first-role contents[0].role",
      "role-order contents[2].role",
    ]);
  });
});
