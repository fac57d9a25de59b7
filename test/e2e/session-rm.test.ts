/** Deleting sessions for good. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createTrimmer } from "../../src/conversation/history/index.ts";
import { createIntake } from "../../src/conversation/intake/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { openSqliteStore } from "../../src/host/store/sqlite.ts";
import { connectLines, type LineClient, plimsoll } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
const opened: LineClient[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => {
  for (const client of opened.splice(0)) client.child.kill("SIGKILL");
  sandbox.remove();
});

const stateFolder = (): string => join(sandbox.home, ".local/state/plimsoll");

async function serve(args: readonly string[] = []): Promise<LineClient> {
  const client = connectLines(plimsoll("mcp", "--format", "json", ...args), sandbox);
  opened.push(client);
  await client.initialize();
  return client;
}

/** Reads a file that has the word in it, in several ways. */
async function work(word: string, args: readonly string[] = [], end = true): Promise<LineClient> {
  sandbox.write(`${word}.txt`, `${word} is a secret word\n`.repeat(2_000));
  const client = await serve(args);
  const { content } = await client.call("read_file", { path: `${word}.txt` });
  const token = JSON.parse(content[0]!.text).data.continuation_token;
  for (let page = 0; page < 4; page += 1) await client.call("next_page", { token });
  await client.call("search_content", { pattern: word });
  await client.call("recall", { id: "r1" });
  if (end) expect(await client.end()).toBe(0);
  return client;
}

/** The files of the state directory that hold the word. */
function filesWith(word: string): string[] {
  const files = readdirSync(stateFolder(), { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return files
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => readFileSync(file).includes(word));
}

const rm = async (...args: string[]) => {
  const { code, stdout, stderr } = await sandbox.call(["session", "rm", "--json", ...args]);
  return { code, stderr, ...(JSON.parse(stdout) as Report) };
};

interface Report {
  readonly dry_run: boolean;
  readonly deleted: readonly { readonly id: string }[];
  readonly kept: readonly { readonly id: string }[];
  readonly run_folders: readonly string[];
  readonly error?: { readonly message: string };
}

test("the help is as pinned", async () => {
  const { stdout } = await sandbox.call(["session", "rm", "--help"]);
  await expect(stdout).toMatchFileSnapshot("golden/help-session-rm.txt");
});

test("no byte of a deleted session is left in the store or its log, and others stay", async () => {
  await work("xylophone", ["--session", "one"]);
  await work("zeppelin", ["--session", "two"]);
  expect(filesWith("xylophone").length).toBeGreaterThan(0);
  const dry = await rm("one", "--dry-run");
  expect(dry).toMatchObject({ code: 0, dry_run: true, deleted: [{ id: "one" }] });
  expect(filesWith("xylophone").length).toBeGreaterThan(0);
  expect(await rm("one")).toMatchObject({ code: 0, dry_run: false, deleted: [{ id: "one" }] });
  expect(filesWith("xylophone")).toEqual([]);
  expect(filesWith("zeppelin").length).toBeGreaterThan(0);
  const again = await serve(["--session", "two"]);
  const { content } = await again.call("recall", { id: "r1" });
  expect(content[0]!.text).toContain("zeppelin");
  const { stdout } = await sandbox.call(["session", "rm", "--all", "--dry-run"]);
  expect(stdout).toContain("nothing to delete");
});

test("its bytes are gone also while another server has the store open", { tags: ["deep"] }, async () => {
  await work("xylophone", ["--session", "one"]);
  const other = await work("zeppelin", ["--session", "two"], false);
  expect(await rm("--all")).toMatchObject({ code: 0, deleted: [{ id: "one" }], kept: [{ id: "two" }] });
  expect(filesWith("xylophone")).toEqual([]);
  const { content, isError } = await other.call("recall", { id: "r1" });
  expect(isError).toBeUndefined();
  expect(content[0]!.text).toContain("zeppelin");
  expect(other.stderr()).toBe("");
});

test("a session that a server has open is not deleted, nor the results that it shares", {
  tags: ["deep"],
}, async () => {
  const first = await work("xylophone", [], false);
  await work("zeppelin", [], false);
  await first.end();
  const sessions = JSON.parse((await sandbox.call(["session", "list", "--json"])).stdout) as { id: string }[];
  const [base, second] = sessions.map(({ id }) => id).sort();
  expect(second).toBe(`${base}.2`);
  for (const id of [base!, second!]) {
    const { code, stdout } = await sandbox.call(["session", "rm", id]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  }
  for (const client of opened) await client.end();
  expect(await rm(second!)).toMatchObject({ code: 0, deleted: [{ id: second }] });
  expect(filesWith("xylophone").length).toBeGreaterThan(0);
  expect(await rm(base!)).toMatchObject({ code: 0, deleted: [{ id: base }] });
  expect([filesWith("xylophone"), filesWith("zeppelin")]).toEqual([[], []]);
});

test("those that nobody used for so long are deleted", { tags: ["deep"] }, async () => {
  await work("xylophone", ["--session", "one"]);
  expect(await rm("--older-than", "1h")).toMatchObject({ code: 0, deleted: [] });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await rm("--older-than", "0m")).toMatchObject({ code: 0, deleted: [{ id: "one" }] });
  expect(filesWith("xylophone")).toEqual([]);
});

test("what a trimmer kept goes with its session", async () => {
  const store = await openSqliteStore({ path: join(stateFolder(), "state.db") });
  const counter = await createCounter("bytes/4");
  const trimmer = await createTrimmer({
    contextWindow: 3_000,
    reserve: 0,
    counter,
    format: "anthropic",
    store,
    sessionId: "chat",
  });
  const messages = Array.from({ length: 60 }, (_, index) => [
    { role: "assistant", content: [{ type: "tool_use", id: `t${index}`, name: "read", input: {} }] },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: `t${index}`, content: "xylophone ".repeat(50) }],
    },
  ]).flat();
  trimmer.reduce({ messages: [{ role: "user", content: "go" }, ...messages] });
  await trimmer.checkpoint();
  await store.put("history/calls", "chat", '{"m":1}');
  await store.close();
  expect(filesWith("xylophone").length).toBeGreaterThan(0);
  expect(await rm("chat")).toMatchObject({ code: 0, deleted: [{ id: "chat" }] });
  expect(filesWith("xylophone")).toEqual([]);
  expect(await rm("--all")).toMatchObject({ code: 0, deleted: [] });
});

