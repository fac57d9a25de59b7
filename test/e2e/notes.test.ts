import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  makeRepository(sandbox.cwd);
});
afterEach(() => sandbox.remove());

const file = ".plimsoll/notes.yaml";

test.each(["", "add", "list", "clear"])("the help of notes %s is as pinned", async (name) => {
  const help = await sandbox.call(["notes", ...(name === "" ? [] : [name]), "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot(`golden/help-notes${name === "" ? "" : `-${name}`}.txt`);
});

test("notes are added at the end, listed and cleared", async () => {
  expect(await sandbox.call(["notes", "list"])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(existsSync(join(sandbox.cwd, file))).toBe(false);
  const first = await sandbox.call(["notes", "add", "Release freeze: until Friday"]);
  expect(first).toMatchObject({ code: 0, stdout: "- Release freeze: until Friday\n" });
  expect(first.stderr).toContain("plimsoll inject");
  await sandbox.call(["notes", "add", "two", "words\nand a line"]);
  const listed = await sandbox.call(["notes", "list", "--json"]);
  const notes = ["Release freeze: until Friday", "two words and a line"];
  expect(JSON.parse(listed.stdout)).toEqual({ notes });
  const cleared = await sandbox.run(["notes", "clear", "--json"]);
  expect(cleared).toMatchObject({ code: 0, stderr: "plimsoll: 2 notes removed\n" });
  expect(JSON.parse(cleared.stdout)).toEqual({ notes: [] });
  expect(await sandbox.call(["notes", "list"])).toMatchObject({ code: 0, stdout: "" });
});

test("inject shows them, from a folder of the project too", async () => {
  sandbox.write("src/a.ts", "");
  await sandbox.call(["notes", "add", "Freeze."], { cwd: join(sandbox.cwd, "src") });
  await sandbox.call(["inject", "--tool", "agents-md"]);
  expect(readFileSync(join(sandbox.cwd, "AGENTS.md"), "utf8")).toContain("## Current Context\n\n- Freeze.\n");
});

test("a note that is empty or too long is wrong usage, and nothing is written", async () => {
  const runs = [[" "], ["ä".repeat(251)], []].map((words) => sandbox.call(["notes", "add", ...words]));
  for (const run of await Promise.all(runs)) expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(existsSync(join(sandbox.cwd, file))).toBe(false);
});

test.each([
  ["notes: [a\n", "malformed YAML"],
  ["notes: 3\n", 'a list of texts under "notes"'],
])("a file that is broken is left as it is: %j", async (text, message) => {
  sandbox.write(file, text);
  const runs = [["list"], ["add", "x"], ["clear"]].map((args) => sandbox.call(["notes", ...args]));
  for (const { code, stdout, stderr } of await Promise.all(runs)) {
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`plimsoll: ${file}:`);
    expect(stderr).toContain(message);
  }
  expect(readFileSync(join(sandbox.cwd, file), "utf8")).toBe(text);
});

test("notes of several runs at once are all kept", { tags: ["deep"] }, async () => {
  const names = Array.from({ length: 6 }, (_, index) => `note ${index}`);
  await Promise.all(names.map((name) => sandbox.run(["notes", "add", name])));
  const { stdout } = await sandbox.run(["notes", "list", "--json"]);
  expect(JSON.parse(stdout).notes.sort()).toEqual(names);
});
