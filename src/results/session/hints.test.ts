import { describe, expect, it } from "vitest";
import type { BudgetedTool } from "./budgeted-tool.ts";
import { createHints, type HintMode, type Hints } from "./hints.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { answeringTool, dataOf, listTool, openSession } from "./sample-tool.contract.ts";
import type { Session } from "./session.ts";

const maxFiles = { type: "integer", description: "Limit files returned", default: 500 };
const files = answeringTool("project_files", async () => ({ code: "unused", message: "unused" }), {
  description: "List project files.",
  inputSchema: { type: "object", properties: { max_files: maxFiles } },
  limitParameter: "max_files",
});
const tool = (itemTokens: number, itemUnit: string): BudgetedTool => ({ ...files, itemTokens, itemUnit });

function hintsOf(mode: HintMode, ledger: Ledger = createLedger(), own: BudgetedTool = files): Hints {
  const tools = new Map([[own.name, own]]);
  return createHints({ mode, tools, ledger, expected: ledger.expected, measured: {} });
}

/** The note of the last page of a call. */
function noteOf(hints: Hints): string | undefined {
  const facts = { token: undefined, items: [], itemTokens: 0, cut: undefined };
  const options = { origin: files.name, isDirectCall: true, maxTokens: undefined, nextPageName: "next_page" };
  return hints.pageNote(facts, options);
}

const page = (items: number, itemTokens: number) => ({ items: Array(items).fill("file"), itemTokens });

describe("a hint", () => {
  // The hint uses the next call's share of 8,000 tokens. All that remains (62,000) would give 620 files.
  it.each([
    [100, "files with metadata", 80],
    [200, "matches", 40],
    [285, "KB", 28],
    [150, "commits", 53],
    [50, "lines", 160],
    // Not at least ten: the hint never promises what does not fit.
    [1_000, "large things", 8],
    [9_000, "whole pages", 1],
  ])("divides the next call's share by %i tokens for %s", (itemTokens, unit, count) => {
    expect(noteOf(hintsOf("note", createLedger(), tool(itemTokens, unit)))).toBe(
      `Current budget allows ~${count} ${unit}.`,
    );
  });

  it("follows what is available, and is absent once less than half of the warning threshold is left", () => {
    const ledger = createLedger({ perToolCall: 12_000 });
    const hints = hintsOf("note", ledger);
    ledger.record("system", 59_000);
    expect(noteOf(hints)).toContain("~110 files");
    ledger.record("system", 60_000);
    expect(noteOf(hints)).toContain("~100 files");
    expect(ledger.warning()).toContain("Consider summarizing");
    ledger.record("system", 60_001);
    expect(ledger.available()).toBe(9_999);
    expect(ledger.warning()).toContain("~9k tokens remaining");
    expect(noteOf(hints)).toBeUndefined();
    expect(hints.schemas()).toEqual([
      { name: files.name, description: files.description, inputSchema: files.inputSchema },
    ]);
  });

  it("never promises more when less is left", () => {
    const ledger = createLedger();
    const hints = hintsOf("schema", ledger);
    hints.observe(files.name, page(10, 1_000));
    const defaults: number[] = [];
    for (let system = 0; system <= 80_000; system += 1_000) {
      ledger.record("system", system);
      const { description, inputSchema } = hints.schemas()[0]!;
      const { default: count } = inputSchema.properties.max_files!;
      defaults.push(count as number);
      const isShort = ledger.available() < 10_000;
      expect(description).toBe(
        `List project files.${isShort ? "" : ` Current budget allows ~${count} files with metadata.`}`,
      );
    }
    expect([defaults[0], defaults.at(-1)]).toEqual([80, 5]);
    expect(defaults).toEqual([...defaults].sort((left, right) => right - left));
  });

  it("learns from the sizes of this session's results", () => {
    const hints = hintsOf("note");
    hints.observe(files.name, page(200, 200 * 25));
    expect(noteOf(hints)).toBe("Current budget allows ~280 files with metadata.");
    expect(hints.measured()).toEqual({ project_files: { units: 200, tokens: 5_000 } });
  });
});

