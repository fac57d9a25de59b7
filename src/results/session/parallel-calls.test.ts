/** Parallel calls share the tool tier by what their results need. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leastAllocation } from "../../core/budget/index.ts";
import type { BudgetedTool, ToolArguments } from "./budgeted-tool.ts";
import { answeringTool, dataOf, itemsOf, openSession } from "./sample-tool.contract.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const numRuns = deep ? 400 : 40;

/** An item has about 25 tokens. */
const itemsOfSize = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${index} `.padEnd(96, "x"));

/** Returns that many items after `ready` resolves. */
function sizedTool(ready: (args: ToolArguments) => Promise<unknown> = async () => {}): BudgetedTool {
  return answeringTool("list", async (args) => {
    await ready(args);
    const items = itemsOfSize(Number(args.count));
    return { fields: {}, itemsName: "files", offset: 0, items, total: items.length };
  });
}

describe("parallel calls", () => {
  it("all return complete results if the tier has room", async () => {
    const session = await openSession({ tools: [sizedTool()] });
    const counts = [300, 60, 60, 60, 300, 60, 60, 60, 60, 300];
    const pages = await Promise.all(counts.map((count) => session.call("list", { count })));
    expect(pages.map((page) => itemsOf(dataOf(page)).length)).toEqual(counts);
  });

  it("do not wait for a slow call if there is room for it", async () => {
    const never = new Promise(() => {});
    const tool = sizedTool(async ({ slow }) => (slow === true ? never : undefined));
    const session = await openSession({ tools: [tool], budget: { total: 1_000_000 } });
    void session.call("list", { count: 1, slow: true });
    for (let call = 0; call < 20; call += 1) {
      expect(dataOf(await session.call("list", { count: 280 })).truncated).toBe(false);
    }
  });

  it("wait for the sizes of others no longer than `patience`", async () => {
    const never = new Promise(() => {});
    const tool = sizedTool(async ({ slow }) => (slow === true ? never : undefined));
    let asked = 0;
    const patience = async () => {
      asked += 1;
    };
    const session = await openSession({ tools: [tool], patience });
    for (let call = 0; call < 9; call += 1) void session.call("list", { count: 1, slow: true });
    const page = await session.call("list", { count: 500 });
    expect(asked).toBe(1);
    expect(page.tokens).toBeGreaterThan(3_800);
    expect(page.tokens).toBeLessThanOrEqual(4_000);
  });

  it("get back the share of a call that fails", async () => {
    const tool = sizedTool(async ({ fails }) => {
      if (fails === true) throw new Error("broken");
    });
    const session = await openSession({ tools: [tool] });
    const failing = Array.from({ length: 30 }, () => session.call("list", { fails: true }));
    const page = await session.call("list", { count: 280 });
    expect(dataOf(page).truncated).toBe(false);
    await Promise.all(failing);
    expect(session.status().ledger.tool_results.used).toBeLessThanOrEqual(40_000);
  });
});

const counts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 24 });

it("results are complete if all fit, get fair shares otherwise, and never exceed the tier, in any order", async () => {
  const check = async (scheduler: fc.Scheduler, sizes: number[], isTurn: boolean): Promise<void> => {
    const tool = sizedTool(() => scheduler.schedule(Promise.resolve()));
    const session = await openSession({ tools: [tool] });
    if (isTurn) await session.beginTurn();
    const calls = sizes.map((count) => session.call("list", { count }));
    await scheduler.waitFor(Promise.all(calls));
    const pages = await Promise.all(calls);
    const tokens = pages.map((page) => page.tokens);
    const sum = tokens.reduce((total, each) => total + each, 0);
    expect(sum).toBeLessThanOrEqual(Math.max(40_000, sizes.length * leastAllocation));
    expect(session.status().ledger.tool_results.used).toBe(sum);
    const cut = pages.filter((page) => itemsOf(dataOf(page)).length < Number(dataOf(page).total));
    const isAboveCap = (page: (typeof pages)[number]): boolean => page.tokens > 7_900;
    const squeezed = cut.filter((page) => !isAboveCap(page));
    // If a result got less than it asked for, then no other result is much larger and the tier is nearly full.
    for (const page of squeezed) expect(Math.max(...tokens) - page.tokens).toBeLessThan(150);
    if (squeezed.length > 0) expect(sum).toBeGreaterThan(40_000 - 150 * sizes.length);
  };
  await fc.assert(fc.asyncProperty(fc.scheduler(), counts, fc.boolean(), check), { numRuns });
});
