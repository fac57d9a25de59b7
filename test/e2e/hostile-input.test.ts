/** Files of a repository that nobody wrote in good faith: each is refused with its name and line, soon, and never as a bug of ours. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write(".plimsoll/packs/p/pack.yaml", "id: p\n");
  sandbox.write(".plimsoll/packs/p/context.md", "# P\n");
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "plan"\n');
});
afterEach(() => sandbox.remove());

const inject = ["inject", "--dry-run"];
const places: readonly (readonly [file: string, command: readonly string[]])[] = [
  [".plimsoll/config.yaml", ["config"]],
  [".plimsoll/packs/p/pack.yaml", inject],
  [".plimsoll/packs/p/pack.yaml", ["packs", "lint"]],
  [".plimsoll/packs/p/samples.yaml", inject],
  [".plimsoll/packs/p/learning.yaml", inject],
  [".plimsoll/packs/p/known_errors.yaml", inject],
  [".plimsoll/profiles/x.yaml", ["packs", "list"]],
  [".plimsoll/adapters/x.yaml", inject],
  [".plimsoll/notes.yaml", ["notes", "list"]],
];

const texts: Readonly<Record<string, string>> = {
  bytes: "!!binary aaaa",
  "keys within keys": `${"? ".repeat(30)}a`,
  "brackets that close nothing": "}".repeat(250_000),
  "a megabyte": "}".repeat(1_000_000),
  "brackets without end": "[".repeat(250_000),
};

test.each(places)("%s is refused with its line", async (file, command) => {
  for (const [name, text] of Object.entries(texts)) {
    sandbox.write(file, text);
    const before = process.cpuUsage();
    const { code, stdout, stderr } = await sandbox.call(command);
    expect(process.cpuUsage(before).user / 1_000, name).toBeLessThan(4_000);
    expect(code, `${name}: ${stderr}`).toBe(1);
    expect(stdout + stderr, name).toContain(`${file}:1: `);
    expect((stdout + stderr).length, name).toBeLessThan(20_000);
  }
});

test.each([
  [["config"], ".plimsoll/config.yaml", "}".repeat(1_000_000)],
  [["nebula", "validate", "plan"], "plan/a.md", `+++\n${"a.".repeat(120_000)}a = 1\n+++\n`],
])("%j needs little memory for it", async (command, file, text) => {
  sandbox.write(file, text);
  const { code, stderr } = await sandbox.run(command, { env: { NODE_OPTIONS: "--max-old-space-size=200" } });
  expect(code, stderr).toBe(1);
});

test("what a repository leaves out by endless patterns is listed", async () => {
  sandbox.write(".gitignore", `${"a/".repeat(500_000)}\n${"**/a/".repeat(40)}b\ngone\n`);
  sandbox.write("gone", "x");
  sandbox.write("kept", "x");
  const { code, stdout, stderr } = await sandbox.call(["count", "."]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("kept");
  expect(stdout).not.toContain("gone");
});
