import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

const sap = fileURLToPath(new URL("../../examples/sap", import.meta.url));

test.each(["plain", "budgets", "overlap"])("the worked example %s has this table", async (set) => {
  const content = ["--content", `${sap}/sets/${set}`, "--tool", "claude-code,cursor", "--counter", "bytes/4"];
  const dry = await project.call(["inject", "--stats", "--dry-run", "--json", ...content]);
  expect(dry.code).toBe(0);
  const real = await project.run(["inject", "--stats", ...content]);
  expect(real.code).toBe(0);
  await expect(real.stdout).toMatchFileSnapshot(`../golden/inject-stats-${set}.txt`);
  // The table comes after the diffs, and says the same.
  const preview = await project.call(["inject", "--stats", "--dry-run", ...content]);
  expect(preview.stdout).toBe(real.stdout);
  const rows = JSON.parse(dry.stdout).map((row: { packs: string[]; approxTokens: number }) => [
    row.packs.join(", "),
    `~${row.approxTokens}`,
  ]);
  for (const [packs, tokens] of rows) expect(real.stdout).toMatch(new RegExp(` ${packs} +${tokens} `));
});

test("the example content injects as it is, in each profile and language", async () => {
  const content = ["--content", sap, "--all", "-q"];
  for (const more of [[], ["--profile", "abap-developer"], ["--profile", "cap-developer", "--lang", "de"]]) {
    expect(await project.call(["inject", ...content, ...more]), more.join(" ")).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect(await project.call(["inject", ...content, ...more, "--check"])).toMatchObject({ code: 0 });
  }
});

/** An adapter of the project's own for a file of its own. */
function adapter(id: string, more: string): void {
  const target = `{ scope: project, path: ${id.toUpperCase()}.md }`;
  project.put(`.plimsoll/adapters/${id}.yaml`, `id: ${id}\ntype: file-inject\ntargets:\n  - ${target}\n${more}\n`);
}

const tooSmall = "plimsoll: adapter tiny: budget too small to include any pack content\n";

test("a budget too small for any pack: a warning, the old block stays, exit 0, and 1 for a check", async () => {
  project.pack("own", "## Own\n\nText.\n");
  adapter("tiny", "");
  await project.call(["inject", "--tool", "tiny", "-q"]);
  const before = project.identities();
  adapter("tiny", "max_tokens: 1");
  const { ".plimsoll/adapters/tiny.yaml": _old, ...files } = before;
  const run = await project.call(["inject", "--tool", "tiny,claude-code", "-q", "--stats"]);
  expect(run).toMatchObject({ code: 0, stderr: tooSmall });
  expect(run.stdout).toMatch(/^tiny +\(none\) +~0 +1 token +full +too small$/m);
  expect(run.stdout).toMatch(/^claude-code .* OK$/m);
  expect(project.identities()).toMatchObject(files);
  const check = await project.call(["inject", "--tool", "tiny", "--check"]);
  expect(check).toMatchObject({ code: 1, stderr: tooSmall });
  expect(await project.call(["inject", "--tool", "tiny", "--status"])).toMatchObject({ code: 0 });
});

test("max_bytes counts before max_tokens", async () => {
  project.pack("own", `## Own\n\n${"x".repeat(100)}\n`);
  adapter("tiny", "max_bytes: 50\nmax_tokens: 100000");
  expect(await project.call(["inject", "--tool", "tiny", "-q"])).toMatchObject({
    code: 0,
    stderr: tooSmall,
    stdout: "",
  });
  expect(Object.keys(project.tree())).not.toContain("TINY.md");
});

