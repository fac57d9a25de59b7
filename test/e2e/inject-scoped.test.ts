import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

/** Files of the project, without the packs. */
function files(): Record<string, string> {
  const entries = Object.entries(project.tree());
  return Object.fromEntries(
    entries.filter(([path, content]) => !path.startsWith(".plimsoll") && content !== "(directory)"),
  );
}

const apiRule = "## API\n\n- Every answer has a request id.\n";
const scoped = 'weight: 500\nglobs: ["services/api/**", "**/*.{ts,tsx}"]';

test("a pack with globs goes into a rule of Claude Code and of Cursor, not into the file that is always loaded", async () => {
  project.pack("api", apiRule, scoped);
  project.put("CLAUDE.md", "# Mine\n");
  project.put(".claude/rules/team.md", "Ours.\n");
  const before = project.tree();
  const tools = ["--tool", "claude-code,cursor"];
  const run = await project.run(["inject", ...tools]);
  expect(run).toMatchObject({ code: 0 });
  expect(run.stdout).toMatch(/^\.claude\/rules\/plimsoll-api\.md \(claude-code\): created, 1 pack, ~\d+ tokens$/m);
  expect(project.read("CLAUDE.md")).toContain("plimsoll:start:context");
  expect(project.read("CLAUDE.md")).not.toContain("Every answer has a request id.");
  const claude = project.read(".claude/rules/plimsoll-api.md");
  expect(claude.startsWith('---\npaths: ["services/api/**", "**/*.{ts,tsx}"]\n---\n<!-- plimsoll:owns sha256=')).toBe(
    true,
  );
  expect(claude).toContain(apiRule.trim());
  const cursor = project.read(".cursor/rules/plimsoll-api.mdc");
  expect(cursor).toMatch(
    /^---\ndescription: "d"\nglobs: services\/api\/\*\*,\*\*\/\*\.ts,\*\*\/\*\.tsx\nalwaysApply: false\n---\n<!-- plimsoll:owns /,
  );
  expect(project.read(".cursor/rules/plimsoll.mdc")).not.toContain("Every answer has a request id.");
  const again = project.identities();
  expect((await project.call(["inject", ...tools])).stdout).not.toMatch(/created|updated/);
  expect(project.identities()).toEqual(again);
  expect(await project.call(["inject", "--check", ...tools])).toMatchObject({ code: 0 });
  expect((await project.call(["inject", "--status", ...tools])).stdout).toMatch(
    /^current +\.claude\/rules\/plimsoll-api\.md/m,
  );
  expect(await project.call(["inject", "--uninstall", "-q"])).toMatchObject({ code: 0 });
  expect(project.tree()).toEqual(before);
});

test("a rule of a pack that is gone, or of a tool that is not used, is left over until --prune", async () => {
  project.pack("api", apiRule, scoped);
  const tools = ["--tool", "claude-code,cursor"];
  await project.call(["inject", ...tools, "-q"]);
  project.pack("api", apiRule, "weight: 500");
  const checked = await project.call(["inject", "--check", "--tool", "claude-code"]);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toMatch(/^left over +\.claude\/rules\/plimsoll-api\.md +claude-code/m);
  expect(checked.stdout).toMatch(/^left over +\.cursor\/rules\/plimsoll-api\.mdc +cursor/m);
  const pruned = await project.call(["inject", "--prune", ...tools]);
  expect(pruned.stdout).toContain(".claude/rules/plimsoll-api.md: deleted\n");
  expect(project.read("CLAUDE.md")).toContain("Every answer has a request id.");
  expect(Object.keys(files()).sort()).toEqual([".cursor/rules/plimsoll.mdc", "CLAUDE.md"]);
});

