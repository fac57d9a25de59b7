/** A session that another process resumes, after an end or after kill -9, goes on with the same bytes. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  createTrimmer,
  policyNames,
  type Reduction,
  type TrimmerOptions,
} from "../../src/conversation/history/index.ts";
import { type FormatName, formatNames } from "../../src/core/messages/index.ts";
import { createMemoryStore } from "../../src/core/store/index.ts";
import { openSqliteStore } from "../../src/host/store/sqlite.ts";
import { caseCount } from "../case-count.ts";
import { generateRequest } from "../generate/generate-request.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";
const kills = caseCount({ few: 1, deep: 25, long: 100 });
const agent = fileURLToPath(new URL("./history-agent.mjs", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "plimsoll-history-"));
const children: ChildProcess[] = [];

beforeAll(() => {
  const built = fileURLToPath(new URL("../../dist/conversation/history/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build");
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

// A window that a session of 60 turns outgrows several times.
const base: TrimmerOptions = {
  contextWindow: 24_000,
  reserve: 2_000,
  model: "claude-sonnet-4-5",
};

describe("from a checkpoint in a file, in another process", () => {
  // Every policy and every format at least once.
  const cases = policyNames.flatMap((policy, at) =>
    formatNames.flatMap((format, index) =>
      isDeep || index % policyNames.length === at ? [[policy, format] as const] : [],
    ),
  );
  const expected: unknown[] = [];
  const resumed: unknown[] = [];
  beforeAll(async () => {
    const jobs: object[] = [];
    for (const [policy, format] of cases) {
      const style = policy === "rfc" || policy === "rfc-headroom" ? {} : ({ placeholders: "descriptive" } as const);
      const options = { ...base, ...style, policy, format };
      const { messages, calls } = session(format);
      const half = Math.floor(calls.length / 2);
      const trimmer = await createTrimmer({ ...options, store: createMemoryStore() });
      for (const length of calls.slice(0, half)) trimmer.reduce({ messages: messages.slice(0, length) });
      const checkpoint = await trimmer.checkpoint();
      expect(checkpoint.ledger.epochs.length).toBeGreaterThan(0);
      const rest = calls.slice(half);
      expected.push(
        rest.map((length) => ({ length, sent: digest(trimmer.reduce({ messages: messages.slice(0, length) })) })),
      );
      jobs.push({ job: "resume", options, messages, calls: rest, checkpoint });
    }
    const lines = await finish(...jobs);
    for (const { calls } of jobs as { calls: number[] }[]) resumed.push(lines.splice(0, calls.length));
  }, 120_000);

  test.each(cases.map((each, index) => [...each, index] as const))(
    "%s resumes in the %s format",
    (_policy, _format, at) => {
      expect(resumed[at]).toHaveLength(10);
      expect(resumed[at]).toEqual(expected[at]);
    },
  );
});

describe("a process that is killed", () => {
  const options = { ...base, format: "anthropic" as const, sessionId: "ship/7" };
  const { messages, calls } = session("anthropic");

  test(`is resumed from its store with the same bytes, and what it trimmed can be recalled (${kills} kills)`, {
    timeout: 30_000 + kills * 5_000,
  }, async () => {
    const expected = await uninterrupted(options, messages, calls);
    for (let round = 0; round < kills; round++) {
      const path = join(mkdtempSync(join(root, "case-")), "state.db");
      const killed = start({ job: "work", options, messages, calls, path });
      const lines = collectLines(killed);
      while (lines().length < 1 + ((round * 13) % (calls.length - 2))) await once(killed.stdout!, "data");
      // Into the middle of a call, or of a checkpoint.
      await sleep((round * 7) % 23);
      await kill(killed);
      const acknowledged = lines() as { length: number; sent: string }[];
      for (const { length, sent } of acknowledged) expect(sent).toBe(expected.get(length));
      // A checkpoint that was written and not yet acknowledged may be there.
      const rest = calls.slice(acknowledged.length);
      const resumed = await finish({ job: "resume", options, messages, calls: rest, path });
      expect(resumed).toEqual(rest.map((length) => ({ length, sent: expected.get(length) })));
      await expectRecall(path, { options, messages });
    }
  });

  test("left nothing behind that another session sees", { tags: ["deep"] }, async () => {
    const path = join(mkdtempSync(join(root, "case-")), "state.db");
    const killed = start({ job: "work", options, messages, calls, path });
    const lines = collectLines(killed);
    while (lines().length < calls.length) await once(killed.stdout!, "data");
    await kill(killed);
    const other = { ...options, sessionId: "ship/8" };
    const recalled = await finish({
      job: "recall",
      options: other,
      messages,
      ids: ["r1", "r99999", "x"],
      path,
    });
    expect(recalled).toEqual(["r1", "r99999", "x"].map((id) => ({ id, recalled: null })));
  });
});

function session(format: FormatName): { messages: readonly object[]; calls: number[] } {
  const { messages } = generateRequest(format, { seed: 21, turns: 60 });
  const calls = Array.from({ length: 20 }, (_each, index) => Math.ceil((messages.length * (index + 1)) / 20));
  return { messages, calls };
}

/** What a process that is never stopped sends, by the length of the call. */
async function uninterrupted(options: TrimmerOptions, messages: readonly object[], calls: readonly number[]) {
  const trimmer = await createTrimmer({ ...options, store: createMemoryStore() });
  return new Map(calls.map((length) => [length, digest(trimmer.reduce({ messages: messages.slice(0, length) }))]));
}

/** Everything that the stored checkpoint says was trimmed is there, as it was. */
async function expectRecall(
  path: string,
  { options, messages }: { options: TrimmerOptions; messages: readonly object[] },
): Promise<void> {
  const store = await openSqliteStore({ path });
  const { ledger } = await (await createTrimmer({ ...options, store })).checkpoint();
  await store.close();
  const entries = ledger.epochs.flatMap((epoch) => epoch.entries.filter(({ part }) => part >= 0));
  const ids = entries.map(({ id }) => id);
  const lines = (await finish({ job: "recall", options, messages, ids, path })) as {
    recalled: { value: unknown };
  }[];
  const parts = entries.map(({ message, part }) => (messages[message] as { content: unknown[] }).content[part]);
  expect(lines.map(({ recalled }) => recalled.value)).toEqual(parts);
}

function digest({ messages }: Reduction): string {
  return createHash("sha256").update(JSON.stringify(messages)).digest("hex");
}

let files = 0;

function start(...jobs: readonly object[]): ChildProcess {
  const inputs = jobs.map((job) => {
    const file = join(root, `input-${++files}.json`);
    writeFileSync(file, JSON.stringify(job));
    return file;
  });
  const child = spawn(process.execPath, [agent, ...inputs], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

/** The lines of a process that ends by itself. */
async function finish(...jobs: readonly object[]): Promise<unknown[]> {
  const child = start(...jobs);
  const lines = collectLines(child);
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return lines();
}

/** Only whole lines: the last one may be cut off by a kill. */
function collectLines(child: ChildProcess): () => unknown[] {
  let text = "";
  child.stdout!.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
}

async function kill(child: ChildProcess): Promise<void> {
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}
