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

async function open(store: Store, goesOn = false, client?: string) {
  const kept = { store, problem: () => undefined };
  return openMcpSession({ id: "s", goesOn, client, kept, counter, budget: {}, pageLimit: () => ({}) });
}

test("an account that could not be opened is free for the next try", async () => {
  const store = createMemoryStore();
  const first = await open(store, false, "a");
  await first.session.deliver(result, call);
  await first.close();
  const full = { ...store, list: () => Promise.reject(new Error("the disk is full")) };
  await expect(open(full, false, "a")).rejects.toThrow("the disk is full");
  expect((await open(store, false, "a")).session.id).toBe("s");
});

/** Makes the marks those of a process which has certainly ended. */
async function killProcess(store: Store): Promise<void> {
  const { pid } = spawnSync(process.execPath, ["-e", "0"]);
  for (const { key, value } of await store.list("mcp"))
    await store.put("mcp", key, JSON.stringify({ ...(JSON.parse(value) as object), pid }));
}

/** Makes the marks those of a process whose number another one, this one, has got since. */
async function reuseNumber(store: Store): Promise<void> {
  for (const { key, value } of await store.list("mcp"))
    await store.put("mcp", key, value.replace(/"started":"\d+"/, '"started":"1"'));
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

test.skipIf(process.platform !== "linux")(
  "a killed process does not keep its account where its number was used again",
  async () => {
    const store = createMemoryStore();
    const first = await open(store);
    await first.session.deliver(result, call);
    await reuseNumber(store);
    const second = await open(store);
    expect([second.session.id, usedBy(second)]).toEqual(["s", usedBy(first)]);
  },
);

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

/** Sessions of these clients, each with one more result than the one before. */
async function openClients(store: Store, clients: readonly string[]) {
  const opened = [];
  for (const [index, client] of clients.entries()) {
    const mcp = await open(store, false, client);
    for (let number = 0; number <= index; number += 1) await mcp.session.deliver(result, call);
    opened.push(mcp);
  }
  return opened;
}

test("a client goes on in its account, whoever comes back first, and however its server ended", async () => {
  for (const end of ["killed", "closed"]) {
    const store = createMemoryStore();
    const opened = await openClients(store, ["a", "b"]);
    expect(opened.map(({ session }) => session.id)).toEqual(["s", "s.2"]);
    if (end === "killed") await killProcess(store);
    else for (const { close } of opened) await close();
    const [b, a] = [await open(store, false, "b"), await open(store, false, "a")];
    expect([a, b].map(({ session }) => session.id)).toEqual(["s", "s.2"]);
    expect([a, b].map(usedBy)).toEqual(opened.map(usedBy));
  }
});

test("nobody begins with the account of a client that is gone", async () => {
  for (const next of ["b", undefined]) {
    const store = createMemoryStore();
    await openClients(store, ["a"]);
    await killProcess(store);
    const other = await open(store, false, next);
    expect([other.session.id, usedBy(other)]).toEqual(["s", 0]);
    const back = await open(store, false, "a");
    expect([back.session.id, usedBy(back)]).toEqual(["s.2", 0]);
  }
});

test("a session that was named goes on for one client, not for those beside it", async () => {
  const store = createMemoryStore();
  const [first, second] = await openClients(store, ["a", "b"]);
  await first!.close();
  await second!.close();
  const [third, fourth] = [await open(store, true, "c"), await open(store, true, "d")];
  expect([third.session.id, usedBy(third)]).toEqual(["s", usedBy(first!)]);
  expect([fourth.session.id, usedBy(fourth)]).toEqual(["s.2", 0]);
});
