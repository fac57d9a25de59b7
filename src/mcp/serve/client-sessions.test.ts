import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { createMemoryStore } from "../../store/index.ts";
import { createCounter } from "../../tokens/index.ts";
import { openMcpSession } from "../open-session.ts";
import { createClientSessions } from "./client-sessions.ts";

const counter = await createCounter("bytes/4");
const result = { fields: {}, itemsName: "lines", items: ["one", "two"], offset: 0 };

/** Sessions over a store, of which so many are open at a time. */
function serve(most: number) {
  const store = createMemoryStore();
  let isFull = false;
  const sessions = createClientSessions(async (client) => {
    if (isFull) throw new Error("the store is full");
    const kept = { store, problem: () => undefined };
    const rest = { goesOn: false, kept, counter, budget: {}, pageLimit: () => ({}) };
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

test("clients have a session each, opened once, and those without a name share one", async () => {
  const { call } = serve(10);
  const told = await Promise.all(["a", "b", undefined, "a", undefined, "b", "a"].map(call));
  expect(new Set(told.map((each) => each.split(" ")[0]))).toEqual(new Set(["s", "s.2", "s.3"]));
  expect(await call("a")).toMatch(/ 4$/);
  expect(await call(undefined)).toMatch(/ 3$/);
});

test("the least recently used gives its account to a new client, and the shared one stays", async () => {
  const { call } = serve(3);
  expect(await call(undefined)).toBe("s 1");
  for (const client of ["a", "b", "a"]) await call(client);
  expect(await call("c")).toBe("s.3 1");
  expect(await call("a")).toBe("s.2 3");
  expect(await call("b")).toBe("s.3 1");
  expect(await call(undefined)).toBe("s 2");
});

test("a session with a call under way is not closed, however many there are", async () => {
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

test("a client that was closed goes on where it was, unless its account was taken", async () => {
  const { call, close } = serve(10);
  await call("a");
  await close("a");
  expect(await call("a")).toBe("s 2");
  // Not waited for: whoever opens does.
  void close("a");
  expect(await call("b")).toBe("s 1");
  expect(await call("a")).toBe("s.2 1");
});

test("a session that could not be opened is tried again by the next call", async () => {
  const { call, full, close, closeAll } = serve(10);
  full(true);
  await expect(call("a")).rejects.toThrow("the store is full");
  await close("a");
  full(false);
  expect(await call("a")).toBe("s 1");
  await closeAll();
  expect(await call("b")).toBe("s 1");
});
