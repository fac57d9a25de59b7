import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { openSqliteStore } from "../../host/store/sqlite.ts";
import { addToFabric, emptyFabric, renderFabric } from "../compose/index.ts";
import type { ApplyReport } from "./application.ts";
import { applyNebula, reportStates } from "./apply-nebula.ts";
import { findOutputFile } from "./attempt-folders.ts";
import type { Nebula } from "./nebula.ts";
import { nebulaKey, runKey } from "./nebula-key.ts";
import { fabricOf, type NebulaRecord, openNebulaRecord, type PhaseRun } from "./nebula-record.ts";
import { endedRecord, resumedRecord, startedRecord } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

/** What a record says about folders and processes is somebody's word: a store may come with a repository. */
let folder: string;
let store: Store;
let foreign: ChildProcess;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-stored-")));
  store = createMemoryStore();
  writeFileSync(join(folder, "key"), "the private key");
  // A group of its own, as an agent has.
  foreign = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
});
afterEach(() => {
  foreign.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const api = samplePhase("api", { body: "Make the api." });
const page = samplePhase("page", { body: "Make the page.", dependsOn: ["api"] });
const nebula = (): Nebula => ({ ...sampleNebula(api, page), directory: folder });
const storeFile = () => join(folder, "state.db");
const env = () => ({ PATH: process.env.PATH, HOME: join(folder, "home") });
const runs = () => join(folder, "home/.local/state/plimsoll/runs", runKey(folder, storeFile()));

async function resume(): Promise<ApplyReport> {
  return applyNebula(nebula(), {
    store,
    storeFile: storeFile(),
    counter: await createCounter("bytes/4"),
    command: ({ id }) => `cat >prompt-${id}; echo "Made ${id}."`,
    cwd: folder,
    env: env(),
    timeoutMs: 20_000,
    resume: true,
  });
}

/** A record in which the api runs in that folder. */
async function say(attemptFolder: string, more: Partial<PhaseRun> = {}): Promise<void> {
  const run = { title: "The api", state: "running", attempts: 1, promptTokens: 1, seconds: 0 } as const;
  await openNebulaRecord(store, await nebulaKey({ directory: folder, name: "plan" })).change((record) => ({
    ...record,
    phases: { api: { ...run, attemptFolder, ...more } },
  }));
}

/** As an agent that has ended well leaves it, or one that runs. */
function leave(place: string, state: string): void {
  mkdirSync(place, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries({ prompt: "p", stderr: "", state })) {
    writeFileSync(join(place, name), text, { mode: 0o600 });
  }
  writeFileSync(join(place, "stdout"), "Made before.", { mode: 0o600 });
}

function startOf({ pid }: ChildProcess): string {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[19]!;
}

const own = () => join(runs(), "api.1-0123abcd");
const ended = "4194305 1\n0\n";

test("an own attempt that ended while no run was watching counts", async () => {
  leave(own(), ended);
  await say(own());
  await resume();
  expect(existsSync(join(folder, "prompt-api"))).toBe(false);
  expect(readFileSync(join(folder, "prompt-page"), "utf8")).toContain("Made before.");
});

const places: Readonly<Record<string, () => string>> = {
  "in the project": () => join(folder, "api.1-0123abcd"),
  "beside the runs of this nebula": () => join(runs(), "../other/api.1-0123abcd"),
  "written with dots": () => `${runs()}/../../../../../../api.1-0123abcd`,
  "of another name": () => join(runs(), "api"),
};

test.each(Object.keys(places))("an attempt %s is not taken for ours: its phase runs again", async (name) => {
  const place = places[name]!();
  leave(place, ended);
  rmSync(join(place, "stdout"));
  symlinkSync(join(folder, "key"), join(place, "stdout"));
  await say(place);
  const { phases } = await resume();
  expect(phases.map(({ state }) => state)).toEqual(["completed", "completed"]);
  expect(readFileSync(join(folder, "prompt-page"), "utf8")).toContain("Made api.");
  expect(readFileSync(join(folder, "prompt-page"), "utf8")).not.toContain("the private key");
});

const links: Readonly<Record<string, (place: string) => void>> = {
  "whose folder is a link": (place) => {
    leave(join(folder, "elsewhere"), ended);
    mkdirSync(runs(), { recursive: true });
    symlinkSync(join(folder, "elsewhere"), place);
  },
  "whose answer is a link": (place) => {
    leave(place, ended);
    rmSync(join(place, "stdout"));
    symlinkSync(join(folder, "key"), join(place, "stdout"));
  },
  "whose answer is another name of a file": (place) => {
    leave(place, ended);
    rmSync(join(place, "stdout"));
    linkSync(join(folder, "key"), join(place, "stdout"));
  },
  "that others may write": (place) => {
    leave(place, ended);
    chmodSync(place, 0o777);
  },
};

test.each(Object.keys(links))("an attempt %s is not taken for ours", async (name) => {
  links[name]!(own());
  await say(own());
  await resume();
  const prompt = readFileSync(join(folder, "prompt-page"), "utf8");
  expect(prompt).toContain("Made api.");
  expect(prompt).not.toMatch(/the private key|Made before/);
  expect(readFileSync(join(folder, "key"), "utf8")).toBe("the private key");
});

test("a process that no attempt of ours started is neither waited for nor ended", async () => {
  for (const place of [join(folder, "attempt"), own()]) {
    for (const start of [startOf(foreign), ""]) {
      leave(place, `${foreign.pid} ${start}\n`);
      await say(place);
      await resume();
      expect(foreign.exitCode ?? foreign.signalCode).toBeNull();
      expect(process.kill(foreign.pid!, 0)).toBe(true);
    }
  }
});

test("a new run does not end a process that no attempt of ours started", async () => {
  leave(own(), `${foreign.pid} ${startOf(foreign)}\n`);
  await say(join(folder, "elsewhere"));
  await resume();
  expect(foreign.exitCode ?? foreign.signalCode).toBeNull();
});

test("the output of a failed phase is searched only in own attempts", async () => {
  const place = { directory: folder, storeFile: storeFile(), env: env() };
  leave(own(), ended);
  expect(findOutputFile(own(), place)).toEqual({ stdout: join(own(), "stdout") });
  leave(join(folder, "attempt"), ended);
  expect(findOutputFile(join(folder, "attempt"), place)).toEqual({});
});

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

test("a phase's end and its reports are one write, and an unchanged record is not written", async () => {
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

test("two processes that change one record at the same time lose nothing", async () => {
  const path = join(root, "state.db");
  const stores = [await openSqliteStore({ path }), await openSqliteStore({ path })];
  await Promise.all(
    stores.flatMap((store, writer) =>
      Array.from({ length: 20 }, (_, index) => openNebulaRecord(store, "plan").change(note(`${writer}.${index}`))),
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
  ["no JSON", "{", "store_corrupt", /not a record of version 1/],
  ["another thing", "[]", "store_corrupt", /not a record of version 1/],
  ["a version of nothing", { ...good, version: "1" }, "store_corrupt", /not a record of version 1/],
  ["a name that is no text", { ...good, name: 1 }, "store_corrupt", /name or directory/],
  ["no phases", { ...good, phases: [] }, "store_corrupt", /phases is not an object/],
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

test("a record with garbage in any field is refused or still valid", async () => {
  const nebula = sampleNebula(samplePhase("parse"), samplePhase("page"));
  for (const path of placesIn(full).filter(({ length }) => length > 0)) {
    for (const each of garbage) {
      const store = createMemoryStore();
      await store.put("nebula", "plan", textWith(path, each));
      const record = openNebulaRecord(store, "plan");
      const place = `${path.join(".")} = ${each.slice(0, 40)}`;
      const read = await record.read().catch((error: unknown) => error);
      if (read instanceof ContextError) {
        expect(read.code, place).toMatch(path[0] === "version" ? /^store_(corrupt|newer)$/ : /^store_corrupt$/);
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
    expect(reportStates(nebula, undefined).phases).toMatchObject([{ id, state: "waiting", attempts: 0 }]);
  },
);

test("an open record sees what others write later", async () => {
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

test("a change keeps every field and replaces the text of what it changes", async () => {
  const store = createMemoryStore();
  const odd = JSON.parse(
    '{"__proto__":{"title":"\\"q\\"","state":"waiting","attempts":0,"promptTokens":0,"seconds":0}}',
  );
  await store.put("nebula", "plan", JSON.stringify({ ...good, phases: { ...good.phases, ...odd }, later: { a: [1] } }));
  const record = openNebulaRecord(store, "plan");
  for (const word of ["a", "b"]) {
    const before = (await record.read())!;
    await record.change((current) => {
      const phases = Object.entries(current.phases).map(([id, run]) => [id, { ...run, title: word }]);
      return { ...note(word)(current), phases: Object.fromEntries(phases) };
    });
    const stored = JSON.parse((await store.get("nebula", "plan"))!.value) as NebulaRecord;
    expect(stored).toMatchObject({ later: { a: [1] }, name: before.name });
    expect(Object.values(stored.phases).map(({ title }) => title)).toEqual(Object.keys(stored.phases).map(() => word));
    expect(stored.fabric.notes.at(-1)?.text).toBe(word);
    expect(stored.fabric.claims).toEqual(before.fabric.claims);
  }
});
