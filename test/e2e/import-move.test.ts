/** The built command on repositories as people have them: `import --move` makes no tool load more, loses no text and
 *  repeats none, and `undo` gives everything back. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { caseCount } from "../case-count.ts";
import { createProject, type InjectProject } from "./inject-project.ts";
import { type MoveRepository, moveRepositories } from "./move-repositories.ts";
import { mainFile } from "./run-plimsoll.ts";

const kills = caseCount({ few: 4, deep: 100, long: 400 });

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

function fill({ files, links = {} }: MoveRepository): void {
  for (const [path, text] of Object.entries(files)) project.write(path, text);
  for (const [path, target] of Object.entries(links)) symlinkSync(target, join(project.cwd, path));
  // Files of folders are found by what git tracks.
  for (const args of [
    ["init", "-q"],
    ["add", "-A"],
  ])
    execFileSync("git", args, { cwd: project.cwd, env: project.env });
}

/** Every entry with its bytes and permissions. */
function snapshot(): Record<string, string> {
  const mode = (name: string) => (lstatSync(join(project.cwd, name)).mode & 0o7777).toString(8);
  return Object.fromEntries(Object.entries(project.tree()).map(([name, bytes]) => [name, `${mode(name)} ${bytes}`]));
}

interface Loaded {
  readonly tokens: number;
  /** The lines that the tool always loads. */
  readonly lines: readonly string[];
}

/** What each tool loads in the root, as audit reports it. */
async function audit(): Promise<Map<string, Loaded>> {
  const { stdout, code } = await project.call(["audit", "--json"]);
  expect(code).toBe(0);
  const { tools } = JSON.parse(stdout) as {
    tools: { id: string; total: number; files: { path: string; tokens: number; on_demand: boolean }[] }[];
  };
  return new Map(
    tools.map(({ id, files }) => {
      const always = files.filter((file) => !file.on_demand);
      const texts = always.map(({ path }) => readFileSync(join(project.cwd, path), "utf8"));
      const lines = texts.flatMap((text) => text.replace(/^---\n[\s\S]*?\n---\n/, "").split("\n"));
      return [id, { tokens: always.reduce((sum, file) => sum + file.tokens, 0), lines }];
    }),
  );
}

