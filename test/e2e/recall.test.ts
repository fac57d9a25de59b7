/** `plimsoll recall`: what an intake shortened is printed as the tool returned it. */
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createTrimmer } from "../../src/conversation/history/index.ts";
import { createIntake } from "../../src/conversation/intake/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { openSqliteStore } from "../../src/host/store/sqlite.ts";
import { createSession } from "../../src/results/session/index.ts";
import { createSandbox } from "./run-plimsoll.ts";

const sandbox = createSandbox();
afterAll(() => sandbox.remove());
const path = join(sandbox.home, "state.db");

const lines = Array.from({ length: 200 }, (_, n) => `line ${n + 1}${n % 50 === 0 ? " failed" : ""} with a few words`);

/** Shortens a result and returns its id. */
async function shorten(): Promise<string> {
  const store = await openSqliteStore({ path });
  const intake = await createIntake({ sessionId: "s", store });
  const result = { tool: "Bash", input: { command: "make" }, text: lines.join("\n") };
  await intake.admit(result);
  const { id = "" } = await intake.admit(result);
  await store.close();
  return id;
}

test("prints the whole result, a part of it, lines that match, and what fits", async () => {
  const id = await shorten();
  const recall = (...words: string[]) => sandbox.call(["recall", id, "--store", path, ...words]);
  expect((await sandbox.run(["recall", id, "--store", path])).stdout).toBe(`${lines.join("\n")}\n`);
  expect((await recall("--lines", "3-4")).stdout).toBe(`${lines[2]}\n${lines[3]}\n`);
  expect((await recall("--lines", "200-")).stdout).toBe(`${lines[199]}\n`);
  expect((await recall("--grep", "failed")).stdout.split("\n")[1]).toBe("51: line 51 failed with a few words");
  const short = await recall("--max-tokens", "40", "--lines", "10-");
  const shown = short.stdout.trimEnd().split("\n");
  expect(shown).toEqual(lines.slice(9, 9 + shown.length));
  expect(short.stderr).toContain(`continue with --lines ${10 + shown.length}-`);
  const stuck = await recall("--max-tokens", "1");
  expect([stuck.stdout, stuck.stderr]).toEqual(["", expect.stringContaining("does not fit. Raise --max-tokens")]);
  expect(JSON.parse((await recall("--json", "--lines", "7")).stdout)).toMatchObject({
    id,
    lines: 200,
    shown: [{ number: 7 }],
  });
});

test("finds what a history trimmed and what a session keeps by their ids alone", async () => {
  const store = await openSqliteStore({ path });
  const text = lines.join("\n");
  const messages = Array.from({ length: 40 }, (_, turn) => [
    { role: "assistant", content: [{ type: "tool_use", id: `c${turn}`, name: "Read", input: { path: `f${turn}` } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: `c${turn}`, content: `${turn}\n${text}` }] },
  ]);
  const trimmer = await createTrimmer({ contextWindow: 20_000, reserve: 0, store, sessionId: "chat" });
  const { messages: sent } = trimmer.reduce({
    messages: [{ role: "user", content: "go" }, ...messages.flat()],
    tools: [{ name: "recall" }],
  });
  await trimmer.checkpoint();
  const [, trimmed = ""] = /recall id (\w{16})/.exec(JSON.stringify(sent)) ?? [];
  const session = await createSession({
    counter: await createCounter("bytes/4"),
    store,
    sessionId: "work",
    now: Date.now,
  });
  const given = { fields: {}, itemsName: "lines", items: lines, offset: 0 };
  const { id: kept } = await session.deliver(given, { tool: "make", args: {} });
  await store.close();
  const recall = (...words: string[]) => sandbox.run(["recall", ...words, "--store", path]);
  expect((await recall(trimmed)).stdout).toMatch(new RegExp(`^\\d+\n${lines[0]}\n`));
  expect((await recall(kept)).stdout).toBe(`${text}\n`);
  expect(await recall(kept, "--session", "chat")).toMatchObject({ code: 1 });
  expect(await recall(trimmed, "--session", "chat")).toMatchObject({ code: 0 });
});

test("has help of its own", async () => {
  const help = await sandbox.call(["recall", "--help"]);
  await expect(help.stdout).toMatchFileSnapshot("golden/help-recall.txt");
});

test("says what is wrong with an id, a range or a pattern", async () => {
  const id = await shorten();
  const recall = (...words: string[]) => sandbox.call(["recall", ...words, "--store", path]);
  expect(await recall("nothing123")).toMatchObject({ code: 1 });
  expect((await recall("nothing123")).stderr).toContain('there is no result "nothing123"');
  expect(await recall(id, "--lines", "x")).toMatchObject({ code: 2 });
  expect((await recall(id, "--lines", "300-")).stderr).toContain("its lines are 1 to 200");
  expect(await recall(id, "--grep", "(")).toMatchObject({ code: 2 });
});
