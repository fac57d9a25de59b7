import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
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
  // Started in api, Claude Code does not follow the import of a file above.
  expect(stdout).toContain(`claude-code
  file       via      bytes/4
  CLAUDE.md  project        3
  - CLAUDE.md hides AGENTS.md and api/AGENTS.md: Claude Code reads only the first that it finds.
`);
  expect((await sandbox.run(["audit", ...bytes4])).stdout).toContain(`claude-code
  file       via                  bytes/4
  CLAUDE.md  project                    3
  AGENTS.md  import of CLAUDE.md    7,500
  total                             7,503
  over the advised size: 3,000 of 200 lines in one file
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
    ...{ tokens: 3, alwaysTokens: 3, onDemandTokens: 0 },
    limits: [],
    advice: [],
  });
  expect(byId["qwen-code"].files).toEqual([{ path: "QWEN.md", bytes: 9, tokens: 3, via: "link to GEMINI.md" }]);
  expect(byId["claude-code"].files).toEqual([{ path: "~/.claude/CLAUDE.md", bytes: 5, tokens: 2, via: "user" }]);
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
    stdout: "no AI tool loads any file here\n",
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
    stderr: "plimsoll: file.md: is not a directory\n",
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

test("--tool shows only the named tools, also if they load nothing", async () => {
  sandbox.write("AGENTS.md", "Use tabs.\n");
  const ids = async (...args: string[]) => {
    const { stdout } = await sandbox.call(["audit", "--json", ...args]);
    return JSON.parse(stdout).tools.map(({ id }: { id: string }) => id);
  };
  expect((await ids()).length).toBeGreaterThan(2);
  expect(await ids("--tool", "codex-cli")).toEqual(["codex-cli"]);
  expect(await ids("--tool", "codex-cli,gemini-cli")).toEqual(["codex-cli", "gemini-cli"]);
  const unknown = await sandbox.call(["audit", "--tool", "codex-cl"]);
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('Did you mean "codex-cli"?') });
});

/** Writes a pack of the project. */
function pack(id: string, lines: number, more = ""): void {
  sandbox.write(`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\nname: ${id}\ndescription: About ${id}.\n${more}`);
  const rules = Array.from({ length: lines }, (_, line) => `- Rule ${line} of ${id} says what to do there.\n`);
  sandbox.write(`.plimsoll/packs/${id}/context.md`, `## ${id}\n\n${rules.join("")}`);
}

async function auditOf(id: string): Promise<Record<string, number> & { advice: string[]; files: { path: string }[] }> {
  const { stdout } = await sandbox.call(["audit", "--tool", id, "--json", ...bytes4]);
  return JSON.parse(stdout).tools[0];
}

const areas = ["web", "api", "jobs", "mail", "search", "billing", "admin", "mobile", "docs", "infra"];

test("with globs, a project of 12 packs always loads at most 40 % of what one file would take", async () => {
  const noBuiltIn = "packs: { exclude: [base, git, testing, security, typescript, node, python, sql] }\n";
  sandbox.write(".plimsoll/config.yaml", `tools: [claude-code, cursor]\n${noBuiltIn}`);
  const tools = ["claude-code", "cursor"];
  const writeAll = async (globs: boolean) => {
    for (const id of ["team", "safety"]) pack(id, 40, "weight: 90\n");
    for (const id of areas) pack(id, 40, globs ? `globs: ["${id}/**"]\n` : "");
    expect(await sandbox.call(["inject", "--prune", "-q"])).toMatchObject({ code: 0 });
    return Promise.all(tools.map(auditOf));
  };
  const whole = await writeAll(false);
  const scoped = await writeAll(true);
  for (const [index, tool] of tools.entries()) {
    const { alwaysTokens: one = 0, onDemandTokens: none } = whole[index]!;
    const { alwaysTokens: always = 0, onDemandTokens: waiting = 0 } = scoped[index]!;
    expect({ tool, none }).toEqual({ tool, none: 0 });
    expect(always / one).toBeLessThanOrEqual(0.4);
    // Nothing is lost: the rest is in the rules.
    expect(always + waiting).toBeGreaterThanOrEqual(one);
  }
  expect(await sandbox.call(["inject", "--check"])).toMatchObject({ code: 0 });
  const { stdout } = await sandbox.call(["audit", "--tool", "claude-code", ...bytes4]);
  expect(stdout).toMatch(/^ {2}\.claude\/rules\/plimsoll-api\.md +project, on demand +\d+$/m);
  expect(stdout).toMatch(/^ {2}always loaded +[\d,]+\n {2}on demand +[\d,]+$/m);
  expect(stdout).not.toContain("both hold Plimsoll's block");
});

test("only the description of a skill is always loaded", async () => {
  pack("release", 3);
  const skill = `---\nname: deploy\ndescription: |\n  How to\n  deploy.\n---\n${"Do this.\n".repeat(300)}`;
  sandbox.write(".plimsoll/packs/release/skills/deploy/SKILL.md", skill);
  await sandbox.call(["inject", "--tool", "claude-code", "--pack", "release", "-q"]);
  const { files, alwaysTokens = 0, onDemandTokens = 0 } = await auditOf("claude-code");
  const found = files.find(({ path }) => path === ".claude/skills/deploy/SKILL.md");
  const line = "name: deploy\ndescription: |\n  How to\n  deploy.";
  expect(found).toMatchObject({ via: "skill", alwaysTokens: Math.ceil(line.length / 4) });
  expect(onDemandTokens).toBeGreaterThan(650);
  expect(alwaysTokens).toBeLessThan(2_000);
});

