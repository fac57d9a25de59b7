import { expect, test } from "vitest";
import { createMaintainedMemory, createMemoryStore } from "./memory.ts";
import { describeStore, describeUpkeep } from "./store.contract.ts";

describeStore("memory", async () => createMemoryStore());
describeUpkeep("memory", async (now) => createMaintainedMemory(now));

test("the cost of a page does not depend on the number of keys in the collection", { tags: ["perf"] }, async () => {
  const [few, many] = [await openPages(300), await openPages(60_000)];
  let [fewMs, manyMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 5; round += 1) {
    [fewMs, manyMs] = [Math.min(fewMs, await few()), Math.min(manyMs, await many())];
  }
  // With two hundred times the keys, a search through all of them would be visible in the time.
  expect(manyMs / fewMs).toBeLessThan(20);
});

/** Reads the same page, from the middle of that many keys, many times and returns the time. */
async function openPages(keys: number): Promise<() => Promise<number>> {
  const store = createMemoryStore();
  const keyOf = (index: number): string => `k${String(index).padStart(6, "0")}`;
  for (let index = 0; index < keys; index += 1) await store.put("c", keyOf(index), "v");
  return async () => {
    const start = performance.now();
    for (let round = 0; round < 100; round += 1) {
      const page = await store.list("c", { prefix: "k", after: keyOf(keys / 2), limit: 20 });
      expect(page[0]?.key).toBe(keyOf(keys / 2 + 1));
    }
    return performance.now() - start;
  };
}