test("a rule that a person edited or wrote stays until it is forced", async () => {
  project.pack("api", apiRule, scoped);
  const tools = ["--tool", "claude-code", "-q"];
  await project.call(["inject", ...tools]);
  const edited = `${project.read(".claude/rules/plimsoll-api.md")}- Mine.\n`;
  project.put(".claude/rules/plimsoll-api.md", edited);
  project.pack("api", `${apiRule}- And a time.\n`, scoped);
  const run = await project.call(["inject", ...tools]);
  expect(run).toMatchObject({ code: 1 });
  expect(run.stderr).toMatch(/\.claude\/rules\/plimsoll-api\.md: the block was edited by hand/);
  expect(project.read(".claude/rules/plimsoll-api.md")).toBe(edited);
  expect((await project.call(["inject", "--status", ...tools])).stdout).toMatch(/^edited +\.claude\/rules/m);
  expect(await project.call(["inject", "--uninstall", "-q"])).toMatchObject({ code: 1 });
  expect(project.read(".claude/rules/plimsoll-api.md")).toBe(edited);
  expect(await project.call(["inject", "--force", ...tools])).toMatchObject({ code: 0 });
  expect(project.read(".claude/rules/plimsoll-api.md.bak")).toBe(edited);
});

test("every tool with scoped rules gets its own front matter; a tool without them always loads the pack", async () => {
  project.pack("api", apiRule, scoped);
  const tools = "continue,devin-desktop,gemini-cli,github-copilot,kiro";
  expect(await project.call(["inject", "--tool", tools, "-q"])).toMatchObject({ code: 0 });
  const frontMatter = (path: string) => project.read(path).split("\n<!-- plimsoll:owns")[0];
  const list = '["services/api/**", "**/*.{ts,tsx}"]';
  expect(frontMatter(".github/instructions/plimsoll-api.instructions.md")).toBe(
    '---\ndescription: "d"\napplyTo: "services/api/**,**/*.ts,**/*.tsx"\n---',
  );
  expect(frontMatter(".devin/rules/plimsoll-api.md")).toBe(`---\ntrigger: glob\ndescription: "d"\nglobs: ${list}\n---`);
  expect(frontMatter(".kiro/steering/plimsoll-api.md")).toBe(
    `---\ninclusion: fileMatch\nfileMatchPattern: ${list}\n---`,
  );
  expect(frontMatter(".continue/rules/plimsoll-api.md")).toBe(
    `---\nname: "api"\ndescription: "d"\nglobs: ${list}\nalwaysApply: false\n---`,
  );
  expect(project.read("GEMINI.md")).toContain("Every answer has a request id.");
  const always = [".github/copilot-instructions.md", ".devin/rules/plimsoll.md", ".kiro/steering/plimsoll.md"];
  for (const path of always) expect(project.read(path)).not.toContain("Every answer has a request id.");
});

test("a tool that reads a block with the pack gets no second copy in a rule", async () => {
  project.pack("api", apiRule, scoped);
  // Codex has no scoped rules, so AGENTS.md holds the pack, and Cursor reads AGENTS.md.
  await project.call(["inject", "--tool", "agents-md,cursor,claude-code", "-q"]);
  expect(project.read("AGENTS.md")).toContain("Every answer has a request id.");
  expect(Object.keys(files()).sort()).toEqual([".claude/rules/plimsoll-api.md", "AGENTS.md", "CLAUDE.md"]);
  project.put("CLAUDE.md", "@AGENTS.md\n");
  await project.call(["inject", "--prune", "--tool", "agents-md,cursor,claude-code", "-q"]);
  expect(Object.keys(files()).sort()).toEqual(["AGENTS.md", "CLAUDE.md"]);
});

test("globs that could end the front matter or leave the project are refused with their line", async () => {
  for (const glob of ["/etc/**", "../x/**", "src/../../x", "a: b", "a # b", 'a"b', "!src/**", "~/x"]) {
    project.pack("api", apiRule, `globs: [${JSON.stringify(glob)}]`);
    const run = await project.call(["inject", "--tool", "claude-code"]);
    expect({ glob, code: run.code }).toEqual({ glob, code: 1 });
    expect(run.stderr).toMatch(/\.plimsoll\/packs\/api\/pack\.yaml:5: .*a pattern such as src/);
  }
  project.pack("api", apiRule, 'globs: ["app/(shop)/[id]/**", ".github/**", "a..b/*"]');
  expect(await project.call(["inject", "--tool", "claude-code"])).toMatchObject({ code: 0 });
});

