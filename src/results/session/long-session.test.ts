import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { openSqliteStore } from "../../host/store/sqlite.ts";
import { dataOf, itemsOf, listTool, openSession } from "./sample-tool.contract.ts";

const calls = process.env.PLIMSOLL_DEEP === "1" ? 1_000 : 400;
const files = Array.from({ length: 5_000 }, (_, index) => ({
  path: `src/core/file-${index}.ts`,
  size: index,
}));

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapMegabytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 1_048_576;
}

describe.each(["memory", "sqlite"] as const)("with a %s store", { tags: ["perf"] }, (kind) => {
  it(`call ${calls} gets a useful page and costs no more than an early one`, { timeout: 120_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), "plimsoll-session-"));
    const store =
      kind === "memory" ? createMemoryStore() : await openSqliteStore({ path: join(directory, "state.db") });
    try {
      const tool = listTool(files, { total: files.length });
      // More than the session will deliver, with the usual tool tier.
      const budget = { total: 100_000_000, tiers: { tool_results: 40_000 } };
      const session = await openSession({ store, tools: [tool], budget });
      const work: number[] = [];
      const heap: number[] = [];
      let delivered = 0;
      for (let call = 1; call <= calls; call += 1) {
        const page = await session.call("list", { offset: call % 100 });
        work.push(processorMilliseconds());
        delivered += page.tokens;
        expect(page.tokens).toBeGreaterThan(7_500);
        if (call % 100 === 0) heap.push(heapMegabytes());
      }
      const status = session.status();
      expect(status).toMatchObject({ calls, delivered });
      expect(status.ledger.tool_results.used).toBeLessThanOrEqual(40_000);
      expect(status.ledger.history.used).toBeLessThanOrEqual(12_000);

      // From the hundredth call on, because by then the code is compiled.
      const [early, late] = [work[199]! - work[99]!, work.at(-1)! - work.at(-101)!];
      expect(late / early).toBeLessThan(2);
      // The memory store itself keeps every page. The other store shows what the session needs.
      if (kind === "sqlite") expect(heap.at(-1)! - heap[1]!).toBeLessThan(4);
      expect(itemsOf(dataOf(await session.recall("r1")))[0]).toEqual(files[1]);
    } finally {
      await store.close();
      await rm(directory, { recursive: true });
    }
  });
});

/** Processor time, because other programs use the same disk. */
function processorMilliseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
