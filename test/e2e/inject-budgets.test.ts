/** Budgets that a person sets in one line of the configuration, or with a flag. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

interface Row {
  readonly adapter: string;
  readonly packs: readonly string[];
  readonly approxTokens: number;
  readonly renderedBytes: number;
  readonly budget: { readonly value: number; readonly unit: string } | null;
}

async function rows(...args: string[]): Promise<Record<string, Row>> {
  const { stdout, stderr, code } = await project.call(["inject", "--dry-run", "--json", ...args]);
  expect(stderr).not.toContain("unknown");
  expect(code).toBe(0);
  return Object.fromEntries((JSON.parse(stdout) as Row[]).map((row) => [row.adapter, row]));
}

function configure(text: string): void {
  project.put(".plimsoll/config.yaml", text);
}

describe("budgets in the configuration", () => {
  test("one line limits one tool and leaves the others alone", async () => {
    configure("tools: [claude-code, gemini-cli]\nbudgets: { claude-code: 2500 }\n");
    const { "claude-code": claude, "gemini-cli": gemini } = await rows();
    expect(claude?.budget).toEqual({ value: 2500, unit: "tokens" });
    expect(claude?.renderedBytes).toBeLessThanOrEqual(10_000);
    expect(claude?.packs.length).toBeGreaterThan(0);
    expect(gemini?.budget).toBeNull();
    expect(gemini?.renderedBytes).toBeGreaterThan(10_000);
  });

  test("`*` limits every tool without a line of its own, and bytes are bytes", async () => {
    configure('tools: [claude-code, gemini-cli]\nbudgets: { claude-code: { max_bytes: 8000 }, "*": 1500 }\n');
    const { "claude-code": claude, "gemini-cli": gemini } = await rows();
    expect(claude?.budget).toEqual({ value: 8000, unit: "bytes" });
    expect(claude?.renderedBytes).toBeLessThanOrEqual(8000);
    expect(gemini?.budget).toEqual({ value: 1500, unit: "tokens" });
    expect(gemini?.renderedBytes).toBeLessThanOrEqual(6000);
  });

  test("`*` never raises the smaller budget of an adapter, and a line of its own does", async () => {
    const adapter = "id: own\nname: Own\ntype: file-inject\nmax_tokens: 900\ntargets:\n";
    project.put(
      ".plimsoll/adapters/own.yaml",
      `${adapter}  - { scope: project, path: OWN.md, mode: replace-section, section: context }\n`,
    );
    configure('budgets: { "*": 5000 }\n');
    expect((await rows("--tool", "own")).own?.budget).toEqual({ value: 900, unit: "tokens" });
    configure('budgets: { own: 2000, "*": 5000 }\n');
    expect((await rows("--tool", "own")).own?.budget).toEqual({ value: 2000, unit: "tokens" });
  });

  test("the budget of a tool that reads AGENTS.md limits the block in AGENTS.md", async () => {
    configure("tools: [agents-md]\nbudgets: { codex-cli: 1200 }\n");
    const { "agents-md": agents } = await rows();
    expect(agents?.budget).toEqual({ value: 1200, unit: "tokens" });
    expect(agents?.renderedBytes).toBeLessThanOrEqual(4800);
  });

  test("the budget of a tool counts what its file imports", async () => {
    project.put("CLAUDE.md", "@AGENTS.md\n");
    configure("tools: [agents-md, claude-code]\nbudgets: { claude-code: 1000 }\non_drop: warn\n");
    const { "agents-md": agents } = await rows();
    expect(agents?.renderedBytes).toBeLessThanOrEqual(4000);
    expect(agents?.renderedBytes).toBeGreaterThan(0);
    expect((await project.call(["inject"])).code).toBe(0);
    expect((await project.call(["inject", "--check"])).code).toBe(0);
    expect(project.read("CLAUDE.md")).toBe("@AGENTS.md\n");
    configure("tools: [agents-md, claude-code]\nbudgets: { claude-code: 500 }\non_drop: warn\n");
    expect((await project.call(["inject", "--check"])).code).toBe(1);
  });

  test.each([
    ["budgets: { claud-code: 2500 }\n", 'unknown tool "claud-code"', "Did you mean", 1],
    ["title: T\nbudgets:\n  claude-code: 0\n", "claude-code", "", 3],
    ["budgets: { cursor: { max_byte: 9 } }\n", 'unknown key "budgets.cursor.max_byte"', 'Did you mean "max_bytes"?', 1],
    ["budgets: { cursor: { max_bytes: 9, max_tokens: 9 } }\n", '"budgets.cursor" must be', "{ max_bytes: N }", 1],
  ])("%j is refused with its file and line", async (text, problem, hint, line) => {
    configure(text);
    const { code, stderr } = await project.call(["inject", "--dry-run"]);
    expect(code).toBe(1);
    expect(stderr).toContain(`.plimsoll/config.yaml:${line}: `);
    expect(stderr).toContain(problem);
    expect(stderr).toContain(hint);
  });
});

describe("packs that a budget drops", () => {
  const budget = "tools: [claude-code]\nbudgets: { claude-code: { max_bytes: 8000 } }\n";

  test("are named by inject, and fail --check", async () => {
    project.speakEveryLanguage();
    configure(budget);
    const written = await project.call(["inject"]);
    expect(written.code).toBe(0);
    expect(written.stderr).toMatch(/claude-code: dropped [a-z, ]*sql.*\(budget 8,000 bytes\)/);
    const { code, stderr, stdout } = await project.call(["inject", "--check"]);
    expect(code).toBe(1);
    expect(stdout).toContain("current");
    expect(stderr).toMatch(/claude-code: [a-z, ]*sql do not fit/);
    expect(stderr).toContain("on_drop: warn");
    expect((await project.call(["inject", "--status"])).code).toBe(0);
  });

  test("are dropped for the tool's own limit if that is the tighter one, and the messages say so", async () => {
    configure("tools: [agents-md]\nbudgets: { agents-md: 50000 }\npacks: { exclude: [git] }\n");
    for (const id of ["one", "two"]) {
      project.put(`.plimsoll/packs/${id}/pack.yaml`, `id: ${id}\nweight: 1\n`);
      project.put(`.plimsoll/packs/${id}/context.md`, `- A rule of ${id}.\n`.repeat(1_000));
    }
    const written = await project.call(["inject"]);
    expect(written.stderr).toMatch(/agents-md: dropped [a-z, ]*two$/m);
    expect(written.stderr).toContain("agents-md: shortened to the tool's own limit of 32,768 bytes");
    const { code, stderr } = await project.call(["inject", "--check"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/two do(es)? not fit the tool's own limit of 32,768 bytes\. Give the packs globs, leave/);
    expect(stderr).not.toContain("50,000");
  });

  test("are only reported with on_drop: warn", async () => {
    project.speakEveryLanguage();
    configure(`${budget}on_drop: warn\n`);
    await project.call(["inject"]);
    const { code, stderr } = await project.call(["inject", "--check"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/claude-code: [a-z, ]*sql do not fit/);
    const { stdout } = await project.call(["inject", "--check", "--json"]);
    expect((JSON.parse(stdout) as { dropped: string[] }[])[0]?.dropped).toContain("sql");
  });

  test("are not those that another pack includes, or that the configuration leaves out", async () => {
    configure("tools: [claude-code]\npacks: { exclude: [python, sql] }\n");
    await project.call(["inject"]);
    expect(await project.call(["inject", "--check"])).toMatchObject({ code: 0, stderr: "" });
  });

  test("a wrong value of on_drop is an error with its line", async () => {
    configure("on_drop: ignore\n");
    const { code, stderr } = await project.call(["inject", "--check"]);
    expect(code).toBe(1);
    expect(stderr).toContain('.plimsoll/config.yaml:1: "on_drop" must be one of fail, warn, not "ignore"');
  });
});

describe("budgets on the command line", () => {
  test("--max-tokens and --max-bytes replace every other budget", async () => {
    configure("tools: [claude-code]\nbudgets: { claude-code: 900 }\n");
    expect((await rows("--max-tokens", "2000"))["claude-code"]?.budget).toEqual({ value: 2000, unit: "tokens" });
    expect((await rows("--max-bytes", "6000"))["claude-code"]?.budget).toEqual({ value: 6000, unit: "bytes" });
  });

  test.each([
    ["--max-tokens", "0"],
    ["--max-bytes", "-1"],
    ["--max-tokens", "x"],
  ])("%s %s is wrong usage", async (...flag) => {
    const { code, stderr } = await project.call(["inject", "--dry-run", flag.join("=")]);
    expect({ code, named: stderr.includes(flag[0]) }).toEqual({ code: 2, named: true });
  });

  test("both at once are wrong usage", async () => {
    const { code } = await project.call(["inject", "--dry-run", "--max-tokens", "9", "--max-bytes", "9"]);
    expect(code).toBe(2);
  });
});
