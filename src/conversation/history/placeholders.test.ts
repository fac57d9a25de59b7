import { describe, expect, it } from "vitest";
import { validateRequest } from "../../core/messages/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { exchange, exchanges, fill, user } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({
    contextWindow: 10_000,
    reserve: 0,
    counter,
    placeholders: "descriptive",
    policy: "gentle",
    ...options,
  });

const tools = [{ name: "recall" }];

/** Placeholders of the messages that one epoch trims, in order. */
async function placeholdersOf(messages: readonly object[], contextWindow: number): Promise<string[]> {
  const { messages: sent } = (await create({ contextWindow })).reduce({ messages, tools });
  return JSON.stringify(sent).match(/\[trimmed:[^\]]*\]/g) ?? [];
}

/** Returns the placeholder of a call with this input, after enough messages that it is trimmed. */
async function describedAs(input: object, result = fill("a line\n", 2_100)): Promise<string> {
  const call = { type: "tool_use", id: "a", name: "run", input };
  const first = [
    { role: "assistant", content: [call] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: result }] },
  ];
  const isPinned = (message: object) => message === first[0];
  const messages = [user("go"), ...first, ...exchanges(60)];
  const { messages: sent } = (await create({ isPinned })).reduce({ messages, tools });
  return (sent[2] as { content: { content: string }[] }).content[0]!.content;
}

