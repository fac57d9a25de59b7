import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write(".git/HEAD", "ref: x");
});
afterEach(() => sandbox.remove());

const bytes4 = ["--counter", "bytes/4"];

test("the help is as pinned", async () => {
  const help = await sandbox.call(["audit", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot("golden/help-audit.txt");
});

test("each tool has a table of its files, its broken limits and advice; tools alike stand together", async () => {
  sandbox.write("AGENTS.md", "123456789\n".repeat(3000));
  sandbox.write("CLAUDE.md", "@AGENTS.md\n");
  sandbox.write("api/AGENTS.md", "123456789\n".repeat(400));
  const { code, stdout, stderr } = await sandbox.run(["audit", "api", ...bytes4]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain(`claude-code
  file       via                  bytes/4
  CLAUDE.md  project                    3
  AGENTS.md  import of CLAUDE.md    7,500
  total                             7,503
  over an advice: 3,000 of 200 lines in one file
  - AGENTS.md has 3,000 lines; fewer than 200 are advised for Claude Code`);
  expect(stdout).toContain(`codex-cli
  file           via      bytes/4
  AGENTS.md      project    7,500
  api/AGENTS.md  project    1,000
  total                     8,500
  OVER THE LIMIT: 34,000 of 32,768 bytes in all files
  - The files together have 34,000 bytes; Codex CLI takes 32,768: api/AGENTS.md is cut after 2,768 of its 4,000 bytes, in line 277; what follows there is lost.
`);
  expect(stdout).toMatch(/^cline, .*, zed$/m);
});

test("JSON has this shape and nothing else", async () => {
  sandbox.write("GEMINI.md", "Use tabs.");
  mkdirSync(join(sandbox.home, ".claude"));
  writeFileSync(join(sandbox.home, ".claude/CLAUDE.md"), "Mine.");
  symlinkSync("GEMINI.md", join(sandbox.cwd, "QWEN.md"));
  const { code, stdout } = await sandbox.call(["audit", "--json", ...bytes4]);
  expect(code).toBe(0);
  const report = JSON.parse(stdout);
  expect(Object.keys(report)).toEqual(["counter", "tools"]);
  expect(report.counter).toBe("bytes/4");
  const byId = Object.fromEntries(report.tools.map((tool: { id: string }) => [tool.id, tool]));
  expect(byId["gemini-cli"]).toEqual({
    id: "gemini-cli",
    files: [{ path: "GEMINI.md", bytes: 9, tokens: 3, via: "project" }],
    tokens: 3,
    limits: [],
    advice: [],
  });
  expect(byId["qwen-code"].files).toEqual([
    { path: "QWEN.md", bytes: 9, tokens: 3, via: "link to GEMINI.md" },
  ]);
  expect(byId["claude-code"].files).toEqual([
    { path: "~/.claude/CLAUDE.md", bytes: 5, tokens: 2, via: "user" },
  ]);
  expect(byId["claude-code"].limits[0]).toEqual({
    ...{ value: 200, unit: "lines", kind: "advice", scope: "file", evidence: "third-party" },
    ...{ used: 1, exceeded: false },
  });
});

test("without a model the counter is the one that counts highest, and a note says so", async () => {
  sandbox.write("GEMINI.md", "Use tabs.");
  const { stdout, stderr } = await sandbox.call(["audit", "--json"]);
  expect(JSON.parse(stdout).counter).toBe("estimate:claude-5");
  expect(stderr).toContain("estimate:claude-5");
  const model = await sandbox.call(["audit", "--json", "--model", "gpt-5"]);
  expect(JSON.parse(model.stdout).counter).toBe("estimate:o200k");
});

test("only tools that load something are shown, unless all are asked for", async () => {
  expect(await sandbox.call(["audit", ...bytes4])).toEqual({
    ...{ code: 0, stderr: "" },
    stdout: "no AI tool loads a file here\n",
  });
  const { stdout } = await sandbox.call(["audit", "--all", "--json", ...bytes4]);
  const ids = JSON.parse(stdout).tools.map(({ id }: { id: string }) => id);
  expect(ids).toEqual(expect.arrayContaining(["claude-code", "codex-cli", "cursor", "zed"]));
  expect(ids).not.toContain("agents-md");
});

test("nothing is written", async () => {
  sandbox.write("AGENTS.md", "Use tabs.");
  sandbox.write("CLAUDE.md", "@AGENTS.md");
  const before = snapshot();
  await sandbox.call(["audit"]);
  await sandbox.call(["audit", "--all", "--json"]);
  expect(snapshot()).toEqual(before);
});

function snapshot(): string[] {
  const top = join(sandbox.cwd, "..");
  return readdirSync(top, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const stats = lstatSync(join(top, name));
      return `${name} ${stats.mtimeMs} ${stats.isFile() ? readFileSync(join(top, name), "utf8") : ""}`;
    });
}

test("a directory that cannot be read is a failure; two counters are wrong usage", async () => {
  sandbox.write("file.md", "x");
  expect(await sandbox.call(["audit", "gone"])).toEqual({
    ...{ code: 1, stdout: "" },
    stderr: "plimsoll: gone: no such directory\n",
  });
  expect(await sandbox.call(["audit", "file.md"])).toMatchObject({
    code: 1,
    stderr: "plimsoll: file.md: is no directory\n",
  });
  const json = await sandbox.call(["audit", "gone", "--json"]);
  expect(JSON.parse(json.stdout).error).toMatchObject({ code: "unreadable_input", file: "gone" });
  expect(await sandbox.call(["audit", "--counter", "bytes/4,chars/3.5"])).toMatchObject({
    code: 2,
    stdout: "",
  });
});

test("names of files cannot steer the terminal", async () => {
  sandbox.write(".kiro/steering/\u001b[31mred.md", "Text.");
  const { stdout } = await sandbox.call(["audit", ...bytes4]);
  expect(stdout).toContain(".kiro/steering/\\x1b[31mred.md");
  expect(stdout).not.toContain("\u001b");
});
