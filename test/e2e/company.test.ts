/** What a company sets for all of its projects: `config.yaml` beside its packs. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
  company("packs/house/pack.yaml", "id: house\nname: House rules\ndescription: d\ntags: [t]\n");
  company("packs/house/context.md", "## House rules\n\n- Money is a number of cents.\n");
  company("packs/style/pack.yaml", "id: style\nname: Style\ndescription: d\ntags: [t]\nweight: 90\n");
  company("packs/style/context.md", `## Style\n\n${"- Write plain sentences.\n".repeat(40)}`);
  configure();
});
afterEach(() => project.remove());

/** Writes a file of the company's folder, which is beside the project. */
function company(path: string, text: string): void {
  const file = join(project.cwd, "../rules", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function configure(more = ""): void {
  project.write(".plimsoll/config.yaml", `company: { source: ../rules }\npacks: { built_in: [] }\n${more}`);
}

const inject = (...args: string[]) => project.call(["inject", "--trust", ...args]);

describe("required packs", () => {
  beforeEach(() => company("config.yaml", "tools: [agents-md]\nrequired: [house]\n"));

  test.each([
    ["packs.exclude", "  exclude: [house]\n", []],
    ["packs.include", "  include: [style]\n", []],
    ["--no-pack", "", ["--no-pack", "house"]],
    ["--pack", "", ["--pack", "style"]],
    ["a profile", "profile: minimal\n", []],
  ])("cannot be left out by %s", async (_, packs, args) => {
    project.write(
      ".plimsoll/config.yaml",
      `company: { source: ../rules }\n${packs.startsWith(" ") ? `packs:\n${packs}` : packs}`,
    );
    expect((await inject(...args)).code).toBe(0);
    expect(project.read("AGENTS.md")).toContain("- Money is a number of cents.");
    const listed = JSON.parse((await project.call(["packs", "list", "--json", "--trust"])).stdout);
    expect(listed.find((pack: { id: string }) => pack.id === "house").why).toBe("required by the company");
  });

  test("a list that leaves one out is named", async () => {
    project.write(".plimsoll/config.yaml", "company: { source: ../rules }\npacks: { exclude: [house] }\n");
    const { stderr } = await inject();
    expect(stderr).toContain(
      "packs.exclude in .plimsoll/config.yaml:2 cannot leave out house: the company requires it (../rules/config.yaml:2)",
    );
  });

  test("--check and --status name the one that a file lacks", async () => {
    company("config.yaml", "tools: [agents-md]\n");
    project.write(
      ".plimsoll/config.yaml",
      "company: { source: ../rules }\npacks: { built_in: [], exclude: [house] }\n",
    );
    await inject();
    expect(project.read("AGENTS.md")).not.toContain("cents");
    expect((await inject("--check")).code).toBe(0);
    company("config.yaml", "tools: [agents-md]\nrequired: [house]\n");
    const { code, stderr } = await inject("--check");
    expect(code).toBe(1);
    expect(stderr).toContain("AGENTS.md lacks house, which the company requires. Run plimsoll inject.");
    const [row] = JSON.parse((await inject("--status", "--json")).stdout);
    expect(row).toMatchObject({ path: "AGENTS.md", state: "stale", required: ["house"] });
  });

  test("one that does not fit fails --check, whatever the project allows", async () => {
    company("packs/house/context.md", `## House rules\n\n${"- Money is a number of cents.\n".repeat(200)}`);
    configure("on_drop: warn\nbudgets: { agents-md: 500 }\n");
    const written = await inject();
    expect(written.stderr).toContain("AGENTS.md lacks house, which the company requires: it does not fit");
    const { code, stderr, stdout } = await inject("--check");
    expect(code).toBe(1);
    expect(stderr).toContain("AGENTS.md lacks house, which the company requires: it does not fit");
    expect(stdout).toContain("AGENTS.md");
  });

  test("they get the budget before all other packs", async () => {
    company("packs/house/context.md", `## House rules\n\n${"- Money is a number of cents.\n".repeat(20)}`);
    project.pack("own", `## Own\n\n${"- A rule of the project.\n".repeat(30)}`, "weight: 900");
    configure("on_drop: warn\nbudgets: { agents-md: 400 }\n");
    await inject();
    expect(project.read("AGENTS.md")).toContain("- Money is a number of cents.");
    expect(project.read("AGENTS.md")).not.toContain("A rule of the project");
  });

  test.each([
    ["replace it", "weight: 1", "a project can add to it with additive: true, but not replace it"],
    ["scope it", "additive: true\nglobs: ['docs/**']", 'a project cannot set "globs" of it'],
    ["drop it as an overlap", "additive: true\noverlaps: [style]", 'a project cannot set "overlaps" of it'],
  ])("a pack of the project cannot %s", async (_, more, reason) => {
    project.pack("house", "## Other rules\n\n- None.\n", more);
    for (const args of [[], ["--check"]]) {
      const { code, stderr } = await inject(...args);
      expect(code).toBe(1);
      expect(stderr).toContain(`.plimsoll/packs/house/pack.yaml:1: the company requires the pack "house": ${reason}`);
    }
    expect(() => project.read("AGENTS.md")).toThrow("ENOENT");
  });

  test("a pack of the project may add to it", async () => {
    project.pack("house", "- Write dates as YYYY-MM-DD.\n", "additive: true");
    expect((await inject()).code).toBe(0);
    expect(project.read("AGENTS.md")).toMatch(/cents[\s\S]*YYYY-MM-DD/);
    expect((await inject("--check")).code).toBe(0);
  });

  test("one that no layer has is an error with its place", async () => {
    company("config.yaml", "tools: [agents-md]\nrequired: [house, no-such]\n");
    const { code, stderr } = await inject("--check");
    expect(code).toBe(1);
    expect(stderr).toContain('../rules/config.yaml:2: no layer has the required pack "no-such"');
  });
});

describe("budgets", () => {
  const budgetOf = async (id: string, ...args: string[]) => {
    const { stdout, stderr } = await inject("--dry-run", "--stats", "--json", ...args);
    const rows = JSON.parse(stdout) as { adapter: string; budget: object | null }[];
    return { budget: rows.find(({ adapter }) => adapter === id)?.budget, stderr };
  };

  test("apply to projects without their own, and never grow", async () => {
    company("config.yaml", "tools: [agents-md]\nbudgets: { '*': 2000, agents-md: 1500 }\n");
    expect((await budgetOf("agents-md")).budget).toEqual({ value: 1500, unit: "tokens" });
    configure("budgets: { agents-md: 900 }\n");
    expect((await budgetOf("agents-md")).budget).toEqual({ value: 900, unit: "tokens" });
    configure("budgets: { '*': 800 }\n");
    expect((await budgetOf("agents-md")).budget).toEqual({ value: 800, unit: "tokens" });
    configure("budgets:\n  agents-md: { max_bytes: 90000 }\n");
    const { budget, stderr } = await budgetOf("agents-md");
    expect(budget).toEqual({ value: 1500, unit: "tokens" });
    expect(stderr).toContain(
      "budgets.agents-md in .plimsoll/config.yaml:4 is above the company's (../rules/config.yaml:2), so 1,500 tokens apply",
    );
  });

  test("`*` limits a tool that only the project names", async () => {
    company("config.yaml", "tools: [agents-md]\nbudgets: { '*': 2000 }\n");
    configure("budgets: { agents-md: 9000 }\n");
    expect((await budgetOf("agents-md")).budget).toEqual({ value: 2000, unit: "tokens" });
  });
});

test("tools apply to projects without their own", async () => {
  company("config.yaml", "tools: [gemini-cli]\n");
  await inject();
  expect(project.read("GEMINI.md")).toContain("- Money is a number of cents.");
  configure("tools: [claude-code]\n");
  const rows = JSON.parse((await inject("--status", "--json")).stdout);
  expect(rows[0]).toMatchObject({ adapter: "claude-code" });
});

describe("a configuration that cannot be used", () => {
  test.each([
    ["run: { agent: claude }\n", 'config.yaml:1: unknown key "run". Allowed keys are budgets, required, tools.'],
    ["require: [house]\n", 'config.yaml:1: unknown key "require". Did you mean "required"?'],
    ["required: house\n", 'config.yaml:1: "required" must be a list, not "house"'],
    ["tools: [claude-coed]\n", 'config.yaml:1: unknown tool "claude-coed"'],
    ["\nbudgets: { nothing: 4 }\n", 'config.yaml:2: unknown tool "nothing"'],
    ["tools: [\n", "config.yaml:2: "],
  ])("is refused with its file and key: %j", async (text, message) => {
    company("config.yaml", text);
    for (const args of [[], ["--check"], ["--status"]]) {
      const { code, stderr } = await inject(...args);
      expect(code).toBe(1);
      expect(stderr).toContain(`../rules/${message}`);
    }
    expect(() => project.read("AGENTS.md")).toThrow("ENOENT");
  });

  test("does not keep --uninstall from removing blocks", async () => {
    await inject("--tool", "agents-md");
    company("config.yaml", "tools: [agents-md]\nguard: { day_usd: 1 }\n");
    expect((await project.call(["inject", "--uninstall"])).code).toBe(0);
    expect(() => project.read("AGENTS.md")).toThrow("ENOENT");
  });
});

test("a company may have a configuration and no packs", async () => {
  project.write(".plimsoll/config.yaml", "company: { source: ../settings }\n");
  company("../settings/config.yaml", "tools: [agents-md]\nbudgets: { '*': 3000 }\n");
  expect((await inject()).code).toBe(0);
  expect(project.read("AGENTS.md")).toContain("Developer Context");
});
