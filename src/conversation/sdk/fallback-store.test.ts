import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it, vi } from "vitest";
import { createMemoryStore, readEvents, type Store } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { openStore } from "../../host/index.ts";
import { loadDriver } from "../../host/store/sqlite-driver.ts";
import { createFallbackStores } from "./fallback-store.ts";
import { type BudgetCall, createRequestFitter, type RequestFitterOptions } from "./request-fitter.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-fallback-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
afterEach(() => vi.useRealTimers());
const counter = await createCounter("bytes/4");

function history(turns: number): object[] {
  const messages: object[] = [{ role: "user", content: "Where is the bug?" }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `c${turn}`;
    messages.push(
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `${turn}.ts` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "x".repeat(4_000) }] },
    );
  }
  return messages;
}

function open(options: RequestFitterOptions<object>) {
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const fitter = createRequestFitter<object>({ contextWindow: 40_000, counter, onError, ...options });
  const ask = (turns: number, more: Partial<BudgetCall<object>> = {}) =>
    fitter.fit({
      ...{ request: {}, format: "anthropic", model: "claude-sonnet-5", messages: history(turns) },
      ...{ maxOutputTokens: undefined, cacheLifetimeMs: 300_000, ...more },
    });
  return { ask, errors };
}

/** Asks for a growing history. Returns what was sent. */
async function run(options: RequestFitterOptions<object>, before?: (turns: number) => unknown) {
  const { ask, errors } = open({ sessionId: "s", ...options });
  const sent: string[] = [];
  for (let turns = 0; turns < 60; turns += 1) {
    await before?.(turns);
    sent.push(JSON.stringify((await ask(turns)).reduction.messages));
  }
  return { sent, errors };
}

const expected = (await run({})).sent;
const methods = ["get", "put", "update", "append", "list"] as const;

