import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeRepository } from "../make-repository.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
  makeRepository(sandbox.cwd);
});
afterEach(() => sandbox.remove());

const schemas = ["config", "pack", "profile", "adapter"].map((name) => `.plimsoll/schemas/${name}.schema.json`);
const sample = [".plimsoll/packs/project/context.md", ".plimsoll/packs/project/pack.yaml"];

function read(path: string): string {
  return readFileSync(join(sandbox.cwd, path), "utf8");
}

/** Every file below `.plimsoll` and its content. */
function snapshot(): Record<string, string> {
  const names = readdirSync(join(sandbox.cwd, ".plimsoll"), { recursive: true, encoding: "utf8" });
  return Object.fromEntries(
    names.filter((name) => /\.\w+$/.test(name)).map((name) => [name, read(join(".plimsoll", name))]),
  );
}

test("the help is as pinned", async () => {
  const help = await sandbox.call(["init", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot("golden/help-init.txt");
});

test("a project gets a configuration, a sample pack and the schemas, and is told what to do next", async () => {
  const { code, stdout, stderr } = await sandbox.run(["init"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.split("\n\n")[0]?.split("\n")).toEqual(
    [".plimsoll/config.yaml", ...sample, ...schemas].map((path) => `created ${path}`),
  );
  expect(stdout).toContain("plimsoll inject --dry-run --stats");
  expect(Object.keys(snapshot())).toHaveLength(7);
});

test("the sample lints clean, and a first rule reaches AGENTS.md, which holds nothing else of ours", async () => {
  await sandbox.call(["init"]);
  expect(await sandbox.call(["packs", "lint", "--json"])).toEqual({ code: 0, stdout: "[]\n", stderr: "" });
  expect((await sandbox.call(["inject"])).code).toBe(0);
  expect(read("AGENTS.md")).not.toMatch(/verbosity|packs lint|## Git/);
  appendFileSync(join(sandbox.cwd, sample[0]!), "- Always use tabs\n");
  expect(await sandbox.call(["inject"])).toMatchObject({ code: 0, stderr: "" });
  expect(read("AGENTS.md")).toContain("\n## This project\n\n- Always use tabs\n");
  expect((await sandbox.call(["inject", "--check"])).code).toBe(0);
  expect(existsSync(join(sandbox.cwd, "CLAUDE.md"))).toBe(false);
});

describe("tools", () => {
  const readTools = () => /^tools: \[(.*?)\]/m.exec(read(".plimsoll/config.yaml"))?.[1];

  test.each<[string, readonly string[], string]>([
    ["a bare repository", [], "agents-md"],
    ["a folder of Claude Code, which then reads AGENTS.md", [".claude/settings.json"], "agents-md"],
    ["AGENTS.md and that folder", ["AGENTS.md", ".claude/settings.json"], "agents-md"],
    ["a CLAUDE.md", ["CLAUDE.md"], "claude-code"],
    ["AGENTS.md and CLAUDE.md", ["AGENTS.md", "CLAUDE.md"], "agents-md, claude-code"],
    ["a CLAUDE.local.md, which hides AGENTS.md", [".claude/settings.json", "CLAUDE.local.md"], "claude-code"],
    ["GEMINI.md and a folder of Claude Code", ["GEMINI.md", ".claude/settings.json"], "agents-md, gemini-cli"],
  ])("%s", async (_name, files, tools) => {
    for (const file of files) sandbox.write(file, "{}");
    await sandbox.call(["init"]);
    expect(readTools()).toBe(tools);
  });
});

describe("built-in packs", () => {
  const listUsed = async () => {
    const { stdout } = await sandbox.call(["packs", "list", "--json"]);
    const listed: { readonly id: string; readonly used: boolean }[] = JSON.parse(stdout);
    return listed.filter(({ used }) => used).map(({ id }) => id);
  };

  test("are used only if they are chosen", async () => {
    sandbox.write("package.json", "{}");
    await sandbox.call(["init"]);
    expect(await listUsed()).toEqual(["project"]);
    sandbox.write(".plimsoll/packs/more/pack.yaml", "id: more\n");
    expect(await listUsed()).toEqual(["project", "more"]);
  });

  test("are chosen by --packs, also those that no file asks for", async () => {
    await sandbox.call(["init", "--packs", "base,typescript"]);
    expect(read(".plimsoll/config.yaml")).toMatch(/^packs: \{ built_in: \[base, typescript\] \}/m);
    expect(await listUsed()).toEqual(["base", "project", "typescript"]);
  });

  test("with an unknown name are an error, and nothing is written", async () => {
    const { code, stderr } = await sandbox.call(["init", "--packs", "base,typescrpt"]);
    expect(code).toBe(2);
    expect(stderr).toContain('Did you mean "typescript"?');
    expect(existsSync(join(sandbox.cwd, ".plimsoll"))).toBe(false);
  });

  test("stay as they are where a configuration exists", async () => {
    sandbox.write(".plimsoll/config.yaml", "title: Ours\n");
    expect((await sandbox.call(["init"])).code).toBe(0);
    expect(await listUsed()).toEqual(expect.arrayContaining(["base", "git", "project", "security"]));
    const { code, stderr } = await sandbox.call(["init", "--packs", "git"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--packs has no effect, because .plimsoll/config.yaml exists");
  });
});

test("where instruction files exist, init says that import --move moves them into packs", async () => {
  sandbox.write("AGENTS.md", "# Rules\n\n- Use tabs.\n");
  sandbox.write("GEMINI.md", "- Use tabs.\n");
  const { stdout } = await sandbox.call(["init"]);
  expect(stdout).toContain(
    '\nAGENTS.md, GEMINI.md have rules already. "plimsoll import --move" moves them into packs, and "plimsoll undo" takes it back.\n',
  );
});

test("--quiet prints errors only", async () => {
  expect(await sandbox.call(["init", "--quiet"])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await sandbox.call(["inject", "--quiet"])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await sandbox.call(["inject", "--uninstall", "--quiet"])).toEqual({ code: 0, stdout: "", stderr: "" });
  const { stdout } = await sandbox.call(["init", "--quiet", "--json"]);
  expect(JSON.parse(stdout).files).toHaveLength(2);
});

interface Row {
  readonly adapter: string;
  readonly packs: readonly string[];
  readonly approxTokens: number;
  readonly budget: { readonly value: number } | null;
}

/** A newcomer's first minutes in a TypeScript repository. */
test("a new project weighs less than 4,000 tokens for every tool, and one line changes that", async () => {
  sandbox.write("package.json", '{ "scripts": { "test": "vitest" }, "devDependencies": { "typescript": "^7.0.0" } }');
  sandbox.write("tsconfig.json", "{}");
  sandbox.write("src/index.ts", "export {};\n");
  await sandbox.call(["init", "--packs", "base,security,testing,git,node,typescript"]);
  const first = await sandbox.call(["inject", "--all", "--dry-run", "--json", "--counter", "estimate:claude-5"]);
  const rows: Row[] = JSON.parse(first.stdout).filter(({ packs }: Row) => packs.length > 0);
  expect(rows.length).toBeGreaterThan(5);
  for (const { packs, approxTokens } of rows) {
    expect(approxTokens).toBeLessThanOrEqual(4000);
    expect(packs).toEqual(expect.arrayContaining(["base", "project", "security", "typescript"]));
    expect(packs).not.toContain("python");
  }
  const config = read(".plimsoll/config.yaml");
  sandbox.write(".plimsoll/config.yaml", config.replace(/^budgets: .*$/m, "budgets: { claude-code: 2500 }"));
  const { code, stdout, stderr } = await sandbox.call(["inject", "--tool", "claude-code", "--stats"]);
  expect({ code, stderr: stderr.match(/--model|over budget|too small/) }).toEqual({ code: 0, stderr: null });
  const tokens = /^claude-code .*~([\d,]+) +2500 tokens +full +OK/m.exec(stdout)?.[1] ?? "";
  expect(Number(tokens.replace(",", ""))).toBeGreaterThan(1500);
  expect(Number(tokens.replace(",", ""))).toBeLessThanOrEqual(2500);
  const counted = await sandbox.call(["count", "CLAUDE.md", "--counter", "estimate:claude-5", "--json"]);
  expect(JSON.parse(counted.stdout).total.tokens["estimate:claude-5"]).toBeLessThanOrEqual(2500);
});

test("no command of a new project asks for a model", async () => {
  await sandbox.call(["init"]);
  await sandbox.call(["inject"]);
  const commands = [
    ["inject", "--stats"],
    ["audit"],
    ["packs", "list"],
    ["packs", "show", "base"],
    ["count", "AGENTS.md"],
  ];
  for (const command of commands) {
    const { code, stderr } = await sandbox.call(command);
    expect({ command, code, model: stderr.includes("model") }).toEqual({ command, code: 0, model: false });
  }
});

test("each file's schema line leads to a schema that is there", async () => {
  await sandbox.call(["init"]);
  for (const path of [".plimsoll/config.yaml", ".plimsoll/packs/project/pack.yaml"]) {
    const schema = /^# yaml-language-server: \$schema=(\S+)\n/.exec(read(path))?.[1] ?? "";
    const file = resolve(sandbox.cwd, dirname(path), schema);
    expect(JSON.parse(readFileSync(file, "utf8"))).toHaveProperty("properties");
  }
});

test("where the package is installed its own schemas are used, and none are copied", async () => {
  sandbox.write("node_modules/plimsoll/schemas/config.schema.json", "{}");
  await sandbox.call(["init"]);
  expect(read(".plimsoll/config.yaml")).toMatch(
    /^# yaml-language-server: \$schema=\.\.\/node_modules\/plimsoll\/schemas\/config\.schema\.json\n/,
  );
  expect(read(sample[1]!)).toContain("$schema=../../../node_modules/plimsoll/schemas/pack.schema.json\n");
  expect(existsSync(join(sandbox.cwd, ".plimsoll/schemas"))).toBe(false);
});

test("the configuration names the tools found here; what is commented out is the default", async () => {
  const defaults = JSON.parse((await sandbox.call(["config", "--json"])).stdout).values;
  sandbox.write("GEMINI.md", "Mine.");
  await sandbox.call(["init"]);
  const written = JSON.parse((await sandbox.call(["config", "--json"])).stdout).values;
  expect(written).toEqual({
    ...{ ...defaults, counter: "auto", model: "claude-sonnet-5", tools: ["gemini-cli"] },
    ...{ budgets: { "*": 4000 }, on_overflow: "thin", packs: { built_in: [] } },
  });
  sandbox.write(".plimsoll/config.yaml", read(".plimsoll/config.yaml").replace(/^# (?=[a-z_]+:(?! \{ source))/gm, ""));
  const uncommented = JSON.parse((await sandbox.call(["config", "--json"])).stdout);
  expect(uncommented.values).toEqual(written);
  const fromFile = Object.entries(uncommented.sources).filter(([, from]) => String(from).startsWith("project"));
  // A project cannot say where state goes and how long it stays. What agents may do and spend needs trust. An empty list
  // adds nothing to another file's.
  const others = ["store", "retention", "run", "guard", "deny", "allow", "skills"];
  const keys = Object.keys(written).filter((key) => !others.includes(key));
  expect(fromFile.map(([key]) => key.split(".")[0])).toEqual(expect.arrayContaining(keys));
});

test("a second run changes nothing and says what it kept", async () => {
  await sandbox.call(["init"]);
  const before = snapshot();
  const { code, stdout } = await sandbox.call(["init"]);
  expect(code).toBe(0);
  expect(stdout.split("\n").slice(0, 3)).toEqual([
    "kept .plimsoll/config.yaml (it exists)",
    "kept .plimsoll/packs (it exists)",
    "",
  ]);
  expect(snapshot()).toEqual(before);
});

test("what people wrote stays: a configuration, a text without pack.yaml, packs", async () => {
  sandbox.write(".plimsoll/config.yaml", "title: Ours\n");
  sandbox.write(sample[0]!, "## Ours\n");
  const first = await sandbox.call(["init", "--json"]);
  expect(JSON.parse(first.stdout).files.slice(0, 3)).toEqual([
    { path: ".plimsoll/config.yaml", state: "kept" },
    { path: sample[0], state: "kept" },
    { path: sample[1], state: "created" },
  ]);
  expect([read(".plimsoll/config.yaml"), read(sample[0]!)]).toEqual(["title: Ours\n", "## Ours\n"]);
});

test("a team that has packs gets no sample among them", async () => {
  sandbox.write(".plimsoll/packs/ours/pack.yaml", "id: ours\n");
  await sandbox.call(["init"]);
  expect(readdirSync(join(sandbox.cwd, ".plimsoll/packs"))).toEqual(["ours"]);
});

test("in a folder of a repository the root gets it", async () => {
  sandbox.write("src/a.ts", "");
  const { stdout } = await sandbox.call(["init"], { cwd: join(sandbox.cwd, "src") });
  expect(stdout).toContain("created ../.plimsoll/config.yaml\n");
  expect(existsSync(join(sandbox.cwd, ".plimsoll/config.yaml"))).toBe(true);
});

test("a folder that leads out of the project is refused", async () => {
  const outside = join(sandbox.cwd, "..", "outside");
  mkdirSync(outside);
  symlinkSync(outside, join(sandbox.cwd, ".plimsoll"));
  const { code, stdout, stderr } = await sandbox.call(["init"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^failed \.plimsoll\/config\.yaml$/m);
  expect(stderr).toMatch(/^plimsoll: \.plimsoll\/config\.yaml: /m);
  expect(readdirSync(outside)).toEqual([]);
});
