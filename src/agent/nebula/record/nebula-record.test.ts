import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { addToFabric, emptyFabric, renderFabric } from "../../../compose/index.ts";
import { ContextError } from "../../../errors.ts";
import { createMemoryStore, type Store } from "../../../store/index.ts";
import { openSqliteStore } from "../../../store/sqlite.ts";
import { standingOf } from "../apply/standing.ts";
import { sampleNebula, samplePhase } from "../files/sample-nebula.contract.ts";
import { nebulaKey, runKey } from "./nebula-key.ts";
import { fabricOf, type NebulaRecord, openNebulaRecord, type PhaseRun } from "./nebula-record.ts";
import { endedRecord, resumedRecord, startedRecord } from "./record-changes.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-nebula-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const run: PhaseRun = { title: "Parse", state: "completed", attempts: 1, promptTokens: 812, seconds: 1.5 };

function note(text: string, from = "person"): (record: NebulaRecord) => NebulaRecord {
  return (record) => ({
    ...record,
    fabric: addToFabric(record.fabric, { notes: [{ text }] }, { from }).fabric,
  });
}

test("a nebula of which nothing was written has no record, and the first change begins one", async () => {
  const store = createMemoryStore();
  const record = openNebulaRecord(store, "plan-1");
  expect(await record.read()).toBeUndefined();
  const changed = await record.change(note("begin"));
  expect(await record.read()).toEqual(changed);
  expect(changed).toMatchObject({
    version: 1,
    name: "",
    directory: "",
    phases: {},
    fabric: { notes: [{ id: "n1" }] },
  });
  expect(await openNebulaRecord(store, "plan-2").read()).toBeUndefined();
});

test("a phase's end and what it reported are one write, and a change of nothing is none", async () => {
  const store = createMemoryStore();
  const record = openNebulaRecord(store, "plan");
  await record.change((before) => ({ ...note("done", "parse")(before), phases: { parse: run } }));
  expect((await store.get("nebula", "plan"))?.revision).toBe(1);
  await record.change((before) => before);
  expect((await store.get("nebula", "plan"))?.revision).toBe(1);
  expect(fabricOf((await record.read())!)).toEqual({
    phases: [{ id: "parse", title: "Parse", state: "completed" }],
    entanglements: [],
    claims: [],
    discoveries: [],
    notes: [{ id: "n1", kind: "note", text: "done", from: "parse" }],
  });
});

test("a change that fails changes nothing", async () => {
  const record = openNebulaRecord(createMemoryStore(), "plan");
  await record.change(note("kept"));
  await expect(record.change(note("x".repeat(2_001)))).rejects.toMatchObject({ code: "invalid_argument" });
  expect((await record.read())?.fabric.notes).toHaveLength(1);
});

test("two that change one record of a file at once lose nothing", async () => {
  const path = join(root, "state.db");
  const stores = [await openSqliteStore({ path }), await openSqliteStore({ path })];
  await Promise.all(
    stores.flatMap((store, writer) =>
      Array.from({ length: 20 }, (_, index) =>
        openNebulaRecord(store, "plan").change(note(`${writer}.${index}`)),
      ),
    ),
  );
  const notes = (await openNebulaRecord(stores[0]!, "plan").read())?.fabric.notes ?? [];
  expect(new Set(notes.map(({ text }) => text)).size).toBe(40);
  expect(notes.map(({ id }) => id)).toEqual(notes.map((_, index) => `n${index + 1}`));
  for (const store of stores) await store.close();
});

const good: NebulaRecord = {
  version: 1,
  name: "shop",
  directory: "/plan",
  phases: { parse: run },
  fabric: addToFabric(
    emptyFabric,
    { notes: [{ text: "x" }], claims: [{ path: "a" }], discoveries: [{ detail: "d" }] },
    { from: "parse" },
  ).fabric,
};

const { fabric } = good;