test("over a hard limit without any pack: nothing is written there, exit 1, the others are", async () => {
  const limit = "{ value: 300, unit: chars, kind: hard, scope: file, evidence: docs, checked: 2026-11-15 }";
  adapter("full", `limits:\n  - ${limit}`);
  project.put("FULL.md", `${"x".repeat(299)}\n`);
  const run = await project.call(["inject", "--tool", "full,claude-code", "-q", "--stats"]);
  expect(run.code).toBe(1);
  expect(run.stderr).toMatch(
    /^plimsoll: adapter full: nothing was written, because .* \([\d,]+ of 300 chars for one file\)\n$/,
  );
  expect(run.stdout).toMatch(/^full +\(none\) .* over budget$/m);
  expect(project.read("FULL.md")).toBe(`${"x".repeat(299)}\n`);
  expect(project.read("CLAUDE.md")).toContain("plimsoll:start");
  const check = await project.call(["inject", "--tool", "full", "--check", "-q"]);
  expect(check).toMatchObject({ code: 1, stderr: expect.stringContaining("300 chars") });
});

test("with a chosen counter a token of a budget is one of its tokens", async () => {
  project.pack("own", `## Own\n\n${"文".repeat(400)}\n`, "weight: 500\nbase: true");
  adapter("counted", "max_tokens: 700");
  const rows = async (...args: string[]) =>
    JSON.parse((await project.call(["inject", "--tool", "counted", "--dry-run", "--json", ...args])).stdout)[0];
  const bytes = await rows();
  expect(bytes.renderedBytes).toBeLessThanOrEqual(2_800);
  const counted = await rows("--counter", "exact:o200k");
  expect(counted).toMatchObject({ counter: "exact:o200k", budget: { value: 700, unit: "tokens" } });
  expect(counted.approxTokens).toBeLessThanOrEqual(700);
});

test("thinning takes tiers before packs, and the table tells both", async () => {
  project.speakEveryLanguage();
  adapter("thin", "max_bytes: 12000");
  const stats = async (...args: string[]) =>
    (await project.call(["inject", "--tool", "thin", "--stats", "-q", ...args])).stdout;
  expect(await stats("--on-overflow", "thin")).toMatch(/OK \(\d packs thinned\)$/m);
  expect(await stats()).toMatch(/OK \(\d packs trimmed\)$/m);
});

test("adapters that share a file get one block under the smallest budget, and the run says so", async () => {
  project.put(
    ".plimsoll/adapters/second.yaml",
    "id: second\ntype: file-inject\ntargets:\n  - { scope: project, path: CLAUDE.md }\nmax_bytes: 9000\n",
  );
  const run = await project.call(["inject", "--tool", "claude-code,second", "--stats"]);
  expect(run.code).toBe(0);
  expect(run.stderr).toContain("CLAUDE.md is shared by claude-code, second, so the smallest of their budgets applies");
  expect(run.stdout).toMatch(/^claude-code .* 9000 bytes /m);
  expect(project.read("CLAUDE.md").length).toBeLessThanOrEqual(9_000);
  expect(project.read("CLAUDE.md").split("plimsoll:start").length).toBe(2);
});

test("two sections of one file keep its hard limit together", async () => {
  const limit = "{ value: 20000, unit: bytes, kind: hard, scope: file, evidence: docs, checked: 2026-11-15 }";
  const target = (section: string) => `targets:\n  - { scope: project, path: BOTH.md, section: ${section} }`;
  project.put(".plimsoll/adapters/one.yaml", `id: one\ntype: file-inject\n${target("one")}\nlimits:\n  - ${limit}\n`);
  project.put(".plimsoll/adapters/two.yaml", `id: two\ntype: file-inject\n${target("two")}\n`);
  const args = ["--tool", "one,two", "-q"];
  await project.call(["inject", ...args]);
  expect(project.read("BOTH.md").length).toBeLessThanOrEqual(20_000);
});

