/** Packs that a person chooses in the configuration, or with a flag. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { createProject, type InjectProject } from "./inject-project.ts";

let project: InjectProject;
beforeEach(() => {
  project = createProject();
});
afterEach(() => project.remove());

async function packs(...args: string[]): Promise<string[]> {
  const { stdout, code } = await project.call(["inject", "--tool", "gemini-cli", "--dry-run", "--json", ...args]);
  expect(code).toBe(0);
  return JSON.parse(stdout)[0].packs;
}

function configure(text: string): void {
  project.put(".plimsoll/config.yaml", text);
}

test("packs.exclude leaves packs out", async () => {
  project.put("pyproject.toml", "");
  const all = await packs();
  configure("packs: { exclude: [python, sql] }\n");
  expect(all).toContain("python");
  expect(await packs()).toEqual(all.filter((id) => id !== "python" && id !== "sql"));
});

test("packs.include takes only these packs and base packs", async () => {
  configure("packs: { include: [git, typescript] }\n");
  expect(await packs()).toEqual(["base", "git", "typescript"]);
  configure("packs: { include: [git, typescript], exclude: [base] }\n");
  expect(await packs()).toEqual(["git", "typescript"]);
});

test("--pack and --no-pack replace the lists of the configuration", async () => {
  configure("packs: { include: [git, typescript], exclude: [base] }\n");
  expect(await packs("--pack", "sql,python")).toEqual(["python", "sql"]);
  expect(await packs("--no-pack", "git")).toEqual(["base", "typescript"]);
  configure("packs: { exclude: [base, sql] }\n");
  expect(await packs("--pack", "sql")).toEqual(["sql"]);
  expect(await packs("--pack", "sql,git", "--no-pack", "sql")).toEqual(["base", "git"]);
});

interface Listed {
  readonly id: string;
  readonly used: boolean;
  readonly why: string;
}

async function listed(...args: string[]): Promise<Record<string, string>> {
  const { stdout } = await project.call(["packs", "list", "--json", ...args]);
  const rows: Listed[] = JSON.parse(stdout);
  return Object.fromEntries(rows.map(({ id, used, why }) => [id, `${used ? "yes" : "no"}: ${why}`]));
}

test("a TypeScript repository gets no Python and no SQL pack, and packs list says why", async () => {
  project.put("package.json", "{}");
  project.put("tsconfig.json", "{}");
  expect(await packs()).toEqual(["base", "security", "testing", "git", "node", "typescript"]);
  expect(await listed()).toEqual({
    ...{ base: "yes: base pack", security: "yes: for every project", testing: "yes: for every project" },
    ...{ git: "yes: for every project", node: "yes: package.json found", typescript: "yes: tsconfig.json found" },
    ...{ python: "no: no Python files found", sql: "no: no SQL files found", brief: "no: used only where it is named" },
  });
});

test("packs list names the line that leaves a pack out, and the list that asks for one", async () => {
  project.put("go.mod", "module x\n");
  configure("title: T\npacks:\n  include: [python, git]\n  exclude: [base]\n");
  expect(await packs()).toEqual(["git", "python"]);
  expect(await listed()).toMatchObject({
    base: "no: excluded by packs.exclude in .plimsoll/config.yaml:4",
    python: "yes: asked for by packs.include in .plimsoll/config.yaml:3",
    node: "no: not in packs.include in .plimsoll/config.yaml:3",
  });
});

test("a profile and --pack bring packs of languages that the project does not have", async () => {
  project.put("package.json", "{}");
  expect(await packs("--profile", "data")).toEqual(["base", "python", "sql", "security", "git", "node"]);
  expect(await listed("--profile", "data")).toMatchObject({ sql: 'yes: asked for by profile "data"' });
  expect(await packs("--pack", "sql")).toEqual(["base", "sql"]);
});

test("a pack of the project that adds to a language's pack is used", async () => {
  project.pack("python", "Our Python.", "additive: true");
  expect(await packs()).toContain("python");
});

test("`only` in a profile uses just these packs", async () => {
  project.put(".plimsoll/profiles/docs.yaml", "id: docs\nonly: [git, python]\n");
  expect(await packs("--profile", "docs")).toEqual(["git", "python"]);
  expect(await listed("--profile", "docs")).toMatchObject({ base: 'no: not in profile "docs"' });
});

test("an unknown pack under `only` is refused with its file and line", async () => {
  project.put(".plimsoll/profiles/docs.yaml", "id: docs\nonly:\n  - git\n  - pyton\n");
  for (const command of [
    ["inject", "--dry-run"],
    ["packs", "lint"],
  ]) {
    const { code, stdout, stderr } = await project.call(command);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain(".plimsoll/profiles/docs.yaml:4: ");
    expect(stdout + stderr).toContain('unknown pack "pyton". Did you mean "python"?');
  }
});

test.each([
  ["packs: { exclude: [pyton] }\n", 1],
  ["title: T\npacks:\n  include: [pyton]\n", 3],
])("%j is refused with its file and line", async (text, line) => {
  configure(text);
  const { code, stderr } = await project.call(["inject", "--dry-run"]);
  expect(code).toBe(1);
  expect(stderr).toContain(`.plimsoll/config.yaml:${line}: unknown pack "pyton"`);
  expect(stderr).toContain('Did you mean "python"?');
});

test.each(["--pack", "--no-pack"])("%s with an unknown pack is wrong usage", async (flag) => {
  const { code, stderr } = await project.call(["inject", "--dry-run", flag, "pyton"]);
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('unknown pack "pyton"') });
});

test.each(["claud-code", "*"])("%j under verbosity is refused with its file and line", async (id) => {
  configure(`verbosity:\n  ${JSON.stringify(id)}: minimal\n`);
  const { code, stderr } = await project.call(["inject", "--dry-run"]);
  expect(code).toBe(1);
  expect(stderr).toContain(`.plimsoll/config.yaml:2: unknown tool "${id}"`);
});