test.each<[string, unknown, string, RegExp]>([
  ["no JSON", "{", "store_corrupt", /no record of version 1/],
  ["another thing", "[]", "store_corrupt", /no record of version 1/],
  ["a version of nothing", { ...good, version: "1" }, "store_corrupt", /no record of version 1/],
  ["a name that is no text", { ...good, name: 1 }, "store_corrupt", /name or directory/],
  ["no phases", { ...good, phases: [] }, "store_corrupt", /phases is no object/],
  [
    "a state that is none",
    { ...good, phases: { parse: { ...run, state: "done" } } },
    "store_corrupt",
    /phase "parse" is damaged/,
  ],
  [
    "a count below 0",
    { ...good, phases: { parse: { ...run, attempts: -1 } } },
    "store_corrupt",
    /phase "parse" is damaged/,
  ],
  [
    "claims of a scope that are none",
    { ...good, phases: { parse: { ...run, scopeClaims: ["c1", 2] } } },
    "store_corrupt",
    /phase "parse" is damaged/,
  ],
  ["no fabric", { ...good, fabric: undefined }, "store_corrupt", /fabric is damaged/],
  ["a list that is none", { ...good, fabric: { ...fabric, notes: {} } }, "store_corrupt", /fabric\.notes is/],
  ["no ids", { ...good, fabric: { ...fabric, lastIds: {} } }, "store_corrupt", /fabric\.entanglements is/],
  [
    "a discovery of nothing",
    { ...good, fabric: { ...fabric, discoveries: [...fabric.discoveries, { id: "d2" }] } },
    "store_corrupt",
    /fabric\.discoveries\[1\] is damaged/,
  ],
  ["a later version", { version: 2, other: true }, "store_newer", /newer plimsoll/],
])("a record with %s is refused and stays as it is", async (_, value, code, message) => {
  const store = createMemoryStore();
  const text = typeof value === "string" ? value : JSON.stringify(value);
  await store.put("nebula", "plan", text);
  const record = openNebulaRecord(store, "plan");
  const refused = { code, message: expect.stringMatching(message) };
  await expect(record.read()).rejects.toMatchObject(refused);
  await expect(record.change(note("x"))).rejects.toMatchObject(refused);
  expect(await store.get("nebula", "plan")).toEqual({ key: "plan", value: text, revision: 1 });
});

/** All places of a value, deep inside too. */
function placesIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  const inside =
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([key, each]) => placesIn(each, [...path, key]))
      : [];
  return [path, ...inside];
}

function textWith(path: readonly string[], garbage: string): string {
  const copy = JSON.parse(JSON.stringify(full)) as Record<string, unknown>;
  const [last = "", ...above] = path.toReversed();
  const around = above.reduceRight((at, key) => at[key] as Record<string, unknown>, copy);
  around[last] = "GARBAGE";
  return JSON.stringify(copy).replace('"GARBAGE"', garbage);
}

const full: NebulaRecord = {
  ...good,
  phases: {
    parse: { ...run, error: "e", attemptFolder: "/runs/a.1", scopeClaims: ["c1"] },
    page: { ...run, state: "running" },
  },
  fabric: addToFabric(
    good.fabric,
    {
      entanglements: [{ package: "p", kind: "k", signature: "s", file: "f" }],
      discoveries: [{ detail: "e", affects: "page" }],
    },
    { from: "page", date: "2026-01-01" },
  ).fabric,
};
const garbage = [
  ...["null", "true", "-1", "1.5", "1e999", "9007199254740991", '""', '"\\u0000\\ud800"', "[]", "{}", "[[]]"],
  ...['{"__proto__":{}}', '{"constructor":1}', `"${"x".repeat(5_000)}"`, '["x"]', '{"x":{"id":"x"}}'],
];

