// @module-tag deep
/** Commands over a store of which a part is damaged end with a clear message, and nothing hangs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadDriver } from "../../src/host/store/sqlite-driver.ts";
import { caseCount } from "../case-count.ts";
import { connectLines, plimsoll } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

// The driver of the store, because some commands run in this process.
const Database = await loadDriver();

const deep = process.env.PLIMSOLL_DEEP === "1";
const flipper = fileURLToPath(new URL("flip-store.mjs", import.meta.url));
const deepList = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
const garbage = [
  '"x"',
  "null",
  "[]",
  "{}",
  "",
  '{"version":1',
  deepList,
  '{"version":1,"calls":1e999}',
  "\u0000\ud800",
];

let sandbox: Sandbox;
let store: string;
beforeAll(async () => {
  sandbox = createSandbox();
  store = join(sandbox.cwd, "small.db");
  sandbox.write("text.txt", "some words of a text\n".repeat(400));
  const client = connectLines(
    plimsoll("mcp", "--format", "json", "--store", store, "--session", "small", "--per-tool", "600"),
    sandbox,
  );
  await client.initialize();
  const { content } = await client.call("read_file", { path: "text.txt" });
  await client.call("next_page", { token: JSON.parse(content[0]!.text).data.continuation_token });
  await client.call("recall", { id: "r1", offset: 3 });
  expect(await client.end()).toBe(0);
}, 60_000);
afterAll(() => sandbox.remove());

interface Place {
  readonly table: "records" | "entries";
  readonly row: number;
  readonly name: string;
}

function placesIn(file: string): Place[] {
  const database = new Database(file);
  const rows = (sql: string) => database.prepare(sql).all() as { row: number; name: string }[];
  const records = rows("SELECT rowid AS row, CAST(collection || ' ' || key AS TEXT) AS name FROM records");
  const entries = rows("SELECT rowid AS row, CAST(stream || ' ' || sequence AS TEXT) AS name FROM entries");
  database.close();
  return [
    ...records.map((each) => ({ table: "records" as const, ...each })),
    ...entries.map((each) => ({ table: "entries" as const, ...each })),
  ];
}

/** A copy of the store in which one value is another. */
function damagedCopy({ table, row }: Place, value: unknown): string {
  const copy = join(sandbox.cwd, `damaged-${table}-${row}.db`);
  copyFileSync(store, copy);
  const database = new Database(copy);
  database.prepare(`UPDATE ${table} SET value = ? WHERE rowid = ?`).run([Buffer.from(String(value)), row]);
  database.close();
  return copy;
}

test("each value of a small session can be garbage: commands say what is wrong, and what to do", async () => {
  const places = placesIn(store);
  expect(places.length).toBeGreaterThan(8);
  for (const [index, place] of places.entries()) {
    const values = deep ? garbage : garbage.filter((_, at) => at % 3 === index % 3);
    for (const value of values) {
      const copy = damagedCopy(place, value);
      for (const args of [["list"], ["show"], ["show", "small"], ["show", "--json"], ["rm", "small", "--dry-run"]]) {
        const { code, stderr } = await sandbox.call(["session", ...args, "--store", copy]);
        const told = { place: place.name, value: value.slice(0, 20), args, code, stderr };
        expect(told).toMatchObject({ code: expect.toSatisfy((each) => each === 0 || each === 1) });
        if (code === 1) expect(told.stderr).toMatch(/plimsoll session rm small|there is no session/);
      }
    }
  }
});

test("a server over each of them answers every tool", { tags: ["deep"], timeout: 300_000 }, async () => {
  const places = placesIn(store);
  for (const [index, place] of (deep ? places : places.filter((_, at) => at % 8 === 0)).entries()) {
    const copy = damagedCopy(place, garbage[index % garbage.length]);
    const client = connectLines(
      plimsoll("mcp", "--format", "json", "--store", copy, "--session", "small", "--per-tool", "600"),
      sandbox,
    );
    await client.initialize();
    for (const [name, args] of [
      ["read_file", { path: "text.txt" }],
      ["next_page", { token: "offset:1" }],
      ["recall", { id: "r1" }],
      ["recall", { id: "r2" }],
      ["budget_status", {}],
    ] as const) {
      const { result, error } = await client.request("tools/call", { name, arguments: args });
      expect({ place: place.name, name, error, answered: result.content.length > 0 }).toEqual({
        ...{ place: place.name, name, error: undefined, answered: true },
      });
    }
    expect(await client.end()).toBe(0);
  }
});

interface Flipped {
  readonly position: number;
  readonly outcomes: readonly { readonly args: string; readonly code: number; readonly told: string }[];
}

/** Runs a process over some of the positions. A process that hangs is killed, and fails the test. */
async function flip(positions: readonly number[]): Promise<Flipped[]> {
  const args = [flipper, store, sandbox.cwd, ...positions.map(String)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"], timeout: 240_000 });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  const flipped = output
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Flipped);
  expect({ code, last: flipped.at(-1)?.position }).toEqual({ code: 0, last: positions.at(-1) });
  return flipped;
}

/** Every byte, or some of them, in an order that reaches every part of the file before the time is over. */
function batchesOf(length: number): number[][] {
  const step = deep ? 1 : Math.ceil(length / 40);
  const all = Array.from({ length: Math.ceil(length / step) }, (_, index) => index * step);
  // A prime number of steps that does not divide the length comes by each of them once.
  const mixed = all.length % 7_919 === 0 ? all : all.map((_, index) => all[(index * 7_919) % all.length]!);
  const count = Math.ceil(all.length / 50);
  return Array.from({ length: count }, (_, index) => mixed.slice(index * 50, (index + 1) * 50));
}

const isClear = ({ code, told }: Flipped["outcomes"][number]): boolean =>
  code === 0 || ([1, 2].includes(code) && told.startsWith("plimsoll: ") && !told.includes("bug"));

test("a store of which one byte is another is read, or refused with a reason, by every command", async () => {
  const seconds = caseCount({ few: 60, deep: 180, long: 900 });
  const deadline = Date.now() + 1_000 * seconds;
  for (const batch of batchesOf(readFileSync(store).length)) {
    if (Date.now() > deadline) break;
    const unclear = (await flip(batch)).filter(({ outcomes }) => !outcomes.every(isClear));
    expect(unclear).toEqual([]);
  }
}, 1_200_000);
