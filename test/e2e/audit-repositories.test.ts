/** `audit DIR DIR…`: one row for each clone. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

function write(path: string, text: string): void {
  const file = join(sandbox.cwd, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const house = "id: house\nname: House\ndescription: d\ntags: [t]\n";

/** Makes a clone that uses the company's folder `rules`. */
function clone(name: string, more = "tools: [agents-md]\n"): void {
  makeRepository(join(sandbox.cwd, name));
  write(`${name}/.plimsoll/config.yaml`, `company: { source: ../rules }\npacks: { built_in: [] }\n${more}`);
}

function createRules(): void {
  write("rules/packs/house/pack.yaml", house);
  write("rules/packs/house/context.md", "## House rules\n\n- Money is a number of cents.\n");
}

const trust = { env: { PLIMSOLL_TRUST: "1" } };
const inject = (name: string) => sandbox.call(["inject"], { ...trust, cwd: join(sandbox.cwd, name) });
const audit = (...args: string[]) => sandbox.call(["audit", ...args], trust);

interface Repository {
  path: string;
  company: { source: string; revision: string | null; commit: string | null } | null;
  counter: string | null;
  tools: { id: string; tokens: number }[];
  hidden: object[];
  twice: object[];
  over: object[];
  outOfDate: object[];
  required: string[];
  problem: string | null;
}

const auditJson = async (...args: string[]) => {
  const { stdout, code } = await audit("--json", ...args);
  const report = JSON.parse(stdout) as { repositories: Repository[]; faults: number };
  return { code, ...report };
};

test("clones without faults have a row each, and the exit code is 0", async () => {
  createRules();
  for (const name of ["shop", "pay"]) {
    clone(name);
    await inject(name);
  }
  const { code, stdout, stderr } = await audit("shop", "pay", "--counter", "bytes/4");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [header, ...rows] = stdout.trimEnd().split("\n");
  expect(header).toMatch(/^repository +company +tokens +largest +hidden +twice +over +outdated$/);
  expect(rows).toHaveLength(2);
  expect(rows[0]).toMatch(/^shop +in place +\d+ +[\w-]+ +0 +0 +0 +0$/);
  const { repositories, faults } = await auditJson("shop", "pay");
  expect(faults).toBe(0);
  expect(repositories[0]).toMatchObject({
    path: "shop",
    company: { source: "../rules", revision: null, commit: null },
    hidden: [],
    problem: null,
  });
  expect(repositories[0]?.tools.length).toBeGreaterThan(3);
});

test("each kind of fault is counted in its column, and one of them fails the run", async () => {
  createRules();
  for (const name of ["fine", "stale", "hidden", "twice", "over"]) clone(name);
  clone("hidden", "tools: [codex-cli]\n");
  clone("twice", "tools: [claude-code, copilot-cli]\n");
  clone("over", "tools: [agents-md]\nbudgets: { agents-md: 20 }\n");
  write("hidden/AGENTS.override.md", "# Mine\n");
  write("twice/CLAUDE.md", "# Mine\n");
  write("twice/AGENTS.md", "# Mine too\n");
  for (const name of ["fine", "stale", "hidden", "twice", "over"]) await inject(name);
  write("stale/.plimsoll/packs/own/pack.yaml", "id: own\nname: Own\ndescription: d\ntags: [t]\n");
  write("stale/.plimsoll/packs/own/context.md", "## Own\n\n- A rule.\n");
  const { code, repositories, faults } = await auditJson("fine", "stale", "hidden", "twice", "over");
  const counts = repositories.map(({ path, hidden, twice, over, outOfDate }) => [
    path,
    ...[hidden, twice, over, outOfDate].map(({ length }) => Math.min(1, length)),
  ]);
  expect(counts).toEqual([
    ["fine", 0, 0, 0, 0],
    ["stale", 0, 0, 0, 1],
    ["hidden", 1, 0, 0, 0],
    ["twice", 0, 1, 0, 0],
    ["over", 0, 0, 1, 0],
  ]);
  expect(code).toBe(1);
  expect(faults).toBe(4);
  expect(repositories[1]?.outOfDate).toEqual([{ path: "AGENTS.md", tools: ["agents-md"], state: "stale" }]);
  const { stdout } = await audit("fine", "stale");
  expect(stdout).toContain("stale: AGENTS.md is stale (agents-md)");
});