test("--dry-run --stats shows the table alone, and the diff below it only with --diff", async () => {
  const run = async (...args: string[]) => (await project.call(["inject", "--tool", "claude-code", ...args])).stdout;
  const table = await run("--dry-run", "--stats");
  expect(table).toMatch(/^Adapter .*\nclaude-code .*\n$/);
  const both = await run("--dry-run", "--stats", "--diff");
  expect(both.startsWith(table)).toBe(true);
  expect(both.slice(table.length)).toMatch(/^--- .*\n\+\+\+ CLAUDE\.md\n/);
  expect(await run("--dry-run")).toMatch(/^--- .*\n\+\+\+ CLAUDE\.md\n/);
  const rows = JSON.parse(await run("--dry-run", "--stats", "--json"));
  expect(rows[0].diff).toContain("+");
  const refused = await project.call(["inject", "--diff"]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("--dry-run") });
});

interface Counted {
  readonly approxTokens: number;
  readonly counter: string;
}

/** What inject says about the block in CLAUDE.md, and what audit says about that file. */
async function bothCounts(...args: string[]): Promise<{ injected: Counted; audited: Counted }> {
  const stats = await project.call(["inject", "--stats", "--json", "--tool", "claude-code", ...args]);
  const report = await project.call(["audit", "--json", "--tool", "claude-code", ...args]);
  const [{ approxTokens, counter }] = JSON.parse(stats.stdout);
  const audit = JSON.parse(report.stdout);
  return {
    injected: { approxTokens, counter },
    audited: { approxTokens: audit.tools[0].files[0].tokens, counter: audit.counter },
  };
}

test.each([
  ["no model", "title: T\n", [], "estimate:claude-5"],
  ["a model in the configuration", "model: gpt-5\n", [], "estimate:o200k"],
  ["a counter in the configuration", "model: gpt-5\ncounter: bytes/4\n", [], "bytes/4"],
  ["a model on the command line", "model: claude-sonnet-5\n", ["--model", "gpt-4"], "estimate:cl100k"],
  ["a counter on the command line", "model: claude-sonnet-5\n", ["--counter", "bytes/4"], "bytes/4"],
])("inject and audit count the same block alike with %s", async (_, config, args, counter) => {
  project.put(".plimsoll/config.yaml", config);
  const { injected, audited } = await bothCounts(...args);
  expect(injected.counter).toBe(counter);
  expect(audited).toEqual(injected);
});

test("the user's configuration changes neither count of a project", async () => {
  project.put("../home/.config/plimsoll/config.yaml", "model: gpt-5\n");
  const { injected, audited } = await bothCounts();
  expect(injected.counter).toBe("estimate:claude-5");
  expect(audited).toEqual(injected);
});

test("a budget in tokens is counted for the model of the configuration", async () => {
  const tokens = async (config: string) => {
    project.put(".plimsoll/config.yaml", `${config}budgets: { claude-code: 2500 }\n`);
    const { stdout } = await project.call(["inject", "--dry-run", "--json", "--tool", "claude-code"]);
    return JSON.parse(stdout)[0] as { packs: string[]; approxTokens: number; renderedBytes: number };
  };
  const [newer, older, plain] = [
    await tokens("model: claude-sonnet-5\n"),
    await tokens("model: gpt-5\n"),
    await tokens("counter: bytes/4\n"),
  ];
  for (const { approxTokens } of [newer, older, plain]) expect(approxTokens).toBeLessThanOrEqual(2500);
  expect(newer.packs.length).toBeLessThan(older.packs.length);
  expect(plain.renderedBytes).toBeLessThanOrEqual(10_000);
});

test("inject mentions a missing model only beside the table", async () => {
  const note = "no --model given";
  expect((await project.call(["inject", "--tool", "claude-code"])).stderr).not.toContain(note);
  expect((await project.call(["inject", "--tool", "claude-code", "--stats"])).stderr).toContain(note);
  project.put(".plimsoll/config.yaml", "model: claude-sonnet-5\n");
  expect((await project.call(["inject", "--tool", "claude-code", "--stats"])).stderr).not.toContain(note);
  expect((await project.call(["audit"])).stderr).not.toContain(note);
});
