import { spawnSync } from "node:child_process";
import { afterEach, expect, test, vi } from "vitest";
import { listSessions } from "../session/index.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { createCounter } from "../tokens/index.ts";
import { openMcpSession } from "./open-session.ts";

afterEach(() => {
  vi.useRealTimers();
});

const counter = await createCounter("bytes/4");
const result = { fields: {}, itemsName: "lines", items: ["one", "two"], offset: 0 };
const call = { tool: "t", args: {} };

async function open(store: Store, goesOn = false) {
  return openMcpSession({ id: "s", goesOn, store, counter, budget: {}, pageLimit: () => ({}) });
}

/** Makes the mark that of a process which has certainly ended. */
async function killProcess(store: Store, state = "running"): Promise<void> {
  const { pid } = spawnSync(process.execPath, ["-e", "0"]);
  await store.put("mcp", "s", JSON.stringify({ pid, state }));
}

const usedBy = ({ session }: Awaited<ReturnType<typeof open>>): number =>
  session.status().ledger.tool_results.used;

test("after a kill the account goes on", async () => {
  const store = createMemoryStore();
  const first = await open(store);
  await first.session.deliver(result, call);
  await killProcess(store);
  const second = await open(store);
  expect(usedBy(second)).toBe(usedBy(first));
  expect(usedBy(second)).toBeGreaterThan(0);
});

test("after an end in good order, or beside a process that runs, a new account begins", async () => {
  for (const end of ["closed", "running"]) {
    const store = createMemoryStore();
    const first = await open(store);
    await first.session.deliver(result, call);
    if (end === "closed") await first.close();
    const second = await open(store);
    expect(usedBy(second)).toBe(0);
    const again = await second.session.recall("r1");
    expect(again.envelope).toMatchObject({ status: "success", data: { lines: ["one", "two"] } });
    expect(again.id).not.toBe("r1");
  }
});

test("whoever ends leaves the mark of one that came later", async () => {
  const store = createMemoryStore();
  const first = await open(store);
  await killProcess(store);
  const later = (await store.get("mcp", "s"))?.value;
  await first.close();
  expect((await store.get("mcp", "s"))?.value).toBe(later);
});

test("a session that was named goes on in any case", async () => {
  const store = createMemoryStore();
  const first = await open(store, true);
  await first.session.deliver(result, call);
  await first.close();
  expect(usedBy(await open(store, true))).toBe(usedBy(first));
});

test("what was killed long ago does not go on", async () => {
  const store = createMemoryStore();
  await (await open(store)).session.deliver(result, call);
  await killProcess(store);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * 3_600_000 });
  expect(usedBy(await open(store))).toBe(0);
});

test("a mark that cannot be read is none", async () => {
  const store = createMemoryStore();
  await (await open(store)).session.deliver(result, call);
  await store.put("mcp", "s", "{");
  expect(usedBy(await open(store))).toBe(0);
});

test("processes at the same time have an account each, and their results in common", async () => {
  const store = createMemoryStore();
  const [first, second] = [await open(store), await open(store)];
  expect([first.session.id, second.session.id]).toEqual(["s", "s.2"]);
  const ids = await Promise.all(
    [first, second, first, second, second].map(
      async ({ session }) => (await session.deliver(result, call)).id,
    ),
  );
  expect(new Set(ids).size).toBe(5);
  for (const id of ids)
    expect((await first.session.recall(id)).envelope).toMatchObject({ data: { lines: ["one", "two"] } });
  const counts = (await listSessions(store)).map(({ id, calls }) => [id, calls]);
  expect(Object.fromEntries(counts)).toEqual({ s: 7, "s.2": 3 });
  await first.close();
  const third = await open(store);
  expect(third.session.id).toBe("s");
  expect(usedBy(third)).toBe(0);
});
