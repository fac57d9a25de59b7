import { join } from "node:path";
import { expect, test } from "vitest";
import { isFailure, type ToolArguments } from "../../session/index.ts";
import { createTools } from "../index.ts";
import { createSearchContent } from "../search-content.ts";
import { addEntries, commit, createRepository, createTree, git, readResult } from "../temporary-tree.contract.ts";

const secret = "PASSWORD=hunter2hunter2";
const call = { signal: new AbortController().signal };
type Secrets = Parameters<typeof createTools>[0]["secrets"];

async function run(root: string, name: string, args: ToolArguments, secrets?: Secrets) {
  const tool = createTools({ root, secrets }).find((each) => each.name === name);
  const result = await tool!.run(args, call);
  return isFailure(result) ? result : readResult(result);
}

const entries = {
  ".env": `${secret}\n`,
  ".env.example": "PASSWORD=hunter2\n",
  "deploy/Server.PEM": `${secret}\n`,
  "src/secrets.ts": "export const name = 'PASSWORD=hunter2';\n",
  "notes.txt": { link: ".env" },
};

test("a file that usually holds secrets is refused by its name and through a link, and its name is listed", async () => {
  const root = createRepository(entries);
  for (const name of ["read_file", "vcs_blame", "vcs_diff", "search_content"]) {
    for (const path of [".env", "deploy/Server.PEM", "notes.txt"]) {
      const given = name === "search_content" ? { path, pattern: "PASS" } : { path };
      expect(await run(root, name, given), `${name} ${path}`).toMatchObject({ code: "denied" });
    }
  }
  expect(await run(root, "read_file", { path: "notes.txt" })).toEqual({
    code: "denied",
    message: '"notes.txt", which leads to ".env", usually contains secrets and is not shown.',
    hint: "Ask the user to add it to `allow` in Plimsoll's configuration.",
  });
  expect(await run(root, "read_file", { path: ".env.example" })).toMatchObject({
    items: ["PASSWORD=hunter2"],
  });
  expect(await run(root, "project_files", { include_hidden: true, pattern: ".env" })).toMatchObject({
    items: [{ path: ".env" }],
  });
});

test.each([
  ["with ripgrep", undefined],
  ["without it", async () => undefined],
] as const)("a search skips such files and says so, whether they match or not, %s", async (_, find) => {
  for (const root of [createRepository(entries), createTree(entries)]) {
    const tool = createSearchContent({ root, env: process.env }, find);
    for (const [pattern, paths] of [
      ["PASSWORD=hunter2", [".env.example", "src/secrets.ts"]],
      ["no such text", []],
    ] as const) {
      const { items, warnings, fields } = await readResult(await tool.run({ pattern }, call));
      expect((items as { path: string }[]).map(({ path }) => path)).toEqual(paths);
      expect(warnings).toEqual([
        "2 files were not searched, because they usually contain secrets: .env, deploy/Server.PEM.",
      ]);
      expect(fields.files_searched).toBe(2);
    }
    const only = await readResult(await tool.run({ pattern: "x", file_pattern: "*.ts" }, call));
    expect(only.warnings).toEqual([]);
  }
});

test("a tracked secret that git ignores is not searched either", async () => {
  const root = createRepository({ ".env": `${secret}\n`, "a.txt": "PASSWORD\n" });
  addEntries(root, { ".gitignore": ".env\n" });
  const result = await run(root, "search_content", { pattern: "PASSWORD" });
  expect(result).toMatchObject({
    items: [{ path: "a.txt" }],
    warnings: ["1 file was not searched, because it usually contains secrets: .env."],
  });
});

test("a diff names such a file without its text, also after it was renamed", async () => {
  const root = createRepository({ ".env": `${secret}\n`.repeat(9), "a.txt": "1\n" });
  addEntries(root, { ".env": `${secret}x\n`, "a.txt": "2\n" });
  expect(await run(root, "vcs_diff", {})).toMatchObject({
    items: [
      { path: ".env", hidden: true },
      { path: "a.txt", text: "-1\n+2" },
    ],
    total: 2,
    warnings: ["1 file was not shown, because it usually contains secrets: .env."],
  });
  git(root, "checkout", "--quiet", ".env");
  git(root, "mv", ".env", "settings.txt");
  addEntries(root, { "settings.txt": `${secret}\n`.repeat(8) });
  commit(root, "Rename it");
  const renamed = await run(root, "vcs_diff", { commit: "HEAD" });
  expect(JSON.stringify(renamed)).not.toContain("hunter2");
  expect(renamed).toMatchObject({
    items: [{ path: "a.txt" }, { path: "settings.txt", from: ".env", hidden: true }],
  });
});

