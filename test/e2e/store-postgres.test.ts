// @module-tag deep
/** Processes on one store in PostgreSQL: they are killed, the server is killed, and they trim one conversation. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTrimmer, type TrimmerOptions } from "../../src/conversation/history/index.ts";
import { createRequestFitter } from "../../src/conversation/sdk/request-fitter.ts";
import { createMemoryStore, type Store } from "../../src/core/store/index.ts";
import { openPostgresStore } from "../../src/host/store/postgres.ts";
import { openStore } from "../../src/host/store-file.ts";
import { caseCount } from "../case-count.ts";
import { generateRequest } from "../generate/generate-request.ts";
import { noPostgres, type PostgresServer, startPostgres } from "../postgres-server.ts";
import { createSandbox } from "./run-plimsoll.ts";

const clientKills = caseCount({ few: 2, deep: 15, long: 50 });
const serverKills = caseCount({ few: 1, deep: 15, long: 50 });
const writer = fileURLToPath(new URL("./store-writer.mjs", import.meta.url));
const agent = fileURLToPath(new URL("./history-agent.mjs", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "plimsoll-fleet-"));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test.each([["store"], ["store", "stats"], ["store", "prune"], ["store", "migrate"]])(
  "the help of %s %s is frozen",
  async (...words) => {
    const sandbox = createSandbox();
    try {
      const { stdout } = await sandbox.call([...words.filter(Boolean), "--help"]);
      await expect(stdout).toMatchFileSnapshot(`golden/help-${words.filter(Boolean).join("-")}.txt`);
    } finally {
      sandbox.remove();
    }
  },
);

describe.skipIf(noPostgres !== undefined)("PostgreSQL", () => {
  let server: PostgresServer;
  let url: string;
  let places = 0;
  const newPlace = (): string => {
    places += 1;
    return `${url}&namespace=case-${places}`;
  };
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.newDatabase();
    await (await openPostgresStore({ url })).close();
  }, 60_000);
  afterAll(() => server?.remove());

  test("a wrapped client goes on trimming when the server ends in the middle", { timeout: 60_000 }, async () => {
    const errors: unknown[] = [];
    const store = await openPostgresStore({ url: newPlace() });
    const fitter = createRequestFitter<object>({
      ...{ contextWindow: 30_000, store, sessionId: "s", onError: (error) => errors.push(error) },
    });
    const ask = (messages: number) =>
      fitter.fit({
        ...{ request: {}, format: "anthropic", model: "claude-sonnet-5", maxOutputTokens: undefined },
        ...{ messages: history.slice(0, messages), cacheLifetimeMs: 300_000 },
      });
    const { messages: history } = generateRequest("anthropic", { seed: 21, turns: 60 });
    const before = await ask(61);
    await server.kill();
    try {
      const started = Date.now();
      expect((await ask(63)).reduction.stats.epochs).toBeGreaterThanOrEqual(before.reduction.stats.epochs);
      expect((await ask(history.length)).reduction.overflow).toBeUndefined();
      expect(Date.now() - started).toBeLessThan(20_000);
      expect(errors).toMatchObject([{ code: "store_unavailable" }]);
    } finally {
      await server.start();
      await store.close();
    }
  });

  test.each([
    ["compare and set", "increment", "n"],
    ["update", "update", "u"],
  ])("four processes that count by %s lose no count", { tags: ["deep"] }, async (_name, job, key) => {
    const place = newPlace();
    await Promise.all([1, 2, 3, 4].map(() => finish([writer, place, job, "100"])));
    expect((await withStore(place, (store) => store.get("counters", key)))?.value).toBe("400");
  });

  test(`a killed client loses nothing it acknowledged, and nothing is doubled (${clientKills} kills)`, {
    timeout: 60_000 + clientKills * 4_000,
  }, async () => {
    const place = newPlace();
    const told: string[] = [];
    for (let round = 0; round < clientKills; round += 1) {
      const writers = [start([writer, place, "endure"]), start([writer, place, "endure"])];
      const lines = writers.map(collectLines);
      if (round % 4 !== 0) await once(writers[0]!.stdout!, "data");
      await sleep((round * 37) % 160);
      await Promise.all(writers.map(kill));
      told.push(...lines.flatMap((each) => each()));
    }
    await expectEndured(place, told);
  });

  test(`a killed server loses nothing it acknowledged, and its clients go on (${serverKills} kills)`, {
    timeout: 60_000 + serverKills * 20_000,
  }, async () => {
    const place = newPlace();
    const writers = [
      start([writer, place, "endure"]),
      start([writer, place, "endure"]),
      start([writer, place, "endure"]),
    ];
    const lines = writers.map(collectLines);
    for (let round = 0; round < serverKills; round += 1) {
      const before = lines.map((each) => each().length);
      // Each writer works again after the last kill.
      await expect
        .poll(() => lines.every((each, index) => each().length > before[index]! + 2), { timeout: 60_000 })
        .toBe(true);
      await sleep((round * 53) % 90);
      await server.kill();
      await server.start();
    }
    await sleep(200);
    await Promise.all(writers.map(kill));
    const told = lines.flatMap((each) => each());
    expect(told.length).toBeGreaterThan(3 * serverKills);
    await expectEndured(place, told);
  });

  test("a trimmer that another process resumes over PostgreSQL sends the same bytes", async () => {
    const options: TrimmerOptions = {
      ...{ contextWindow: 24_000, reserve: 2_000, model: "claude-sonnet-4-5" },
      ...{ format: "anthropic", sessionId: "ship/7" },
    };
    const { messages } = generateRequest("anthropic", { seed: 21, turns: 60 });
    const calls = Array.from({ length: 12 }, (_each, index) => Math.ceil((messages.length * (index + 1)) / 12));
    const alone = await createTrimmer({ ...options, store: createMemoryStore() });
    const expected = calls.map((length) => ({
      length,
      sent: digest(alone.reduce({ messages: messages.slice(0, length) })),
    }));
    expect((await alone.checkpoint()).ledger.epochs.length).toBeGreaterThan(1);
    const place = newPlace();
    const input = (job: string, some: readonly number[]): string[] => {
      const file = join(root, `${job}.json`);
      writeFileSync(file, JSON.stringify({ job, options, messages, calls: some, path: place }));
      return [agent, file];
    };
    const first = start(input("work", calls.slice(0, 7)));
    const lines = collectLines(first);
    await expect.poll(() => lines().length).toBe(7);
    await kill(first);
    const second = await finish(input("resume", calls.slice(7)));
    const sent = [...lines(), ...second].map((line) => JSON.parse(line) as { length: number; sent: string });
    expect(sent.map(({ length, sent: hash }) => ({ length, sent: hash }))).toEqual(expected);
  });

  test("two trimmers of one conversation at once send the same bytes for the same history", async () => {
    const settings = {
      contextWindow: 24_000,
      reserve: 2_000,
      model: "claude-sonnet-4-5",
      format: "anthropic",
    } as const;
    const { messages } = generateRequest("anthropic", { seed: 33, turns: 90 });
    const place = newPlace();
    const stores = [await openPostgresStore({ url: place }), await openPostgresStore({ url: place })];
    let conflicts = 0;
    /** Sends what a program of its own would: after a conflict it takes over the stored decisions and reduces again. */
    const program = async (store: Store) => {
      let trimmer = await createTrimmer({ ...settings, store, sessionId: "shared" });
      return async (history: readonly object[]): Promise<string> => {
        for (;;) {
          const sent = digest(trimmer.reduce({ messages: history }));
          try {
            await trimmer.checkpoint();
            return sent;
          } catch (error) {
            expect(error).toMatchObject({ code: "store_conflict" });
            conflicts += 1;
            trimmer = await createTrimmer({ ...settings, store, sessionId: "shared" });
          }
        }
      };
    };
    const [one, two] = [await program(stores[0]!), await program(stores[1]!)];
    // The second program sees only every fifth call, so on its own it would trim at other messages.
    for (let length = 4; length <= messages.length; length += 4) {
      const history = messages.slice(0, length);
      const sent = await Promise.all(length % 20 === 0 ? [one(history), two(history)] : [one(history)]);
      expect(new Set(sent).size, `${length} messages`).toBe(1);
    }
    expect(conflicts).toBeGreaterThan(0);
    await Promise.all(stores.map((store) => store.close()));
  });

  test("commands use the store of an address, copy a file there and back, and never show the password", async () => {
    const sandbox = createSandbox();
    try {
      const file = join(sandbox.home, "state.db");
      const source = await openStore({ place: file });
      await source.put("sessions", "damaged", "\ud800 \0");
      for (let index = 0; index < 250; index += 1) await source.put("notes", `k${index}`, `value ${index}`);
      await source.append("log", ["a", "b", "c"]);
      await source.trimStream("log", 2);
      await source.close();
      const place = newPlace().replace("postgres@", "postgres:hushhush@");
      const run = async (...args: string[]) => {
        const { code, stdout, stderr } = await sandbox.call(args, { env: { PLIMSOLL_STORE: place } });
        expect(stdout + stderr).not.toContain("hushhush");
        return { code, stdout, stderr };
      };
      const there = await run("store", "migrate", "--from", file, "--to", place);
      expect(there.stdout).toContain("copied 251 records and 1 entries");
      expect((await run("store", "migrate", "--from", file, "--to", place)).stderr).toContain(
        "already has 251 records",
      );
      const back = join(sandbox.home, "back.db");
      expect((await run("store", "migrate", "--from", place, "--to", back)).code).toBe(0);
      const kinds = async (...args: string[]) =>
        JSON.parse((await run("store", "stats", "--json", ...args)).stdout).kinds;
      expect(await kinds()).toEqual(await kinds("--store", file));
      expect(await kinds("--store", back)).toEqual(await kinds());
      expect((await run("store", "prune", "--older-than", "30d")).stdout).toContain("nothing to delete");
      sandbox.write(".plimsoll/config.yaml", "store: postgres://thief:hushhush@evil.example/db\n");
      const ignored = await sandbox.call(["store", "stats"]);
      expect(ignored.stderr).toContain("a project cannot choose where state goes");
      expect(ignored.stderr).toContain("there is no store in ~/.local/state/plimsoll/state.db yet");
    } finally {
      sandbox.remove();
    }
  });
});

