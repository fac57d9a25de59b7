/** A person's own rules: they stay when other packs have to go, and a file without them is reported. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
  project.speakEveryLanguage();
});
afterEach(() => project.remove());

/** A pack as earlier versions of `init` wrote it. A line at its end belongs to the extended tier. */
const tieredContext = `## This project

- Shared instructions live in packs.

<!-- verbosity:detail -->
### Writing packs

- One rule a line.

<!-- verbosity:extended -->
### Checking packs

- The linter finds mistakes.
`;

const settings = (onOverflow: string, more = "") =>
  `tools: [agents-md, claude-code]\nbudgets: { "*": 4000 }\non_overflow: ${onOverflow}\n${more}`;

describe("with all built-in packs and the default budget", () => {
  test.each([
    ["thin", "weight: 90"],
    ["thin", "weight: 1"],
    ["drop", "weight: 90"],
    ["drop", "weight: 1"],
  ])("the own rule is in every file (%s, %s)", async (onOverflow, weight) => {
    project.write(".plimsoll/config.yaml", settings(onOverflow, "on_drop: warn\n"));
    project.pack("project", `${tieredContext}- Always use tabs\n`, weight);
    const { code, stderr } = await project.call(["inject"]);
    expect(code).toBe(0);
    for (const file of ["AGENTS.md", "CLAUDE.md"]) expect(project.read(file)).toContain("\n- Always use tabs\n");
    expect(stderr).not.toContain("your own packs");
    expect((await project.call(["inject", "--check"])).code).toBe(0);
  });
});

test.each<[string, readonly string[], readonly string[]]>([
  ["empty", [], ["AGENTS.md"]],
  ["with an AGENTS.md", ["AGENTS.md"], ["AGENTS.md"]],
  ["with a CLAUDE.md", ["CLAUDE.md"], ["CLAUDE.md"]],
  ["with settings of Claude Code only", [".claude/settings.json"], ["AGENTS.md"]],
])("a newcomer's first rule is in every file, in a repository that is %s", async (_, given, written) => {
  for (const path of given) project.put(path, path.endsWith(".md") ? "# Team\n" : "{}\n");
  expect((await project.call(["init", "--packs", "base,git,node,python,security,sql,testing,typescript"])).code).toBe(
    0,
  );
  const rules = ".plimsoll/packs/project/context.md";
  project.put(rules, `${project.read(rules)}- Always use tabs\n`);
  const { code, stderr } = await project.call(["inject"]);
  expect(code).toBe(0);
  expect(stderr).not.toContain("your own packs");
  const instructions = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"];
  expect(instructions.filter((path) => path in project.tree())).toEqual(written);
  for (const path of written) expect(project.read(path)).toContain("\n- Always use tabs\n");
  expect((await project.call(["inject", "--check"])).code).toBe(0);
});

test("inject names the packs that it dropped and thinned, with their tiers", async () => {
  project.write(".plimsoll/config.yaml", settings("thin"));
  project.pack("project", "## This project\n\n- Always use tabs\n");
  const { stderr } = await project.call(["inject", "--tool", "claude-code"]);
  expect(stderr).toMatch(/^plimsoll: claude-code: thinned .*git \(extended\).* \(budget 4,000 tokens\)$/m);
  const small = await project.call(["inject", "--tool", "claude-code", "--max-tokens", "900"]);
  expect(small.stderr).toMatch(/^plimsoll: claude-code: dropped .*\bgit\b.*, and thinned .* \(budget 900 tokens\)$/m);
});

