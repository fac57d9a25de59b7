import { describe, expect, it } from "vitest";
import { leastAllocation } from "../../core/budget/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import { answeringTool, dataOf, itemsOf, listTool, openSession, readOn, resultId } from "./sample-tool.contract.ts";

const lines = Array.from({ length: 5_000 }, (_, index) => `line ${index} of a long file`);

describe("the ledger of a session", () => {
  it("has the sum of the delivered results", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    let sum = 0;
    for (const budget of [600, 700, 800]) sum += (await session.call("list", { budget })).tokens;
    expect(session.status().ledger.tool_results).toEqual({ used: sum, limit: 40_000 });
    expect(session.forModel()).toMatchObject({ remaining: 100_000 - sum, used: { tool_results: sum } });
  });

  it("is shared by parallel calls", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    const pages = await Promise.all(Array.from({ length: 8 }, () => session.call("list", {})));
    for (const { tokens } of pages) {
      expect(tokens).toBeGreaterThan(4_900);
      expect(tokens).toBeLessThanOrEqual(5_000);
    }
    expect(new Set(pages.map(({ id }) => id)).size).toBe(8);
    for (const page of pages) expect(dataOf(page).continuation_token).toBeDefined();
  });

  it("shares the tier among the calls of an announced turn, and frees it with the next one", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    await session.beginTurn();
    const sizes: number[] = [];
    for (let call = 0; call < 6; call += 1) sizes.push((await session.call("list", {})).tokens);
    expect(sizes.at(4)).toBeGreaterThan(7_000);
    expect(sizes.at(5)).toBeLessThanOrEqual(leastAllocation + 500);
    expect(session.status().ledger.history.used).toBe(0);
    await session.beginTurn();
    expect(session.status().ledger.tool_results.used).toBe(0);
    expect(session.status().ledger.history.used).toBeGreaterThan(0);
    expect((await session.call("list", {})).tokens).toBeGreaterThan(7_000);
  });

  it("releases the oldest results if nobody announces turns: their entries become history", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    for (let call = 0; call < 7; call += 1) {
      expect((await session.call("list", {})).tokens).toBeGreaterThan(7_000);
    }
    const { ledger, delivered } = session.status();
    expect(ledger.tool_results.used).toBeLessThanOrEqual(40_000);
    expect(delivered).toBeGreaterThan(7 * 7_000);
    const { entries } = session.workLog("full") as { entries: readonly { id: string }[] };
    expect(entries.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7].map((number) => resultId(number)));
    expect(ledger.history.used).toBeGreaterThan(0);
    expect(session.status().summary).toMatch(/, \d+k delivered$/);
  });

  it("starts again after a reset, and delivered results can still be recalled", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    await session.record("system", 8_000);
    await session.record("user", 500);
    const first = await session.call("list", { budget: 600 });
    await session.reset();
    expect(session.status()).toMatchObject({ available: 62_000, delivered: 0, lifetime: first.tokens });
    expect(session.workLog("minimal")).toEqual({ steps: 1 });
    expect(itemsOf(dataOf(await session.recall("r1")))).toEqual(itemsOf(dataOf(first)));
  });
});

describe("warnings", () => {
  it("are at the end of the newest result, with what is left after it", async () => {
    const session = await openSession({
      tools: [listTool(lines.slice(0, 3), { warnings: ["of the tool"] })],
    });
    expect(dataOf(await session.call("list", {})).warnings).toEqual(["of the tool"]);
    await session.record("system", 53_000);
    const page = await session.call("list", {});
    expect(dataOf(page).warnings).toEqual(["of the tool", session.status().warning]);
    expect(session.status().warning).toContain("Budget Alert: ~16k");
    expect(Object.keys(dataOf(page)).at(-1)).toBe("warnings");
    expect(session.forModel().warning).toBe(session.status().warning);
  });

  it("are not shown too early, for a page that could have been larger", async () => {
    const session = await openSession({ tools: [listTool(["a"])] });
    await session.record("system", 49_000);
    expect(dataOf(await session.call("list", {})).warnings).toBeUndefined();
  });
});

describe("eviction", () => {
  it("evicts the oldest entries above the history's maximum, keeps the newest, and recalls all", async () => {
    const session = await openSession({ tools: [listTool(lines)], budget: { historyMax: 300 } });
    for (let call = 0; call < 12; call += 1) await session.call("list", { budget: 600, offset: call });
    await session.beginTurn();
    const { ledger } = session.status();
    expect(ledger.history.used).toBeLessThanOrEqual(300);
    const view = session.workLog("full") as { entries: readonly { id: string }[]; evicted: number };
    expect(view.evicted).toBeGreaterThan(0);
    expect(view.entries.at(-1)?.id).toBe(resultId(12));
    expect(view.entries.length + view.evicted).toBe(12);
    expect(itemsOf(dataOf(await session.recall("r1", { maxTokens: 600 })))[0]).toBe(lines[0]);
  });

  it("keeps a single entry, however large", async () => {
    const costly = { name: "costly", count: (text: string) => text.length * 40 };
    const session = await openSession({
      counter: costly,
      tools: [listTool(["a"])],
      budget: { historyMax: 10 },
    });
    await session.call("list", {});
    await session.beginTurn();
    expect(session.status().ledger.history.used).toBeGreaterThan(1_000);
    expect(session.workLog("full")).toMatchObject({ evicted: 0, entries: [{ id: resultId(1) }] });
  });

  it("evicts entries for a call that needs more than is available", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    for (let call = 0; call < 20; call += 1) await session.call("list", { budget: 600 });
    await session.beginTurn();
    const before = session.status().ledger.history.used;
    await session.record("system", 69_000 - 8_000);
    await session.call("list", {});
    expect(before).toBeGreaterThan(1_000);
    expect(session.status().ledger.history.used).toBeLessThan(1_000);
  });
});

