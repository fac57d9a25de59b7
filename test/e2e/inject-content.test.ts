import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

test("every problem of the content is told with file and line, nothing is written, exit 1", async () => {
  project.put("CLAUDE.md", "Mine.\n");
  project.pack("typo", "## Typo\n", "wieght: 5");
  project.pack("broken", "## Broken\n", "tags: [a\nweight: 1");
  project.pack("wrong", "## Wrong\n", "weight: heavy");
  project.put(".plimsoll/profiles/team.yaml", "id: team\nname: Team\npakcs: []\n");
  project.put(".plimsoll/adapters/mine.yaml", "id: mine\ntype: file-inject\nverbosity: verbose\n");
  const before = project.identities();
  const run = await project.run(["inject", "--quiet"]);
  expect(run).toMatchObject({ code: 1, stdout: "" });
  expect(run.stderr).toMatch(/\.plimsoll\/packs\/typo\/pack\.yaml:5: unknown key "wieght"\. Did you mean "weight"\?/);
  expect(run.stderr).toMatch(/\.plimsoll\/packs\/broken\/pack\.yaml:\d+: /);
  expect(run.stderr).toMatch(/\.plimsoll\/packs\/wrong\/pack\.yaml:5: .*weight/);
  expect(run.stderr).toMatch(/\.plimsoll\/profiles\/team\.yaml:3: unknown key "pakcs"\. Did you mean "packs"\?/);
  expect(run.stderr).toMatch(/\.plimsoll\/adapters\/mine\.yaml:3: .*verbosity/);
  const json = await project.call(["inject", "--json"]);
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stdout)).toEqual({
    error: {
      code: "invalid_content",
      message: expect.any(String),
      hint: null,
      file: expect.any(String),
      line: expect.any(Number),
    },
  });
  for (const way of ["--dry-run", "--status", "--check"]) {
    expect(await project.call(["inject", way]), way).toMatchObject({ code: 1, stdout: "" });
  }
  expect(project.identities()).toEqual(before);
});

test("a profile that does not load is told as such, not as an unknown one", async () => {
  project.put(".plimsoll/profiles/team.yaml", "id: team\nname: [\n");
  const run = await project.call(["inject", "--profile", "team"]);
  expect(run.stderr).toMatch(/\.plimsoll\/profiles\/team\.yaml:\d+: /);
  expect(run.code).toBe(1);
});

test("in content that others maintain an unknown key is a warning", async () => {
  project.pack("typo", "## Typo\n", "wieght: 5");
  const run = await project.call(["inject", "--content", ".plimsoll", "--tool", "claude-code"], {
    cwd: project.cwd,
    env: {},
  });
  // The project's own layer is the same folder here, and strict.
  expect(run.code).toBe(1);
  project.put("elsewhere/packs/typo/pack.yaml", project.read(".plimsoll/packs/typo/pack.yaml"));
  project.put("elsewhere/packs/typo/context.md", "## Typo\n\nText.\n");
  project.put(".plimsoll/packs/typo/pack.yaml", "id: other\nname: Other\ndescription: d\ntags: [t]\n");
  const other = await project.call(["inject", "--content", "elsewhere", "--tool", "claude-code"]);
  expect(other.stderr).toContain('elsewhere/packs/typo/pack.yaml:5: unknown key "wieght". Did you mean "weight"?');
  expect(other.code).toBe(0);
  expect(project.read("CLAUDE.md")).toContain("## Typo");
});

