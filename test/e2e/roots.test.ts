import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const above = (path: string) => join(dirname(sandbox.cwd), path);
const listAbove = () =>
  readdirSync(above(""), { recursive: true, encoding: "utf8" }).filter((path) => !/^(project|home)\b/.test(path));

const writers: readonly (readonly string[])[] = [
  ["init"],
  ["notes", "add", "Freeze."],
  ["import"],
  ["inject", "--tool", "gemini-cli", "--tool", "cursor"],
  ["mcp", "install", "--tool", "claude-code"],
  ["plugin", "install", "opencode", "--scope", "project"],
];

test("what a sandbox leaves above a folder does not make it a project: nothing is written there", async () => {
  mkdirSync(above(".git"));
  mkdirSync(above(".plimsoll"));
  for (const name of ["AGENTS.md", "CLAUDE.md"]) writeFileSync(above(name), "# Above\n");
  sandbox.write("AGENTS.md", "# Mine\n");
  const before = listAbove();
  for (const args of writers) expect(await sandbox.call(args), args.join(" ")).toMatchObject({ code: 0 });
  expect(listAbove()).toEqual(before);
  for (const path of [".plimsoll/config.yaml", ".plimsoll/notes.yaml", "GEMINI.md", ".mcp.json"]) {
    expect(readdirSync(sandbox.cwd, { recursive: true, encoding: "utf8" }), path).toContain(path);
  }
  const { stdout } = await sandbox.call(["audit", "--json"]);
  expect(stdout).toContain("AGENTS.md");
  expect(stdout).not.toContain("../AGENTS.md");
});

test("a repository above is the project, unless it is the home directory", async () => {
  makeRepository(above(""));
  await sandbox.run(["notes", "add", "Freeze."]);
  expect(listAbove()).toContain(join(".plimsoll", "notes.yaml"));
  await sandbox.call(["inject", "--tool", "claude-code"], { env: { HOME: above("") } });
  expect(listAbove()).not.toContain("CLAUDE.md");
  expect(readdirSync(sandbox.cwd)).toEqual(["CLAUDE.md"]);
});