test("advice names the line of the configuration that makes a heavy block small enough", async () => {
  pack("big", 700, "weight: 10\n");
  sandbox.write("CLAUDE.md", "# Ours\n");
  await sandbox.call(["inject", "--tool", "claude-code", "-q"]);
  const { advice, alwaysTokens = 0 } = await auditOf("claude-code");
  expect(alwaysTokens).toBeGreaterThan(5_000);
  const [, line] =
    /^Plimsoll's block in CLAUDE\.md has [\d,]+ tokens\. Add `(.*)` to `budgets:` in \.plimsoll\/config\.yaml to limit it\.$/m.exec(
      advice.join("\n"),
    )!;
  expect(line).toMatch(/^claude-code: \d+$/);
  const [, exclude, globs] =
    /^The pack big has up to [\d,]+ tokens in CLAUDE\.md: `(.*?)` leaves it out, and .*pack\.yaml, such as `(.*?)`,/m.exec(
      advice.join("\n"),
    )!;
  expect([exclude, globs]).toEqual(["packs: { exclude: [big] }", 'globs: ["src/**"]']);
  // Each line helps when it is written where the advice says.
  sandbox.write(".plimsoll/config.yaml", `budgets: { ${line} }\n`);
  await sandbox.call(["inject", "--tool", "claude-code", "-q"]);
  const limited = await auditOf("claude-code");
  expect(limited.alwaysTokens).toBeLessThanOrEqual(5_000);
  expect(limited.advice.filter((each) => each.includes("lines; fewer"))).toEqual([]);
  expect(limited.advice.filter((each) => each.includes("budgets:"))).toEqual([]);
  sandbox.write(".plimsoll/config.yaml", `${exclude}\n`);
  await sandbox.call(["inject", "--tool", "claude-code", "-q"]);
  expect((await auditOf("claude-code")).alwaysTokens).toBeLessThan(alwaysTokens - 6_000);
  sandbox.write(".plimsoll/config.yaml", "");
  pack("big", 700, `weight: 10\n${globs}\n`);
  await sandbox.call(["inject", "--tool", "claude-code", "-q"]);
  expect((await auditOf("claude-code")).alwaysTokens).toBeLessThan(alwaysTokens - 6_000);
});

test("advice for a tool that reads another tool's file names the budget of that file", async () => {
  pack("big", 700, "weight: 10\n");
  sandbox.write("CLAUDE.md", "# Ours\n");
  await sandbox.call(["inject", "--tool", "claude-code", "-q"]);
  const { advice } = await auditOf("amp");
  const [, line] = /Add `(.*)` to `budgets:` in .* to limit it, for every tool that reads CLAUDE\.md\.$/m.exec(
    advice.join("\n"),
  )!;
  expect(line).toMatch(/^claude-code: \d+$/);
  sandbox.write(".plimsoll/config.yaml", `budgets: { ${line} }\n`);
  await sandbox.call(["inject", "-q"]);
  expect((await auditOf("amp")).alwaysTokens).toBeLessThanOrEqual(5_000);
});

test.each(["\n", "\r\n"])("advice counts the block as inject does, with %j at the ends of lines", async (lineEnd) => {
  pack("big", 700, "weight: 10\n");
  sandbox.write("CLAUDE.md", `# Ours${lineEnd}`);
  const [row] = JSON.parse((await sandbox.call(["inject", "--tool", "claude-code", "--json", ...bytes4])).stdout);
  const { advice } = await auditOf("claude-code");
  expect(advice.join("\n")).toContain(`block in CLAUDE.md has ${row.approxTokens.toLocaleString("en")} tokens.`);
});

const claude = () => readFileSync(join(sandbox.cwd, "CLAUDE.md"), "utf8");

test("advice about a shared file limits it for all who read it, and never costs the team's text", async () => {
  sandbox.write("AGENTS.md", "# Team\n\n- agents own rule\n");
  sandbox.write("CLAUDE.md", "# Team\n\n- never push to main please\n");
  pack("big", 700, "weight: 10\n");
  sandbox.write(".plimsoll/config.yaml", "tools: [claude-code, cursor, agents-md]\n");
  await sandbox.call(["inject", "-q"]);
  // Each block is for other tools, and an import works in one folder only.
  expect((await auditOf("claude-code")).advice.join("\n")).not.toContain("@AGENTS.md");
  sandbox.write("CLAUDE.md", `@AGENTS.md\n${claude()}`);
  await sandbox.call(["inject", "--prune", "-q"]);
  expect(claude()).toContain("never push to main please");
  expect(claude()).not.toContain("plimsoll:start");
  const shared = (await auditOf("cursor")).advice.join("\n");
  expect(shared).toMatch(/Add `agents-md: \d+` to `budgets:` .* for every tool that reads AGENTS\.md\./);
  expect(shared).not.toContain("globs:");
  // Nobody chose Augment.
  expect((await auditOf("augment")).advice.filter((each) => each.includes("budgets:"))).toEqual([]);
});
