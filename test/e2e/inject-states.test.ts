import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

interface Row {
  readonly path: string;
  readonly state: string;
  readonly bytes: number;
}

async function status(...flags: string[]): Promise<Row[]> {
  const rows = JSON.parse((await project.call(["inject", "--status", "--json", ...flags])).stdout);
  return rows.map(({ path, state, bytes }: Row) => ({ path, state, bytes }));
}

test("--status shows the size of the block that inject would write, whatever the state", async () => {
  const tools = ["--tool", "claude-code,cursor"];
  const [claude, cursor] = await status(...tools);
  expect([claude?.state, cursor?.state]).toEqual(["not found", "not found"]);
  expect(claude?.bytes).toBeGreaterThan(1_000);
  await project.call(["inject", ...tools, "-q"]);
  expect(await status(...tools)).toEqual([
    { ...claude, state: "current" },
    { ...cursor, state: "current" },
  ]);
  const [block, rule] = [project.read("CLAUDE.md"), project.read(".cursor/rules/plimsoll.mdc")];
  project.put("CLAUDE.md", block.replace("Maintained", "Edited"));
  project.put(".cursor/rules/plimsoll.mdc", `${rule}Mine.\n`);
  const edited = [
    { ...claude, state: "edited" },
    { ...cursor, state: "edited" },
  ];
  expect(await status(...tools)).toEqual(edited);
  project.put("CLAUDE.md", block.replace("<!-- plimsoll:end:context -->", ""));
  project.put(".cursor/rules/plimsoll.mdc", "Ours.\n");
  expect(await status(...tools)).toEqual([
    { ...claude, state: "orphaned" },
    { ...cursor, state: "not injected" },
  ]);
});

test("--status shows the size and the state of an export file, not of the clipboard", async () => {
  const chatgpt = ["--global", "--tool", "chatgpt"];
  const file = join(project.home, "plimsoll-chatgpt-context.md");
  await project.call(["inject", ...chatgpt, "-q"]);
  const { length } = readFileSync(file);
  expect(length).toBeGreaterThan(1_400);
  const shown = "~/plimsoll-chatgpt-context.md";
  expect(await status(...chatgpt)).toEqual([{ path: shown, state: "current", bytes: length }]);
  writeFileSync(file, `${readFileSync(file)}Mine.\n`);
  expect(await status(...chatgpt)).toEqual([{ path: shown, state: "edited", bytes: length }]);
  writeFileSync(file, "Mine.\n");
  expect(await status(...chatgpt)).toEqual([{ path: shown, state: "not injected", bytes: length }]);
  rmSync(file);
  expect(await status(...chatgpt)).toEqual([{ path: shown, state: "not found", bytes: length }]);
});

test("a file that imports a file that cannot be written is blocked, and a folder is not called missing", async () => {
  const tools = ["--tool", "claude-code,agents-md"];
  project.put("CLAUDE.md", "@AGENTS.md\n");
  project.put("AGENTS.md", "<!-- plimsoll:start:context sha256=0123456789abcdef -->\nx\n");
  expect((await status(...tools)).map(({ path, state }) => [path, state])).toEqual([
    ["AGENTS.md", "orphaned"],
    ["CLAUDE.md", "blocked"],
  ]);
  rmSync(join(project.cwd, "AGENTS.md"));
  mkdirSync(join(project.cwd, "AGENTS.md"));
  expect((await status(...tools)).map(({ state }) => state)).toEqual(["blocked", "blocked"]);
});

