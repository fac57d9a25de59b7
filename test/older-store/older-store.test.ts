/** A store that a version without keyed hashes wrote. It made `records.json` with the histories below. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { exchanges, user } from "../../src/conversation/history/exchanges.contract.ts";
import { createTrimmer } from "../../src/conversation/history/index.ts";
import { createIntake } from "../../src/conversation/intake/index.ts";
import { openConversationIntake } from "../../src/conversation/sdk/conversation-intake.ts";
import { createMemoryStore, type Store } from "../../src/core/store/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";

interface OlderStore {
  readonly records: Readonly<Record<string, readonly (readonly [key: string, value: string])[]>>;
  /** What that version sent. */
  readonly sent: string;
  readonly admitted: string;
  /** The id of a shortened result. */
  readonly originalId: string;
}

const older: OlderStore = JSON.parse(readFileSync(new URL("records.json", import.meta.url), "utf8"));
const counter = await createCounter("estimate:claude-5");
const messages = [user("start"), ...exchanges(12, { result: 500 })];
const source = Array.from({ length: 30 }, (_, n) => `export const value${n} = compute(${n * 7}, "name");`).join("\n");

async function openOlder(): Promise<Store> {
  const store = createMemoryStore();
  for (const [collection, records] of Object.entries(older.records)) {
    for (const [key, value] of records) await store.put(collection, key, value);
  }
  return store;
}

const create = (store: Store) =>
  createTrimmer({ contextWindow: 2_500, reserve: 500, counter, store, sessionId: "older" });

test("a trimmer sends the same bytes as before, and its hashes get a key", async () => {
  const store = await openOlder();
  const trimmer = await create(store);
  expect(JSON.stringify(trimmer.reduce({ messages }).messages)).toBe(older.sent);
  const { ledger } = await trimmer.checkpoint();
  expect(ledger.key).toBeDefined();
  const next = await create(store);
  expect(JSON.stringify(next.reduce({ messages }).messages)).toBe(older.sent);
  expect((await next.checkpoint()).ledger).toEqual(ledger);
});

test("a checkpoint that is saved before the first request keeps its decisions", async () => {
  const store = await openOlder();
  await (await create(store)).checkpoint();
  expect(JSON.stringify((await create(store)).reduce({ messages }).messages)).toBe(older.sent);
});

test("an unknown history is a new conversation, and the known one is still there afterwards", async () => {
  const trimmer = await create(await openOlder());
  const other = [user("something else"), ...exchanges(2)];
  expect(trimmer.reduce({ messages: other }).messages).toEqual(other);
});

test("what was trimmed can be recalled by its old id, before and after the change", async () => {
  const store = await openOlder();
  const [, id = ""] = /recall id ([a-z2-7]{10})\]/.exec(older.sent) ?? [];
  const trimmer = await create(store);
  const before = await trimmer.recall(id);
  expect(before?.text).toContain("line ");
  trimmer.reduce({ messages });
  await trimmer.checkpoint();
  expect(await (await create(store)).recall(id)).toEqual(before);
});

test("a wrapped client sends its shortened results as before", async () => {
  const read = (id: string, content: string) => [
    { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { file_path: "a.ts" } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] },
  ];
  const changed = source.replace("compute(70", "compute(71");
  const history = [user("look"), ...read("toolu_1", source), ...read("toolu_2", changed)];
  const open = async (store: Store) =>
    openConversationIntake({
      ...{
        sessionId: "older-chat",
        settings: {},
        format: "anthropic",
        model: undefined,
        counter,
        store,
        markSeed: "m",
      },
    });
  const store = await openOlder();
  const intake = await open(store);
  expect(JSON.stringify(await intake.admit(history, []))).toBe(older.admitted);
  expect(older.admitted).not.toBe(JSON.stringify(history));
  await intake.save();
  expect(JSON.stringify(await (await open(store)).admit(history, []))).toBe(older.admitted);
});

test("a plugin's context counts as not held, so that results are sent whole, and originals stay", async () => {
  const intake = await createIntake({ counter, store: await openOlder(), sessionId: "older-plugin" });
  expect(await intake.recall(older.originalId)).toBe(source);
  const result = { tool: "Read", input: { file_path: "a.ts" }, text: source };
  expect(await intake.admit(result)).toMatchObject({ edit: "none", text: source });
  expect(await intake.admit(result)).toMatchObject({ edit: "duplicate" });
});
