import { describe, expect, test } from "vitest";
import { type LoadedInstructions, type MoveTextsOptions, moveTexts } from "./move-texts.ts";

const tools = ["agents-md", "claude-code", "cursor"];
const options: MoveTextsOptions = { takenIds: [], earlier: [], tools, sharedTools: ["agents-md"], isBare: true };

function createFile(path: string, text: string, readers: readonly string[], more = {}): LoadedInstructions {
  return { path, text, folder: "", imports: [], readers, ...more };
}

const move = (files: readonly LoadedInstructions[], more: Partial<MoveTextsOptions> = {}) =>
  moveTexts(files, { ...options, ...more });
const textsById = ({ packs }: ReturnType<typeof move>) => Object.fromEntries(packs.map(({ id, text }) => [id, text]));

const [agents, claude] = ["AGENTS.md", "CLAUDE.md"];

describe("which tools get a text", () => {
  test("a text that all tools load is in one pack for all", () => {
    const moved = move([
      createFile(agents, "Use pnpm in this repository.\n", ["agents-md", "cursor"]),
      createFile(claude, "Use pnpm in this repository.\n", ["claude-code"]),
    ]);
    expect(moved.packs).toMatchObject([{ id: "agents", text: "Use pnpm in this repository.\n" }]);
    expect(moved.packs[0]).not.toHaveProperty("tools");
    expect(moved.packs[0]).not.toHaveProperty("notTools");
    expect(moved.moved).toMatchObject([
      { path: agents, duplicates: [] },
      { path: claude, duplicates: [{ line: 1, sameAs: { path: agents, line: 1 } }] },
    ]);
  });

  test("a text for one tool names it, and one in a shared file names the tools that do not get it", () => {
    const { packs } = move([
      createFile(agents, "Only in AGENTS.md, for many.\n", ["agents-md"]),
      createFile(claude, "Use plan mode for migrations.\n", ["claude-code"]),
    ]);
    expect(packs).toMatchObject([
      { id: "agents", notTools: ["claude-code", "cursor"] },
      { id: "claude", tools: ["claude-code"] },
    ]);
  });

  test("a file with texts for different tools becomes a pack for each group, and the title is not repeated", () => {
    const shared = "## Commands\n\n- Run the tests with pnpm.\n";
    const moved = move([
      createFile(agents, `# Shop\n\n${shared}\n## Style\n\n- Tabs, in each file.\n`, ["agents-md", "cursor"]),
      createFile(claude, shared, ["claude-code"]),
    ]);
    expect(textsById(moved)).toEqual({
      agents: `# Shop\n\n${shared}`,
      "agents-2": "## Style\n\n- Tabs, in each file.\n",
    });
    expect(moved.packs[1]).toMatchObject({ notTools: ["claude-code"] });
  });

  test("a new id is never that of another pack", () => {
    const files = [
      createFile(agents, "First text, for all of them.\n\nSecond text, for fewer.\n", ["agents-md", "cursor"]),
      createFile(claude, "First text, for all of them.\n", ["claude-code"]),
    ];
    const { packs } = move(files, { takenIds: ["agents", "project-agents-2"] });
    expect(packs.map(({ id }) => id)).toEqual(["project-agents", "project-agents-3"]);
  });
});

describe("titles", () => {
  test("those about the file, and the sentence of Claude Code, are left out", () => {
    const top =
      "This file provides guidance to Claude Code (claude.ai/code) when working with code in this repository.";
    const { packs } = move([createFile(claude, `# CLAUDE.md\n\n${top}\n\nUse pnpm here.\n`, ["claude-code"])]);
    expect(packs).toMatchObject([{ text: "Use pnpm here.\n" }]);
  });

  test("a sentence that only looks like it stays", () => {
    const text = "This file provides guidance to Claude Code when working on payments: never log a card number.\n";
    expect(move([createFile(claude, text, tools)]).packs).toMatchObject([{ text }]);
  });

  test.each([
    ["# Shop", "# CLAUDE.md"],
    ["# Shop", "# Copilot instructions"],
    ["# Project guidelines", "# Shop"],
    ["# Shop", "# Shop"],
  ])("%s and %s do not make a text another one", (first, second) => {
    const body = "\n\n## Style\n\n- Tabs, in each file.\n";
    const { packs } = move([createFile(agents, first + body, tools), createFile(claude, second + body, tools)]);
    expect(packs).toHaveLength(1);
  });

  test("a text under a title with a meaning of its own is kept with it", () => {
    const body = "\n\nUse tabs in each file.\n";
    const moved = move([
      createFile(agents, `# Backend rules${body}`, tools),
      createFile(claude, `# Frontend rules${body}`, tools),
    ]);
    expect(moved.packs).toHaveLength(2);
  });

  test("headings keep their level only if the block has no title", () => {
    const files = [createFile(agents, "# Shop\n\n## Style\n\nUse tabs in each file.\n", tools)];
    expect(move(files).packs[0]!.text).toBe("# Shop\n\n## Style\n\nUse tabs in each file.\n");
    expect(move(files, { isBare: false }).packs[0]!.text).toMatch(/^## Shop\n\n### Style\n/);
  });
});

describe("files", () => {
  test("a folder's file leaves out what the root says", () => {
    const commands = "## Commands\n\n- Run the tests with pnpm.\n";
    const { packs } = move([
      createFile(agents, `# Shop\n\n${commands}`, tools),
      createFile("api/AGENTS.md", `# API\n\nValidate every input.\n\n${commands}`, tools, { folder: "api" }),
    ]);
    expect(packs[1]).toMatchObject({ globs: ["api/**"], nested: true, text: "# API\n\nValidate every input.\n" });
  });

  test("a text of a folder stays if a tool of that file does not load the root's", () => {
    const { packs } = move([
      createFile(agents, "Run the tests with pnpm.\n", ["agents-md"]),
      createFile("api/CLAUDE.md", "Run the tests with pnpm.\n", ["claude-code"], { folder: "api" }),
    ]);
    expect(packs).toHaveLength(2);
  });

  test("a file of a served tool goes if the shared file has all of it, and stays otherwise", () => {
    const shared = createFile(agents, "Run the tests with pnpm.\n", ["agents-md"]);
    const copy = createFile(".clinerules/a.md", "Run the tests with pnpm.\n", [], { servedBy: "agents-md" });
    const other = createFile(".clinerules/b.md", "Read the memory bank first.\n", [], { servedBy: "agents-md" });
    const { moved, kept } = move([shared, copy, other]);
    expect(moved.map(({ path }) => path)).toEqual([agents, ".clinerules/a.md"]);
    expect(kept).toMatchObject([{ path: ".clinerules/b.md", reason: expect.stringContaining("no other file") }]);
  });

  test("a rule that is loaded on request stays, because a pack always is", () => {
    const text = "---\nalwaysApply: false\n---\nHow to release, on request.\n";
    const { packs, kept } = move([createFile(".cursor/rules/release.mdc", text, ["cursor"])]);
    expect(packs).toEqual([]);
    expect(kept).toMatchObject([{ reason: expect.stringContaining("loaded on request only") }]);
  });

  test("what an earlier import has is not written again", () => {
    const earlier = [{ id: "agents", path: "p", text: "Run the tests with pnpm.\n", globs: [] }];
    const { packs, moved } = move([createFile(claude, "Run the tests with pnpm.\n", ["claude-code"])], { earlier });
    expect(packs).toEqual([]);
    expect(moved).toMatchObject([{ path: claude, duplicates: [{ sameAs: { path: "p" } }] }]);
  });
});
