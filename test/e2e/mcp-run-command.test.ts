import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectLines, type LineClient, plimsoll } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
const opened: LineClient[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => {
  for (const { child } of opened.splice(0)) child.kill("SIGKILL");
  sandbox.remove();
});

function start(...flags: string[]) {
  return startFor("lines", sandbox, ...flags);
}

async function startFor(clientName: string, place: Sandbox, ...flags: string[]) {
  const client = connectLines(plimsoll("mcp", "--root", sandbox.cwd, ...flags), place);
  opened.push(client);
  await client.initialize("2025-06-18", clientName);
  return async (name: string, args: object): Promise<string> => {
    const { result } = await client.request("tools/call", { name, arguments: args });
    return result.content[0]?.text ?? "";
  };
}

async function toolNames(): Promise<string[]> {
  const { result } = (await opened.at(-1)!.request("tools/list")) as unknown as {
    result: { tools: { name: string }[] };
  };
  return result.tools.map(({ name }) => name);
}

test("the tool is not served if the server was started without --allow-commands", async () => {
  const call = await start();
  expect(await call("run_command", { command: "node --version" })).toContain("run_command");
  expect(await toolNames()).toHaveLength(10);
});

test("runs allowed programs in the root, without a shell", async () => {
  const call = await start("--allow-commands", "node,echo");
  expect(await toolNames()).toHaveLength(11);
  expect(await call("run_command", { command: "node -p 'process.cwd()'" })).toBe(`${sandbox.cwd}\n[exit code 0]`);
  expect(await call("run_command", { command: 'echo "a  b" c\\ d' })).toBe("a  b c d\n[exit code 0]");
  expect(await call("run_command", { command: "node -e 'console.error(1);process.exit(3)'" })).toBe("1\n[exit code 3]");
  expect(await call("run_command", { command: "rm -rf ." })).toContain('The program "rm" is not allowed here.');
  expect(await call("run_command", { command: "/bin/echo a" })).toContain("is not allowed here");
  for (const command of [
    "echo a > b",
    "echo $HOME",
    "echo `id`",
    "echo a && id",
    "echo a; id",
    "echo a | id",
    "echo *",
  ]) {
    expect(await call("run_command", { command })).toContain("needs a shell");
  }
  expect(existsSync(join(sandbox.cwd, "b"))).toBe(false);
});

test("runs a shell only if the server was started with --allow-shell", async () => {
  const call = await start("--allow-commands", "all", "--allow-shell");
  expect(await call("run_command", { command: "echo a > b && cat b" })).toBe("a\n[exit code 0]");
  const wrong = await sandbox.call(["mcp", "--allow-commands", "node", "--allow-shell"]);
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("--allow-shell needs --allow-commands all") });
});

test("keeps failures and the sum of a long output, and recall returns the rest", async () => {
  const passed =
    'for (let n = 0; n < 3000; n++) console.log(" ✓ test/case-" + n + ".test.ts works well " + n * 7 + "ms");';
  const failed = 'console.log(" FAIL test/cart.test.ts > adds a price\\nAssertionError: expected 3 to be 4");';
  sandbox.write(
    "run.js",
    `${passed}${failed}${passed}console.log("Tests  1 failed | 6000 passed (6001)");process.exit(1)`,
  );
  const call = await start("--allow-commands", "node", "--per-tool", "2000");
  const text = await call("run_command", { command: "node run.js" });
  expect(text).toContain("AssertionError: expected 3 to be 4");
  expect(text).toContain("Tests  1 failed | 6000 passed (6001)");
  expect(text).toContain("[exit code 1]");
  const id = /recall with id ([a-z2-7]{16})/.exec(text)?.[1] ?? "";
  expect(await call("recall", { id, pattern: "case-2999" })).toContain("3000: ✓ test/case-2999.test.ts");
});

const beats = (): number =>
  existsSync(join(sandbox.cwd, "beat")) ? readFileSync(join(sandbox.cwd, "beat")).length : 0;

test.each([
  ["codex-mcp-client", 11_500],
  ["opencode", 48_000],
])("%s: failures, the sum and the exit code are in the one page that the client shows", async (name, most) => {
  const lines =
    'for (let n = 1; n <= 9000; n++) console.log((n === 7000 ? "not ok " : "ok ") + n + " - " + "abc"[n % 3]);';
  sandbox.write("run.js", `${lines}console.log("# fail 1");process.exitCode = 1;`);
  const call = await startFor(name, sandbox, "--allow-commands", "node", "--per-tool", "20000");
  const text = await call("run_command", { command: "node run.js" });
  expect(text).toMatch(/^not ok 7000 - /m);
  expect(text).toMatch(
    /^# fail 1\n\[exit code 1\]\n\[[a-z2-7]{4}: The whole result has 9,002 lines, .* recall with id [a-z2-7]{16}/m,
  );
  expect(text).not.toContain("next_page");
  expect(Buffer.byteLength(text)).toBeLessThan(most);
  expect(text.split("\n").length).toBeLessThan(1_900);
});

test("ends a command with its children when its time is up", { tags: ["deep"] }, async () => {
  sandbox.write(
    "parent.js",
    `const { spawn } = require("node:child_process");
     const child = spawn(process.execPath, ["-e", "setInterval(() => require('fs').appendFileSync('beat', 'x'), 50)"], { stdio: "inherit" });
     console.log("started"); setInterval(() => {}, 1000);`,
  );
  const call = await start("--allow-commands", "node");
  expect(await call("run_command", { command: "node parent.js", timeout: 2 })).toBe("started\n[ended after 2 s]");
  const before = beats();
  await sleep(400);
  expect(beats()).toBe(before);
});

test("a program of the project does not stand in for one on PATH", async () => {
  sandbox.write("tool", "#!/bin/sh\necho planted\n");
  chmodSync(join(sandbox.cwd, "tool"), 0o755);
  const call = await startFor(
    "lines",
    { ...sandbox, env: { ...sandbox.env, PATH: `:.:${process.env.PATH}` } },
    "--allow-commands",
    "tool",
  );
  expect(await call("run_command", { command: "tool" })).toBe("[did not start: tool is not on PATH]");
});