test("a record with garbage in the place of any field is refused, or goes on being a record", async () => {
  const nebula = sampleNebula(samplePhase("parse"), samplePhase("page"));
  for (const path of placesIn(full).filter(({ length }) => length > 0)) {
    for (const each of garbage) {
      const store = createMemoryStore();
      await store.put("nebula", "plan", textWith(path, each));
      const record = openNebulaRecord(store, "plan");
      const place = `${path.join(".")} = ${each.slice(0, 40)}`;
      const read = await record.read().catch((error: unknown) => error);
      if (read instanceof ContextError) {
        expect(read.code, place).toMatch(
          path[0] === "version" ? /^store_(corrupt|newer)$/ : /^store_corrupt$/,
        );
        expect(read.hint).toMatch(/ store/);
        continue;
      }
      const { parse } = { parse: nebula.phases[0]! };
      expect(renderFabric(fabricOf(read as NebulaRecord)), place).toBeTypeOf("string");
      await record.change((current) => {
        const resumed = resumedRecord(current, nebula);
        const started = startedRecord(resumed, parse, { promptTokens: 1, attemptFolder: "/runs/a.2" }).record;
        return endedRecord(started, parse, {
          state: "completed",
          seconds: 1,
          report: { notes: [{ text: "n" }] },
        }).record;
      });
      // As another process reads it.
      expect((await openNebulaRecord(store, "plan").read())?.phases.parse?.state, place).toBe("completed");
    }
  }
});

test.each(["constructor", "toString", "hasOwnProperty"])(
  "a phase named %s begins without a run, as any other",
  async (id) => {
    const store = createMemoryStore();
    const nebula = sampleNebula(samplePhase(id));
    await openNebulaRecord(store, "plan").change((current) => resumedRecord(current, nebula));
    const read = await openNebulaRecord(store, "plan").read();
    expect(read?.phases[id]).toMatchObject({ state: "waiting", attempts: 0 });
    expect(standingOf(nebula, undefined).phases).toMatchObject([{ id, state: "waiting", attempts: 0 }]);
  },
);

test("what others write in between is seen by who has read or written before", async () => {
  const store = createMemoryStore();
  const [ours, theirs] = [openNebulaRecord(store, "plan"), openNebulaRecord(store, "plan")];
  await ours.change(note("a"));
  await theirs.change(note("b"));
  expect(await ours.read()).toEqual(await theirs.read());
  const { fabric: both } = await ours.change(note("c"));
  expect(both.notes.map(({ text }) => text)).toEqual(["a", "b", "c"]);
  await store.put("nebula", "plan", "{");
  await expect(ours.read()).rejects.toMatchObject({ code: "store_corrupt" });
  await store.delete("nebula", "plan");
  expect(await ours.read()).toBeUndefined();
});

test("a change that was not written leaves no trace in what is read next", async () => {
  const store = createMemoryStore();
  let isFull = false;
  const update: Store["update"] = async (collection, key, change) => {
    if (!isFull) return store.update(collection, key, change);
    change((await store.get(collection, key))?.value);
    throw new Error("the disk is full");
  };
  const record = openNebulaRecord({ ...store, update }, "plan");
  const before = await record.change(note("a"));
  isFull = true;
  await expect(record.change(note("b"))).rejects.toThrow("the disk is full");
  expect(await record.read()).toEqual(before);
});

test("a record that is whole is read as it was written", async () => {
  const store = createMemoryStore();
  await store.put("nebula", "plan", JSON.stringify(good));
  expect(await openNebulaRecord(store, "plan").read()).toEqual(good);
});

test("the key has the folder's name in it and is the same on every way to the folder", () => {
  const plan = join(root, "my plan");
  mkdirSync(plan);
  symlinkSync(plan, join(root, "link"));
  expect(nebulaKey(plan)).toMatch(/^my-plan-[0-9a-f]{10}$/);
  expect(nebulaKey(join(root, "link"))).toBe(nebulaKey(plan));
  expect(nebulaKey(`${plan}/`)).toBe(nebulaKey(plan));
  expect(nebulaKey("/")).toMatch(/^[0-9a-f]{10}$/);
  expect(nebulaKey(join(root, "gone"))).toMatch(/^gone-[0-9a-f]{10}$/);
  expect(nebulaKey(join(root, "gone"))).not.toBe(nebulaKey(join(tmpdir(), "gone")));
  // Of its runs: the same before the store is there and after, for every path to it, and another for another store.
  const key = runKey(plan, join(root, "link", "state.db"));
  expect(key.startsWith(`${nebulaKey(plan)}-`)).toBe(true);
  writeFileSync(join(plan, "state.db"), "");
  expect(runKey(plan, join(plan, "state.db"))).toBe(key);
  expect(runKey(plan, join(root, "state.db"))).not.toBe(key);
});
