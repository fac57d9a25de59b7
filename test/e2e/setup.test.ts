/** `setup` on a computer with five clients, and the way back. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const settings = '{\n  // mine\n  "model": "opus",\n\t"hooks": {}\n}\r\n';
const files = {
  ".claude/settings.json": settings,
  ".codex/config.toml": 'model = "gpt-5"\n',
  ".config/opencode/opencode.json": "{}",
  ".gemini/settings.json": "{}\n",
  ".pi/agent/settings.json": "{ }",
};

function fillHome(): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(sandbox.home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  // Clients are found by their folders too; a program is on PATH.
  mkdirSync(join(sandbox.home, "bin"));
  writeFileSync(join(sandbox.home, "bin/codex"), "#!/bin/sh\n", { mode: 0o755 });
}

/** All folders and files of the home, without our own state. */
function readHome(): string[] {
  return readdirSync(sandbox.home, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
    .filter(({ path }) => !`${relative(sandbox.home, path)}/`.startsWith(".local/"))
    .map(({ entry, path }) => `${path}: ${entry.isFile() ? readFileSync(path, "latin1") : "folder"}`)
    .sort();
}

const env = () => ({ PATH: `${join(sandbox.home, "bin")}:${sandbox.env.PATH}` });

test("its help is frozen", async () => {
  const { stdout } = await sandbox.call(["setup", "--help"]);
  await expect(stdout).toMatchFileSnapshot("golden/help-setup.txt");
});

test("installs everything in five clients with one command, and one undo restores every byte", async () => {
  fillHome();
  const before = readHome();
  const dry = await sandbox.call(["setup"], { env: env() });
  expect(dry.stderr).toContain("nothing was written. Run it again with --yes");
  expect(dry.stderr).toContain("codex can have no plugin");
  expect(readHome()).toEqual(before);
  const done = await sandbox.call(["setup", "--yes", "--no-check", "--session-usd", "5"], { env: env() });
  expect(done.code).toBe(0);
  for (const part of ["claude-code: plugin", "claude-code: status line", "claude-code: guard", "opencode: plugin"])
    expect(done.stdout).toContain(`${part}: written\n`);
  for (const part of ["pi: plugin", "gemini-cli: plugin"]) expect(done.stdout).toContain(`${part}: written\n`);
  const edited = readFileSync(join(sandbox.home, ".claude/settings.json"), "utf8");
  expect(edited).toContain('// mine\n  "model": "opus",\n\t"hooks": {}');
  expect(edited).toMatch(/"statusLine": \{[^}]*"plimsoll statusline"[^}]*"refreshInterval": 10/);
  expect(readFileSync(join(sandbox.home, ".config/plimsoll/config.yaml"), "utf8")).toBe(
    "guard: { session_usd: 5, on_limit: ask }\n",
  );
  const again = await sandbox.call(["setup", "--yes", "--no-check"], { env: env() });
  expect(again.stdout).not.toContain("written\n");
  const back = await sandbox.call(["undo"]);
  expect(back).toMatchObject({ code: 0, stdout: expect.stringContaining("took back setup of") });
  expect(readHome()).toEqual(before);
  expect((await sandbox.call(["undo"])).stdout).toContain("There is nothing to take back");
});

test("leaves a status line and a guard that a person has, and clients that were not named", async () => {
  fillHome();
  const own = '{ "statusLine": { "type": "command", "command": "mine" } }\n';
  writeFileSync(join(sandbox.home, ".claude/settings.json"), own);
  mkdirSync(join(sandbox.home, ".config/plimsoll"), { recursive: true });
  writeFileSync(join(sandbox.home, ".config/plimsoll/config.yaml"), "guard: { day_usd: 3 }\n");
  const options = ["--yes", "--no-check", "--session-usd", "5", "--json"];
  const { stdout } = await sandbox.call(["setup", "claude-code", ...options], { env: env() });
  const { parts } = JSON.parse(stdout) as { parts: { client: string; part: string; state: string }[] };
  expect(parts.map(({ client, part }) => `${client} ${part}`)).toEqual([
    "claude-code plugin",
    "claude-code status line",
    "claude-code guard",
  ]);
  expect(parts[2]?.state).toBe("has a guard already, which stays");
  expect(readFileSync(join(sandbox.home, ".claude/settings.json"), "utf8")).toBe(own);
  expect(readFileSync(join(sandbox.home, ".config/plimsoll/config.yaml"), "utf8")).toBe("guard: { day_usd: 3 }\n");
});

test("plugin without a client works on all that are found", async () => {
  fillHome();
  const before = readHome();
  const options = { env: env() };
  expect((await sandbox.call(["plugin", "install"], options)).stdout).toMatch(
    /claude-code: installed[\s\S]*opencode: installed[\s\S]*pi: installed[\s\S]*gemini-cli: installed/,
  );
  const status = JSON.parse((await sandbox.call(["plugin", "status", "--json"], options)).stdout);
  expect(status.map(({ client, installed }: { client: string; installed: object }) => [client, installed])).toEqual(
    ["claude-code", "opencode", "pi", "gemini-cli"].map((id) => [id, { user: "installed", project: "absent" }]),
  );
  expect((await sandbox.call(["plugin", "uninstall"], options)).code).toBe(0);
  expect(readHome()).toEqual(before);
  expect((await sandbox.call(["plugin", "serve"], options)).code).toBe(2);
});

test("refuses clients that are not there, and limits that are not numbers", async () => {
  expect((await sandbox.call(["setup"])).stdout).toContain("Found no AI client");
  expect((await sandbox.call(["setup", "pi"])).stderr).toContain("pi was not found on this computer");
  fillHome();
  expect((await sandbox.call(["setup", "--session-usd", "lots"])).code).toBe(2);
  expect((await sandbox.call(["setup", "vim"])).stderr).toContain("there is no plugin for");
});
