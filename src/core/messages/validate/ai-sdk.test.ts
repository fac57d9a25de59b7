import { generateText, type ModelMessage } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { describe, expect, it } from "vitest";
import { validateRequest } from "./index.ts";

const user: ModelMessage = { role: "user", content: "list" };
const call = (id: string, more: object = {}) =>
  ({ type: "tool-call", toolCallId: id, toolName: "ls", input: {}, ...more }) as const;
const result = (id: string) =>
  ({ type: "tool-result", toolCallId: id, toolName: "ls", output: { type: "text", value: "a.ts" } }) as const;
const calls = (...content: object[]) => ({ role: "assistant", content }) as ModelMessage;
const results = (...content: object[]) => ({ role: "tool", content }) as ModelMessage;

function find(request: object, strict = false): string[] {
  const problems = validateRequest(request, { format: "ai-sdk", strict });
  return problems.map(({ path, rule }) => `${path} ${rule}`);
}

describe("calls of the AI SDK", () => {
  const valid: ModelMessage[][] = [
    [user, calls(call("a"), call("b")), results(result("a")), results(result("b")), user],
    [user, calls(call("a"), call("b")), results(result("b"), result("a"))],
    [user, calls(call("w", { providerExecuted: true }), { type: "text", text: "x" }), user],
  ];
  const invalid: ModelMessage[][] = [
    [user, calls(call("a")), user],
    [user, calls(call("a"), call("b")), results(result("a")), user],
  ];

  it("must be answered before the next message of another role", () => {
    for (const messages of valid) expect(find(messages)).toEqual([]);
    expect(find(invalid[0]!)).toEqual(["messages[1].content[0].toolCallId unanswered-call"]);
    expect(find(invalid[1]!)).toEqual(["messages[1].content[1].toolCallId unanswered-call"]);
    expect(find([user, calls(call("a")), calls({ type: "text", text: "x" }), results(result("a"))])).toEqual([
      "messages[1].content[0].toolCallId unanswered-call",
      "messages[3].content[0].toolCallId orphan-result",
    ]);
  });

  it("are judged like the SDK itself does", async () => {
    const model = new MockLanguageModelV3({
      doGenerate: {
        content: [{ type: "text", text: "done" }],
        finishReason: { unified: "stop", raw: undefined },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
          outputTokens: { total: 1, text: 1, reasoning: 0 },
        },
        warnings: [],
      },
    });
    const generate = (messages: ModelMessage[]) => generateText({ model, messages, maxRetries: 0 });
    for (const messages of valid) expect((await generate(messages)).text).toBe("done");
    for (const messages of invalid) await expect(generate(messages)).rejects.toThrow("missing");
  });

  it("may be open at the end of a history, but not of a request", () => {
    expect(find([user, calls(call("a"))])).toEqual([]);
    expect(find({ messages: [user, calls(call("a"))] })).toEqual(["messages[1].content[0].toolCallId unanswered-call"]);
  });

  it("have one result each and ids", () => {
    expect(find([user, calls(call("a")), results(result("a"), result("a"), result(""))])).toEqual([
      "messages[2].content[2].toolCallId tool-id",
      "messages[2].content[1].toolCallId duplicate-result",
    ]);
    const again = [user, calls(call("a")), results(result("a")), calls(call("a")), results(result("a"))];
    expect(find(again)).toEqual([]);
    expect(find(again, true)).toEqual(["messages[3].content[0].toolCallId reused-call-id"]);
  });
});

describe("approvals of the AI SDK", () => {
  const asked = { type: "tool-approval-request", approvalId: "p1", toolCallId: "a" };
  const granted = { type: "tool-approval-response", approvalId: "p1", approved: true };

  it("replace the result that is still to come", () => {
    expect(find([user, calls(call("a"), asked), results(granted)])).toEqual([]);
    expect(find({ messages: [user, calls(call("a"), asked), results(granted)] })).toEqual([]);
    expect(find([user, calls(call("a"), call("b"), asked), results(granted)])).toEqual([
      "messages[1].content[1].toolCallId unanswered-call",
    ]);
  });

  it("are reported without a call or a request", () => {
    expect(find([user, calls(call("b"), asked), results(result("b"))])).toEqual([
      "messages[1].content[1].toolCallId orphan-approval",
    ]);
    expect(find([user, calls(call("a")), results(result("a"), granted)])).toEqual([
      "messages[2].content[1].approvalId orphan-approval",
    ]);
  });
});

it("parts belong to messages of their role; unknown parts may be anywhere", () => {
  expect(find([{ role: "user", content: [call("a")] }])).toEqual(["messages[0].content[0].type block-role"]);
  expect(find([user, calls({ type: "image", image: "x" })])).toEqual(["messages[1].content[0].type block-role"]);
  expect(find([user, calls({ type: "hologram" })])).toEqual([]);
});
