/** A store that cannot be used never takes a server down: it goes on without one, and says so once. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadDriver } from "../../src/host/store/sqlite-driver.ts";
import { connectLines, type LineClient, plimsoll, type ToolResult } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

// The driver of the store, because some commands run in this process.
const Database = await loadDriver();

const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));
const holder = fileURLToPath(new URL("store-holder.mjs", import.meta.url));

let sandbox: Sandbox;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write("text.txt", Array.from({ length: 3_000 }, (_, index) => `line ${index} of the text\n`).join(""));
});
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  sandbox.remove();
});

const file = (): string => join(sandbox.home, "kept/state.db");

/** A store with a session in it. */
async function createStore(): Promise<void> {
  const client = start(["--store", file()]);
  await client.initialize();
  await client.call("read_file", { path: "text.txt" });
  expect(await client.end()).toBe(0);
}

function start(args: readonly string[], wrapper: readonly string[] = []): LineClient {
  const at = args[0] === "wrap" ? 1 : 0;
  const words = args.toSpliced(at, 0, "--format", "json");
  const client = connectLines([...wrapper, ...plimsoll("mcp", ...words)], sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  return client;
}

async function holdLock(): Promise<void> {
  await createStore();
  const child: ChildProcess = spawn(process.execPath, [holder, file()], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  opened.push(() => child.kill("SIGKILL"));
  await once(child.stdout!, "data");
}

function damage(): void {
  mkdirSync(dirname(file()), { recursive: true });
  writeFileSync(file(), "this is no database, but a text of some length\n".repeat(300));
}

async function makeNewer(): Promise<void> {
  await createStore();
  const database = new Database(file());
  database.exec("PRAGMA user_version = 99");
  database.close();
}

const isRoot = process.getuid?.() === 0;
const asNobody = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
// As root permissions do not bind: there the server runs as nobody, if that one can reach the build.
const canBeNobody = !isRoot || spawnSync(asNobody[0]!, [...asNobody.slice(1), ...plimsoll("--version")]).status === 0;

async function makeReadOnly(): Promise<readonly string[]> {
  await createStore();
  for (const path of [dirname(sandbox.home), sandbox.home, sandbox.cwd]) chmodSync(path, 0o755);
  chmodSync(file(), 0o444);
  chmodSync(dirname(file()), 0o555);
  opened.push(() => chmodSync(dirname(file()), 0o755));
  return asNobody;
}

/** No file may grow beyond so many KB. */
const limited = (kilobytes: number): string[] => ["bash", "-c", `ulimit -f ${kilobytes}; exec "$@"`, "-"];

const kinds: readonly (readonly [name: string, prepare: () => unknown])[] = [
  ["damaged", damage],
  ["newer", makeNewer],
  ["locked", holdLock],
  ["full", () => limited(8)],
  ...(canBeNobody ? ([["read-only", makeReadOnly]] as const) : []),
];

const told = /The store cannot be used: .+/;
const textOf = ({ content }: ToolResult): string => content.map(({ text }) => text).join("\n");

describe.each(process.env.PLIMSOLL_DEEP === "1" ? kinds : kinds.slice(0, 1))("a store that is %s", (_name, prepare) => {
  test("leaves mcp serving, page by page, and is told once", async () => {
    const wrapper = ((await prepare()) ?? []) as string[];
    const client = start(["--store", file()], wrapper);
    await client.initialize();
    const first = await client.call("read_file", { path: "text.txt" });
    expect(first.isError).toBeUndefined();
    const { data, notice } = JSON.parse(first.content[0]!.text);
    expect(notice).toMatch(told);
    expect(first.structuredContent).toMatchObject({ notice });
    const second = await client.call("next_page", { token: data.continuation_token });
    expect(JSON.parse(second.content[0]!.text).data.offset).toBe(data.returned);
    const recalled = await client.call("recall", { id: "r1" });
    expect(JSON.parse(recalled.content[0]!.text).data.lines).toEqual(data.lines);
    for (const result of [second, recalled]) expect(textOf(result)).not.toMatch(told);
    expect(await client.end()).toBe(0);
    expect(client.stderr().match(/Results are kept in memory/g)).toHaveLength(1);
  });

  test("leaves wrap paging from memory, and is told once", async () => {
    const wrapper = ((await prepare()) ?? []) as string[];
    const client = start(["wrap", "--store", file(), "--", process.execPath, oddServer], wrapper);
    await client.initialize();
    const first = await client.call("text", { count: 20_000 });
    const { data } = JSON.parse(first.content[0]!.text);
    expect(data.truncated).toBe(true);
    expect(first.content[1]!.text).toMatch(told);
    const second = await client.call("next_page", { token: data.continuation_token });
    expect(JSON.parse(second.content[0]!.text).data.offset).toBe(data.returned);
    expect((await client.call("text", { count: 20_000 })).content).toHaveLength(1);
    expect(await client.end()).toBe(0);
    expect(client.stderr().match(/Results are kept in memory/g)).toHaveLength(1);
  });
});

describe("a store that breaks in the middle of a session", () => {
  test("leaves mcp serving, and no id comes twice", { tags: ["deep"] }, async () => {
    const client = start(["--store", file()], limited(200));
    await client.initialize();
    const ids = new Set<string>();
    let notices = 0;
    for (let call = 0; call < 40; call += 1) {
      const result = await client.call("read_file", { path: "text.txt", offset: call });
      expect(result.isError).toBeUndefined();
      if (told.test(textOf(result))) notices += 1;
      const status = await client.call("budget_status", {});
      ids.add(JSON.parse(status.content[0]!.text).data.recent[0].id);
    }
    expect(notices).toBe(1);
    expect(ids.size).toBe(40);
    expect(await client.end()).toBe(0);
  });

  test("leaves wrap paging, and earlier results can still be recalled", async () => {
    const client = start(["wrap", "--store", file(), "--", process.execPath, oddServer], limited(300));
    await client.initialize();
    let notices = 0;
    let token = "";
    for (let call = 0; call < 30; call += 1) {
      const { content } = await client.call("text", { count: 8_000 });
      const { data } = JSON.parse(content[0]!.text);
      expect(data.truncated).toBe(true);
      token ||= data.continuation_token;
      notices += content.length - 1;
    }
    expect(notices).toBe(1);
    // From the file, which cannot be written but read.
    expect((await client.call("next_page", { token })).isError).toBeUndefined();
    expect(await client.end()).toBe(0);
  });

  test("is used again after a lock", { tags: ["deep"] }, async () => {
    await createStore();
    const client = start(["wrap", "--store", file(), "--", process.execPath, oddServer]);
    await client.initialize();
    await client.call("text", { count: 8_000 });
    const holding = spawn(process.execPath, [holder, file()], { stdio: ["ignore", "pipe", "inherit"] });
    await once(holding.stdout!, "data");
    const { content } = await client.call("text", { count: 9_000 });
    expect(content[1]!.text).toMatch(told);
    holding.kill("SIGKILL");
    await once(holding, "exit");
    for (let tries = 0; tries < 30 && !client.stderr().includes("The store can be used again"); tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect((await client.call("text", { count: 8_000 })).content).toHaveLength(1);
    }
    const { data } = JSON.parse(content[0]!.text);
    client.child.kill("SIGKILL");
    await client.exit;
    const again = start(["wrap", "--store", file(), "--", process.execPath, oddServer]);
    await again.initialize();
    const next = await again.call("next_page", { token: data.continuation_token });
    expect(JSON.parse(next.content[0]!.text).data.offset).toBe(data.returned);
    expect(await again.end()).toBe(0);
  });

  test("is noticed also where the file is torn under the server", { tags: ["deep"] }, async () => {
    const client = start(["--store", file()]);
    await client.initialize();
    await client.call("read_file", { path: "text.txt" });
    writeFileSync(file(), "torn ".repeat(5_000));
    if (existsSync(`${file()}-wal`)) truncateSync(`${file()}-wal`, 0);
    for (let call = 0; call < 5; call += 1) {
      const result = await client.call("read_file", { path: "text.txt", offset: call });
      expect(result.isError).toBeUndefined();
    }
    expect(await client.end()).toBe(0);
  });
});

test("--no-store keeps nothing on disk, in mcp and in wrap, and pages go on", { tags: ["deep"] }, async () => {
  const client = start(["--no-store"]);
  await client.initialize();
  const first = JSON.parse((await client.call("read_file", { path: "text.txt" })).content[0]!.text);
  expect(first.notice).toBeUndefined();
  const token = first.data.continuation_token as string;
  const second = JSON.parse((await client.call("next_page", { token })).content[0]!.text);
  expect(second.data.offset).toBe(first.data.returned);
  expect(await client.end()).toBe(0);
  const again = start(["--no-store"]);
  await again.initialize();
  const offset = Number(token.split(":").at(-1));
  const third = JSON.parse((await again.call("read_file", { path: "text.txt", offset })).content[0]!.text);
  expect(third.data.lines).toEqual(second.data.lines);
  expect(await again.end()).toBe(0);

  const wrapped = start(["wrap", "--no-store", "--", process.execPath, oddServer]);
  await wrapped.initialize();
  const page = JSON.parse((await wrapped.call("text", { count: 20_000 })).content[0]!.text);
  const rest = await wrapped.call("next_page", { token: page.data.continuation_token });
  expect(JSON.parse(rest.content[0]!.text).data.offset).toBe(page.data.returned);
  expect(await wrapped.end()).toBe(0);
  expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
  expect((await sandbox.run(["mcp", "--no-store", "--store", "x.db"])).stderr).toContain("cannot be used together");
});
