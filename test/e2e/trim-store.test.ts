/** One conversation, one `trim` a turn, with the decisions in a store that every process opens again. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTrimmer } from "../../src/conversation/history/index.ts";
import { createMemoryStore, type Store } from "../../src/core/store/index.ts";
import { plainCounter } from "../../src/core/tokens/index.ts";
import { openStore } from "../../src/host/store-file.ts";
import { generateSession } from "../generate/generate-session.ts";
import { noPostgres, type PostgresServer, startPostgres } from "../postgres-server.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const session = generateSession({ seed: 11, turns: 24 }).messages;
const options = ["--window", "9000", "--reserve", "1000", "--counter", "bytes/4"];
const lines = (messages: readonly object[]) => messages.map((each) => JSON.stringify(each)).join("\n");
const requests = session.flatMap((message, index) =>
  message.role === "assistant" && index > 0 ? [session.slice(0, index)] : [],
);
/** The last requests, from before the first trim on. */
const last = requests.slice(-8);

/** What one trimmer sends that nobody interrupts. */
async function uninterrupted(sessionId: string, trimmedIds: string[] = []): Promise<string[]> {
  const settings = { contextWindow: 9_000, reserve: 1_000, counter: plainCounter };
  const trimmer = await createTrimmer({ ...settings, sessionId, store: createMemoryStore() });
  const sent = last.map((messages) => `${lines(trimmer.reduce({ messages }).messages)}\n`);
  expect((await trimmer.checkpoint()).ledger.epochs.length).toBeGreaterThan(0);
  trimmedIds.push(...(await trimmer.listTrimmed()).filter(({ kind }) => kind === "tool_result").map(({ id }) => id));
  return sent;
}

describe("a trimmer that another one continues sends the same bytes", () => {
  let server: PostgresServer | undefined;
  let url: string | undefined;
  beforeAll(async () => {
    if (noPostgres !== undefined) return;
    server = await startPostgres();
    url = await server.newDatabase();
  }, 60_000);
  afterAll(() => server?.remove());
  const placeOf = (kind: string): string => (kind === "SQLite" ? "trims.db" : `${url}&namespace=trims`);
  const kinds = noPostgres === undefined ? ["SQLite", "PostgreSQL"] : ["SQLite"];

  test.each(kinds)("as a command for each turn, with %s", async (kind) => {
    const trimmedIds: string[] = [];
    const expected = await uninterrupted("ship/7", trimmedIds);
    const args = [...options, "--session", "ship/7", "--store", placeOf(kind)];
    for (const [turn, messages] of last.entries()) {
      const place = isDeep || turn % 4 === 0 ? sandbox.run : sandbox.call;
      const run = await place(["trim", ...args], { input: lines(messages) });
      expect(run).toEqual({ code: 0, stdout: expected[turn], stderr: "" });
    }
    const again = await sandbox.call(["trim", ...args], { input: lines(last.at(-1)!) });
    expect(again.stdout).toBe(expected.at(-1));
    const other = await sandbox.call(["trim", ...options, "--session", "ship/8", "--store", placeOf(kind), "--json"], {
      input: lines(last[0]!),
    });
    expect(JSON.parse(other.stdout).stats.epochs).toBeLessThanOrEqual(1);
    const [id = ""] = trimmedIds;
    const recalled = await sandbox.call(["recall", id, "--session", "ship/7", "--store", placeOf(kind)]);
    expect(recalled.code).toBe(0);
    expect(lines(session)).toContain(JSON.stringify(recalled.stdout.trimEnd()).slice(1, -1));
  });

  test.each(["memory", ...kinds])(
    "as a trimmer of a program, after one that the command left, with %s",
    async (kind) => {
      const expected = await uninterrupted("s");
      const place = kind === "SQLite" ? join(sandbox.cwd, "trims.db") : `${url}&namespace=mixed`;
      const memory = createMemoryStore();
      const sent: string[] = [];
      for (const [turn, messages] of last.entries()) {
        if (turn % 2 === 0 && kind !== "memory") {
          const args = [...options, "--session", "s", "--store", place];
          sent.push((await sandbox.call(["trim", ...args], { input: lines(messages) })).stdout);
          continue;
        }
        const store: Store = kind === "memory" ? memory : await openStore({ place });
        const settings = { contextWindow: 9_000, reserve: 1_000, counter: plainCounter };
        const trimmer = await createTrimmer({ ...settings, store, sessionId: "s" });
        sent.push(`${lines(trimmer.reduce({ messages }).messages)}\n`);
        await trimmer.checkpoint();
        if (kind !== "memory") await store.close();
      }
      expect(sent).toEqual(expected);
    },
  );
});

test("wrong options are refused before anything is opened", async () => {
  const input = lines(last[0]!);
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await sandbox.call(["trim", ...options, ...args], { input });
    expect([code, stdout]).toEqual([2, ""]);
    return stderr;
  };
  expect(await refused("--store", "a.db")).toContain("--store has no meaning without --session");
  expect(await refused("--session", "s", "--checkpoint", "c")).toContain(
    "--checkpoint and --session exclude each other",
  );
  for (const name of ["a.db", "c"]) expect(existsSync(join(sandbox.cwd, name))).toBe(false);
});

test("a damaged record is reported with its store, and nothing is printed", async () => {
  const store = await openStore({ place: join(sandbox.cwd, "a.db") });
  await store.put("history/checkpoints", "s", "{");
  await store.close();
  const run = await sandbox.call(["trim", ...options, "--session", "s", "--store", "a.db"], { input: lines(last[0]!) });
  expect(run).toMatchObject({ code: 1, stdout: "" });
  expect(run.stderr).toContain(
    "a.db: the checkpoint of session s cannot be read. Delete it with plimsoll session rm s",
  );
});