/** Lines of rules: no headings, markers, imports, blank lines, or sentences about the file itself. */
function listRules({ lines }: Loaded): string[] {
  return lines.filter(
    (line) => line.trim() !== "" && !/^(?:#|```|<!-- plimsoll:|@\S+$|This file provides guidance)/.test(line),
  );
}

interface Moved {
  readonly tokens: readonly {
    tool: string;
    folder: string;
    before: number;
    after: number;
    markers: number;
    twice: number;
  }[];
  readonly packs: readonly { id: string; tools?: string[]; not_tools?: string[] }[];
  readonly moved: readonly string[];
  readonly kept: readonly { path: string; reason: string }[];
}

describe.each(moveRepositories)("$name", (repository) => {
  test("no tool loads more or a text twice, each rule reaches its tools, and undo gives every byte back", async () => {
    fill(repository);
    chmodSync(join(project.cwd, Object.keys(repository.files)[0]!), 0o664);
    const [original, before] = [snapshot(), await audit()];
    const run = await project.run(["import", "--move", "--json"]);
    expect(run.code, run.stderr).toBe(0);
    const moved = JSON.parse(run.stdout) as Moved;
    expect(moved.moved.length).toBeGreaterThan(0);
    const after = await audit();
    const ofSomeTools = moved.packs
      .filter(({ tools, not_tools: others }) => tools !== undefined || others !== undefined)
      .flatMap(({ id }) => readFileSync(join(project.cwd, ".plimsoll/packs", id, "context.md"), "utf8").split("\n"));
    for (const [tool, then] of before) {
      const now = after.get(tool)!;
      const markers = moved.tokens.find((each) => each.tool === tool && each.folder === "")!.markers;
      // A few tokens for a heading that two packs need.
      expect(now.tokens - markers, `tokens of ${tool}`).toBeLessThanOrEqual(then.tokens + 5);
      const rules = listRules(now);
      const repeated = rules.length - new Set(rules).size;
      // A link stays, so a tool that reads both names of a file still loads it twice.
      const isLinked = repository.links !== undefined && listRules(then).length > new Set(listRules(then)).size;
      if (!isLinked) expect(repeated, `${tool} loads a line twice`).toBe(0);
      for (const line of listRules(then).filter((each) => !ofSomeTools.includes(each)))
        expect(rules, tool).toContain(line);
    }
    if (repository.links === undefined) expect(moved.tokens.filter(({ twice }) => twice > 0)).toEqual([]);
    expect(await project.call(["inject", "--check"])).toMatchObject({ code: 0, stderr: "" });
    expect((await project.call(["packs", "lint"])).stdout).toContain("0 errors, 0 warnings");
    // A second run finds nothing to do.
    const moves = snapshot();
    expect(JSON.parse((await project.call(["import", "--move", "--json"])).stdout).moved).toEqual([]);
    expect(snapshot()).toEqual(moves);
    expect(await project.run(["undo"])).toMatchObject({ code: 0, stderr: "" });
    expect(snapshot()).toEqual(original);
  });

  test("a dry run says the same and writes nothing", async () => {
    fill(repository);
    const original = snapshot();
    const plan = JSON.parse((await project.call(["import", "--move", "--dry-run", "--json"])).stdout);
    expect(snapshot()).toEqual(original);
    const { packs, moved, kept, tools } = JSON.parse((await project.call(["import", "--move", "--json"])).stdout);
    expect(plan).toMatchObject({ packs, moved, kept, tools });
  });
});

const [equal, , , , manyTools] = moveRepositories as readonly MoveRepository[];

test("text for one tool is in a pack for that tool, and what no pack can hold stays in its file", async () => {
  fill(manyTools!);
  const { packs, moved, kept } = JSON.parse((await project.call(["import", "--move", "--json"])).stdout) as Moved;
  expect(packs).toMatchObject([
    { id: "agents" },
    { id: "claude", tools: ["claude-code"] },
    { tools: ["devin-desktop"] },
  ]);
  // Cline gets this text with AGENTS.md.
  expect(moved).toContain(".clinerules/backend.md");
  expect(kept).toMatchObject([{ path: ".clinerules/memory.md" }]);
  const rule = project.read(".claude/rules/plimsoll-claude.md");
  expect(rule).toContain("Use plan mode for migrations.");
  expect(project.read("AGENTS.md")).not.toContain("plan mode");
});

test("the configuration gets the tools and a budget, and keys that a person wrote stay", async () => {
  fill(equal!);
  project.write(".plimsoll/config.yaml", 'title: ""\npacks: { built_in: [] }\nbudgets: { "*": 5000 }');
  await project.call(["import", "--move"]);
  expect(project.read(".plimsoll/config.yaml")).toBe(
    'title: ""\npacks: { built_in: [] }\nbudgets: { "*": 5000 }\ntools: [agents-md]\n',
  );
  await project.call(["undo"]);
  project.write(".plimsoll/config.yaml", 'tools: [agents-md, claude-code]\ntitle: ""\npacks: { built_in: [] }\n');
  await project.call(["import", "--move"]);
  expect(project.read(".plimsoll/config.yaml")).toMatch(
    /^tools: .*\ntitle: ""\npacks: .*\nbudgets: \{ "\*": 4000 \}.*\n$/,
  );
});

test("says what it did, with the tokens before and after", async () => {
  fill(equal!);
  const { code, stdout } = await project.call(["import", "--move"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^pack +for +from\nagents +all +AGENTS\.md\n/);
  expect(stdout).toMatch(/^before +after +of it markers +in +loaded by$/m);
  expect(stdout).toContain('moved the text of AGENTS.md, CLAUDE.md\n"plimsoll undo" takes it back.\n');
  expect(await project.call(["import", "--move"])).toMatchObject({ code: 0, stdout: "Found no rules to move here.\n" });
});

test("a link to another file, an edited block and a file that nobody reads stay, with the reason", async () => {
  project.write("docs/ai.md", "Use pnpm in this repository.\n");
  symlinkSync("docs/ai.md", join(project.cwd, "CLAUDE.md"));
  const { stderr, stdout } = await project.call(["import", "--move"]);
  expect(stderr).toContain("CLAUDE.md stays, because it is a link to");
  expect(stdout).toBe("Found no rules to move here.\n");
  expect(project.read("docs/ai.md")).toBe("Use pnpm in this repository.\n");
});

test("what fails is taken back", async () => {
  fill(equal!);
  const original = snapshot();
  project.write(".plimsoll/config.yaml", "packs: { built_in: [] }\ntools: [agents-md]\nbudgets: { agents-md: 60 }\n");
  const withConfig = snapshot();
  const { code, stderr } = await project.call(["import", "--move"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^plimsoll: nothing was moved: .*AGENTS\.md/m);
  expect(snapshot()).toEqual(withConfig);
  expect(Object.keys(original).length).toBeLessThan(Object.keys(withConfig).length);
  expect(await project.call(["undo", "--list", "--json"])).toMatchObject({ stdout: "[]\n" });
});

/** Starts a move and kills it after a while, or as soon as a certain file is there or gone. */
async function moveAndKill(round: number, wholeRun: number): Promise<void> {
  const exists = (path: string) => lstatSync(join(project.cwd, path), { throwIfNoEntry: false }) !== undefined;
  const signs = [
    () => exists(".plimsoll/packs/agents/pack.yaml"),
    () => exists(".plimsoll/config.yaml"),
    () => !exists("AGENTS.md"),
    () => !exists("CLAUDE.md"),
    () => exists(".claude/rules/plimsoll-claude.md"),
  ];
  const child = spawn(process.execPath, [mainFile, "import", "--move"], {
    cwd: project.cwd,
    env: project.env,
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  if (round % 2 === 0) await Promise.race([sleep(wholeRun * (0.3 + 0.7 * Math.random())), exited]);
  else {
    const isReached = signs[round % signs.length]!;
    while (child.exitCode === null && !isReached()) await sleep(1);
    await sleep((round % 4) * 2);
  }
  child.kill("SIGKILL");
  await exited;
}

test(`a move killed at any moment loses nothing: undo or another run gives a clean state (${kills} kills)`, {
  tags: ["deep"],
  timeout: 60_000 + kills * 8_000,
}, async () => {
  fill(manyTools!);
  const original = snapshot();
  const started = performance.now();
  expect(await project.run(["import", "--move"])).toMatchObject({ code: 0 });
  const wholeRun = performance.now() - started;
  const complete = snapshot();
  await project.call(["undo"]);
  let interrupted = 0;
  for (let round = 0; round < kills; round++) {
    await moveAndKill(round, wholeRun);
    const state = JSON.stringify(snapshot());
    if (![original, complete].some((each) => JSON.stringify(each) === state)) interrupted++;
    if (round % 2 === 0) {
      const again = await project.call(["import", "--move"]);
      expect(again.code, again.stderr).toBe(0);
      expect(snapshot()).toEqual(complete);
    }
    await project.call(["undo"]);
    expect(snapshot()).toEqual(original);
  }
  expect(interrupted).toBeGreaterThan(kills / 4);
});

test("two moves at once: one does it, the other one changes nothing", { tags: ["deep"], timeout: 60_000 }, async () => {
  fill(manyTools!);
  const original = snapshot();
  const runs = await Promise.all([1, 2, 3].map(() => project.run(["import", "--move"])));
  expect(runs.filter(({ code }) => code === 0).length).toBeGreaterThan(0);
  expect(await project.call(["inject", "--check"])).toMatchObject({ code: 0 });
  while ((await project.call(["undo"])).stdout.includes("took back")) {}
  expect(snapshot()).toEqual(original);
});

test("records are only for the user, and never in the project", async () => {
  fill(equal!);
  await project.call(["import", "--move"]);
  const undo = join(project.home, ".local/state/plimsoll/undo");
  for (const name of [".", ...readdirSync(undo, { recursive: true, encoding: "utf8" })]) {
    const { mode } = statSync(join(undo, name));
    expect(mode & 0o077, name).toBe(0);
  }
  expect(Object.keys(project.tree()).filter((name) => /undo|journal/.test(name))).toEqual([]);
  writeFileSync(join(project.cwd, "AGENTS.md"), "mine\n");
  const before = snapshot();
  const refused = await project.call(["undo"]);
  expect(refused).toMatchObject({ code: 1 });
  expect(refused.stderr).toContain("AGENTS.md: was changed since, so it stays. Use --force");
  // Packs without their files would lose the rules that were in the files.
  expect(refused.stdout).toContain("nothing was taken back");
  expect(snapshot()).toEqual(before);
  expect(await project.call(["undo", "--force"])).toMatchObject({ code: 0 });
  expect(project.read("AGENTS.md.bak")).toBe("mine\n");
});