test("packs with globs alone leave a block with the facts of the project", async () => {
  project.put("package.json", '{ "name": "shop", "scripts": { "test": "vitest run" } }');
  project.pack("api", apiRule, scoped);
  const only = ["inject", "--tool", "claude-code", "--pack", "api", "--no-pack", "base"];
  expect(await project.call([...only, "-q"])).toMatchObject({ code: 0 });
  expect(project.read("CLAUDE.md")).toContain("## Runtime Context");
  const stats = JSON.parse((await project.call([...only, "--json"])).stdout);
  expect(stats[0]).toMatchObject({ packs: [], scoped: ["api"], status: "OK (1 pack scoped)" });
});

const nested =
  'weight: 500\nglobs: ["services/api/**", "services/api/openapi.yaml", "libs/{http,rpc}/**/*.ts"]\nnested: true';

test("a nested pack goes into the AGENTS.md of its folders, and the team's own text there stays", async () => {
  project.pack("api", apiRule, nested);
  project.put("AGENTS.md", "# Root\n");
  project.put("services/api/AGENTS.md", "# Service\r\n\r\nNo final line break");
  project.put("libs/http/index.ts", "");
  // Git does not keep an empty folder, but a person may.
  mkdirSync(join(project.cwd, "libs/rpc"));
  const before = project.tree();
  const tools = ["--tool", "agents-md,cursor,kiro,claude-code"];
  const run = await project.call(["inject", ...tools]);
  expect(run).toMatchObject({ code: 0 });
  expect(run.stdout).toMatch(/^services\/api\/AGENTS\.md \(agents-md, cursor, claude-code\): updated, 1 pack/m);
  const service = project.read("services/api/AGENTS.md");
  expect(service.startsWith("# Service\r\n\r\nNo final line break\r\n\r\n<!-- plimsoll:start:context sha256=")).toBe(
    true,
  );
  expect(service).toContain("- Every answer has a request id.\r\n");
  expect(project.read("libs/http/AGENTS.md")).toContain("- Every answer has a request id.\n");
  expect(project.read("AGENTS.md")).not.toContain("Every answer has a request id.");
  // Cursor reads the AGENTS.md of folders, and so does Claude Code without a CLAUDE.md. Kiro does not, so it gets a rule.
  expect(Object.keys(files()).sort()).toEqual([
    ...[".kiro/steering/plimsoll-api.md", "AGENTS.md"],
    ...["libs/http/AGENTS.md", "libs/http/index.ts", "libs/rpc/AGENTS.md", "services/api/AGENTS.md"],
  ]);
  expect((await project.call(["inject", ...tools])).stdout).not.toMatch(/created|updated/);
  expect(await project.call(["inject", "--check", ...tools])).toMatchObject({ code: 0 });
  expect(await project.call(["inject", "--uninstall", "-q"])).toMatchObject({ code: 0 });
  expect(project.tree()).toEqual(before);
});

test("uninstalling one tool, and pruning, find the nested blocks too", async () => {
  project.pack("api", apiRule, nested);
  project.put("services/api/index.ts", "");
  const agents = ["--tool", "agents-md"];
  await project.call(["inject", ...agents, "-q"]);
  expect((await project.call(["inject", "--uninstall", ...agents])).stdout).toBe(
    "AGENTS.md: deleted\nservices/api/AGENTS.md: deleted\n",
  );
  await project.call(["inject", ...agents, "-q"]);
  project.pack("api", apiRule, "weight: 500");
  const checked = await project.call(["inject", "--check", ...agents]);
  expect(checked).toMatchObject({ code: 1, stdout: expect.stringMatching(/^left over +services\/api\/AGENTS\.md/m) });
  expect((await project.call(["inject", "--prune", ...agents])).stdout).toContain("services/api/AGENTS.md: deleted\n");
});