/** Gives the plugin of Claude Code a result that is too long, with the word in each line. */
async function usePlugin(word: string, sessionId: string): Promise<void> {
  const client = connectLines(plimsoll("plugin", "serve", "claude-code", "--max-result-tokens", "500"), sandbox);
  opened.push(client);
  await client.initialize();
  const lines = Array.from({ length: 2_000 }, (_, index) => `${word} ${index}`).join("\n");
  const about = { session_id: sessionId, tool_name: "mcp__x__y", tool_use_id: "t1", tool_input: `{"q":"${word}"}` };
  // On a busy computer the process gives up after 50 ms.
  await vi.waitUntil(async () => {
    const { content } = await client.call("after_tool", { ...about, tool_response: lines });
    return content[0]!.text.includes("plimsoll recall");
  });
  await vi.waitUntil(() => existsSync(savedFile(sessionId)));
  expect(await client.end()).toBe(0);
}

const savedFile = (sessionId: string): string => join(stateFolder(), "saved-tokens", `${sessionId}.json`);

test("what a plugin stored goes with its session, and what others stored stays", { tags: ["deep"] }, async () => {
  await usePlugin("xylophone", "first-session");
  await usePlugin("zeppelin", "second-session");
  expect(filesWith("xylophone").length).toBeGreaterThan(0);
  const dry = await rm("--all", "--dry-run");
  expect(dry.deleted.map(({ id }) => id).sort()).toEqual(["first-session", "second-session"]);
  expect(await rm("first-session")).toMatchObject({ code: 0, deleted: [{ id: "first-session" }] });
  expect(filesWith("xylophone")).toEqual([]);
  expect(filesWith("first-session")).toEqual([]);
  expect(existsSync(savedFile("first-session"))).toBe(false);
  expect(filesWith("zeppelin").length).toBeGreaterThan(0);
  const { stdout } = await sandbox.call(["plugin", "status", "claude-code", "--json"]);
  expect(JSON.parse(stdout).sessions).toMatchObject([{ sessionId: "second-session" }]);
  expect(await rm("--older-than", "1h")).toMatchObject({ deleted: [] });
  expect(await rm("--all")).toMatchObject({ deleted: [{ id: "second-session" }] });
  expect(filesWith("second-session")).toEqual([]);
});