test("a folder may have the name of such a file", async () => {
  const root = createRepository({ "secrets/readme.md": "needle\n" });
  addEntries(root, { "secrets/readme.md": "needles\n" });
  expect(await run(root, "vcs_diff", { path: "secrets" })).toMatchObject({ total: 1 });
  expect(await run(root, "search_content", { pattern: "needle", path: "secrets" })).toMatchObject({
    total: 1,
  });
  expect(await run(root, "read_file", { path: "secrets" })).toMatchObject({ code: "unreadable" });
});

test.each([
  ["with ripgrep", undefined],
  ["without it", async () => undefined],
] as const)("a folder `secrets` shows its code and documents, and hides the rest, %s", async (_, find) => {
  const root = createRepository({
    "secrets/prod/db.yaml": `${secret}\n`,
    "secrets/readme.md": "PASSWORD=\n",
    "src/secrets/index.ts": "export const name = 'PASSWORD';\n",
    ".kube/config": `${secret}\n`,
  });
  const tool = createSearchContent({ root, env: process.env }, find);
  const { items, warnings } = await readResult(await tool.run({ pattern: "PASSWORD" }, call));
  expect((items as { path: string }[]).map(({ path }) => path)).toEqual(["secrets/readme.md", "src/secrets/index.ts"]);
  expect(warnings).toEqual([
    "2 files were not searched, because they usually contain secrets: .kube/config, secrets/prod/db.yaml.",
  ]);
  for (const path of ["secrets/prod/db.yaml", ".kube/config"]) {
    expect(await run(root, "read_file", { path })).toMatchObject({ code: "denied" });
  }
});

test("a project may be in a folder `secrets`", async () => {
  const above = createTree({ "secrets/shop/settings.json": "{}\n" });
  expect(await run(join(above, "secrets/shop"), "read_file", { path: "settings.json" })).toMatchObject({
    items: ["{}"],
  });
});

test("a person's own rules add and remove files, by names and folders", async () => {
  const root = createRepository({ ...entries, "Private/plan.md": "plan\n", "open/.env": "A=1\n" });
  addEntries(root, { way: { link: join("Private") } });
  const secrets = { deny: ["private/**"], allow: ["open/.env", "*.pem"] };
  for (const path of ["Private/plan.md", "way/plan.md", ".env"]) {
    expect(await run(root, "read_file", { path }, secrets)).toMatchObject({ code: "denied" });
  }
  for (const path of ["open/.env", "deploy/Server.PEM"]) {
    expect(await run(root, "read_file", { path }, secrets), path).toMatchObject({ total: 1 });
  }
  expect(await run(root, "search_content", { pattern: "plan", path: "way" }, secrets)).toMatchObject({
    items: [],
    warnings: [expect.stringContaining("1 file was not searched")],
  });
  expect(await run(root, "search_content", { pattern: "A=1" }, secrets)).toMatchObject({
    items: [{ path: "open/.env" }],
  });
});

test("files that git ignores are neither listed nor searched, and are read by their exact path", async () => {
  const root = createRepository({ ".gitignore": "node_modules/\n*.log\n", "a.ts": "needle\n" });
  addEntries(root, { "node_modules/x/index.d.ts": "needle\n", "debug.log": "needle\n" });
  expect(await run(root, "project_files", {})).toMatchObject({ items: [{ path: "a.ts" }] });
  expect(await run(root, "search_content", { pattern: "needle" })).toMatchObject({
    items: [{ path: "a.ts" }],
  });
  for (const path of ["node_modules/x/index.d.ts", "debug.log"]) {
    expect(await run(root, "read_file", { path })).toMatchObject({ items: ["needle"] });
  }
});
