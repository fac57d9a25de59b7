import { spawnSync } from "node:child_process";
import { setTimeout } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { listSessions } from "../session/index.ts";
import { createClientSessions, openMcpSession } from "./open-session.ts";

afterEach(() => {
  vi.useRealTimers();
});

const counter = await createCounter("bytes/4");
const result = { fields: {}, itemsName: "lines", items: ["one", "two"], offset: 0 };
const call = { tool: "t", args: {} };

async function open(store: Store, isNamed = false, client?: string) {
  const kept = { store, problem: () => undefined };
  return openMcpSession({ id: "s", isNamed, client, kept, counter, budget: {}, pageLimit: () => ({}) });
}

test("an account that could not be opened can be tried again", async () => {
  const store = createMemoryStore();
  const first = await open(store, false, "a");
  await first.session.deliver(result, call);
  await first.close();
  const full = { ...store, list: () => Promise.reject(new Error("the disk is full")) };
  await expect(open(full, false, "a")).rejects.toThrow("the disk is full");
  expect((await open(store, false, "a")).session.id).toBe("s");
});

/** Gives the marks to a process that has certainly ended. */
async function killProcess(store: Store): Promise<void> {
  const { pid } = spawnSync(process.execPath, ["-e", "0"]);
  for (const { key, value } of await store.list("mcp"))
    await store.put("mcp", key, JSON.stringify({ ...(JSON.parse(value) as object), pid }));
}

/** Gives the marks to an ended process whose number this process now has. */
async function reuseNumber(store: Store): Promise<void> {
  for (const { key, value } of await store.list("mcp"))
    await store.put("mcp", key, value.replace(/"started":"\d+"/, '"started":"1"'));
}

const usedBy = ({ session }: Awaited<ReturnType<typeof open>>): number => session.status().ledger.tool_results.used;

test("the account continues after a kill", async () => {
  const store = createMemoryStore();
  const first = await open(store);
  await first.session.deliver(result, call);
  await killProcess(store);
  const second = await open(store);
  expect(usedBy(second)).toBe(usedBy(first));
  expect(usedBy(second)).toBeGreaterThan(0);
});

test.skipIf(process.platform !== "linux")(
  "a killed process loses its account if its number is used again",
  async () => {
    const store = createMemoryStore();
    const first = await open(store);
    await first.session.deliver(result, call);
    await reuseNumber(store);
    const second = await open(store);
    expect([second.session.id, usedBy(second)]).toEqual(["s", usedBy(first)]);
  },
);

test("a new account begins after a graceful end, or next to a running process", async () => {
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

test("a process that ends does not remove the mark of a later one", async () => {
  const store = createMemoryStore();
  const first = await open(store);
  await killProcess(store);
  const later = (await store.get("mcp", "s"))?.value;
  await first.close();
  expect((await store.get("mcp", "s"))?.value).toBe(later);
});

test("a named session always continues", async () => {
  const store = createMemoryStore();
  const first = await open(store, true);
  await first.session.deliver(result, call);
  await first.close();
  expect(usedBy(await open(store, true))).toBe(usedBy(first));
});

test("a session that was killed long ago does not continue", async () => {
  const store = createMemoryStore();
  await (await open(store)).session.deliver(result, call);
  await killProcess(store);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2 * 3_600_000 });
  expect(usedBy(await open(store))).toBe(0);
});

test("a mark that cannot be read is ignored", async () => {
  const store = createMemoryStore();
  await (await open(store)).session.deliver(result, call);
  await store.put("mcp", "s", "{");
  expect(usedBy(await open(store))).toBe(0);
});

