import { describe, expect, it } from "vitest";
import { createEventWriter, eventLifeMs, forgetEvents, pruneEvents, readEvents } from "./events.ts";
import { createMemoryStore } from "./memory.ts";
import type { Store } from "./store.ts";

const day = 86_400_000;

function open(store: Store = createMemoryStore()) {
  const clock = { ms: 100 * day };
  const failures: unknown[] = [];
  const writer = createEventWriter(store, { now: () => clock.ms, onFailure: (error) => failures.push(error) });
  const write = (numbers: Record<string, number | string>) => writer.write({ source: "sdk", kind: "call", numbers });
  return { store, clock, failures, write, settled: writer.settled };
}

describe("the stream of events", () => {
  it("returns what was written, in order and with its time", async () => {
    const { store, write, settled, clock } = open();
    write({ sent: 10, model: "claude-sonnet-5" });
    clock.ms += 5;
    write({ sent: 12 });
    await settled();
    expect(await readEvents(store)).toEqual([
      {
        v: 1,
        at: 100 * day,
        source: "sdk",
        kind: "call",
        numbers: { sent: 10, model: "claude-sonnet-5" },
        sequence: 1,
      },
      { v: 1, at: 100 * day + 5, source: "sdk", kind: "call", numbers: { sent: 12 }, sequence: 2 },
    ]);
    expect(await readEvents(store, { after: 1 })).toHaveLength(1);
  });

  it("has numbers and names, but no text", async () => {
    const { store, write, settled } = open();
    write({ sent: 1, model: "gpt-5", said: "the user said this", long: "x".repeat(101), odd: Number.NaN });
    await settled();
    expect((await readEvents(store))[0]?.numbers).toEqual({ sent: 1, model: "gpt-5" });
  });

  it("forgets the events of a session, and keeps what others write meanwhile", async () => {
    const memory = createMemoryStore();
    const write = (sessionId: string, at: number) =>
      memory.append("events", [JSON.stringify({ v: 1, at, source: "sdk", sessionId, kind: "call", numbers: {} })]);
    for (let at = 0; at < 1_200; at++) await write(at % 3 === 0 ? "gone" : "kept", at);
    let isWriting = true;
    const store: Store = {
      ...memory,
      async append(stream, values) {
        // Another process writes between reading and deleting.
        if (isWriting) await write("new", 1_200);
        isWriting = false;
        return memory.append(stream, values);
      },
    };
    await forgetEvents(store, new Set(["gone"]));
    const left = await readEvents(memory, { limit: 2_000 });
    expect(left.filter(({ sessionId }) => sessionId === "gone")).toEqual([]);
    expect(left.filter(({ sessionId }) => sessionId === "kept").map(({ at }) => at)).toEqual(
      Array.from({ length: 1_200 }, (_, at) => at).filter((at) => at % 3 !== 0),
    );
    expect(left.filter(({ sessionId }) => sessionId === "new")).toHaveLength(1);
  });

  it("skips entries that another version or another program wrote", async () => {
    const { store, write, settled } = open();
    await store.append("events", ["nonsense", '{"v":2}', "null", '{"v":1,"at":1,"kind":"dance","numbers":{}}']);
    write({ sent: 1 });
    await settled();
    expect(await readEvents(store)).toHaveLength(1);
  });

  it("loses events for 30 days' age, by itself and in a prune", async () => {
    const { store, clock, write, settled } = open();
    write({ sent: 1 });
    await settled();
    const later = open(store);
    later.clock.ms = clock.ms + eventLifeMs;
    later.write({ sent: 2 });
    await later.settled();
    expect(await readEvents(store)).toHaveLength(2);
    const latest = open(store);
    latest.clock.ms = clock.ms + eventLifeMs + 1;
    latest.write({ sent: 3 });
    await latest.settled();
    expect((await readEvents(store)).map(({ numbers }) => numbers.sent)).toEqual([2, 3]);
    expect(await pruneEvents(store, { before: latest.clock.ms, dryRun: true })).toBe(1);
    expect(await pruneEvents(store, { before: latest.clock.ms })).toBe(1);
    expect((await readEvents(store)).map(({ numbers }) => numbers.sent)).toEqual([3]);
  });

  it("prunes thousands of entries, and those that cannot be read among them", async () => {
    const store = createMemoryStore();
    const event = (at: number) => JSON.stringify({ v: 1, at, source: "sdk", kind: "call", numbers: {} });
    await store.append("events", [...Array.from({ length: 1_200 }, (_, index) => event(index)), "torn", event(5_000)]);
    expect(await pruneEvents(store, { before: 5_000 })).toBe(1_201);
    expect(await readEvents(store)).toHaveLength(1);
  });

  it("does not wait, reports a failure, and goes on with the next event", async () => {
    const store = createMemoryStore();
    let isFull = true;
    const append: Store["append"] = (...args) =>
      isFull ? Promise.reject(new Error("database or disk is full")) : store.append(...args);
    const { failures, write, settled } = open({ ...store, append });
    write({ sent: 1 });
    await settled();
    expect(failures).toHaveLength(1);
    isFull = false;
    write({ sent: 2 });
    await settled();
    expect((await readEvents(store)).map(({ numbers }) => numbers.sent)).toEqual([2]);
  });

  it("keeps at most 1,000 events for a store that does not answer", async () => {
    const store = createMemoryStore();
    let open_ = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open_ = resolve;
    });
    const { write, settled } = open({ ...store, append: (...args) => gate.then(() => store.append(...args)) });
    for (let sent = 0; sent < 3_000; sent++) write({ sent });
    open_();
    await settled();
    const sent = (await readEvents(store)).map(({ numbers }) => numbers.sent);
    expect(sent).toHaveLength(1_000);
    expect(sent.at(-1)).toBe(2_999);
  });
});