/** Checks a log that several processes have written: no gaps, everything acknowledged at its place, nothing twice. */
async function expectEndured(place: string, told: readonly string[]): Promise<void> {
  await withStore(place, async (store) => {
    const entries = await store.read("log");
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, index) => index + 1));
    expect(new Set(entries.map(({ value }) => value)).size).toBe(entries.length);
    const counts = new Map<string, { sure: number; most: number }>();
    for (const line of told) {
      const [id = "", sequence = ""] = line.split(" ");
      const writer = id.split(":")[0]!;
      const count = counts.get(writer) ?? { sure: 0, most: 0 };
      counts.set(writer, { sure: count.sure + (sequence === "?" ? 0 : 1), most: count.most + 1 });
      if (sequence !== "?") expect(entries[Number(sequence) - 1]?.value).toBe(id);
    }
    expect(counts.size).toBeGreaterThan(0);
    for (const [writer, { sure, most }] of counts) {
      const value = Number((await store.get("counters", writer))?.value);
      expect(value).toBeGreaterThanOrEqual(sure);
      // A kill may come between the write and its line.
      expect(value).toBeLessThanOrEqual(most + 1);
    }
  });
}

async function withStore<T>(place: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openPostgresStore({ url: place });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function digest({ messages }: { readonly messages: readonly object[] }): string {
  return createHash("sha256").update(JSON.stringify(messages)).digest("hex");
}

function start(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

async function finish(args: readonly string[]): Promise<string[]> {
  const child = start(args);
  const lines = collectLines(child);
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return lines();
}

/** Only whole lines: the last one may be cut off by a kill. */
function collectLines(child: ChildProcess): () => string[] {
  let text = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text.split("\n").slice(0, -1);
}

async function kill(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}
