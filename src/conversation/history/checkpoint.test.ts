import { describe, expect, it } from "vitest";
import { validateRequest } from "../../core/messages/index.ts";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { exchange, exchanges, user } from "./exchanges.contract.ts";

import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", ...options });
const messages = [user("go"), ...exchanges(60, { thinking: 100, said: "mind the tests" })];
const reparse = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;

describe("a checkpoint", () => {
  it("is plain JSON, and does not change while the session continues", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages });
    const checkpoint = await trimmer.checkpoint();
    const text = JSON.stringify(checkpoint);
    expect(reparse(checkpoint)).toEqual(checkpoint);
    trimmer.reduce({ messages: [...messages, ...exchanges(60, {}, 60)] });
    expect(JSON.stringify(checkpoint)).toBe(text);
    expect((await trimmer.checkpoint()).ledger.epochs.length).toBeGreaterThan(checkpoint.ledger.epochs.length);
  });

  const empty = async () => (await create()).checkpoint();

  it("records all decisions, so none are derived from the messages", async () => {
    expect((await create()).reduce({ messages }).derived).toMatchObject({ isComplete: true });
    expect((await create({ checkpoint: await empty() })).reduce({ messages }).derived).toBeUndefined();
  });

  it("of a session that was never trimmed has no effect", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages: messages.slice(0, 9) });
    const resumed = await create({ checkpoint: reparse(await trimmer.checkpoint()) });
    expect(resumed.reduce({ messages })).toEqual((await create({ checkpoint: await empty() })).reduce({ messages }));
  });

  it("of another conversation has no effect on this one", async () => {
    // Descriptive placeholders have ids, which go on where the other conversation's end.
    const placeholders = "plain";
    const other = await create({ placeholders });
    other.reduce({ messages: [user("something else"), ...exchanges(60)] });
    const resumed = await create({ placeholders, checkpoint: reparse(await other.checkpoint()) });
    const first = await create({ placeholders, checkpoint: await empty() });
    const [fresh, reduction] = [first.reduce({ messages }), resumed.reduce({ messages })];
    expect(reduction.messages).toEqual(fresh.messages);
    expect(reduction.stats.boundary).toBe(fresh.stats.boundary);
  });

  it("is refused if it is nested too deeply to be copied", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages });
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const text = JSON.stringify(await trimmer.checkpoint()).replace('"entries":[{', `"entries":[{"x":${deep},`);
    await expect(create({ checkpoint: JSON.parse(text) })).rejects.toThrow("nested too deeply");
  });

  it("keeps what the trimmer learnt about the counter", async () => {
    const trimmer = await create();
    const { stats } = trimmer.reduce({ messages: messages.slice(0, 21) });
    trimmer.observe({ input_tokens: Math.round(stats.after * 1.3) });
    const next = trimmer.reduce({ messages: messages.slice(0, 23) }).stats.budget;
    const resumed = await create({ checkpoint: reparse(await trimmer.checkpoint()) });
    expect(resumed.reduce({ messages: messages.slice(0, 23) }).stats.budget).toBe(next);
    expect(next).toBeLessThan(10_000);
  });

  it("of version 1 drops its decisions, and keeps what the trimmer learnt about the counter", async () => {
    const trimmer = await create();
    const { stats } = trimmer.reduce({ messages });
    trimmer.observe({ input_tokens: Math.round(stats.after * 1.3) });
    const { calibrator, policy } = await trimmer.checkpoint();
    const entry = { id: "r1", message: 1, chain: "c", part: 0, decision: { action: "drop" }, tokensSaved: 9 };
    const epoch = { boundary: 3, collapsed: 0, chain: "c", entries: [entry] };
    const old = { version: 1, policy, ledger: { epochs: [epoch] }, state: { boundary: 3 }, calibrator };
    const resumed = await create({ checkpoint: old as unknown as Checkpoint });
    expect(resumed.reduce({ messages: messages.slice(0, 9) }).messages).toEqual(messages.slice(0, 9));
    expect(await resumed.checkpoint()).toEqual({
      ...{ version: 2, policy, calibrator },
      ledger: { key: expect.stringMatching(/^[\w-]{22}$/), epochs: [] },
    });
  });

  it("gives each part one id, also if a later epoch removes what an earlier one replaced", async () => {
    let trimmer = await create();
    const all = [...messages];
    for (let index = 60; index < 160; index += 20) {
      all.push(...exchanges(20, {}, index));
      trimmer.reduce({ messages: all });
      trimmer = await create({ checkpoint: reparse(await trimmer.checkpoint()) });
    }
    const { epochs } = (await trimmer.checkpoint()).ledger;
    const entries = epochs.flatMap((epoch) => epoch.entries);
    const partOf = new Map(entries.map(({ id, chain, part }) => [id, `${chain}/${part}`]));
    expect(epochs.length).toBeGreaterThan(2);
    expect(new Set(partOf.values()).size).toBe(partOf.size);
    for (const { id, chain, part } of entries) expect(partOf.get(id)).toBe(`${chain}/${part}`);
  });
});

