import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, runProcess, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

test("the version goes to stdout, in both spellings and as JSON", async () => {
  for (const flag of ["--version", "-V"]) {
    const { code, stdout, stderr } = await sandbox.run([flag]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
    const json = await sandbox.run([flag, "--json"]);
    expect(JSON.parse(json.stdout)).toEqual({ version: stdout.trim() });
  }
});

test("without a command the help is the result, and no failure", async () => {
  const bare = await sandbox.run([]);
  expect(bare).toMatchObject({ code: 0, stderr: "" });
  expect(await sandbox.run(["--help"])).toEqual(bare);
  expect(await sandbox.call(["help"])).toEqual(bare);
  expect(await sandbox.call(["-qh"])).toEqual(bare);
});

const nebula = ["nebula", "nebula validate", "nebula show", "nebula apply", "nebula status"];
const mcp = ["mcp", "mcp serve", "mcp wrap", "mcp install", "mcp uninstall", "mcp status"];
const pinned = ["inject", "count", ...mcp, "compose", "snapshot", "run", ...nebula, "trust", "config", "completion"];

test("the help of the program and of these commands is as pinned, and has examples", async () => {
  const program = await sandbox.call(["--help"]);
  await expect(program.stdout).toMatchFileSnapshot("golden/help.txt");
  for (const command of pinned) {
    const words = command.split(" ");
    expect(program.stdout).toContain(words[0]);
    const help = await sandbox.call([...words, "--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toContain(`Usage: plimsoll ${command} `);
    expect(help.stdout).toContain("Examples:");
    await expect(help.stdout).toMatchFileSnapshot(`golden/help-${words.join("-")}.txt`);
  }
});

test.each(["count", "nebula apply", "mcp wrap", "mcp install"])(
  "each way of asking for the help of %s prints it",
  async (command) => {
    const words = command.split(" ");
    const help = await sandbox.call([...words, "--help"]);
    expect(await sandbox.call(["help", ...words])).toEqual(help);
    expect(await sandbox.call(["--quiet", "help", ...words])).toEqual(help);
    expect(await sandbox.call([...words, "-qh"])).toEqual(help);
    expect(JSON.parse((await sandbox.call([...words, "-h", "--json"])).stdout)).toEqual({
      help: help.stdout.trimEnd(),
    });
  },
);

test.each([
  [["cuont"], 'unknown command "cuont". Did you mean "count"?'],
  [["hepl"], 'unknown command "hepl". Did you mean "help"?'],
  [["wibble"], expect.stringMatching(/^unknown command "wibble"\. Commands are .*validate.* config, completion\.$/)],
  [["help", "cuont"], 'unknown command "cuont". Did you mean "count"?'],
  [["--jsno", "count"], 'unknown option "--jsno". Did you mean "--json"?'],
  [["--counter", "count"], 'unknown option "--counter". Options of a command come after its name.'],
  [["count", "--cuonter", "auto"], 'unknown option "--cuonter". Did you mean "--counter"?'],
  [["count", "--cuonter=auto"], 'unknown option "--cuonter". Did you mean "--counter"?'],
  [["count", "--wibble"], 'unknown option "--wibble". See "plimsoll count --help".'],
  [["count", "--counter"], '--counter needs a value. See "plimsoll count --help".'],
  [["count", "--counter", "bytes/4,"], "--counter has an empty name in its list"],
  [["count", "--model", ""], "--model has an empty value"],
  [["config", "extra"], 'unexpected argument "extra". See "plimsoll config --help".'],
  [["help", "count", "extra"], 'unexpected argument "extra". The help of a command is "plimsoll help count".'],
  [["-qx"], 'unknown option "-x". Options of a command come after its name.'],
  [["completion"], 'SHELL is missing. See "plimsoll completion --help".'],
  [["completion", "bahs"], 'unknown shell "bahs". Did you mean "bash"? Choose from bash, zsh, fish.'],
])("%j is wrong usage: exit 2, nothing on stdout", async (args, message) => {
  const { code, stdout, stderr } = await sandbox.call(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.replace(/^plimsoll: /, "").trimEnd()).toEqual(message);
});

test("with --json anywhere a usage error is one JSON value on stdout", async () => {
  for (const args of [
    ["--json", "cuont"],
    ["cuont", "--json"],
    ["--jsno", "--json"],
  ]) {
    const { code, stdout } = await sandbox.run(args);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toEqual({
      error: {
        code: "usage",
        message: expect.stringContaining("unknown"),
        hint: expect.stringContaining("Did you mean"),
      },
    });
  }
  const { stdout } = await sandbox.call(["count", "--model", "", "--json"]);
  expect(JSON.parse(stdout)).toEqual({
    error: { code: "usage", message: "--model has an empty value", hint: null },
  });
});

test("a file named --json is a file after --", async () => {
  sandbox.write("--json", "abcd");
  const { code, stdout } = await sandbox.call(["count", "--counter", "bytes/4", "--", "--json"]);
  expect(code).toBe(0);
  expect(stdout).toContain("--json");
  expect(() => JSON.parse(stdout)).toThrow();
});

test("colours appear only when they are forced here, and never with NO_COLOR", async () => {
  const sequence = "\u001b[";
  const colourless: Record<string, string>[] = [
    {},
    { CI: "true" },
    { NO_COLOR: "1", FORCE_COLOR: "1" },
    { FORCE_COLOR: "0" },
  ];
  for (const env of colourless) {
    expect((await sandbox.call(["config"], { env })).stdout).not.toContain(sequence);
    expect((await sandbox.call(["--help"], { env })).stdout).not.toContain(sequence);
  }
  expect((await sandbox.run(["config"], { env: { FORCE_COLOR: "1" } })).stdout).toContain(sequence);
  expect((await sandbox.call(["--help"], { env: { FORCE_COLOR: "1" } })).stdout).toContain(sequence);
});

test("a reader that stops early ends the command quietly", { tags: ["deep"] }, async () => {
  for (let index = 0; index < 1000; index++) sandbox.write(`some-long-file-name-to-fill-the-pipe-${index}.txt`, "x");
  const script = `"${process.execPath}" "${mainFile}" count . --counter bytes/4 --json | head -n 1; exit \${PIPESTATUS[0]}`;
  const { code, stdout, stderr } = await runProcess(["bash", "-c", script], {
    cwd: sandbox.cwd,
    env: sandbox.env,
  });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "{\n", stderr: "" });
});

test("a version that nobody reads is no failure", async () => {
  // The sleep lets the reader go first.
  const script = `{ sleep 0.3; "${process.execPath}" "${mainFile}" --version; } | true; exit \${PIPESTATUS[0]}`;
  const { code, stderr } = await runProcess(["bash", "-c", script], { cwd: sandbox.cwd, env: sandbox.env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});

test.skipIf(process.platform !== "linux").each(["config", "--version"])(
  "a full disk behind the output of %s is an error, not silence (needs /dev/full)",
  async (word) => {
    const script = `"${process.execPath}" "${mainFile}" ${word} > /dev/full`;
    const { code, stderr } = await runProcess(["bash", "-c", script], { cwd: sandbox.cwd, env: sandbox.env });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: "plimsoll: cannot write to standard output: no space left\n",
    });
  },
);

test("an error that no command can catch is a bug with its stack, with --json as a value too", async () => {
  // Thrown from a timer, as soon as the frame listens.
  const late = `const t=setInterval(()=>{if(process.listenerCount("uncaughtException")){clearInterval(t);throw(new(Error)("late"))}},1)`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(late)}` };
  const child = await sandbox.run(["count", "-", "--json"], { env, input: Buffer.alloc(30_000_000, "a ") });
  expect(child.code).toBe(70);
  expect(JSON.parse(child.stdout).error).toMatchObject({ code: "internal", message: "late" });
  expect(child.stderr).toContain("This is a bug in plimsoll.");
});

test("an interrupt ends with 130", async () => {
  const child = spawn(process.execPath, [mainFile, "count", "-", "a.txt", "--counter", "bytes/4"], {
    cwd: sandbox.cwd,
    env: sandbox.env,
    stdio: ["pipe", "ignore", "pipe"],
  });
  // More than a pipe holds: once all is taken the command is reading, and more would have to come.
  await new Promise((resolve) => child.stdin.write("x".repeat(1_000_000), resolve));
  child.kill("SIGINT");
  const [code, signal] = await once(child, "exit");
  expect({ code, signal }).toEqual({ code: 130, signal: null });
});

test("a current directory that was removed is an expected error", async () => {
  const gone = join(sandbox.cwd, "gone");
  mkdirSync(gone);
  writeFileSync(
    join(sandbox.cwd, "go.sh"),
    `cd "${gone}" && rmdir "${gone}" && "${process.execPath}" "${mainFile}" config`,
  );
  const { code, stderr } = await runProcess(["bash", "go.sh"], { cwd: sandbox.cwd, env: sandbox.env });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: "plimsoll: the current directory no longer exists. Change to one that does.\n",
  });
  expect(() => rmdirSync(gone)).toThrow();
});
