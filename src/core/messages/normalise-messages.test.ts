import { describe, expect, it } from "vitest";
import { createConversation, readParts, type Step } from "./conversation.contract.ts";
import { formats } from "./formats/index.ts";
import { normaliseMessages } from "./normalise-messages.ts";

/** A valid conversation. */
const sound: readonly Step[] = [
  { kind: "user", text: "go" },
  { kind: "assistant", text: "looking", calls: ["a", "b"] },
  { kind: "results", calls: ["b", "a"], text: "and then?" },
  { kind: "assistant", text: "", calls: ["c"] },
  { kind: "results", calls: ["c"], text: "" },
  { kind: "assistant", text: "done", calls: [] },
];

const each = formats.map((format) => [format.name, format] as const);

describe.each(each)("normalised %s messages", (name, format) => {
  const build = (steps: readonly Step[]) => createConversation(name, steps);
  const normalise = (messages: readonly object[]) => normaliseMessages(messages, { format: name });
  const parts = (messages: readonly object[]) => readParts(messages, format);

  it("are the same list when nothing is wrong", () => {
    const messages = build(sound);
    expect(normalise(messages)).toBe(messages);
    expect(normalise([])).toEqual([]);
  });

  it("have a result for an unanswered call directly after its turn", () => {
    const messages = build([...sound.slice(0, 2), { kind: "results", calls: ["b"], text: "" }]);
    const results = parts(normalise(messages)).filter(({ part }) => part.kind === "tool_result");
    expect(results.map(({ part, text }) => [part.callId, text])).toEqual([
      ["a", "[no result]"],
      ["b", "result of b at 2"],
    ]);
  });

  it("have user text instead of a result that comes a turn later", () => {
    const messages = build([...sound, { kind: "results", calls: ["c"], text: "sorry" }]);
    const last = parts(normalise(messages)).slice(-2);
    expect(last.map(({ role, part }) => [role, part.kind])).toEqual([
      ["user", "text"],
      ["user", "text"],
    ]);
    expect(last.map(({ text }) => text).sort()).toEqual(["[late tool output] result of c at 6", "sorry"]);
  });

  it("have numbered ids if calls reuse them, also in their results", () => {
    const again = [...sound.slice(3, 5), ...sound.slice(3, 5)];
    const ids = parts(normalise(build([...sound, ...again]))).flatMap(({ part }) => part.callId ?? []);
    expect(ids.filter((id) => id.startsWith("c"))).toEqual(["c", "c", "c_2", "c_2", "c_3", "c_3"]);
  });

  it("have a result for each of two calls of one turn with the same id", () => {
    const calls: Step[] = [
      { kind: "assistant", text: "", calls: ["a", "a"] },
      { kind: "results", calls: ["a"], text: "" },
      { kind: "results", calls: ["a"], text: "" },
    ];
    const results = parts(normalise(build([...sound.slice(0, 1), ...calls]))).slice(-2);
    expect(results.map(({ part, text }) => [part.callId, text])).toEqual([
      ["a", "result of a at 2"],
      ["a_2", "result of a at 3"],
    ]);
  });

  it("have the last of two results for one call", () => {
    const twice = [...sound.slice(0, 5), ...sound.slice(4, 5)];
    const results = parts(normalise(build(twice))).filter(({ part }) => part.callId === "c");
    expect(results.map(({ part, text }) => [part.kind, text])).toEqual([
      ["tool_call", ""],
      ["tool_result", "result of c at 5"],
    ]);
  });

  it("name the path of what is malformed", () => {
    const broken = [...build(sound), 7 as unknown as object];
    expect(() => normalise(broken)).toThrow(`messages[${broken.length - 1}] must be an object, not a number`);
  });
});

describe("normaliseMessages", () => {
  it("puts results first in an Anthropic message, merges user messages, keeps unknown fields", () => {
    const call = { type: "tool_use", id: "a", name: "ls", input: {} };
    const result = { type: "tool_result", tool_use_id: "a", content: "x", is_error: true };
    const hello = { type: "text", text: "hello", cache_control: { type: "ephemeral" } };
    const messages = [
      { role: "assistant", content: [call], stop_reason: "tool_use" },
      { role: "user", content: [hello, result], meta_message: true },
      { role: "user", content: "more" },
    ];
    expect(normaliseMessages(messages)).toEqual([
      { role: "user", content: [{ type: "text", text: "(start)" }] },
      messages[0],
      { role: "user", content: [result, hello, { type: "text", text: "more" }], meta_message: true },
    ]);
  });

  it("puts Anthropic's system messages after the user's, and leaves the first ones where they are", () => {
    const [first, system, user, said, next] = createConversation("anthropic", [
      { kind: "system", text: "be brief" },
      { kind: "system", text: "model switch" },
      { kind: "user", text: "go" },
      { kind: "assistant", text: "well", calls: [] },
      { kind: "assistant", text: "well then", calls: [] },
    ]) as [object, object, object, object, object];
    const normalise = (messages: object[]) => normaliseMessages(messages, { format: "anthropic" });
    expect(normalise([first, user, said, system, user, next])).toEqual([first, user, said, user, system, next]);
    const empty = { role: "user", content: [{ type: "text", text: "(empty)" }] };
    expect(normalise([first, user, said, system, next])).toEqual([first, user, said, empty, system, next]);
  });

  it("answers a custom tool of OpenAI's with an output of the same type", () => {
    const call = { type: "custom_tool_call", call_id: "c", name: "apply_patch", input: "*** Begin Patch" };
    const messages = [{ type: "message", role: "user", content: "go" }, call];
    expect(normaliseMessages(messages)).toEqual([
      ...messages,
      { type: "custom_tool_call_output", call_id: "c", output: "[no result]" },
    ]);
  });

  it("answers a shell of OpenAI's the same way, and does not change a result that it has", () => {
    const call = { type: "shell_call", call_id: "c", action: { commands: ["ls"] } };
    const messages = [{ type: "message", role: "user", content: "go" }, call];
    const [, , answer] = normaliseMessages(messages) as { type: string; output: object[] }[];
    expect(answer).toMatchObject({ type: "shell_call_output", call_id: "c" });
    expect(answer?.output).toMatchObject([{ stdout: "[no result]" }]);
    const answered = [...messages, { type: "shell_call_output", call_id: "c", output: [] }];
    expect(normaliseMessages(answered)).toBe(answered);
  });

  it("allows a compaction of the provider as the first message", () => {
    const messages = [{ role: "assistant", content: [{ type: "compaction", content: "so far" }] }];
    expect(normaliseMessages(messages, { format: "anthropic" })).toBe(messages);
  });

  it("repairs a long history quickly", () => {
    const before = process.cpuUsage();
    const many = Array.from({ length: 5000 }, (_, index) => ({ role: "user", content: `message ${index}` }));
    expect(normaliseMessages(many, { format: "anthropic" })).toHaveLength(1);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000);
  });
});
