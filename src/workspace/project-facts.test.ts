import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { detectFacts } from "./project-facts.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "plimsoll-facts-"));
});
afterEach(() => rm(root, { recursive: true }));

async function factsOf(files: Record<string, string>) {
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  return Object.fromEntries((await detectFacts(root)).map(({ name, value }) => [name, value]));
}

it("knows nothing of an empty folder, and does not fail on one that is not there", async () => {
  expect(await factsOf({})).toEqual({});
  expect(await detectFacts(join(root, "missing"))).toEqual([]);
});

it("reads a TypeScript project's manager from its lock file and its test from the scripts", async () => {
  const manifest = JSON.stringify({ scripts: { test: "vitest" }, devDependencies: { typescript: "7" } });
  expect(await factsOf({ "package.json": manifest, "pnpm-lock.yaml": "" })).toEqual({
    Language: "TypeScript",
    "Package manager": "pnpm",
    "Test command": "pnpm test",
  });
});

it("does not take the placeholder of npm init for a test, nor fail on broken JSON", async () => {
  const manifest = JSON.stringify({ scripts: { test: 'echo "Error: no test specified" && exit 1' } });
  expect(await factsOf({ "package.json": manifest })).toEqual({
    Language: "JavaScript",
    "Package manager": "npm",
  });
  expect(await factsOf({ "package.json": "{" })).toEqual({
    Language: "JavaScript",
    "Package manager": "npm",
  });
});

it("names every language of a mixed project, in a fixed order", async () => {
  const files = { "go.mod": "module x", "pyproject.toml": "[tool.pytest.ini_options]", "uv.lock": "" };
  expect(await factsOf(files)).toEqual({
    Language: "Python, Go",
    "Package manager": "uv, go",
    "Test command": "uv run pytest, go test ./...",
  });
});

it("does not wait for the writer of a pipe", { timeout: 5_000 }, async () => {
  execFileSync("mkfifo", [join(root, "package.json")]);
  expect(await factsOf({})).toEqual({ Language: "JavaScript", "Package manager": "npm" });
});
