/** Servers behind `mcp wrap`, and clients, that send more than anybody can read. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

const floodServer = fileURLToPath(new URL("mcp-flood-server.mjs", import.meta.url));

let sandbox: Sandbox;
let running: Wrapped[];
beforeEach(() => {
  sandbox = createSandbox();
  running = [];
});
afterEach(async () => {
  for (const each of running) await each.stop();
  sandbox.remove();
});

interface Wrapped {
  readonly child: ChildProcessWithoutNullStreams;
  /** Sends a request and returns its answer, whatever is in between. */
  ask(
    method: string,
    params?: object,
  ): Promise<{ result?: { content: { text: string }[] }; error?: { message: string } }>;
  stderr(): string;
  /** The most memory that the process has had, in megabytes. */
  peak(): number;
  readonly ended: Promise<number | null>;
  stop(): Promise<void>;
}

async function start(args: readonly string[]): Promise<Wrapped> {
  const child = spawn(process.execPath, [mainFile, ...args], { cwd: sandbox.cwd, env: sandbox.env });
  child.stdin.on("error", () => {});
  const waiting = new Map<number, (answer: never) => void>();
  let [received, errors, lastId] = ["", "", 0];
  child.stderr.on("data", (text) => {
    errors = `${errors}${text}`.slice(-100_000);
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = `${received}${text}`.split("\n");
    received = lines.pop()!;
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message as never);
    }
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  const wrapped: Wrapped = {
    ...{ child, ended, stderr: () => errors },
    ask(method, params = {}) {
      lastId += 1;
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: lastId, method, params })}\n`);
      return new Promise((resolve) => waiting.set(lastId, resolve));
    },
    peak: () =>
      Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1] ?? 0) / 1_024,
    async stop() {
      child.kill("SIGKILL");
      await ended;
    },
  };
  running.push(wrapped);
  const clientInfo = { name: "test", version: "1" };
  await wrapped.ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  await wrapped.ask("tools/list");
  return wrapped;
}

const wrapOne = ["mcp", "wrap", "--no-store", "--", process.execPath, floodServer];

async function startTwo(): Promise<Wrapped> {
  const server = { command: process.execPath, args: [floodServer] };
  sandbox.write("servers.json", JSON.stringify({ mcpServers: { one: server, two: server } }));
  return start(["mcp", "wrap", "--no-store", "--config", "servers.json"]);
}

const onLinux = process.platform === "linux";

test("escapes in a server's stderr are shown as text", async () => {
  const wrapped = await start(wrapOne);
  const value = "red \u001b[31m\u001b]52;c;aGk=\u0007 \u202egnp.exe\r\nnext\tcell\rover";
  await wrapped.ask("tools/call", { name: "errors", arguments: { megabytes: 0, value } });
  expect(wrapped.stderr()).toContain("red \\x1b[31m\\x1b]52;c;aGk=\\x07 \\u202egnp.exe\nnext\tcell\\rover");
});

test("answers to unknown ids are no burden", async () => {
  const wrapped = await startTwo();
  const { result } = await wrapped.ask("tools/call", { name: "one_answers", arguments: { megabytes: 2 } });
  expect(result?.content[0]?.text).toBe("all sent");
});

test.runIf(onLinux)("a line that never ends is an error of its call", { tags: ["deep"], timeout: 60_000 }, async () => {
  const wrapped = await start(wrapOne);
  const startedAt = performance.now();
  let peak = 0;
  const timer = setInterval(() => {
    peak = Math.max(peak, wrapped.peak());
  }, 20);
  const { error } = await wrapped.ask("tools/call", { name: "endless" });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(error?.message).toMatch(
    /^The server ".*mcp-flood-server.mjs" was ended: a line has more than 268,435,456 bytes\.$/,
  );
  expect(wrapped.stderr()).toContain(error?.message);
  clearInterval(timer);
  expect(peak).toBeLessThan(400);
  expect(await wrapped.ended).toBe(137);
});

test.runIf(onLinux)(
  "one server's endless line leaves the others alone",
  { tags: ["deep"], timeout: 60_000 },
  async () => {
    const wrapped = await startTwo();
    const { error } = await wrapped.ask("tools/call", { name: "one_endless" });
    expect(error?.message).toBe('The server "one" was ended: a line has more than 268,435,456 bytes.');
    const { result } = await wrapped.ask("tools/call", { name: "two_words" });
    expect(result?.content[0]?.text).toContain("a few words");
    expect(wrapped.peak()).toBeLessThan(400);
  },
);

test.runIf(onLinux)(
  "after a line that is too long, the server goes on",
  { tags: ["deep"], timeout: 60_000 },
  async () => {
    const wrapped = await start(wrapOne);
    const long = await wrapped.ask("tools/call", { name: "long", arguments: { megabytes: 140 } });
    expect(long.error?.message).toMatch(
      /^The server ".*" sent a line of more than 134,217,728 bytes\. It is left out\.$/,
    );
    const { result } = await wrapped.ask("tools/call", { name: "words" });
    expect(result?.content[0]?.text).toContain("a few words");
    expect(wrapped.peak()).toBeLessThan(400);
  },
);

test.runIf(onLinux)("floods wait for a reader", { tags: ["deep"], timeout: 60_000 }, async () => {
  const wrapped = await start(wrapOne);
  wrapped.child.stderr.pause();
  void wrapped.ask("tools/call", { name: "errors" });
  const { result } = await wrapped.ask("tools/call", { name: "words" });
  expect(result?.content[0]?.text).toContain("a few words");
  wrapped.child.stdout.pause();
  void wrapped.ask("tools/call", { name: "notifications" });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  expect(wrapped.peak()).toBeLessThan(400);
});

test.runIf(onLinux).each([
  ["mcp wrap", wrapOne],
  ["mcp", ["mcp", "--no-store"]],
])("a client's line that never ends ends %s", { tags: ["deep"], timeout: 60_000 }, async (_name, args) => {
  const wrapped = await start(args);
  let peak = 0;
  const part = Buffer.alloc(1_000_000, "x");
  for (let count = 0; count < 300 && wrapped.child.exitCode === null && !wrapped.child.stdin.destroyed; count += 1) {
    await new Promise<void>((resolve) => wrapped.child.stdin.write(part, () => resolve()));
    if (wrapped.child.exitCode === null) peak = Math.max(peak, wrapped.peak());
  }
  expect(peak).toBeLessThan(400);
  expect(wrapped.stderr()).toContain("a line has more than 268,435,456 bytes");
  await wrapped.ended;
});