test("originals of a session without any other record can be deleted", async () => {
  const store = await openSqliteStore({ path: join(stateFolder(), "state.db") });
  const intake = await createIntake({ store, sessionId: "wrapped", maxResultTokens: 500 });
  const text = Array.from({ length: 2_000 }, (_, index) => `xylophone ${index}`).join("\n");
  expect((await intake.admit({ tool: "read", text })).edit).toBe("page");
  for (const { key } of await store.list("intake-context")) await store.delete("intake-context", key);
  await store.close();
  expect(await rm("wrapped")).toMatchObject({ code: 0, deleted: [{ id: "wrapped" }] });
  expect(filesWith("xylophone")).toEqual([]);
});

test("--all deletes folders of agents that have ended, and none of a running one", async () => {
  const folder = (name: string, state: string): string => {
    const path = join(stateFolder(), "runs/nebula-1", name);
    mkdirSync(path, { recursive: true });
    for (const file of ["prompt", "stdout", "stderr"]) writeFileSync(join(path, file), "xylophone");
    writeFileSync(join(path, "state"), state);
    return path;
  };
  const running = folder("a.1-00000000", `${process.pid} \n`);
  const starting = folder("b.1-00000000", "");
  const ended = folder("c.1-00000000", "99999999 5\n0\n");
  const killed = folder("d.1-00000000", "99999999 5\n");
  const dry = await rm("--all", "--dry-run");
  expect([...dry.run_folders].sort()).toEqual([ended, killed]);
  expect(existsSync(ended)).toBe(true);
  expect((await rm("--older-than", "0m")).run_folders).toEqual([]);
  const { run_folders, stderr } = await rm("--all");
  expect([...run_folders].sort()).toEqual([ended, killed]);
  expect(stderr).toContain("2 agents still running, so the folders are kept");
  expect([running, starting, ended, killed].map((path) => existsSync(path))).toEqual([true, true, false, false]);
});

test("a damaged session can be deleted, and mistakes delete nothing", { tags: ["deep"] }, async () => {
  await work("xylophone", ["--session", "one"]);
  const store = await openSqliteStore({ path: join(stateFolder(), "state.db") });
  await store.put("sessions", "one", "{");
  await store.close();
  const listed = await sandbox.call(["session", "list"]);
  expect(listed.stderr).toContain(
    "session one cannot be read: its record is damaged. plimsoll session rm one deletes it.",
  );
  const shown = await sandbox.call(["session", "show", "one"]);
  expect(shown).toMatchObject({ code: 1 });
  expect(shown.stderr).toContain("plimsoll session rm one");
  for (const args of [
    [],
    ["--all", "one"],
    ["none"],
    ["one", "none"],
    ["--older-than", "soon"],
    ["--all", "--older-than", "1d"],
  ]) {
    const { code, error } = await rm(...args);
    expect({ args, code, told: error!.message !== "" }).toEqual({ args, code: 2, told: true });
  }
  expect(filesWith("xylophone").length).toBeGreaterThan(0);
  expect(await rm("one")).toMatchObject({ code: 0, deleted: [{ id: "one" }] });
  expect(filesWith("xylophone")).toEqual([]);
});
