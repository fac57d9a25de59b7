import { describe, expect, it } from "vitest";
import { createProvider, type ProviderOptions } from "./provider.mjs";

const user = (...content: object[]) => ({ role: "user", content });
const assistant = (...content: object[]) => ({ role: "assistant", content });
const text = (value: string, more: object = {}) => ({ type: "text", text: value, ...more });
const use = (id: string) => ({ type: "tool_use", id, name: "read", input: {} });
const result = (tool_use_id: string, more: object = {}) => ({
  type: "tool_result",
  tool_use_id,
  content: "x",
  ...more,
});
const marker = { cache_control: { type: "ephemeral" } };
const hour = { cache_control: { type: "ephemeral", ttl: "1h" } };
const go = user(text("Go"));

async function refusal(messages: unknown, rest: object = {}, options: ProviderOptions = {}) {
  const provider = createProvider(options);
  const body = { model: "claude-sonnet-5", max_tokens: 9, messages, ...rest };
  const { status, json } = await provider.handle({ path: "/v1/messages", body });
  if (status === 200) return undefined;
  expect(json).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  expect(provider.calls[0]).toMatchObject({ status: 400, refusal: json.error.message });
  return json.error.message;
}

describe("a valid request", () => {
  it.each<[string, object[], object?]>([
    ["a question as a string", [{ role: "user", content: "Go" }]],
    [
      "calls with their results in any order",
      [go, assistant(use("a"), use("b")), user(result("b"), result("a"), text("Go on"))],
    ],
    [
      "results over two messages of one role",
      [go, assistant(use("a"), use("b")), user(result("a")), user(result("b"))],
    ],
    ["two questions in a row", [go, go]],
    [
      "four markers, the longer ones first",
      [user(text("a", hour), text("b", hour), text("c", marker), text("d", marker))],
    ],
    [
      "a marker at the top beside three",
      [user(text("a", marker), text("b", marker), text("c", marker), text("d"))],
      marker,
    ],
    ["a system message where the model knows it", [go, { role: "system", content: "Hm" }], { model: "claude-opus-5" }],
  ])("is accepted: %s", async (_, messages, rest) => {
    expect(await refusal(messages, rest)).toBeUndefined();
  });
});

describe("an invalid request", () => {
  it.each<[string, unknown, RegExp, object?]>([
    ["no messages", [], /at least one message/],
    ["another role", [{ role: "tool", content: "x" }], /^messages\.0\.role: /],
    ["an unknown field of a message", [{ ...go, meta: 1 }], /^messages\.0\.meta: Extra inputs/],
    ["an answer first", [assistant(text("Hi")), go], /first message must use the "user" role/],
    ["empty content", [user(), go], /non-empty content/],
    ["an empty text", [user(text(""))], /text content blocks must be non-empty/],
    ["a text of white space", [user(text(" \n"))], /must contain non-whitespace text/],
    [
      "a call without a result",
      [go, assistant(use("a")), go],
      /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: a\./,
    ],
    [
      "a call at the end of the results",
      [go, assistant(use("a"), use("b")), user(result("a"))],
      /without `tool_result` blocks immediately after: b\./,
    ],
    ["a result without a call", [user(result("a"))], /unexpected `tool_use_id` found in `tool_result` blocks: a\./],
    [
      "a result two messages later",
      [go, assistant(use("a")), user(result("a")), assistant(text("ok")), user(result("a"))],
      /unexpected `tool_use_id`/,
    ],
    ["one result twice", [go, assistant(use("a")), user(result("a"), result("a"))], /unexpected `tool_use_id`/],
    ["a result after a text", [go, assistant(use("a")), user(text("Hm"), result("a"))], /must come first/],
    [
      "an id twice",
      [go, assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))],
      /ids must be unique/,
    ],
    ["a call of the user", [user(use("a"))], /`tool_use` blocks can only be in `assistant` messages/],
    [
      "five markers",
      [user(...["a", "b", "c", "d", "e"].map((each) => text(each, marker)))],
      /A maximum of 4 blocks with cache_control may be provided\. Found 5\./,
    ],
    [
      "four markers and one at the top",
      [user(...["a", "b", "c", "d"].map((each) => text(each, marker)), text("e"))],
      /Found 5/,
      marker,
    ],
    ["another lifetime at the top", [user(text("a", hour))], /another `ttl`/, marker],
    ["a long lifetime after a short one", [user(text("a", marker), text("b", hour))], /must not come after a ttl='5m'/],
    [
      "a marker on thinking",
      [go, assistant({ type: "thinking", thinking: "", signature: "", ...marker }, text("Hi")), go],
      /cannot be set for `thinking`/,
    ],
    ["a system message on an older model", [go, { role: "system", content: "Hm" }], /role 'system' is not supported/],
    ["an answer last on a new model", [go, assistant(text("Hi"))], /does not support assistant message prefill/],
    ["sampling on a new model", [go], /`temperature` is not supported/, { model: "claude-opus-5-5", temperature: 1 }],
    [
      "a forced tool on a new model",
      [go],
      /forced tool use/,
      { model: "claude-fable-5-2", tool_choice: { type: "any" } },
    ],
    [
      "no thinking where it is always on",
      [go],
      /cannot be disabled/,
      { model: "claude-opus-5-5", thinking: { type: "disabled" } },
    ],
    ["no max_tokens", [go], /max_tokens: Field required/, { max_tokens: undefined }],
  ])("is refused: %s", async (_, messages, expected, rest) => {
    expect(await refusal(messages, rest)).toMatch(expected);
    expect(await refusal(messages, rest, { checks: false })).toBeUndefined();
  });

  it("is refused for a missing thinking block in an open turn only on request", async () => {
    const rest = { model: "claude-opus-5-5" };
    const messages = [go, assistant(use("a")), user(result("a"))];
    expect(await refusal(messages, rest)).toBeUndefined();
    expect(await refusal(messages, rest, { strictOpenTurn: true })).toMatch(
      /Expected `thinking` or `redacted_thinking`/,
    );
  });
});

describe("a request that is too long", () => {
  const messages = [user(text("word ".repeat(100)))];
  it("is refused by the provider's own count, with or without numbers", async () => {
    const options = { count: (each: string) => each.trim().split(/\s+/).length, contextWindow: 120 };
    expect(await refusal(messages, {}, options)).toBeUndefined();
    const more = { ...options, countFactor: 1.4 };
    expect(await refusal(messages, {}, more)).toBe("prompt is too long: 146 tokens > 120 maximum");
    expect(await refusal(messages, {}, { ...more, overflowNumbers: false })).toBe("prompt is too long");
  });
});
