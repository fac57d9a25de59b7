import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

function git(...args: readonly string[]): void {
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", ...args], {
    cwd: sandbox.cwd,
    env: sandbox.env,
    stdio: "pipe",
  });
}

test("a project is described on stdout, the same each time and wherever it lies", async () => {
  sandbox.write("package.json", '{ "name": "ship", "scripts": { "test": "vitest" } }');
  sandbox.write("src/main.js", "");
  sandbox.write("out/main.js", "");
  sandbox.write(".gitignore", "out/\n");
  sandbox.write("AGENTS.md", "Test first.\n");
  sandbox.write("CLAUDE.md", "@AGENTS.md\n");
  const expected = {
    code: 0,
    stderr: "",
    stdout: `## Project

- Module: ship
- Language: JavaScript
- Package manager: npm
- Test command: npm test

## Structure

\`\`\`
src/
  main.js
.gitignore
AGENTS.md
CLAUDE.md
package.json
\`\`\`

## Conventions

### AGENTS.md

Test first.`,
  };
  expect(await sandbox.run(["snapshot"])).toEqual(expected);
  git("init", "--quiet");
  expect(await sandbox.call(["snapshot"])).toEqual(expected);
  git("add", "--all");
  git("commit", "--quiet", "-m", "all");
  expect(await sandbox.call(["snapshot", sandbox.cwd], { cwd: sandbox.home })).toEqual(expected);
});

test("JSON has the text and the facts about it", async () => {
  for (let index = 0; index < 15; index++) sandbox.write(`folder-${index}/file-${index}.ts`, "");
  const { stdout } = await sandbox.call(["snapshot", "--json", "--max-tokens", "40"]);
  const { text, tokens, ...facts } = JSON.parse(stdout);
  const omitted = Number(/(\d+) entries omitted/.exec(text)?.[1]);
  expect(facts).toEqual({ maxTokens: 40, counter: "bytes/4", truncated: true, omitted, files: 15 });
  expect(text).toMatch(/\n\[\.\.\. truncated, \d+ entries omitted\]\n```$/);
  expect(tokens).toBe(Math.ceil(Buffer.byteLength(text) / 4));
  expect(tokens).toBeLessThanOrEqual(40);
});

test("the counter is the one that was asked for, by name, by model or by configuration", async () => {
  sandbox.write("a", "");
  const counterOf = async (...args: readonly string[]) =>
    JSON.parse((await sandbox.call(["snapshot", "--json", ...args])).stdout).counter;
  expect(await counterOf("--counter", "exact:o200k")).toBe("exact:o200k");
  expect(await counterOf("--model", "gpt-5")).toMatch(/o200k$/);
  sandbox.write(".plimsoll/config.yaml", "counter: chars/3.5\n");
  expect(await counterOf()).toBe("chars/3.5");
});

test.each([
  ["--max-tokens", "-1"],
  ["--max-tokens", "1.5"],
  ["--max-tokens", "many"],
  ["--counter", "bytes/4,chars/3.5"],
  ["one", "two"],
])("wrong usage: %s %s", async (...args) => {
  const { code, stdout, stderr } = await sandbox.call(["snapshot", ...args]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(/^plimsoll: /);
});

test("what is no directory is refused by its name", async () => {
  sandbox.write("file", "");
  expect(await sandbox.call(["snapshot", "file"])).toEqual({
    code: 1,
    stdout: "",
    stderr: "plimsoll: file: is not a directory\n",
  });
  const { code, stdout } = await sandbox.call(["snapshot", "missing", "--json"]);
  expect([code, JSON.parse(stdout).error]).toMatchObject([
    1,
    { code: "unreadable_input", message: "no such directory", file: "missing" },
  ]);
});

test("a bare repository and an empty folder are folders too", async () => {
  git("init", "--quiet", "--bare", "bare.git");
  expect((await sandbox.call(["snapshot", "bare.git"])).stdout).toContain("\nHEAD\n");
  expect(await sandbox.call(["snapshot", sandbox.home])).toEqual({
    code: 0,
    stdout: "",
    stderr: "plimsoll: no files were found here\n",
  });
});

test("names and texts can neither break the Markdown nor steer the terminal", async () => {
  sandbox.write("```", "");
  sandbox.write("line\nbreak", "");
  sandbox.write("\u001b]0;title\u0007", "");
  writeFileSync(Buffer.concat([Buffer.from(`${sandbox.cwd}/`), Buffer.from([0x7a, 0xff])]), "");
  sandbox.write("AGENTS.md", "```\n\u001b[2Jopen");
  symlinkSync(join(sandbox.home, "secret.md"), join(sandbox.cwd, "CLAUDE.md"));
  writeFileSync(join(sandbox.home, "secret.md"), "secret");
  const { stdout, stderr } = await sandbox.call(["snapshot"]);
  expect(stdout).toBe(`## Structure

\`\`\`\`
\\x1b]0;title\\x07
AGENTS.md
CLAUDE.md
\`\`\`
line\\nbreak
z\uFFFD
\`\`\`\`

## Conventions

### AGENTS.md

\`\`\`
\\x1b[2Jopen
\`\`\``);
  expect(stderr).toBe("plimsoll: CLAUDE.md: is a link out of the project, which is not followed\n");
});

test("without git the folder is walked, and that is said once", async () => {
  sandbox.write("kept", "");
  sandbox.write("out/gone", "");
  sandbox.write(".gitignore", "out\n");
  git("init", "--quiet");
  const { stdout, stderr } = await sandbox.call(["snapshot"], { env: { PATH: dirname(process.execPath) } });
  const hasGit = spawnSync(join(dirname(process.execPath), "git"), ["--version"]).status === 0;
  expect(stderr).toBe(hasGit ? "" : "plimsoll: .: listed without git, because git is not on PATH\n");
  expect(stdout).toBe("## Structure\n\n```\n.gitignore\nkept\n```");
  expect((await sandbox.call(["snapshot", "--quiet"], { env: { PATH: "/nowhere" } })).stderr).toBe("");
});

// Permissions do not bind root: there the command runs as nobody, if setpriv is present and nobody can reach the build.
const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
const isRoot = process.getuid?.() === 0;
const nobodyWorks =
  isRoot && spawnSync(asNobody[0]!, [...asNobody.slice(1), process.execPath, mainFile, "-V"]).status === 0;

test.skipIf(isRoot && !nobodyWorks)("a folder that cannot be read is shown, and named", async () => {
  sandbox.write("open/a", "");
  sandbox.write("closed/b", "");
  chmodSync(join(sandbox.cwd, "closed"), 0);
  chmodSync(dirname(sandbox.cwd), 0o755);
  const wrapper = isRoot ? asNobody : [];
  const { code, stdout, stderr } = await sandbox.run(["snapshot"], { wrapper });
  chmodSync(join(sandbox.cwd, "closed"), 0o755);
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: "## Structure\n\n```\nclosed/\nopen/\n  a\n```",
    stderr: "plimsoll: closed: no permission to read it\n",
  });
});

test.skipIf(!isRoot)("a repository that belongs to someone else is listed without git", async () => {
  sandbox.write("a", "");
  sandbox.write("out/b", "");
  sandbox.write(".gitignore", "out\n");
  git("init", "--quiet");
  for (const path of [".", ".git"]) chownSync(join(sandbox.cwd, path), 65534, 65534);
  const { stdout, stderr } = await sandbox.call(["snapshot"]);
  expect(stdout).toBe("## Structure\n\n```\n.gitignore\na\n```");
  expect(stderr).toMatch(/^plimsoll: \.: listed without git: .*belongs to another user$/m);
});