test("a context file of 60 MB is refused before it is read: below 200 MB of memory", async () => {
  project.pack("large", "");
  const file = join(project.cwd, ".plimsoll/packs/large/context.md");
  writeFileSync(file, "## Large\n");
  truncateSync(file, 60 * 1024 * 1024);
  const run = await project.run(["inject"], {
    env: { NODE_OPTIONS: `--import=${new URL("./inject-memory.mjs", import.meta.url)}` },
  });
  expect(run).toMatchObject({ code: 1, stdout: "" });
  expect(run.stderr).toMatch(/\.plimsoll\/packs\/large\/context\.md:1: has 62914560 bytes\. .*5 MB/);
  expect(Number(/peak memory (\d+) MB/.exec(run.stderr)?.[1])).toBeLessThan(200);
  expect(Object.keys(project.tree()).filter((name) => !name.startsWith(".plimsoll"))).toEqual([]);
});

test.each([
  [["--tool", "claude-cod"], /unknown tool "claude-cod"\. Did you mean "claude-code"\?/],
  [["--tool", "claude-code,"], /empty/],
  [["--profile", "backedn"], /unknown profile "backedn"\. Did you mean "backend"\?/],
  [["--verbosity", "verbose"], /--verbosity is "verbose"\. .*minimal, standard, full/],
  [["--scope", "here"], /--scope is "here"\./],
  [["--on-overflow", "crop"], /--on-overflow is "crop"\. Did you mean "drop"\?/],
  [["--counter", "bytes"], /--counter is "bytes"\./],
  [["--status", "--check"], /--status and --check cannot be used together/],
  [["--status", "--uninstall"], /cannot be used together/],
  [["--check", "--watch"], /cannot be used together/],
  [["--uninstall", "--watch"], /cannot be used together/],
  [["--status", "--dry-run"], /--status .*--dry-run/],
  [["--check", "--stats"], /--check .*--stats/],
  [["--status", "--force"], /--status .*--force/],
  [["--all", "--tool", "cursor"], /--all and --tool cannot be used together/],
  [["--global", "--scope", "project"], /cannot be used together/],
  [["--unistall"], /unknown option "--unistall"\. Did you mean "--uninstall"\?/],
  [["CLAUDE.md"], /unexpected argument "CLAUDE\.md"/],
  [["--watch", "--tool", "claude-cod"], /unknown tool "claude-cod"/],
])("wrong usage exits 2 with a word, nothing is written: %j", async (args, message) => {
  const run = await project.call(["inject", ...args]);
  expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(run.stderr).toMatch(message);
  expect(project.tree()).toEqual({});
});

test("a tool or a profile that only the configuration names is told with its line", async () => {
  project.put(".plimsoll/config.yaml", "tools: [claude-cod]\n");
  expect(await project.call(["inject"])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/config\.yaml:1: .*claude-code/),
  });
  project.put(".plimsoll/config.yaml", "title: T\nprofile: backedn\n");
  expect(await project.call(["inject"])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/config\.yaml:2: .*backend/),
  });
});

test("a folder of rules shows that its tool is in use, though the adapter looks only under HOME", async () => {
  const targets =
    "targets:\n  - { scope: project, path: .cursor/rules/team.mdc, mode: replace-file }\n  - { scope: global, path: ~/.cursor/rules/team.mdc, mode: replace-file }\n";
  project.put(
    "content/adapters/cursor.yaml",
    `id: cursor\ntype: file-inject\n${targets}detect:\n  - path: ~/.cursor\n`,
  );
  project.put(
    "content/adapters/copilot.yaml",
    "id: copilot\ntype: file-inject\ntargets:\n  - { scope: project, path: .github/copilot-instructions.md }\n",
  );
  project.put("content/packs/base/pack.yaml", "id: base\nbase: true\n");
  project.put("content/packs/base/context.md", "## Here\n\nText.\n");
  project.put(".github/CODEOWNERS", "");
  const adapters = async () => {
    const { stdout } = await project.call(["inject", "--dry-run", "--json", "--content", "content"]);
    return JSON.parse(stdout).map(({ adapter }: { adapter: string }) => adapter);
  };
  expect(await adapters()).toEqual([]);
  project.put(".cursor/rules/style.mdc", "Ours.\n");
  expect(await adapters()).toEqual(["cursor"]);
});