test("a nested pack stays in the root's file if a glob names no folder, and leaves folders of other projects alone", async () => {
  project.pack("api", apiRule, 'globs: ["services/api/**", "*.ts"]\nnested: true');
  project.put("services/api/index.ts", "");
  const run = await project.call(["inject", "--tool", "agents-md", "--verbosity", "full"]);
  expect(run.stderr).toMatch(/pack\.yaml:6: nested has no effect, because each glob must name a folder/);
  expect(project.read("AGENTS.md")).toContain("Every answer has a request id.");
  project.pack("api", apiRule, nested);
  project.put("services/api/.plimsoll/config.yaml", "tools: [agents-md]\n");
  await project.call(["inject", "--tool", "agents-md", "-q"]);
  expect(Object.keys(files())).not.toContain("services/api/AGENTS.md");
});

test("the root's block leaves room for nested blocks, and a dry run says so already", async () => {
  project.put(".plimsoll/config.yaml", "on_drop: warn\n");
  project.pack("api", `## API\n\n${"- A rule for the service.\n".repeat(500)}`, nested);
  project.put("services/api/AGENTS.md", "# Service\n");
  project.pack("long", `## Long\n\n${"- A rule for all.\n".repeat(900)}`, "weight: 400");
  const dry = await project.call(["inject", "--tool", "agents-md", "--dry-run", "--json"]);
  const real = await project.call(["inject", "--tool", "agents-md", "--json"]);
  const facts = (run: { stdout: string }) =>
    JSON.parse(run.stdout).map(({ diff: _, written: __, ...rest }: Record<string, unknown>) => rest);
  expect(facts(real)).toEqual(facts(dry));
  const chain = project.read("AGENTS.md").length + project.read("services/api/AGENTS.md").length;
  expect(chain).toBeLessThanOrEqual(32_768);
  expect(await project.call(["inject", "--check", "--tool", "agents-md"])).toMatchObject({ code: 0 });
  expect((await project.call(["inject", "--tool", "agents-md"])).stdout).not.toMatch(/created|updated/);
});

/** A pack with a skill of three files. */
function skillPack(step = "Ask first."): void {
  project.pack("release", "## Release\n\n- Tag from main.\n", "weight: 500");
  const folder = ".plimsoll/packs/release/skills/deploy";
  project.put(`${folder}/SKILL.md`, `---\nname: deploy\ndescription: How to deploy.\n---\n# Deploy\n\n${step}\n`);
  project.put(`${folder}/scripts/run it.sh`, "#!/bin/sh\necho deploy\n");
  project.put(`${folder}/notes.json`, '{ "a": 1 }\n');
}

test("a skill of a pack is copied into the skill folders of the tools, as text", async () => {
  skillPack();
  chmodSync(join(project.cwd, ".plimsoll/packs/release/skills/deploy/scripts/run it.sh"), 0o755);
  project.put(".claude/skills/own/SKILL.md", "Ours.\n");
  const before = project.tree();
  const tools = ["--tool", "claude-code,cursor,kiro"];
  const run = await project.call(["inject", ...tools]);
  expect(run).toMatchObject({ code: 0 });
  // Cursor reads the folder of Claude Code.
  expect(Object.keys(files()).filter((path) => path.includes("skills"))).toEqual([
    ...[
      ".claude/skills/deploy/SKILL.md",
      ".claude/skills/deploy/notes.json",
      ".claude/skills/deploy/scripts/run it.sh",
    ],
    ".claude/skills/own/SKILL.md",
    ...[".kiro/skills/deploy/SKILL.md", ".kiro/skills/deploy/notes.json", ".kiro/skills/deploy/scripts/run it.sh"],
  ]);
  expect(project.read(".claude/skills/deploy/SKILL.md")).toMatch(
    /^---\nname: deploy\ndescription: How to deploy\.\n---\n<!-- plimsoll:owns sha256=\w{16} -->\n# Deploy\n\nAsk first\.\n\n<!-- plimsoll:files notes\.json=\w{16} scripts\/run%20it\.sh=\w{16} -->\n$/,
  );
  const script = join(project.cwd, ".claude/skills/deploy/scripts/run it.sh");
  expect(readFileSync(script, "utf8")).toBe("#!/bin/sh\necho deploy\n");
  expect(statSync(script).mode & 0o111).toBe(0);
  expect(project.read("CLAUDE.md")).not.toContain("deploy");
  expect((await project.call(["inject", ...tools])).stdout).not.toMatch(/created|updated/);
  expect(await project.call(["inject", "--check", ...tools])).toMatchObject({ code: 0 });
  expect(await project.call(["inject", "--uninstall", "-q"])).toMatchObject({ code: 0, stderr: "" });
  expect(project.tree()).toEqual(before);
});