test("the table agrees with inject --check in each clone", async () => {
  createRules();
  for (const name of ["one", "two"]) clone(name);
  await inject("one");
  for (const name of ["one", "two"]) {
    const check = await sandbox.call(["inject", "--check"], { ...trust, cwd: join(sandbox.cwd, name) });
    const { repositories } = await auditJson(name, name);
    const { hidden, twice, over, outOfDate } = repositories[0]!;
    expect([...hidden, ...twice, ...over, ...outOfDate].length > 0).toBe(check.code === 1);
  }
});

test("required packs that a clone lacks are named", async () => {
  createRules();
  for (const name of ["a", "b"]) clone(name);
  await inject("a");
  write("rules/config.yaml", "required: [base]\n");
  const { repositories } = await auditJson("a", "b");
  expect(repositories[0]?.required).toEqual(["base"]);
});

test("a clone that cannot be read has its reason, and the others are audited", async () => {
  createRules();
  clone("shop");
  await inject("shop");
  clone("broken", "budgets: 5\n");
  const { code, repositories } = await auditJson("broken", "nowhere", "shop");
  expect(code).toBe(1);
  expect(repositories.map(({ problem }) => problem)).toEqual([
    expect.stringContaining(".plimsoll/config.yaml:3"),
    expect.stringContaining("no such"),
    null,
  ]);
  const { stdout } = await audit("broken", "shop");
  expect(stdout).toMatch(/^broken: .*config\.yaml:3/m);
});

test("without trust, nothing of a company is read, and the row says so", async () => {
  createRules();
  for (const name of ["a", "b"]) clone(name);
  const { code, stdout } = await sandbox.call(["audit", "a", "b", "--json"]);
  expect(code).toBe(1);
  const { repositories } = JSON.parse(stdout) as { repositories: Repository[] };
  expect(repositories[0]?.problem).toContain("You have not trusted this project");
  expect(repositories[0]?.tools).toEqual([]);
});

test("the revision of a company's repository is shown with its commit", async () => {
  createRules();
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@example.com", "-C", "rules", ...args], {
      cwd: sandbox.cwd,
      env: sandbox.env,
      encoding: "utf8",
    }).trim();
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "-m", "Rules");
  git("tag", "v1");
  for (const name of ["shop", "pay"]) {
    makeRepository(join(sandbox.cwd, name));
    write(`${name}/.plimsoll/config.yaml`, "company: { source: ../rules, revision: v1 }\ntools: [agents-md]\n");
    await sandbox.call(["sync"], { ...trust, cwd: join(sandbox.cwd, name) });
    await inject(name);
  }
  const commit = git("rev-parse", "HEAD");
  const { repositories } = await auditJson("shop", "pay");
  expect(repositories[1]?.company).toEqual({ source: "../rules", revision: "v1", commit });
  expect((await audit("shop", "pay")).stdout).toContain(`v1 ${commit.slice(0, 7)}`);
});

test("no line of the table is wider than 80 columns", async () => {
  createRules();
  const names = ["a-repository-with-a-name-that-is-much-longer-than-any-table", "shop"];
  for (const name of names) {
    clone(name, "tools: [agents-md]\n");
    await inject(name);
  }
  const { stdout } = await audit(...names);
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  expect(stdout).toContain("than-any-table");
});

test("--all is refused for several folders", async () => {
  const { code, stderr } = await audit("a", "b", "--all");
  expect(code).toBe(2);
  expect(stderr).toContain("--all needs a single DIR");
});
