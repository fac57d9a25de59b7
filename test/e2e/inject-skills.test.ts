import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const claude = ["--tool", "claude-code"];

/** Writes a skill `deploy` of the pack `release`, with these files beside its SKILL.md. */
function skill(others: Readonly<Record<string, string>>): void {
  project.pack("release", "## Release\n\n- Tag from main.\n", "weight: 500");
  const all = { "SKILL.md": "---\nname: deploy\ndescription: How to deploy.\n---\nAsk first.\n", ...others };
  for (const [name, text] of Object.entries(all)) {
    const path = join(project.cwd, ".plimsoll/packs/release/skills/deploy", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

function skillFiles(): string[] {
  const paths = Object.entries(project.tree()).filter(([, content]) => content !== "(directory)");
  return paths.map(([path]) => path).filter((path) => /^\.\w+\/skills\//.test(path));
}

const oddNames = [
  "k=v.md",
  "a b,c.md",
  'it\'s "so".md',
  "two\nlines.md",
  "bell\u0007\u001b[2J.md",
  "100%25 #?&+.md",
  "ü.md",
];

test("a skill with any file name is checked, updated and removed", async () => {
  const text = (version: string) => Object.fromEntries(oddNames.map((name) => [name, `${version}\n`]));
  skill(text("one"));
  const before = project.tree();
  expect(await project.call(["inject", ...claude, "-q"])).toMatchObject({ code: 0 });
  expect(skillFiles()).toHaveLength(oddNames.length + 1);
  expect(await project.call(["inject", "--check", ...claude])).toMatchObject({ code: 0 });
  skill(text("two"));
  expect(await project.call(["inject", ...claude, "-q"])).toMatchObject({ code: 0 });
  expect(project.read(".claude/skills/deploy/k=v.md")).toBe("two\n");
  rmSync(join(project.cwd, ".plimsoll/packs/release/skills/deploy/k=v.md"));
  expect(await project.call(["inject", ...claude, "-q"])).toMatchObject({ code: 0 });
  expect(existsSync(join(project.cwd, ".claude/skills/deploy/k=v.md"))).toBe(false);
  skill(text("one"));
  expect(await project.call(["inject", "--uninstall", "-q"])).toMatchObject({ code: 0, stderr: "" });
  expect(project.tree()).toEqual(before);
});

test("a file name cannot control the terminal or add a line to a report", async () => {
  skill({ "two\nlines\u001b[2J.md": "x\n" });
  const shown = "deploy/two\\nlines\\x1b[2J.md";
  const runs = [["inject"], ["inject", "--status"], ["inject", "--check"], ["inject", "--uninstall"]];
  for (const args of runs) {
    const { stdout } = await project.call(args);
    expect(stdout).not.toContain("\u001b");
    expect(stdout.split("\n").filter((line) => line.includes(shown))).toHaveLength(2);
  }
  await project.call(["inject", "-q"]);
  rmSync(join(project.cwd, ".plimsoll/packs/release"), { recursive: true });
  for (const flags of [["--dry-run"], []]) {
    const { stdout } = await project.call(["inject", "--prune", ...flags]);
    expect(stdout).not.toContain("\u001b");
    expect(stdout.split("\n").filter((line) => line.includes(`${shown}: `))).toHaveLength(2);
  }
});

test("if a person edited one file of a skill, uninstalling and pruning keep the whole skill and name the file", async () => {
  for (const edited of ["ref.md", "SKILL.md"]) {
    for (const mode of ["--uninstall", "--prune"]) {
      skill({ "ref.md": "ref\n", "more.md": "more\n" });
      await project.call(["inject", ...claude, "-q"]);
      const path = `.claude/skills/deploy/${edited}`;
      project.put(path, `${project.read(path)}Mine.\n`);
      const before = skillFiles().map((each) => [each, project.read(each)]);
      if (mode === "--prune") rmSync(join(project.cwd, ".plimsoll/packs/release"), { recursive: true });
      const run = await project.call(["inject", mode, ...claude]);
      expect(run.code).toBe(1);
      expect(run.stderr).toContain(`${path}: the file was edited by hand, so the whole skill deploy was not changed.`);
      expect(skillFiles().map((each) => [each, project.read(each)])).toEqual(before);
      skill({ "ref.md": "ref\n", "more.md": "more\n" });
      const status = await project.call(["inject", "--status", ...claude]);
      expect(status.stdout).toMatch(new RegExp(`^edited +\\.claude/skills/deploy/${edited} +claude-code +[1-9]`, "m"));
      expect(status.stdout).not.toMatch(/^current +\.claude\/skills/m);
      expect(status.stdout.match(/^blocked +\.claude\/skills\/deploy\/.*claude-code +[1-9]/gm)).toHaveLength(2);
      expect(await project.call(["inject", "--uninstall", "--force", "-q"])).toMatchObject({ code: 0 });
      expect(skillFiles()).toEqual([`${path}.bak`]);
      rmSync(join(project.cwd, ".claude"), { recursive: true });
    }
  }
});

test("a skill that a file of the team blocks is shown as blocked, with the file as the reason", async () => {
  skill({ "ref.md": "ref\n" });
  project.put(".claude/skills/deploy/ref.md", "team\n");
  await project.call(["inject", ...claude, "-q"]);
  const status = await project.call(["inject", "--check", ...claude]);
  expect(status.code).toBe(1);
  expect(status.stdout).toMatch(/^blocked +\.claude\/skills\/deploy\/SKILL\.md +claude-code +[1-9]/m);
  expect(status.stdout).toMatch(/^not injected +\.claude\/skills\/deploy\/ref\.md +claude-code +4$/m);
  expect(status.stderr).toMatch(
    /deploy\/ref\.md: plimsoll did not write this file, so the whole skill deploy was not changed/,
  );
  expect(await project.call(["inject", "--force", ...claude])).toMatchObject({ code: 0 });
  expect(await project.call(["inject", "--check", ...claude])).toMatchObject({ code: 0 });
});

test("a skill goes into the fewest folders, and audit does not complain about a copy that another tool needs", async () => {
  skill({ "ref.md": "Read this before you deploy the service to production.\n".repeat(30) });
  const folders = () => [...new Set(skillFiles().map((path) => path.split("/")[0]))].sort();
  await project.call(["inject", "--tool", "cursor,github-copilot,devin-desktop", "-q"]);
  expect(folders()).toEqual([".agents"]);
  await project.call(["inject", "--uninstall", "-q"]);
  await project.call(["inject", "--tool", "claude-code,cursor,github-copilot", "-q"]);
  expect(folders()).toEqual([".claude"]);
  await project.call(["inject", "--uninstall", "-q"]);
  // Codex and Claude Code need one folder each, and Cursor and Copilot read both.
  await project.call(["inject", "--tool", "claude-code,agents-md,cursor,github-copilot", "-q"]);
  expect(folders()).toEqual([".agents", ".claude"]);
  for (const tool of ["cursor", "github-copilot"]) {
    const [row] = JSON.parse((await project.call(["audit", "--tool", tool, "--json"])).stdout).tools;
    expect(row.files.filter(({ via }: { via: string }) => via === "skill")).toHaveLength(1);
    expect(row.advice.join("\n")).not.toContain("/skills/");
  }
  // A copy with other bytes still counts.
  project.put(".claude/skills/deploy/SKILL.md", `${project.read(".claude/skills/deploy/SKILL.md")}More.\n`);
  const [cursor] = JSON.parse((await project.call(["audit", "--tool", "cursor", "--json"])).stdout).tools;
  expect(cursor.files.filter(({ via }: { via: string }) => via === "skill")).toHaveLength(2);
});

test("the size of a skill file in --status is the size of the file", async () => {
  skill({ "ref.md": "ref\n" });
  await project.call(["inject", ...claude, "-q"]);
  const { stdout } = await project.call(["inject", "--status", ...claude, "--json"]);
  const rows = JSON.parse(stdout).filter(({ path }: { path: string }) => path.includes("/skills/"));
  expect(rows).toHaveLength(2);
  for (const { path, bytes, state } of rows)
    expect({ path, bytes, state }).toEqual({ path, bytes: project.read(path).length, state: "current" });
});

test("a run says so if no tool loads the skills of other content", async () => {
  skill({});
  const jetbrains = ["--tool", "jetbrains-ai", "--pack", "release"];
  const own = await project.call(["inject", ...jetbrains]);
  expect(own.stderr).not.toContain("skills");
  renameSync(join(project.cwd, ".plimsoll"), join(project.cwd, "content"));
  const other = await project.call(["inject", ...jetbrains, "--content", "content"]);
  expect(other.stderr).toContain("no chosen tool loads skills, so the skills of release are not installed");
  const claudes = await project.call(["inject", ...claude, "--pack", "release", "--content", "content"]);
  expect(claudes.stderr).not.toContain("not installed");
});

test("a tool that has only skills here has no row of its own", async () => {
  skill({});
  const { stdout } = await project.call(["inject", "--all", "--dry-run", "--stats"]);
  expect(stdout).toMatch(/^agents-md /m);
  expect(stdout).not.toMatch(/^codex-cli /m);
});
