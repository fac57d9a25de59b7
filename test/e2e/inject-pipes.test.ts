import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const at = (path: string) => join(project.cwd, path);

test.each([
  ["CLAUDE.md", 1, "CLAUDE.md: is a pipe, socket or device, not a file"],
  [".plimsoll/notes.yaml", 1, "notes.yaml: is a pipe, socket or device, not a file"],
  [".plimsoll/config.yaml", 1, ".plimsoll/config.yaml: is a pipe, socket or device, not a file"],
  ["package.json", 0, ""],
])("a pipe as %s keeps nobody waiting", { timeout: 20_000 }, async (path, code, message) => {
  mkdirSync(dirname(at(path)), { recursive: true });
  execFileSync("mkfifo", [at(path)]);
  // Should the command wait after all, it must not outlive the test.
  const run = await project.run(["inject", "--tool", "claude-code", "-q"], { wrapper: ["timeout", "10"] });
  expect(run).toMatchObject({ code, stderr: expect.stringContaining(message) });
});

test("a pipe further up in the chain is left out of it", { timeout: 20_000 }, async () => {
  execFileSync("mkfifo", [at("AGENTS.md")]);
  project.put("below/.plimsoll/config.yaml", "title: Below\n");
  const run = await project.run(["inject", "--tool", "agents-md", "--dry-run", "-q"], {
    cwd: at("below"),
    wrapper: ["timeout", "10"],
  });
  expect(run).toMatchObject({ code: 0, stderr: "" });
});

test("a file where a directory belongs is told, without a stack", async () => {
  writeFileSync(at("file"), "");
  const named = await project.run(["inject", "--content", "file", "--dry-run"]);
  expect(named).toMatchObject({ code: 1, stderr: "plimsoll: file:1: is not a directory\n" });
  project.put(".plimsoll/config.yaml", "company: { source: ./file }\n");
  const company = await project.run(["inject", "--dry-run", "--trust"]);
  expect(company).toMatchObject({ code: 1, stderr: "plimsoll: file:1: is not a directory\n" });
});

test("a file named .plimsoll is told, without a stack", async () => {
  writeFileSync(at(".plimsoll"), "");
  const run = await project.run(["inject", "--dry-run"]);
  expect(run).toMatchObject({ code: 1, stderr: "plimsoll: .plimsoll:1: is not a directory\n" });
});
