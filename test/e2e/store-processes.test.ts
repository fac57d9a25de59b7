import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../../src/core/store/index.ts";
import { openSqliteStore } from "../../src/host/store/sqlite.ts";
import { caseCount } from "../case-count.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const kills = caseCount({ few: 2, deep: 60, long: 200 });
const writesEach = deep ? 300 : 30;
const writer = fileURLToPath(new URL("./store-writer.mjs", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "plimsoll-processes-"));
const newPath = (): string => join(mkdtempSync(join(root, "case-")), "state.db");

beforeAll(() => {
  const built = fileURLToPath(new URL("../../dist/host/store/sqlite.js", import.meta.url));
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build");
});
const children: ChildProcess[] = [];
afterEach(() => {
  // A test that failed must not leave a writer behind that never ends.
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("several processes on one store", () => {
  test("four that create it and append at once leave one stream without gaps, batches whole", {
    tags: ["deep"],
  }, async () => {
    const path = newPath();
    const results = await Promise.all([1, 2, 3, 4].map(() => run(path, "append", writesEach)));
    const entries = await withStore(path, (store) => store.read("log"));
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, index) => index + 1));
    expect(new Set(entries.map(({ value }) => value)).size).toBe(4 * 2 * writesEach);
    const acknowledged = results.flatMap(({ lines }) => lines.map(Number)).sort((a, b) => a - b);
    expect(acknowledged).toEqual(Array.from({ length: 4 * writesEach }, (_, index) => 2 * index + 2));
    for (let index = 0; index < entries.length; index += 2) {
      expect(entries[index + 1]!.value).toBe(entries[index]!.value.replace(/a$/, "b"));
    }
  });

  test.each([
    ["compare and set", "increment", "n"],
    ["update", "update", "u"],
  ])("four that count by %s lose no count", async (_name, job, key) => {
    const path = newPath();
    await Promise.all([1, 2, 3, 4].map(() => run(path, job, writesEach)));
    const record = await withStore(path, (store) => store.get("counters", key));
    expect(record?.value).toBe(String(4 * writesEach));
  });

  test("another process reads and goes on while the first still holds the store, and after it was killed", {
    tags: ["deep"],
  }, async () => {
    const path = newPath();
    const holder = start(path, "hold");
    await firstLine(holder);
    expect((await run(path, "append", 1)).lines).toEqual(["3"]);
    await kill(holder);
    expect((await run(path, "append", 1)).lines).toEqual(["5"]);
    const entries = await withStore(path, (store) => store.read("log", { limit: 1 }));
    expect(entries).toEqual([{ sequence: 1, value: "held" }]);
  });
});

test(`a writer killed at any moment loses nothing it acknowledged (${kills} kills)`, {
  timeout: 30_000 + kills * 2_000,
}, async () => {
  let path = newPath();
  for (let round = 0; round < kills; round += 1) {
    if (round % 10 === 0) path = newPath();
    const child = start(path, "write");
    const lines = collectLines(child);
    // Spread over start, first writes and checkpoints; the same moments never come twice anyway.
    if (round % 4 !== 0) await firstLine(child);
    await sleep((round * 37) % 160);
    await kill(child);
    await expectAcknowledged(path, lines());
  }
});

async function expectAcknowledged(path: string, lines: readonly string[]): Promise<void> {
  if (existsSync(path)) {
    await withStore(path, async (store) => {
      const acknowledged = lines.map((line) => line.split(" ").map(Number) as [number, number, number]);
      for (const [index, sequence] of acknowledged) {
        const [entry] = await store.read("log", { after: sequence - 1, limit: 1 });
        expect(entry?.value.split(":")[0]).toBe(String(index));
      }
      // A record may hold the write after the acknowledged one, never one before it.
      for (const [index, , revision] of acknowledged.slice(-50)) {
        const record = await store.get("records", `k${index % 50}`);
        expect(record!.revision).toBeGreaterThanOrEqual(revision);
        const written = Number(record!.value.split(":")[0]);
        expect((written - index) % 50).toBe(0);
      }
      const entries = await store.read("log");
      expect(entries.at(-1)?.sequence ?? 0).toBe(entries.length);
    });
    const database = new Database(path);
    expect(database.pragma("integrity_check")).toMatchObject([{ integrity_check: "ok" }]);
    database.close();
  } else {
    expect(lines).toEqual([]);
  }
}

async function withStore<T>(path: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openSqliteStore({ path });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function start(path: string, job: string, count?: number): ChildProcess {
  const args = [writer, path, job, ...(count === undefined ? [] : [String(count)])];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

/** Only whole lines: the last one may be cut off by a kill. */
function collectLines(child: ChildProcess): () => string[] {
  let text = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text.split("\n").slice(0, -1);
}

async function run(path: string, job: string, count: number): Promise<{ lines: string[] }> {
  const child = start(path, job, count);
  const lines = collectLines(child);
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return { lines: lines() };
}

async function firstLine(child: ChildProcess): Promise<void> {
  await once(child.stdout!, "data");
}

async function kill(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}