test("if the configuration excludes every pack, each message names its line, and --prune removes the blocks", async () => {
  project.put("CLAUDE.md", "# Mine\n");
  const before = project.read("CLAUDE.md");
  const config = "tools: [claude-code]\npacks:\n  exclude: [base, security, testing, git]\n";
  project.put(".plimsoll/config.yaml", "tools: [claude-code]\n");
  await project.call(["inject", "-q"]);
  project.put(".plimsoll/config.yaml", config);
  const cause = "no pack is used (excluded by packs.exclude in .plimsoll/config.yaml:3)";
  const run = await project.call(["inject"]);
  expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining(cause) });
  expect(run.stderr).toContain("plimsoll inject --prune");
  const checked = await project.call(["inject", "--check"]);
  expect(checked).toMatchObject({ code: 1, stderr: expect.stringContaining(cause) });
  expect(checked.stdout).toMatch(/^left over +CLAUDE\.md/m);
  expect(checked.stdout).not.toMatch(/stale/);
  const dry = await project.call(["inject", "--prune", "--dry-run"]);
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining("CLAUDE.md: would restore\n") });
  const pruned = await project.call(["inject", "--prune"]);
  expect(pruned).toMatchObject({ code: 0, stdout: "CLAUDE.md: restored\n", stderr: expect.stringContaining(cause) });
  expect(project.read("CLAUDE.md")).toBe(before);
  expect(await project.call(["inject", "--check"])).toMatchObject({ code: 0 });
});

test("flags of one run that leave no pack do not make the blocks of the configuration left over", async () => {
  project.put(".plimsoll/config.yaml", "tools: [claude-code]\n");
  await project.call(["inject", "-q"]);
  const before = project.tree();
  const run = await project.call(["inject", "--prune", "--no-pack", "base,security,testing,git"]);
  expect(run.stderr).toContain("no pack is used (excluded by --no-pack)");
  expect(project.tree()).toEqual(before);
});

test("files that the configuration's packs need are not left over in a run with other packs or tools", async () => {
  project.put(".plimsoll/config.yaml", "tools: [claude-code, cursor]\n");
  project.pack("api", "## API\n\n- Every answer has a request id.\n", 'weight: 500\nglobs: ["services/**"]');
  project.put(".plimsoll/packs/api/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: d\n---\nAsk.\n");
  await project.call(["inject", "-q"]);
  const before = project.tree();
  for (const flags of [["--profile", "minimal"], ["--pack", "base"], ["--no-pack", "api"], ["--all"]]) {
    const run = await project.call(["inject", ...flags, "--dry-run", "--stats"]);
    expect({ flags, code: run.code, named: /no chosen tool/.test(run.stderr) }).toEqual({
      flags,
      code: 0,
      named: false,
    });
  }
  await project.call(["inject", "--profile", "minimal", "--prune", "-q"]);
  expect(Object.keys(project.tree())).toEqual(Object.keys(before));
});

test("--uninstall works with a broken configuration, and says that it goes on without it", async () => {
  project.put("CLAUDE.md", "# Mine\n");
  const before = project.read("CLAUDE.md");
  await project.call(["inject", "--tool", "claude-code,cursor", "-q"]);
  for (const broken of ["tols: [cursor]\n", "tools: [\n", "budgets: 3\n"]) {
    await project.call(["inject", "--tool", "claude-code,cursor", "-q"]);
    project.put(".plimsoll/config.yaml", broken);
    expect(await project.call(["inject"])).toMatchObject({ code: 1 });
    const run = await project.call(["inject", "--uninstall"]);
    expect(run).toMatchObject({ code: 0, stderr: expect.stringContaining(".plimsoll/config.yaml:") });
    expect(run.stderr).toContain("continuing without the configuration");
    expect(project.read("CLAUDE.md")).toBe(before);
    rmSync(join(project.cwd, ".plimsoll"), { recursive: true });
  }
});

test("--uninstall says where the text is that --force replaced", async () => {
  const path = ".cursor/rules/plimsoll.mdc";
  project.put(path, "Ours.\n");
  const cursor = ["--tool", "cursor"];
  await project.call(["inject", ...cursor, "--force", "-q"]);
  expect((await project.call(["inject", "--uninstall", "--dry-run"])).stdout).toContain(
    `${path}: would delete; the text that --force replaced is in ${path}.bak\n`,
  );
  const run = await project.call(["inject", "--uninstall"]);
  expect(run.stdout).toBe(`${path}: deleted; the text that --force replaced is in ${path}.bak\n`);
  expect(project.read(`${path}.bak`)).toBe("Ours.\n");
});
