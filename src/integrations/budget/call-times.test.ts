import { expect, test } from "vitest";
import { forgetHistory, listHistories } from "../../history/index.ts";
import { createMemoryStore } from "../../store/index.ts";
import { openCallTimes } from "./call-times.ts";

test("the times of a session are kept, and forgotten with its history", async () => {
  const store = createMemoryStore();
  const first = await openCallTimes(store, "s");
  expect(await first.note("m", 5)).toBeUndefined();
  expect(await (await openCallTimes(store, "s")).note("m", 7)).toBe(5);
  expect(await listHistories(store)).toEqual(["s"]);
  await forgetHistory(store, "s");
  expect(await listHistories(store)).toEqual([]);
  expect(await (await openCallTimes(store, "s")).note("m", 9)).toBeUndefined();
});

test.each(["x", "null", "[]", '{"m":"soon"}'])(
  "times that cannot be read, %s, are not known",
  async (value) => {
    const store = createMemoryStore();
    await (await openCallTimes(store, "s")).note("m", 5);
    const [id] = await listHistories(store);
    await store.put("history/calls", id!, value);
    expect(await (await openCallTimes(store, "s")).note("m", 7)).toBeUndefined();
  },
);