describe("descriptive placeholders", () => {
  it("name the tool, its subject, the number of lines and the id for recall", async () => {
    expect(await describedAs({ path: "src/a.ts" })).toMatch(
      /^\[trimmed: run src\/a\.ts, 300 lines; recall id [a-z2-7]{16}\]$/,
    );
    expect(await describedAs({ command: "npm test" }, fill("x", 2_000))).toMatch(
      /^\[trimmed: run npm test; recall id [a-z2-7]{16}\]$/,
    );
    expect(await describedAs({ flags: [1] })).toMatch(/^\[trimmed: run, 300 lines; recall id [a-z2-7]{16}\]$/);
  });

  it.each([
    ["brackets", { path: "a]b[c" }],
    ["line breaks", { path: "a\nb" }],
    ["control characters", { path: "a\u0007" }],
    ["letters that are not ASCII", { path: "caf\u00e9" }],
    ["nothing", { path: "" }],
    ["numbers", { path: 7 }],
  ])("leave a subject out that has %s", async (_name, input) => {
    expect(await describedAs(input)).toMatch(/^\[trimmed: run, 300 lines; recall id [a-z2-7]{16}\]$/);
  });

  it("have no id if the request has no recall tool", async () => {
    const messages = [user("go"), ...exchanges(60, { input: 1_000 })];
    const { messages: sent } = (await create()).reduce({ messages, tools: [{ name: "read_file" }] });
    const found = JSON.stringify(sent).match(/\[trimmed:[^\]]*\]/g) ?? [];
    expect(found.length).toBeGreaterThan(0);
    for (const placeholder of found)
      expect(placeholder).toMatch(/^\[trimmed: (?:input|read_file src\/file-\d+\.ts.*)\]$/);
    expect(JSON.stringify(sent)).not.toMatch(/recall|\b[a-z2-7]{16}\b/);
    const again = (await create()).reduce({ messages: sent });
    expect(again.messages).toEqual(sent);
  });

  it("that were sent without an id stay so when the request gains a recall tool", async () => {
    const messages = [user("go"), ...exchanges(60, { input: 1_000 })];
    const trimmer = await create();
    const { messages: before } = trimmer.reduce({ messages });
    const { messages: after, isEpoch } = trimmer.reduce({ messages, tools });
    expect(isEpoch).toBe(false);
    expect(after).toEqual(before);
  });

  it("are the same from two trimmers that get the same requests", async () => {
    const messages = [user("go"), ...exchanges(60, { input: 1_000 })];
    for (const request of [{ messages }, { messages, tools }]) {
      const [one, other] = [await create(), await create()].map((trimmer) => trimmer.reduce(request).messages);
      expect(JSON.stringify(one)).toBe(JSON.stringify(other));
    }
  });

  it("cut a long subject", async () => {
    const placeholder = await describedAs({ command: fill("echo ", 5_000) });
    expect(placeholder.length).toBeLessThan(140);
  });

  it("do not change in later epochs or after a restart", async () => {
    const messages = [user("go"), ...exchanges(200, { input: 1_000 })];
    const trimmer = await create({ contextWindow: 50_000 });
    const before = await placeholdersOf(messages, 50_000);
    trimmer.reduce({ messages, tools });
    messages.push(...exchanges(200, { input: 1_000 }, 200));
    const after = JSON.stringify(trimmer.reduce({ messages, tools }).messages).match(/\[trimmed:[^\]]*\]/g) ?? [];
    const idOf = (placeholder: string) => /[a-z2-7]{16}(?=\])/.exec(placeholder)![0];
    const known = new Map(before.map((placeholder) => [idOf(placeholder), placeholder]));
    for (const placeholder of after) expect(known.get(idOf(placeholder)) ?? placeholder).toBe(placeholder);
    expect(before.length).toBeGreaterThan(5);
  });

  it("in an input replace the long fields, and the short ones stay", async () => {
    const messages = [user("go"), ...exchange(0, { input: 3_000 }), ...exchanges(60)];
    const { messages: sent } = (await create({ isPinned: (_message, index) => index === 2 })).reduce({
      messages,
      tools,
    });
    const call = (sent[1] as { content: object[] }).content[0];
    expect(call).toMatchObject({
      input: {
        file_path: "src/file-0.ts",
        body: expect.stringMatching(/^\[trimmed: input; recall id [a-z2-7]{16}\]$/),
      },
    });
    expect(validateRequest(sent, { strict: true })).toEqual([]);
  });

  it.each([
    [
      "a list",
      { path: "a", list: Array.from({ length: 300 }, () => "entry") },
      { path: "a", list: "[trimmed: input; " },
    ],
    ["a second long field", { old: fill("a\n", 900), path: "a", new: fill("b", 900) }, { path: "a", new: "[trimmed]" }],
    [
      "a long command",
      { command: `cat > a.py <<EOF\n${fill("x\n", 900)}` },
      { command: "cat > a.py <<EOF [trimmed: " },
    ],
    ["only long fields", { body: fill("x", 900) }, { trimmed: "[trimmed: input; recall id " }],
    [
      "many fields",
      Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`f${at}`, fill("x", 40)])),
      { trimmed: "[" },
    ],
  ])("in an input with %s stand where something is gone", async (_name, input, expected) => {
    const call = { type: "tool_use", id: "a", name: "run", input };
    const first = [
      { role: "assistant", content: [call] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "ok" }] },
    ];
    const isPinned = (message: object) => message === first[1];
    const messages = [user("go"), ...first, ...exchanges(60)];
    const { messages: sent } = (await create({ isPinned })).reduce({ messages, tools });
    const [trimmed] = (sent[1] as { content: { input: Record<string, string> }[] }).content;
    for (const [name, start] of Object.entries(expected)) expect(trimmed!.input[name]!.startsWith(start)).toBe(true);
    expect(JSON.stringify(trimmed!.input).length).toBeLessThan(400);
  });
});

it("a plain placeholder is the same everywhere", async () => {
  const messages = [user("go"), ...exchanges(60, { input: 1_000 })];
  const { messages: sent } = (await create({ placeholders: "plain" })).reduce({ messages, tools });
  const found = new Set(JSON.stringify(sent).match(/\[trimmed(?! earlier)[^\]]*\]/g));
  expect([...found]).toEqual(["[trimmed]"]);
  expect(JSON.stringify(sent)).not.toContain("recall id");
});