describe("a session in the store", () => {
  it("continues in another process: tokens, work log, ledger", async () => {
    const store = createMemoryStore();
    const first = await openSession({ sessionId: "s", store, tools: [listTool(lines)] });
    const given = { fields: { server: "x" }, itemsName: "files", items: lines, offset: 0 };
    const page = await first.deliver(given, { tool: "elsewhere", args: { q: 1 } });
    await first.call("list", { budget: 700 });

    const second = await openSession({ sessionId: "s", store, tools: [listTool(lines)] });
    expect({ ...second.status(), started: "" }).toEqual({ ...first.status(), started: "" });
    expect(second.workLog("full")).toEqual(first.workLog("full"));
    const joined = await readOn(second, page, {});
    expect(joined.items).toEqual(lines);
    expect(new Set(joined.pages.map(({ id }) => id)).size).toBe(joined.pages.length);
    expect(dataOf(joined.pages.at(-1)!)).toMatchObject({ server: "x", total: 5_000 });
  });

  it("is created if the store does not have its id, and gets an id if none is given", async () => {
    const store = createMemoryStore();
    const at = () => Date.UTC(2026, 10, 15, 10, 11, 12, 13);
    const ids = [await openSession({ store, now: at }), await openSession({ store, now: at })].map(({ id }) => id);
    expect(ids).toEqual(["s-20261115T101112013Z", "s-20261115T101112013Z-2"]);
    expect((await openSession({ store, sessionId: "mine" })).id).toBe("mine");
    await expect(openSession({ store, sessionId: "a/b" })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("refuses a damaged record and one of a newer version", async () => {
    const store = createMemoryStore();
    await store.put("sessions", "torn", "{");
    await store.put("sessions", "newer", '{"version":2}');
    await expect(openSession({ store, sessionId: "torn" })).rejects.toMatchObject({ code: "store_corrupt" });
    await expect(openSession({ store, sessionId: "newer" })).rejects.toMatchObject({ code: "store_newer" });
  });

  it("rejects a call that cannot be stored, and charges nothing for it", async () => {
    const store = createMemoryStore();
    const session = await openSession({ store, tools: [listTool(lines)] });
    await session.call("list", { budget: 600 });
    const before = session.status().ledger.tool_results;
    await store.close();
    await expect(session.call("list", {})).rejects.toMatchObject({ code: "store_unavailable" });
    expect(session.status().ledger.tool_results).toEqual(before);
  });

  it("keeps the parallel results of two processes in one session apart", async () => {
    const store = createMemoryStore();
    const tool = (name: string) => answeringTool("list", async () => ({ ...result, items: [name] }));
    const result = { fields: {}, itemsName: "files", offset: 0 };
    const [one, two] = [
      await openSession({ sessionId: "s", store, tools: [tool("one")] }),
      await openSession({ sessionId: "s", store, tools: [tool("two")] }),
    ];
    const delivered = [await one.call("list", {}), await two.call("list", {})];
    for (const [index, { id }] of delivered.entries()) {
      expect(itemsOf(dataOf(await one.recall(id)))).toEqual([["one", "two"][index]]);
    }
  });
});

describe("recall", () => {
  it("returns a later page again, also from an offset", async () => {
    const session = await openSession();
    const given = { fields: {}, itemsName: "files", items: lines, offset: 0 };
    const first = await session.deliver(given, { tool: "elsewhere", args: {}, maxTokens: 700 });
    const second = await session.nextPage(dataOf(first).continuation_token!, { maxTokens: 700 });
    const again = await session.recall(second.id, { maxTokens: 700 });
    expect(itemsOf(dataOf(again))).toEqual(itemsOf(dataOf(second)));
    expect(dataOf(again).continuation_token).toBe(dataOf(second).continuation_token);
    expect(itemsOf(dataOf(await session.recall(again.id, { offset: 4_999 })))).toEqual([lines[4_999]]);
    expect(dataOf(await session.recall(first.id, { offset: 9_999 }))).toMatchObject({
      files: [],
      truncated: false,
    });
  });

  it("continues after a stored page with the tool itself", async () => {
    const session = await openSession({ tools: [listTool(lines)] });
    const first = dataOf(await session.call("list", { budget: 700 }));
    const again = dataOf(await session.recall("r1"));
    expect(itemsOf(again)).toEqual(itemsOf(first));
    expect(again.continuation_token).toBe(first.continuation_token);
    expect(again.budget_note).toContain(`Call list with offset=${first.returned} to continue.`);
  });
});