describe("a checkpoint that cannot be read", () => {
  const broken = (change: (checkpoint: Loose) => void): unknown => {
    const checkpoint = reparse(good) as unknown as Loose;
    change(checkpoint);
    return checkpoint;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the cases damage it in every way.
  type Loose = any;
  let good: Checkpoint;

  it.each<[string, (checkpoint: Loose) => void]>([
    ["checkpoint.version is 3", (checkpoint) => Object.assign(checkpoint, { version: 3 })],
    ["checkpoint.ledger must be an object", (checkpoint) => Object.assign(checkpoint, { ledger: [] })],
    ["checkpoint.ledger.epochs must be an array", (checkpoint) => Object.assign(checkpoint.ledger, { epochs: {} })],
    ["checkpoint.ledger.epochs[0] must", ({ ledger }) => ledger.epochs.splice(0, 1, null)],
    ["checkpoint.ledger.epochs[0].boundary must", ({ ledger }) => Object.assign(ledger.epochs[0], { boundary: -1 })],
    ["checkpoint.ledger.epochs[0].at must", ({ ledger }) => Object.assign(ledger.epochs[0], { at: 7 })],
    [
      "checkpoint.ledger.epochs[0].reach.chain must",
      ({ ledger }) => Object.assign(ledger.epochs[0].reach, { chain: 7 }),
    ],
    ["checkpoint.ledger.epochs[0].after must", ({ ledger }) => Object.assign(ledger.epochs[0], { after: -1 })],
    ["checkpoint.ledger.epochs[0].like must", ({ ledger }) => Object.assign(ledger.epochs[0], { like: "r1" })],
    [
      "epochs[0].entries[1].id is not a recall id",
      ({ ledger }) => Object.assign(ledger.epochs[0].entries[1], { id: "x" }),
    ],
    ["epochs[0].entries[0].message must", ({ ledger }) => Object.assign(ledger.epochs[0].entries[0], { message: "1" })],
    ["epochs[0].entries[0].part must", ({ ledger }) => Object.assign(ledger.epochs[0].entries[0], { part: -2 })],
    [
      "entries[0].decision.action is no",
      ({ ledger }) => Object.assign(ledger.epochs[0].entries[0].decision, { action: "burn" }),
    ],
    [
      "entries[0].decision must be an object",
      ({ ledger }) => Object.assign(ledger.epochs[0].entries[0], { decision: null }),
    ],
  ])("is refused with the place: %s", async (message, change) => {
    const trimmer = await create();
    trimmer.reduce({ messages });
    good = await trimmer.checkpoint();
    const checkpoint = broken(change) as Checkpoint;
    await expect(create({ checkpoint })).rejects.toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(message) }),
    );
  });

  it.each([7, "text", [], {}])("is refused: %j", async (value) => {
    await expect(create({ checkpoint: value as unknown as Checkpoint })).rejects.toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
  });
});

describe("a checkpoint that contradicts itself", () => {
  // biome-ignore lint/suspicious/noExplicitAny: the cases damage it in every way.
  type Loose = any;

  it.each<[string, (entry: Loose, epoch: Loose) => void]>([
    ["a message beyond the end", (entry) => Object.assign(entry, { message: 999 })],
    ["another message", (entry) => Object.assign(entry, { message: entry.message + 1 })],
    ["the hash of another message", (entry, { at }) => Object.assign(entry, { chain: at.chain })],
    ["a part that is not there", (entry) => Object.assign(entry, { part: 7 })],
    ["an epoch that is based on itself", (_entry, epoch) => Object.assign(epoch, { after: 0 })],
    ["an epoch that repeats a later one", (_entry, epoch) => Object.assign(epoch, { like: 999 })],
    [
      "an end that does not exist",
      (_entry, epoch) => Object.assign(epoch, { at: { message: 999, chain: epoch.at.chain } }),
    ],
    ["a reach behind its end", (_entry, epoch) => Object.assign(epoch, { reach: { ...epoch.reach, message: 999 } })],
    ["a boundary beyond the end", (_entry, epoch) => Object.assign(epoch, { boundary: 999, collapsed: 999 })],
    ["a gone part behind the boundary", (_entry, epoch) => Object.assign(epoch, { collapsed: epoch.boundary + 9 })],
  ])("is no reason to fail: %s", async (_name, damage) => {
    for (const policy of ["economic", "rfc"] as const) {
      const trimmer = await create({ policy });
      trimmer.reduce({ messages });
      const checkpoint = reparse(await trimmer.checkpoint());
      const { epochs } = checkpoint.ledger as Loose;
      for (const entry of epochs[0].entries.slice(0, 3)) damage(entry, epochs[0]);
      const resumed = await create({ policy, checkpoint });
      const grown = [...messages, ...exchanges(40, {}, 60)];
      for (const each of [messages, messages.slice(0, 31), grown]) {
        const { messages: sent, stats, overflow } = resumed.reduce({ messages: each });
        expect(overflow).toBeUndefined();
        expect(stats.boundary).toBeLessThanOrEqual(each.length);
        expect(validateRequest(sent)).toEqual([]);
      }
    }
  });
});

describe("a store", () => {
  it("restores a session by its id, and keeps sessions apart", async () => {
    const store = createMemoryStore();
    const trimmer = await create({ store, sessionId: "a" });
    trimmer.reduce({ messages });
    await trimmer.checkpoint();
    const grown = [...messages, ...exchange(60)];
    const resumed = await create({ store, sessionId: "a" });
    expect(resumed.reduce({ messages: grown })).toEqual(trimmer.reduce({ messages: grown }));
    expect((await (await create({ store, sessionId: "b" })).checkpoint()).ledger.epochs).toEqual([]);
  });

  it("is ignored if a checkpoint is passed", async () => {
    const store = createMemoryStore();
    const stored = await create({ store });
    stored.reduce({ messages });
    await stored.checkpoint();
    const checkpoint = await (await create()).checkpoint();
    expect((await (await create({ store, checkpoint })).checkpoint()).ledger.epochs).toEqual([]);
  });

  it("with damaged content causes an error that says so", async () => {
    const store = createMemoryStore();
    await store.put("history/checkpoints", "default", '{"version":9}');
    await expect(create({ store })).rejects.toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });
});
