import { describe, expect, it } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { exchanges, user } from "./exchanges.contract.ts";

import { createTrimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: 10_000, reserve: 0, counter, format: "anthropic", ...options });
const messages = [user("go"), ...exchanges(60, { thinking: 400, input: 900 })];

interface Block {
  readonly type: string;
  readonly content?: string;
  readonly thinking?: string;
  readonly input?: object;
}
const blockAt = (message: number, part: number): Block =>
  (messages[message] as { content: readonly Block[] }).content[part]!;

/** The entries for a part. A removed message has an entry for each of its parts. */
const entriesOf = ({ ledger }: Checkpoint) =>
  ledger.epochs.flatMap(({ entries }) => entries.filter(({ part }) => part >= 0));

/** Each recall reads a record with many parts. */
const isTried = (_entry: unknown, index: number) => process.env.PLIMSOLL_DEEP === "1" || index % 7 === 0;

describe("recall", () => {
  it("returns every trimmed part from the current history", async () => {
    const trimmer = await create();
    trimmer.reduce({ messages });
    const entries = entriesOf(await trimmer.checkpoint());
    expect(entries.length).toBeGreaterThan(50);
    const kinds = new Set<string>();
    for (const { id, message, part } of entries) {
      const recalled = (await trimmer.recall(id))!;
      const block = blockAt(message, part);
      expect(recalled).toMatchObject({ id, value: block });
      if (recalled.kind !== "tool_call") expect(recalled.text).toBe(block.content ?? block.thinking);
      kinds.add(recalled.kind);
    }
    expect([...kinds].sort()).toEqual(["thinking", "tool_call", "tool_result"]);
  });

  it("finds the id in a descriptive placeholder", async () => {
    const trimmer = await create({ placeholders: "descriptive", policy: "gentle" });
    const { messages: sent } = trimmer.reduce({ messages, tools: [{ name: "recall" }] });
    const placeholder = /\[trimmed: read_file src\/file-(\d+)\.ts, \d+ lines; recall id ([a-z2-7]{16})\]/.exec(
      JSON.stringify(sent),
    );
    const recalled = await trimmer.recall(placeholder![2]!);
    expect(recalled).toMatchObject({ kind: "tool_result" });
    expect(recalled!.text).toContain(`line ${placeholder![1]}\n`);
  });

  it("returns it from the store after a restart, before the history is seen again", async () => {
    const store = createMemoryStore();
    const trimmer = await create({ store });
    trimmer.reduce({ messages });
    const entries = entriesOf(await trimmer.checkpoint());
    const resumed = await create({ store });
    for (const { id, message, part } of entries.filter(isTried)) {
      const recalled = await resumed.recall(id);
      expect(recalled).toEqual(await trimmer.recall(id));
      expect(recalled!.value).toEqual(blockAt(message, part));
    }
    expect(await (await create({ store, sessionId: "other" })).recall(entries[0]!.id)).toBeUndefined();
  });

  it("returns it from the store after the client has compacted its history", async () => {
    const store = createMemoryStore();
    const trimmer = await create({ store });
    trimmer.reduce({ messages });
    const [entry] = entriesOf(await trimmer.checkpoint());
    trimmer.reduce({ messages: [user("What happened so far: nothing.")] });
    expect((await trimmer.recall(entry!.id))!.value).toEqual(blockAt(entry!.message, entry!.part));
  });

  it("also keeps what is trimmed while an earlier checkpoint is being written", async () => {
    const store = createMemoryStore();
    const trimmer = await create({ store });
    trimmer.reduce({ messages: messages.slice(0, 61) });
    const early = trimmer.checkpoint();
    trimmer.reduce({ messages });
    await early;
    const entries = entriesOf(await trimmer.checkpoint());
    const resumed = await create({ store });
    for (const { id } of entries) expect(await resumed.recall(id), id).toBeDefined();
  });

  it("returns undefined for an unknown id", async () => {
    const store = createMemoryStore();
    for (const trimmer of [await create(), await create({ store })]) {
      trimmer.reduce({ messages });
      for (const id of ["r999999", "", "__proto__", "x", `r${"9".repeat(5_000)}`])
        expect(await trimmer.recall(id)).toBeUndefined();
    }
  });

  it("returns bytes as bytes, from the store and from the history", async () => {
    const store = createMemoryStore();
    const image = Uint8Array.from({ length: 3_000 }, (_each, index) => index % 256);
    const pictures = Array.from({ length: 8 }, (_each, index) => {
      const call = { toolCallId: `c${index}`, toolName: "screenshot" };
      const value = [
        { type: "media", mediaType: "image/png", data: index === 0 ? Buffer.from(image) : image },
        { type: "text", text: `picture ${index}` },
      ];
      return [
        { role: "assistant", content: [{ type: "tool-call", ...call, input: {} }] },
        { role: "tool", content: [{ type: "tool-result", ...call, output: { type: "content", value } }] },
      ];
    }).flat();
    const options = { store, format: "ai-sdk", contextWindow: 3_000 } as const;
    const trimmer = await create(options);
    trimmer.reduce({ messages: [{ role: "user", content: "go" }, ...pictures] });
    const results = entriesOf(await trimmer.checkpoint()).filter(({ message }) => message % 2 === 0);
    expect(results.map(({ message }) => message)).toContain(2);
    const resumed = await create(options);
    for (const { id, message } of results) {
      const { value, text } = (await resumed.recall(id))!;
      const [media] = (value as { output: { value: [{ data: unknown }] } }).output.value;
      expect(media.data).toEqual(image);
      expect(text).toContain(`picture ${(message - 2) / 2}`);
    }
  });

  it("finds each of thousands of parts that were saved in few writes", { tags: ["deep"] }, async () => {
    const inner = createMemoryStore();
    const written: string[] = [];
    const store: Store = {
      ...inner,
      put: (collection, key, value, options) => {
        if (collection.startsWith("history/recall/")) written.push(value);
        return inner.put(collection, key, value, options);
      },
    };
    const trimmer = await create({ store, contextWindow: 300_000 });
    const long = [user("go"), ...exchanges(1_000, { result: 2_000 })];
    trimmer.reduce({ messages: long });
    const entries = entriesOf(await trimmer.checkpoint());
    expect(entries.length).toBeGreaterThan(900);
    expect(written.length).toBeGreaterThan(1);
    expect(written.length).toBeLessThan(25);
    expect(Math.max(...written.map(({ length }) => length))).toBeLessThan(510_000);
    const { length } = written;
    await trimmer.checkpoint();
    expect(written).toHaveLength(length);
    const resumed = await create({ store });
    for (const { id, message, part } of entries.filter((_each, index) => index % 23 === 0)) {
      const { content } = long[message] as { content: readonly Block[] };
      expect((await resumed.recall(id))!.value).toEqual(content[part]);
    }
  });

  it("ignores what a killed run left in the store", async () => {
    const store = createMemoryStore();
    const killed = await create({ store });
    killed.reduce({ messages: [user("go"), ...exchanges(60, { result: 1_000 })] });
    const { ledger } = await killed.checkpoint();
    await store.delete("history/checkpoints", "default");
    const next = await create({ store });
    next.reduce({ messages });
    const entries = entriesOf(await next.checkpoint());
    const left = ledger.epochs.flatMap((epoch) => epoch.entries);
    const contentOf = new Map(left.map(({ id, chain, part }) => [id, `${chain}/${part}`]));
    for (const { id, chain, part } of entries) expect(contentOf.get(id) ?? `${chain}/${part}`).toBe(`${chain}/${part}`);
    const resumed = await create({ store });
    for (const { id, message, part } of entries.filter(isTried))
      expect((await resumed.recall(id))!.value).toEqual(blockAt(message, part));
  });

  it("continues a checkpoint of an older version, whose ids were numbers", async () => {
    const store = createMemoryStore();
    const before = await create({ store });
    const given = before.reduce({ messages });
    const { ledger } = await before.checkpoint();
    // As that version has stored it.
    const ids = new Map(
      ledger.epochs.flatMap(({ entries }) => entries.map(({ id }) => id)).map((id, at) => [id, `r${at + 1}`]),
    );
    const older = (text: string) => text.replace(/[a-z2-7]{16}/g, (id) => ids.get(id) ?? id);
    for (const collection of ["history/checkpoints", "history/recall/default"]) {
      for (const { key, value } of await store.list(collection)) await store.put(collection, key, older(value));
    }
    const resumed = await create({ store });
    expect((await resumed.recall("r7"))!.value).toBeDefined();
    const { messages: sent } = resumed.reduce({ messages });
    expect(JSON.stringify(sent)).toBe(older(JSON.stringify(given.messages)));
    resumed.reduce({ messages: [...messages, ...exchanges(60, { input: 900 }, 60)] });
    const all = entriesOf(await resumed.checkpoint()).map(({ id }) => id);
    expect(all.slice(0, 5).every((id) => /^r\d+$/.test(id))).toBe(true);
    expect(all.at(-1)).toMatch(/^[a-z2-7]{16}$/);
  });

  it("survives lone surrogates", async () => {
    const store = createMemoryStore();
    const odd = {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "call_0", content: "x\ud800".repeat(500) }],
    };
    const trimmer = await create({ store });
    const { stats } = trimmer.reduce({ messages: [messages[0]!, messages[1]!, odd, ...messages.slice(3)] });
    expect(stats.trimmed).toContain(2);
    const entry = entriesOf(await trimmer.checkpoint()).find(({ message }) => message === 2);
    expect((await (await create({ store })).recall(entry!.id))!.text).toBe("x\ud800".repeat(500));
  });
});

describe("records of the store that are damaged", () => {
  const garbage = ["", "x", '"x"', "null", "[null]", "[{}]", "{}", "[{", `${"[".repeat(20_000)}${"]".repeat(20_000)}`];

  it.each(garbage)("a checkpoint of %j causes an error that says what to do", async (value) => {
    const store = createMemoryStore();
    await store.put("history/checkpoints", "s", value);
    await expect(create({ store, sessionId: "s" })).rejects.toMatchObject({
      code: "store_corrupt",
      hint: expect.stringContaining("plimsoll session rm s"),
    });
  });

  it.each(garbage)("an original of %j is lost, and others are recalled", async (value) => {
    const store = createMemoryStore();
    const first = await create({ store, sessionId: "s" });
    first.reduce({ messages });
    const ids = entriesOf(await first.checkpoint()).map(({ id }) => id);
    const [damaged, ...others] = await store.list("history/recall/s");
    await store.put("history/recall/s", damaged!.key, value);
    const resumed = await create({ store, sessionId: "s" });
    const outcomes = await Promise.allSettled(ids.map((id) => resumed.recall(id)));
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "store_corrupt" });
    if (others.length > 0) expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
  });
});
