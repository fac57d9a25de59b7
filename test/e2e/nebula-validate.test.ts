import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  sandbox.write("plan/nebula.toml", '[nebula]\nname = "a plan"\n');
});
afterEach(() => sandbox.remove());

function phase(id: string, ...lines: string[]): void {
  sandbox.write(
    `plan/${id}.md`,
    ["+++", `id = "${id}"`, `title = "Do ${id}"`, ...lines, "+++", "", `Body of ${id}.`].join("\n"),
  );
}

/** How phases would run that all do so alike, without an agent that is named. */
const alike = `phase  works in  command                         permissions
all    .         (no agent chosen, use --agent)  edit
`;

test.each([["init"], ["generate", "Add a page", "--agent-command", "touch started"]])(
  "a plan is not written through a link of the repository: nebula %s",
  async (command, ...args) => {
    mkdirSync(join(sandbox.home, "outside"));
    symlinkSync(join(sandbox.home, "outside"), join(sandbox.cwd, "linked"));
    const [wish = [], ...options] = [args.slice(0, 1), ...args.slice(1)];
    const { code, stderr } = await sandbox.run(["nebula", command!, ...wish, "linked", ...(options as string[])]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("leads through a symbolic link out of")]);
    expect([...readdirSync(join(sandbox.home, "outside")), existsSync(join(sandbox.cwd, "started"))]).toEqual([false]);
  },
);

test("a sound nebula is told to be so, and shown in waves", async () => {
  phase("model", 'scope = ["src/model/**"]');
  phase("api", 'depends_on = ["model"]', 'gate = "review"', 'scope = ["src/api/**"]');
  phase("docs", "priority = 1");
  expect(await sandbox.run(["nebula", "validate", "plan"])).toEqual({
    code: 0,
    stdout: `3 phases: 0 errors, 0 warnings\n\n${alike}`,
    stderr: "",
  });
  const { stdout } = await sandbox.run(["nebula", "show", "plan"]);
  expect(stdout.split("\n").map((line) => line.split(/ {2,}/).filter((cell) => cell !== ""))).toEqual([
    ["wave", "id", "title", "depends on", "gate", "tokens", "scope"],
    ["1", "docs", "Do docs", "trust", expect.stringMatching(/^\d+$/)],
    ["1", "model", "Do model", "trust", expect.stringMatching(/^\d+$/), "src/model/**"],
    ["2", "api", "Do api", "model", "review", expect.stringMatching(/^\d+$/), "src/api/**"],
    [],
    [expect.stringMatching(/^a plan: 3 phases in 2 waves, \d+ tokens of tasks by bytes\/4$/)],
    [],
    ["phase", "works in", "command", "permissions"],
    ["all", ".", "(no agent chosen, use --agent)", "edit"],
    [],
  ]);
  const json = JSON.parse((await sandbox.call(["nebula", "show", "plan", "--json"])).stdout);
  expect(json).toMatchObject({ name: "a plan", waves: [["docs", "model"], ["api"]] });
  expect(json.phases.at(-1)).toEqual({
    id: "api",
    title: "Do api",
    dependsOn: ["model"],
    scope: ["src/api/**"],
    gate: "review",
    promptTokens: expect.any(Number),
    workingDirectory: ".",
    model: null,
    command: null,
    permissions: "edit",
    maxBudgetUsd: null,
  });
});

test("every problem is told with file and line from where one stands, and the exit code is 1", async () => {
  phase("a", 'depends_on = ["b"]', "colour = 1");
  phase("b", 'depends_on = ["a"]');
  sandbox.write("plan/c.md", "# No front matter\n");
  const { code, stdout, stderr } = await sandbox.call(["nebula", "validate", "plan"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(stdout.split("\n")).toEqual([
    "plan/a.md:4: error dependency-cycle: the dependencies form a cycle: a → b → a",
    expect.stringMatching(/^plan\/a\.md:5: warning unknown-key: unknown key "colour"\. /),
    expect.stringMatching(/^plan\/c\.md:1: error missing-front-matter: /),
    "3 phases: 2 errors, 1 warning",
    "",
  ]);
  const above = await sandbox.call(["nebula", "validate", "../plan", "--json"], {
    cwd: `${sandbox.cwd}/plan`,
  });
  expect(above.code).toBe(1);
  expect(JSON.parse(above.stdout)[0]).toEqual({
    file: "a.md",
    line: 4,
    severity: "error",
    rule: "dependency-cycle",
    message: "the dependencies form a cycle: a → b → a",
  });
});

test("a nebula with errors is not shown: its problems are", async () => {
  phase("a", 'depends_on = ["b"]', "colour = 1");
  phase("c", 'depends_on = ["d"]');
  const { code, stdout, stderr } = await sandbox.call(["nebula", "show", "plan"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.split("\n")).toEqual([
    expect.stringMatching(/^plimsoll: plan\/a\.md:5: unknown key "colour"/),
    'plimsoll: plan/a.md:4: depends_on names "b", but no phase has this id',
    'plan/c.md:4: depends_on names "d", but no phase has this id',
    "",
  ]);
  const json = await sandbox.call(["nebula", "show", "plan", "--json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({
    error: { code: "invalid_content", file: "plan/a.md", line: 4 },
  });
});

test.each([
  [["nebula", "validate"], 2, "DIR is missing"],
  [
    ["nebula", "validate", "nowhere"],
    1,
    "nowhere/nebula.toml: no such file or directory. A nebula is a folder with nebula.toml",
  ],
  [["nebula", "show", "plan", "--json", "--mermaid"], 2, "cannot be used together"],
  [["nebula", "show", "plan", "--counter", "bytes/4,words"], 2, ""],
])("%j ends with %i", async (args, code, message) => {
  phase("a");
  const run = await sandbox.call(args);
  expect(run.code).toBe(code);
  expect(run.stderr).toContain(message);
});

test("the graph is all that stdout gets", async () => {
  phase("a");
  phase("b", 'depends_on = ["a"]');
  const { stdout } = await sandbox.call(["nebula", "show", "plan", "--mermaid"]);
  expect(stdout).toBe(
    'graph LR\n  subgraph wave1["wave 1"]\n    p1["a<br/>Do a"]\n  end\n  subgraph wave2["wave 2"]\n    p2["b<br/>Do b"]\n  end\n  p1 --> p2\n',
  );
});

test("ten times the phases take about ten times as long", { tags: ["perf"] }, async () => {
  const time = async (count: number) => {
    for (let index = 0; index < count; index++) {
      const before = index % 10 === 0 ? [] : [`depends_on = ["p${index - 1}"]`];
      phase(`p${index}`, ...before, `scope = ["src/p${index}/**", "docs/*-${index}.md"]`);
    }
    const start = performance.now();
    expect((await sandbox.run(["nebula", "validate", "plan"])).stdout).toBe(
      `${count.toLocaleString("en")} phases: 0 errors, 0 warnings\n\n${alike}`,
    );
    return performance.now() - start;
  };
  const [small, large] = [await time(200), await time(2_000)];
  expect(large).toBeLessThan(10 * small + 2_000);
});
