/** Several processes with one session: they have one account. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { answeringTool, dataOf, itemsOf, listTool, openSession, resultId } from "./sample-tool.contract.ts";
import type { Session } from "./session.ts";
import { readSessionReport } from "./session-report.ts";

const lines = Array.from({ length: 40 }, (_, index) => `${index} `.padEnd(96, "x"));
const tools = [listTool(lines)];
const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 500 : 50;

async function openTwo(options: { groupIds?: readonly [string, string] } = {}): Promise<readonly [Session, Session]> {
  const store = createMemoryStore();
  const [first, second] = options.groupIds ?? [undefined, undefined];
  return [
    await openSession({ store, sessionId: "s", tools, groupId: first }),
    await openSession({ store, sessionId: "s", tools, groupId: second }),
  ];
}

describe("two sessions with one id", () => {
  it("count what both delivered, in any order and in parallel", async () => {
    const check = async (calls: boolean[], isParallel: boolean): Promise<void> => {
      const both = await openTwo();
      const delivered: number[] = [];
      const call = async (isFirst: boolean): Promise<void> => {
        delivered.push((await both[isFirst ? 0 : 1].call("list", { budget: 600 })).tokens);
      };
      if (isParallel) await Promise.all(calls.map(call));
      else for (const isFirst of calls) await call(isFirst);
      const sum = delivered.reduce((total, each) => total + each, 0);
      for (const session of both) {
        await session.refresh();
        expect(session.status()).toMatchObject({ calls: calls.length, delivered: sum });
        expect(session.status().ledger.tool_results.used).toBe(sum);
        expect(session.workLog("minimal")).toMatchObject({ steps: calls.length });
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 12 }), fc.boolean(), check), { numRuns });
  });

  it("give the second one less when the first one has used the budget", async () => {
    const [first, second] = await openTwo();
    await first.record("user", 68_000);
    await first.call("list", {});
    expect((await second.call("list", {})).tokens).toBeLessThanOrEqual(1_100);
  });

  it("start at zero together after a reset of one, and keep the sum of both", async () => {
    const [first, second] = await openTwo();
    const tokens = [await first.call("list", {}), await second.call("list", {})].map((page) => page.tokens);
    await first.reset();
    await second.refresh();
    expect(second.status()).toMatchObject({ delivered: 0, lifetime: tokens[0]! + tokens[1]!, available: 70_000 });
    expect(second.workLog("recent")).toMatchObject({ recent: [] });
    const { tokens: further } = await second.call("list", {});
    await first.refresh();
    expect(first.status().delivered).toBe(further);
  });

  it("add up the system text of servers, and count a restarted server once", async () => {
    const store = createMemoryStore();
    const open = (systemPart: string) => openSession({ store, sessionId: "s", systemPart });
    await (await open("files")).record("system", 1_000);
    await (await open("browser")).record("system", 2_000);
    await (await open("files")).record("system", 1_200);
    expect((await open("other")).status().ledger.system.used).toBe(3_200);
  });

  it("tell results of two groups apart, each with its own ids", async () => {
    const both = await openTwo({ groupIds: ["one", "two"] });
    const pages = await Promise.all(both.map((session) => session.call("list", {})));
    const [one, two] = [resultId(1, "one"), resultId(1, "two")];
    expect(pages.map(({ id }) => id)).toEqual([one, two]);
    for (const session of both) await session.refresh();
    expect(both[0].status().delivered).toBe(pages[0]!.tokens + pages[1]!.tokens);
    const ids = both.map((session) => (session.workLog("full") as unknown as { entries: { id: string }[] }).entries);
    expect(ids.map((entries) => new Set(entries.map(({ id }) => id)))).toEqual([
      new Set([one, `two/${two}`]),
      new Set([`one/${one}`, two]),
    ]);
  });
});

it("a report names the group of a result only if there are several", async () => {
  const store = createMemoryStore();
  const open = (groupId: string) => openSession({ store, sessionId: "s", tools, groupId });
  const shown = async () => (await readSessionReport(store, "s"))!.workLog.map(({ id }) => id);
  await (await open("one")).call("list", {});
  expect(await shown()).toEqual([resultId(1, "one")]);
  await (await open("two")).call("list", {});
  expect(await shown()).toEqual([`one/${resultId(1, "one")}`, `two/${resultId(1, "two")}`]);
});

it("a result that nobody received costs nothing", async () => {
  const store = createMemoryStore();
  let fails = false;
  const failing = {
    ...store,
    append: (...args: Parameters<typeof store.append>) =>
      fails ? Promise.reject(new Error("the disk is full")) : store.append(...args),
  };
  const tool = answeringTool("list", async () => ({ fields: {}, itemsName: "files", offset: 0, items: lines }));
  const session = await openSession({ store: failing, tools: [tool] });
  const { tokens } = await session.call("list", {});
  fails = true;
  await expect(session.call("list", {})).rejects.toThrow("the disk is full");
  expect(session.status()).toMatchObject({ delivered: tokens, lifetime: tokens });
  fails = false;
  expect(itemsOf(dataOf(await session.call("list", {})))).toHaveLength(40);
});
