/** inject plans by what tools really load: nothing that people wrote is hidden, and a check says what a tool does not read.
 *  `npm run accept:load` shows the same with the real tools. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const inject = (...more: string[]) => project.call(["inject", ...more]);
const config = (tools: string) => project.put(".plimsoll/config.yaml", `tools: [${tools}]\n`);
const has = (path: string) => existsSync(join(project.cwd, path));

test("a CLAUDE.md that would hide the team's AGENTS.md from Claude Code is not created", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put(".claude/settings.json", "{}\n");
  config("agents-md, claude-code");
  const run = await inject();
  expect(run).toMatchObject({
    code: 0,
    stderr: "plimsoll: claude-code reads the block in AGENTS.md, because a new CLAUDE.md would hide AGENTS.md (in .)\n",
  });
  expect(run.stdout).toMatch(/^AGENTS\.md \(agents-md, claude-code\): updated/);
  expect(has("CLAUDE.md")).toBe(false);
  expect(await inject("--check")).toMatchObject({ code: 0 });
});

test("for Claude Code alone, the block goes into the AGENTS.md that it reads", async () => {
  project.put("AGENTS.md", "# Team\n");
  config("claude-code");
  const run = await inject();
  expect(run.stdout).toMatch(/^AGENTS\.md \(agents-md, claude-code\): updated/);
  expect(has("CLAUDE.md")).toBe(false);
  expect(await inject("--check")).toMatchObject({ code: 0 });
  expect(await inject("--uninstall")).toMatchObject({ code: 0 });
  expect(project.read("AGENTS.md")).toBe("# Team\n");
});

test("a CLAUDE.md with the team's text keeps its own block", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put("CLAUDE.md", "# For Claude\n");
  config("agents-md, claude-code");
  expect(await inject()).toMatchObject({ code: 0, stderr: "" });
  expect(project.read("CLAUDE.md")).toContain("plimsoll:start");
  expect(project.read("AGENTS.md")).toContain("plimsoll:start");
  expect(await inject("--check")).toMatchObject({ code: 0 });
});

test("an override file that hides the block from Codex is named, and fails a check", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put("AGENTS.override.md", "# Mine\n");
  config("agents-md");
  const run = await inject();
  expect(run).toMatchObject({ code: 0 });
  expect(run.stderr).toContain("codex-cli gets no block: AGENTS.override.md hides AGENTS.md (in .)");
  const check = await inject("--check");
  expect(check.code).toBe(1);
  expect(check.stdout).toMatch(/^hidden +AGENTS\.md +codex-cli/m);
});

test("a file that Zed reads instead of AGENTS.md is named, and fails a check", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put(".github/copilot-instructions.md", "# For Copilot\n");
  config("zed, codex-cli");
  const run = await inject();
  expect(run).toMatchObject({ code: 0 });
  expect(run.stderr).toContain("zed gets no block: .github/copilot-instructions.md hides AGENTS.md (in .)");
  const check = await inject("--check");
  expect(check.code).toBe(1);
  expect(check.stdout).toMatch(/^hidden +AGENTS\.md +zed/m);
});

test("a new file that would hide a person's file from Zed is named", async () => {
  project.put("CLAUDE.md", "# Team\n");
  config("zed");
  expect((await inject()).stderr).toContain("zed no longer reads CLAUDE.md: AGENTS.md hides it (in .)");
  expect(await inject("--check")).toMatchObject({ code: 1 });
});

test("a project for GitHub Copilot hears what Copilot CLI reads twice, and no check fails", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put("CLAUDE.md", "# For Claude\n");
  config("agents-md, claude-code, github-copilot");
  expect((await inject()).stderr).toContain(
    "copilot-cli, which `tools:` does not name, gets the block twice: it reads the block in AGENTS.md and in CLAUDE.md (in .)",
  );
  expect(await inject("--check")).toMatchObject({ code: 0 });
});

test("an import that Claude Code follows only in its own folder is named for the other folders", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put("CLAUDE.md", "# Mine\n\n@AGENTS.md\n");
  project.put("sub/AGENTS.md", "# Sub\n");
  config("agents-md, claude-code");
  expect((await inject()).stderr).toContain("claude-code gets no block");
  const { code, stdout } = await inject("--check", "--json");
  expect(code).toBe(1);
  const faults = JSON.parse(stdout).filter(({ state }: { state: string }) => state !== "current");
  expect(faults).toMatchObject([{ adapter: "claude-code", state: "hidden" }]);
});

test("a tool that gets the block twice fails a check", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put("CLAUDE.md", "# For Claude\n");
  config("agents-md, claude-code, copilot-cli");
  expect((await inject()).stderr).toContain(
    "copilot-cli gets the block twice: it reads the block in AGENTS.md and in CLAUDE.md",
  );
  expect(await inject("--check")).toMatchObject({ code: 1 });
});

test("a file keeps the block if the file that it imports is left out", async () => {
  project.put("CLAUDE.md", "# Mine\n\n@AGENTS.md\n");
  config("claude-code, pi");
  const run = await inject();
  expect(run).toMatchObject({ code: 0 });
  expect(run.stderr).not.toContain("gets no block");
  expect(run.stdout).toMatch(/^CLAUDE\.md \(claude-code\): updated/);
  expect(has("AGENTS.md")).toBe(false);
  expect(await inject("--check")).toMatchObject({ code: 0 });
});

test("each folder in which a tool gets no block is named", async () => {
  project.put("CLAUDE.md", "# Mine\n");
  project.put("sub/CLAUDE.md", "# Sub\n");
  config("pi");
  expect((await inject()).stderr).toContain("pi gets no block: AGENTS.md hides CLAUDE.md (in ., sub)");
});

test("a personal file that git ignores changes no file of the project, and what it hides is named", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put(".gitignore", "*.local.md\n");
  project.put("CLAUDE.local.md", "# Mine\n");
  config("agents-md, claude-code");
  const run = await inject();
  expect(run.stdout).toMatch(/^AGENTS\.md \(agents-md, claude-code\): updated/);
  expect(run.stderr).toContain("claude-code gets no block: CLAUDE.local.md hides AGENTS.md (in .)");
  expect(has("CLAUDE.md")).toBe(false);
  expect(await inject("--check")).toMatchObject({ code: 0 });
});

test("a file that imports AGENTS.md through other files gets no second block", async () => {
  project.put("AGENTS.md", "# Team\n");
  project.put("CLAUDE.md", "# Mine\n\n@docs/a.md\n");
  project.put("docs/a.md", "@b.md\n");
  project.put("docs/b.md", "@../AGENTS.md\n");
  config("agents-md, claude-code");
  const run = await inject();
  expect(run).toMatchObject({ code: 0, stderr: "" });
  expect(run.stdout).toMatch(/^AGENTS\.md \(agents-md, claude-code\): updated/);
  expect(project.read("CLAUDE.md")).not.toContain("plimsoll:start");
  expect(await inject("--check")).toMatchObject({ code: 0 });
});