describe("a store that fails", () => {
  it.each(methods.slice(0, 4))(
    "at %s is reported once, and requests are trimmed as without a store",
    async (method) => {
      const broken = { ...createMemoryStore(), [method]: () => Promise.reject(new Error("disk I/O error")) };
      const { sent, errors } = await run({ store: broken });
      expect(sent).toEqual(expected);
      expect(errors).toMatchObject([{ code: "store_unavailable", message: "the store failed: disk I/O error" }]);
    },
  );

  it("with an error that it throws at once, on every method, changes nothing either", async () => {
    const fail = () => {
      throw new Error("closed");
    };
    const broken = Object.fromEntries(Object.keys(createMemoryStore()).map((name) => [name, fail]));
    const { sent, errors } = await run({ store: broken as unknown as Store });
    expect(sent).toEqual(expected);
    expect(errors).toHaveLength(1);
  });

  it.each([5, 25, 26, 40])("from turn %i on changes nothing in what is sent", async (from) => {
    let isFull = false;
    const store = createMemoryStore();
    const stop = <Answer>(call: () => Promise<Answer>) =>
      isFull ? Promise.reject(new Error("database or disk is full")) : call();
    const broken: Store = {
      ...store,
      put: (...args) => stop(() => store.put(...args)),
      update: (...args) => stop(() => store.update(...args)),
      append: (...args) => stop(() => store.append(...args)),
    };
    const { sent, errors } = await run({ store: broken }, (turns) => {
      isFull = turns >= from;
    });
    expect(sent).toEqual(expected);
    expect(errors).toHaveLength(1);
  });

  it("keeps the decisions when the model changes after the failure", async () => {
    let isBroken = false;
    const store = createMemoryStore();
    const get: Store["get"] = (...args) => (isBroken ? Promise.reject(new Error("gone")) : store.get(...args));
    const put: Store["put"] = (...args) => (isBroken ? Promise.reject(new Error("gone")) : store.put(...args));
    const [broken, whole] = [open({ store: { ...store, get, put }, sessionId: "s" }), open({ sessionId: "s" })];
    const other = { model: "claude-opus-5" };
    for (let turns = 0; turns < 32; turns++) for (const { ask } of [broken, whole]) await ask(turns);
    isBroken = true;
    for (const turns of [32, 33]) {
      const [mine, theirs] = await Promise.all([broken, whole].map(({ ask }) => ask(turns, other)));
      expect(JSON.stringify(mine?.reduction.messages)).toBe(JSON.stringify(theirs?.reduction.messages));
    }
    expect(broken.errors).toHaveLength(1);
  });

  it("that hangs delays one call by five seconds, and others not at all", async () => {
    vi.useFakeTimers();
    const never = () => new Promise<never>((_resolve, reject) => setTimeout(() => reject(new Error("late")), 10_000));
    const broken: Store = { ...createMemoryStore(), get: never, put: never, update: never, append: never };
    const { ask, errors } = open({ store: broken });
    const started = Date.now();
    const first = ask(30);
    await vi.advanceTimersByTimeAsync(5_000);
    const { reduction } = await first;
    expect(reduction.isEpoch).toBe(true);
    expect(Date.now() - started).toBe(5_000);
    for (const turns of [31, 32]) await ask(turns);
    expect(Date.now() - started).toBe(5_000);
    expect(errors).toMatchObject([{ message: "the store failed: it did not answer within 5000 ms" }]);
    await vi.advanceTimersByTimeAsync(60_000);
  });

  it("with a checkpoint that cannot be read is reported, and the conversation starts from its history", async () => {
    const store = createMemoryStore();
    await store.put("history/checkpoints", "s", "{torn");
    const { sent, errors } = await run({ store });
    expect(sent).toEqual(expected);
    expect(errors).toMatchObject([{ code: "store_corrupt" }]);
    expect((await store.get("history/checkpoints", "s"))?.value).toBe("{torn");
  });

  it("is a process warning without onError", async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => void warnings.push(warning);
    process.on("warning", listen);
    const broken = { ...createMemoryStore(), put: () => Promise.reject(new Error("disk full")) };
    const { ask } = open({ store: broken, onError: undefined });
    for (const turns of [1, 2]) await ask(turns);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", listen);
    const ours = warnings.filter(({ name }) => name === "PlimsollWarning");
    expect(ours).toMatchObject([{ code: "PLIMSOLL_STORE_UNAVAILABLE" }]);
  });

  it("and works again is used by conversations that start a minute later", async () => {
    const clock = { ms: 0 };
    let isBroken = true;
    const store = createMemoryStore();
    const put: Store["put"] = (...args) => (isBroken ? Promise.reject(new Error("gone")) : store.put(...args));
    const failures: unknown[] = [];
    const onFailure = (error: unknown) => failures.push(error);
    const openNext = createFallbackStores({ ...store, put }, { now: () => clock.ms, onFailure });
    const first = openNext();
    await first.store.put("a", "1", "one");
    isBroken = false;
    await openNext().store.put("a", "2", "two");
    clock.ms += 60_000;
    await openNext().store.put("a", "3", "three");
    expect((await store.list("a")).map(({ key }) => key)).toEqual(["3"]);
    expect((await first.store.get("a", "1"))?.value).toBe("one");
    await expect(first.strict.get("a", "1")).rejects.toThrow("gone");
    expect(failures).toHaveLength(1);
  });
});

describe("a SQLite file", () => {
  it("that another process has locked does not stop a call", { timeout: 30_000 }, async () => {
    const path = join(root, "locked.db");
    const store = await openStore({ place: path, waitMs: 300 });
    const { ask, errors } = open({ store, sessionId: "s" });
    await ask(1);
    const lock = new (await loadDriver())(path);
    lock.exec("BEGIN EXCLUSIVE");
    const { reduction } = await ask(30);
    expect(reduction.isEpoch).toBe(true);
    expect(errors).toHaveLength(1);
    lock.exec("ROLLBACK");
    lock.close();
    expect((await ask(31)).reduction.isEpoch).toBe(false);
    await store.close();
  });

  it("that was closed in the middle does not stop a call", async () => {
    const store = await openStore({ place: join(root, "closed.db") });
    const { ask, errors } = open({ store, sessionId: "s" });
    (await ask(30)).observe({});
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await readEvents(store)).map(({ kind }) => kind)).toEqual(["trim", "call"]);
    await store.close();
    expect((await ask(31)).reduction.isEpoch).toBe(false);
    expect((await ask(60)).reduction.isEpoch).toBe(true);
    expect(errors).toMatchObject([{ code: "store_unavailable" }]);
  });
});