describe("where the own packs alone are too large", () => {
  const long = (tier: string) => `<!-- verbosity:${tier} -->\n\n${`- A rule of the tier ${tier}.\n`.repeat(200)}\n`;

  test("a dropped pack is named, and --check fails unless on_drop allows it", async () => {
    project.write(".plimsoll/config.yaml", `tools: [agents-md]\nbudgets: { "*": 500 }\n`);
    project.pack("small", "## Small\n\n- Use tabs.\n", "weight: 90");
    project.pack("large", `## Large\n\n${long("core")}`, "weight: 80");
    const lost = "AGENTS.md lacks text of your own packs: large (the whole pack)";
    const { code, stderr } = await project.call(["inject"]);
    expect({ code, isNamed: stderr.includes(lost) }).toEqual({ code: 0, isNamed: true });
    expect(project.read("AGENTS.md")).toContain("- Use tabs.");
    const check = await project.call(["inject", "--check"]);
    expect({ code: check.code, isNamed: check.stderr.includes(lost) }).toEqual({ code: 1, isNamed: true });
    project.write(".plimsoll/config.yaml", `tools: [agents-md]\nbudgets: { "*": 500 }\non_drop: warn\n`);
    expect((await project.call(["inject", "--check"])).code).toBe(0);
  });

  test("a thinned pack is named, and --check fails unless the configuration asks for thinning", async () => {
    project.write(".plimsoll/config.yaml", `tools: [agents-md]\nbudgets: { "*": 500 }\n`);
    project.pack("ours", `## Ours\n\n- Use tabs.\n\n${long("detail")}${long("extended")}`);
    const lost = "AGENTS.md lacks text of your own packs: ours (detail, extended)";
    const { stderr } = await project.call(["inject"]);
    expect(stderr).toContain(lost);
    const check = await project.call(["inject", "--check"]);
    expect({ code: check.code, isNamed: check.stderr.includes(lost) }).toEqual({ code: 1, isNamed: true });
    for (const allowed of ["on_overflow: thin", "on_drop: warn"]) {
      const config = `tools: [agents-md]\nbudgets: { "*": 500 }\npacks: { include: [ours], exclude: [base] }\n`;
      project.write(".plimsoll/config.yaml", `${config}${allowed}\n`);
      await project.call(["inject"]);
      const run = await project.call(["inject", "--check"]);
      expect({ allowed, code: run.code, isNamed: run.stderr.includes(lost) }).toEqual({
        allowed,
        code: 0,
        isNamed: true,
      });
    }
  });
});

describe("the flags and limits of a run", () => {
  test("--uninstall ignores --verbosity, whatever its value", async () => {
    await project.call(["inject", "--tool", "agents-md"]);
    const run = await project.call(["inject", "--uninstall", "--verbosity", "anything"]);
    expect(run).toEqual({ code: 0, stdout: "AGENTS.md: deleted\n", stderr: "" });
    expect((await project.call(["inject", "--verbosity", "anything"])).code).toBe(2);
  });

  test("--uninstall needs no trust", async () => {
    await project.call(["inject", "--tool", "agents-md"]);
    project.write(".plimsoll/config.yaml", "company: { source: ../packs-repo }\n");
    expect((await project.call(["inject"])).code).toBe(1);
    expect(await project.call(["inject", "--uninstall"])).toMatchObject({ code: 0, stdout: "AGENTS.md: deleted\n" });
  });

  test("one token is a token", async () => {
    const { stdout } = await project.call(["inject", "--tool", "agents-md", "--max-tokens", "1", "--stats"]);
    expect(stdout).toMatch(/ 1 token /);
    expect((await project.call(["inject", "--tool", "agents-md", "--stats"])).stdout).toMatch(/ unconstrained /);
  });

  test("the global rules of Devin Desktop stay within the limit that several sources give", async () => {
    expect((await project.call(["inject", "--global", "--tool", "devin-desktop"])).code).toBe(0);
    const file = join(project.home, ".codeium/windsurf/memories/global_rules.md");
    const { length } = readFileSync(file, "utf8");
    expect(length).toBeGreaterThan(1_000);
    expect(length).toBeLessThanOrEqual(6_000);
  });

  test("lint says that no tool takes a pack only if that is true", async () => {
    const long = `- A rule of forty characters, more or less.\n`.repeat(3_000);
    project.pack("long", `## Long\n\n- Core.\n\n<!-- verbosity:extended -->\n### More\n\n${long}`);
    const lint = async () => (await project.call(["packs", "lint"])).stdout;
    // AGENTS.md gets the core of the pack, because its adapter thins packs.
    expect(await lint()).not.toContain("more than any tool");
    project.pack("long", `## Long\n\n${long}`);
    expect(await lint()).toContain("more than any tool");
    project.write(".plimsoll/config.yaml", "budgets: { claude-code: 200000 }\n");
    expect(await lint()).not.toContain("more than any tool");
  });
});
