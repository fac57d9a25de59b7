import { describe, expect, it } from "vitest";
import { createLedger, type Ledger } from "../budget/index.ts";
import { createHints, type HintMode, type Hints } from "./hints.ts";
import { answeringTool, dataOf, listTool, openSession } from "./sample-tool.contract.ts";
import type { BudgetedTool } from "./tool/budgeted-tool.ts";

const maxFiles = { type: "integer", description: "Limit files returned", default: 500 };
const files = answeringTool("project_files", async () => ({ code: "unused", message: "unused" }), {
  description: "List project files.",
  inputSchema: { type: "object", properties: { max_files: maxFiles } },
  limitParameter: "max_files",
});
const tool = (itemTokens: number, itemUnit: string): BudgetedTool => ({ ...files, itemTokens, itemUnit });

function hintsOf(mode: HintMode, ledger: Ledger = createLedger()): Hints {
  return createHints({ mode, ledger, expected: ledger.expected, measured: {} });
}

describe("a hint", () => {
  // The seed's code divided all that was remaining (62,000: 620 files), though a call gets 8,000; the next call's share is what counts.
  it.each([
    [100, "files with metadata", 80],
    [200, "matches", 40],
    [285, "KB", 28],
    [150, "commits", 53],
    [50, "lines", 160],
    // Not ten at least: what does not fit is not promised.
    [1_000, "large things", 8],
    [9_000, "whole pages", 1],
  ])("divides the next call's share by %i tokens for %s", (itemTokens, unit, count) => {
    expect(hintsOf("note").note(tool(itemTokens, unit))).toBe(`Current budget allows ~${count} ${unit}.`);
  });

  it("goes by what is available, and is silent where that is next to nothing", () => {
    const ledger = createLedger();
    const hints = hintsOf("note", ledger);
    ledger.record("system", 64_000);
    expect(hints.note(files)).toContain("~60 files");
    ledger.record("system", 65_000);
    expect(hints.note(files)).toContain("~50 files");
    ledger.record("system", 65_001);
    expect(ledger.available()).toBe(4_999);
    expect(hints.note(files)).toBeUndefined();
    expect(hints.schemas([files])).toEqual([
      { name: files.name, description: files.description, inputSchema: files.inputSchema },
    ]);
  });

  it("learns from what this session's results measured", () => {
    const hints = hintsOf("note");
    hints.observe(files, { units: 200, tokens: 200 * 25 });
    expect(hints.note(files)).toBe("Current budget allows ~280 files with metadata.");
    expect(hints.measured()).toEqual({ project_files: { units: 200, tokens: 5_000 } });
  });
});

describe("the mode of hints", () => {
  it("schema puts the number into description and default", () => {
    expect(hintsOf("schema").schemas([files])).toEqual([
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

  it.each(["note", "off"] as const)("%s leaves the tools as they are, whatever was delivered", (mode) => {
    const ledger = createLedger();
    const hints = hintsOf(mode, ledger);
    const before = JSON.stringify(hints.schemas([files]));
    ledger.addResult("r1", 30_000);
    hints.observe(files, { units: 10, tokens: 5_000 });
    expect(JSON.stringify(hints.schemas([files]))).toBe(before);
    expect(hints.schemas([files])[0]!.inputSchema).toBe(files.inputSchema);
  });

  it("decides what a result's note says", async () => {
    const noteOf = async (hints: HintMode, args: Record<string, number>) => {
      const many = Array.from({ length: 900 }, (_, index) => `line ${index}`);
      const session = await openSession({ tools: [listTool(many)], hints });
      return dataOf(await session.call("list", args)).budget_note;
    };
    expect(await noteOf("note", { offset: 890 })).toBe("Current budget allows ~80 files with metadata.");
    expect(await noteOf("schema", { offset: 890 })).toBeUndefined();
    expect(await noteOf("off", { offset: 890 })).toBeUndefined();
    expect(await noteOf("note", { budget: 600 })).toMatch(
      /^Use offset=\d+ to continue\. Budget allows ~\d+ more\.$/,
    );
    expect(await noteOf("schema", { budget: 600 })).toMatch(/Budget allows ~\d+ more\.$/);
    expect(await noteOf("off", { budget: 600 })).toMatch(/^Use offset=\d+ to continue\.$/);
    expect(await noteOf("off", { budget: 512 })).toMatch(/^Use offset=\d+ to continue\.$/);
    expect(await noteOf("off", { budget: 100 })).toMatch(
      /^The least budget is 512\. Use offset=\d+ to continue\.$/,
    );
    expect(await noteOf("off", { budget: 100, offset: 890 })).toBeUndefined();
  });
});