test("a changed skill is updated, and a file that it no longer has is deleted", async () => {
  skillPack();
  const tools = ["--tool", "claude-code"];
  await project.call(["inject", ...tools, "-q"]);
  skillPack("Ask twice.");
  rmSync(join(project.cwd, ".plimsoll/packs/release/skills/deploy/notes.json"));
  project.put(".plimsoll/packs/release/skills/deploy/scripts/run it.sh", "#!/bin/sh\necho twice\n");
  expect(await project.call(["inject", "--check", ...tools])).toMatchObject({ code: 1 });
  const run = await project.call(["inject", ...tools]);
  expect(run.stdout).toContain(".claude/skills/deploy/notes.json (claude-code): deleted\n");
  expect(project.read(".claude/skills/deploy/SKILL.md")).toContain("Ask twice.");
  expect(project.read(".claude/skills/deploy/scripts/run it.sh")).toContain("echo twice");
  expect(await project.call(["inject", "--check", ...tools])).toMatchObject({ code: 0 });
  rmSync(join(project.cwd, ".plimsoll/packs/release"), { recursive: true });
  expect((await project.call(["inject", "--check", ...tools])).stdout).toMatch(/^left over +\.claude\/skills\/deploy/m);
  await project.call(["inject", "--prune", ...tools, "-q"]);
  expect(Object.keys(files())).toEqual(["CLAUDE.md"]);
});

test("a skill that a person wrote or edited stays until it is forced", async () => {
  skillPack();
  const tools = ["--tool", "claude-code"];
  project.put(".claude/skills/deploy/SKILL.md", "Ours.\n");
  const refused = await project.call(["inject", ...tools]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("plimsoll did not write this file") });
  expect(Object.keys(files())).toEqual([".claude/skills/deploy/SKILL.md", "CLAUDE.md"]);
  expect(await project.call(["inject", "--force", ...tools])).toMatchObject({ code: 0 });
  expect(project.read(".claude/skills/deploy/SKILL.md.bak")).toBe("Ours.\n");
  await project.call(["inject", "--uninstall", "-q"]);
  rmSync(join(project.cwd, ".claude"), { recursive: true });
  // A file of the team beside the skill: neither it nor the rest of the skill is written, so uninstall leaves it alone.
  project.put(".claude/skills/deploy/notes.json", "team\n");
  expect(await project.call(["inject", ...tools])).toMatchObject({ code: 1 });
  expect(Object.keys(files())).toEqual([".claude/skills/deploy/notes.json", "CLAUDE.md"]);
  rmSync(join(project.cwd, ".claude"), { recursive: true });
  await project.call(["inject", ...tools, "-q"]);
  project.put(".claude/skills/deploy/notes.json", "mine\n");
  expect((await project.call(["inject", ...tools])).stderr).toMatch(/notes\.json: the file was edited by hand/);
  const kept = await project.call(["inject", "--uninstall"]);
  expect(kept).toMatchObject({ code: 1 });
  expect(project.read(".claude/skills/deploy/notes.json")).toBe("mine\n");
  expect(Object.keys(files())).toContain(".claude/skills/deploy/SKILL.md");
  expect(await project.call(["inject", "--uninstall", "--force"])).toMatchObject({ code: 0 });
  expect(Object.keys(files())).toEqual([".claude/skills/deploy/notes.json.bak"]);
});

