import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createRecallTool, hasRecallTool } from "./recall-tool.ts";
import { createTrimmer, type Trimmer } from "./trimmer.ts";

/** A conversation of 20 files, of which the window holds a few. */
async function trimmedConversation(options: Partial<Parameters<typeof createTrimmer>[0]> = {}): Promise<Trimmer> {
  const messages: object[] = [{ role: "user", content: "Where is the bug?" }];
  for (let index = 0; index < 20; index++) {
    const id = `t${index}`;
    const text = `// src/file-${index}.ts\n${"const answer = 42;\n".repeat(100)}export const Needle${index} = 1;`;
    messages.push(
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `src/file-${index}.ts` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
    );
  }
  const trimmer = await createTrimmer({
    contextWindow: 20_000,
    reserve: 4_000,
    placeholders: "descriptive",
    ...options,
  });
  const { messages: sent } = trimmer.reduce({ messages, tools: [{ name: "recall" }] });
  expect(JSON.stringify(sent)).toContain("recall id ");
  await trimmer.checkpoint();
  return trimmer;
}

describe("a request has a recall tool", () => {
  it.each([
    ["Anthropic and the AI SDK", { name: "recall" }],
    ["OpenAI chat", { type: "function", function: { name: "recall" } }],
    ["OpenAI responses", { type: "function", name: "recall" }],
    ["Gemini", { functionDeclarations: [{ name: "read" }, { name: "recall" }] }],
    ["a client of an MCP server", { name: "mcp__plimsoll__recall" }],
  ])("as %s name it", (_name, tool) => {
    expect(hasRecallTool([{ name: "read" }, tool])).toBe(true);
  });

  it.each([
    ["no tools", undefined],
    ["null", null],
    ["an empty list", []],
    ["another tool", [{ name: "recall_product" }, { name: "product_recall" }, { type: "web_search" }, { name: 7 }]],
  ])("but not with %s", (_name, tools) => {
    expect(hasRecallTool(tools)).toBe(false);
  });
});

describe("the recall tool", () => {
  it("lists what was trimmed, the newest first", async () => {
    const { handle } = createRecallTool(await trimmedConversation());
    const lines = (await handle({})).split("\n");
    expect(lines.at(-1)).toMatch(/^[a-z2-7]{16} tool result, 102 lines: \/\/ src\/file-0\.ts$/);
    const numbers = lines.map((line) => Number(/^r(\d+)/.exec(line)?.[1]));
    expect(numbers).toEqual(numbers.toSorted((a, b) => b - a));
    expect(numbers.length).toBeGreaterThan(5);
  });

  it("finds lines by a text in any case, and reads the part by the id that it shows", async () => {
    const { handle } = createRecallTool(await trimmedConversation());
    const found = await handle({ grep: "needle3 =" });
    expect(found).toMatch(/^[a-z2-7]{16}:102: export const Needle3 = 1;$/);
    const [id] = found.split(":");
    expect(await handle({ id })).toContain("// src/file-3.ts\nconst answer = 42;");
    expect(await handle({ id, line: 102 })).toBe("export const Needle3 = 1;");
    expect(await handle(JSON.stringify({ id, line: 102 }))).toBe("export const Needle3 = 1;");
  });

  it("treats a search text as text, not as a pattern", async () => {
    const { handle } = createRecallTool(await trimmedConversation());
    expect(await handle({ grep: "(a+)+$" })).toBe('No trimmed part contains "(a+)+$".');
  });

  it("answers wrong input with what is wrong", async () => {
    const { handle } = createRecallTool(await trimmedConversation());
    expect(await handle({ id: "r999999" })).toBe(
      "Nothing is stored under r999999. Call recall without input for a list.",
    );
    const [id] = (await handle({ grep: "Needle0" })).split(":");
    expect(await handle({ id, line: 500 })).toBe(`${id} has only 102 lines.`);
    const list = await handle({});
    for (const input of [undefined, null, 7, "no JSON", { id: "", grep: null }]) expect(await handle(input)).toBe(list);
    const nothing = await createTrimmer({ contextWindow: 20_000 });
    expect(await createRecallTool(nothing).handle({})).toBe("Nothing was trimmed.");
  });

  it.each([
    ["many lines", "\n"],
    ["one line", ", "],
  ])("shows a long part of %s in pieces that never fill the window", async (_name, separator) => {
    const text = Array.from({ length: 3_000 }, (_, index) => `line ${index + 1} of a long result`).join(separator);
    const source = {
      recall: async (id: string) => ({ id, kind: "tool_result" as const, text, value: text }),
      listTrimmed: async () => [],
    };
    const { handle } = createRecallTool(source);
    let line = 1;
    const seen: string[] = [];
    for (;;) {
      const shown = await handle({ id: "r1", line });
      expect(shown.length).toBeLessThan(17_000);
      const next = /\n\[r1 continues: recall with line (\d+) of \d+\]$/.exec(shown);
      seen.push(next === null ? shown : shown.slice(0, next.index));
      if (next === null) break;
      line = Number(next[1]);
    }
    expect(seen.join(separator === "\n" ? separator : "")).toBe(text);
  });

  it("reads the store of another process by its session", async () => {
    const store = createMemoryStore();
    await trimmedConversation({ store, sessionId: "s" });
    const { handle } = createRecallTool({ store, sessionId: "s" });
    const [id] = (await handle({ grep: "Needle1 =" })).split(":");
    expect(await handle({ id, line: 102 })).toBe("export const Needle1 = 1;");
    expect(await createRecallTool({ store, sessionId: "other" }).handle({})).toBe("Nothing was trimmed.");
  });

  it("refuses a source without a trimmer, a store or a session", () => {
    expect(() => createRecallTool({ store: createMemoryStore() } as never)).toThrow(
      "recallTool needs a trimmer, or a store and a sessionId",
    );
  });
});