test("parallel processes have their own accounts and share results", async () => {
  const store = createMemoryStore();
  const [first, second] = [await open(store), await open(store)];
  expect([first.session.id, second.session.id]).toEqual(["s", "s.2"]);
  const ids = await Promise.all(
    [first, second, first, second, second].map(async ({ session }) => (await session.deliver(result, call)).id),
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

/** Opens sessions of these clients, each with one more result than the previous one. */
async function openClients(store: Store, clients: readonly string[]) {
  const opened = [];
  for (const [index, client] of clients.entries()) {
    const mcp = await open(store, false, client);
    for (let number = 0; number <= index; number += 1) await mcp.session.deliver(result, call);
    opened.push(mcp);
  }
  return opened;
}

test("a client continues its account, in any order of return, however its server ended", async () => {
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

test("nobody starts with the account of a client that is gone", async () => {
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

test("a named session continues for one client, not for parallel ones", async () => {
  const store = createMemoryStore();
  const [first, second] = await openClients(store, ["a", "b"]);
  await first!.close();
  await second!.close();
  const [third, fourth] = [await open(store, true, "c"), await open(store, true, "d")];
  expect([third.session.id, usedBy(third)]).toEqual(["s", usedBy(first!)]);
  expect([fourth.session.id, usedBy(fourth)]).toEqual(["s.2", 0]);
});

/** Sessions over a store, with a maximum of open ones. */
function serve(most: number) {
  const store = createMemoryStore();
  let isFull = false;
  const sessions = createClientSessions(async (client) => {
    if (isFull) throw new Error("the store is full");
    const kept = { store, problem: () => undefined };
    const rest = { isNamed: false, kept, counter, budget: {}, pageLimit: () => ({}) };
    const { close, ...opened } = await openMcpSession({ id: "s", client, ...rest });
    // As on a slow disk.
    return { ...opened, close: () => setTimeout(10).then(close) };
  }, most);
  const call = (client: string | undefined) =>
    sessions.use(client, async ({ session }) => {
      await session.deliver(result, { tool: "t", args: {} });
      const view = session.workLog("full");
      return `${session.id} ${"entries" in view ? view.entries.length : 0}`;
    });
  const full = (value: boolean) => {
    isFull = value;
  };
  return { ...sessions, call, full };
}

test("each client has its own session, opened once, and clients without a name share one", async () => {
  const { call } = serve(10);
  const told = await Promise.all(["a", "b", undefined, "a", undefined, "b", "a"].map(call));
  expect(new Set(told.map((each) => each.split(" ")[0]))).toEqual(new Set(["s", "s.2", "s.3"]));
  expect(await call("a")).toMatch(/ 4$/);
  expect(await call(undefined)).toMatch(/ 3$/);
});

test("the least recently used session gives its account to a new client, and the shared one stays", async () => {
  const { call } = serve(3);
  expect(await call(undefined)).toBe("s 1");
  for (const client of ["a", "b", "a"]) await call(client);
  expect(await call("c")).toBe("s.3 1");
  expect(await call("a")).toBe("s.2 3");
  expect(await call("b")).toBe("s.3 1");
  expect(await call(undefined)).toBe("s 2");
});

test("a session with a running call is not closed, however many there are", async () => {
  const { call, use, close } = serve(1);
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const running = use("a", async ({ session }) => {
    await finished;
    return session.id;
  });
  await close("a");
  expect(await call("b")).toBe("s.2 1");
  expect(await call("c")).toBe("s.2 1");
  expect(await call("a")).toBe("s 1");
  finish();
  expect(await running).toBe("s");
});

test("a closed client continues where it was, unless its account was taken", async () => {
  const { call, close } = serve(10);
  await call("a");
  await close("a");
  expect(await call("a")).toBe("s 2");
  // Not awaited here, because opening waits for it.
  void close("a");
  expect(await call("b")).toBe("s 1");
  expect(await call("a")).toBe("s.2 1");
});

test("the next call tries again to open a session that could not be opened", async () => {
  const { call, full, close, closeAll } = serve(10);
  full(true);
  await expect(call("a")).rejects.toThrow("the store is full");
  await close("a");
  full(false);
  expect(await call("a")).toBe("s 1");
  await closeAll();
  expect(await call("b")).toBe("s 1");
});