describe("the mode of hints", () => {
  it("schema adds the number to description and default", () => {
    const hints = hintsOf("schema");
    // The number in the tool's table is a guess, so the first listing is not cut because of it.
    expect(hints.schemas()[0]!.inputSchema).toEqual(files.inputSchema);
    hints.observe(files.name, page(10, 1_000));
    expect(hints.schemas()).toEqual([
      {
        name: "project_files",
        description: "List project files. Current budget allows ~80 files with metadata.",
        inputSchema: {
          type: "object",
          properties: {
            max_files: {
              type: "integer",
              description: "Limit files returned (budget suggests: 80)",
              default: 80,
            },
          },
        },
      },
    ]);
  });

  it("schema applies the default that it advertises", async () => {
    const many = Array.from({ length: 9_000 }, (_, index) => `line ${index}`);
    const list = answeringTool(
      "list",
      async ({ offset = 0, max_files: most = 500 }) => {
        const items = many.slice(Number(offset), Number(offset) + Number(most));
        return { fields: {}, itemsName: "files", offset: Number(offset), items, total: many.length };
      },
      { inputSchema: files.inputSchema, limitParameter: "max_files" },
    );
    const returned = async (session: Session, args = {}) => dataOf(await session.call("list", args)).returned;
    const defaultOf = (session: Session) => session.toolSchemas()[0]!.inputSchema.properties.max_files!.default;
    const session = await openSession({ tools: [list], hints: "schema" });
    expect(defaultOf(session)).toBe(500);
    expect(await returned(session)).toBe(500);
    const count = defaultOf(session) as number;
    const page = dataOf(await session.call("list", {}));
    expect([page.returned, page.continuation_token]).toEqual([count, `offset:${count}`]);
    expect(page.budget_note).toBe(`Use offset=${count} to continue. Budget allows ~${defaultOf(session)} more.`);
    expect(await returned(session, { max_files: 3 })).toBe(3);
    const told = defaultOf(session);
    expect(await returned(session, { max_files: null })).toBe(told);
    expect(await returned(await openSession({ tools: [list], hints: "note" }))).toBe(500);
  });

  it.each(["note", "off"] as const)("%s never changes the tools", (mode) => {
    const ledger = createLedger();
    const hints = hintsOf(mode, ledger);
    const before = JSON.stringify(hints.schemas());
    ledger.addResult("r1", 30_000);
    hints.observe(files.name, page(10, 5_000));
    expect(JSON.stringify(hints.schemas())).toBe(before);
    expect(hints.schemas()[0]!.inputSchema).toEqual(files.inputSchema);
  });

  it("decides the text of a result's note", async () => {
    const noteFor = async (hints: HintMode, args: Record<string, number>) => {
      const many = Array.from({ length: 900 }, (_, index) => `line ${index}`);
      const session = await openSession({ tools: [listTool(many)], hints });
      return dataOf(await session.call("list", args)).budget_note;
    };
    expect(await noteFor("note", { offset: 890 })).toBe("Current budget allows ~80 files with metadata.");
    expect(await noteFor("schema", { offset: 890 })).toBeUndefined();
    expect(await noteFor("off", { offset: 890 })).toBeUndefined();
    expect(await noteFor("note", { budget: 600 })).toMatch(/^Use offset=\d+ to continue\. Budget allows ~\d+ more\.$/);
    expect(await noteFor("schema", { budget: 600 })).toMatch(/Budget allows ~\d+ more\.$/);
    expect(await noteFor("off", { budget: 600 })).toMatch(/^Use offset=\d+ to continue\.$/);
    expect(await noteFor("off", { budget: 512 })).toMatch(/^Use offset=\d+ to continue\.$/);
    expect(await noteFor("off", { budget: 100 })).toMatch(
      /^The smallest budget is 512\. Use offset=\d+ to continue\.$/,
    );
    expect(await noteFor("off", { budget: 100, offset: 890 })).toBeUndefined();
  });
});