test("a tool without skills is told where the skill is", async () => {
  skillPack();
  await project.call(["inject", "--tool", "replit", "-q"]);
  const line = (path: string) => `## Skills\n\n- deploy: How to deploy. Read ${path} before you do this.\n`;
  expect(project.read("replit.md")).toContain(line(".plimsoll/packs/release/skills/deploy/SKILL.md"));
  await project.call(["inject", "--tool", "replit,claude-code", "-q"]);
  expect(project.read("replit.md")).toContain(line(".claude/skills/deploy/SKILL.md"));
});

test("links in skills are not followed, and what is not text or not a skill is left out with a warning", async () => {
  skillPack();
  const folder = join(project.cwd, ".plimsoll/packs/release/skills");
  writeFileSync(join(project.home, "secret"), "key\n");
  symlinkSync(join(project.home, "secret"), join(folder, "deploy/secret.txt"));
  symlinkSync(project.home, join(folder, "home"));
  symlinkSync("deploy", join(folder, "copy"));
  writeFileSync(join(folder, "deploy/picture.png"), Buffer.from([0x89, 0x50, 0, 0xff]));
  project.put(".plimsoll/packs/release/skills/Not_A_Name/SKILL.md", "---\ndescription: d\n---\n");
  project.put(".plimsoll/packs/release/skills/bare/SKILL.md", "No front matter\n");
  project.put(".plimsoll/packs/release/skills/empty/readme.md", "x\n");
  const run = await project.call(["inject", "--tool", "claude-code"]);
  expect(run.code).toBe(0);
  expect(run.stderr).toMatch(/skills\/deploy\/secret\.txt:1: is a link/);
  expect(run.stderr).toMatch(/skills\/home:1: is a link/);
  expect(run.stderr).toMatch(/skills\/deploy\/picture\.png:1: is left out: /);
  expect(run.stderr).toMatch(/skills\/Not_A_Name:1: is left out: the name/);
  expect(run.stderr).toMatch(/skills\/bare\/SKILL\.md:1: the skill is left out: it needs front matter/);
  expect(run.stderr).toMatch(/skills\/empty:1: has no SKILL\.md/);
  expect(Object.keys(files()).filter((path) => path.startsWith(".claude/skills"))).toHaveLength(3);
});

test("a run for one tool uses the skill folder of the others, and uninstalling it leaves theirs alone", async () => {
  skillPack();
  project.put(".plimsoll/config.yaml", "tools: [claude-code, cursor]\n");
  await project.call(["inject", "-q"]);
  const skills = () => Object.keys(files()).filter((path) => path.includes("/skills/"));
  const before = skills();
  await project.call(["inject", "--tool", "cursor", "-q"]);
  expect(skills()).toEqual(before);
  await project.call(["inject", "--uninstall", "--tool", "cursor", "-q"]);
  expect(skills()).toEqual(before);
  expect(before).toHaveLength(3);
});

test("nothing is written beside a SKILL.md that is a link", async () => {
  skillPack();
  project.put("shared.md", "Ours.\n");
  mkdirSync(join(project.cwd, ".claude/skills/deploy"), { recursive: true });
  symlinkSync("../../../shared.md", join(project.cwd, ".claude/skills/deploy/SKILL.md"));
  expect(await project.call(["inject", "--tool", "claude-code"])).toMatchObject({ code: 1 });
  expect(project.read("shared.md")).toBe("Ours.\n");
  expect(Object.keys(files()).sort()).toEqual([".claude/skills/deploy/SKILL.md", "CLAUDE.md", "shared.md"]);
});
