import { chmodSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { readUntilHung } from "./hanging-program.contract.ts";
import { createProjectFiles, type ListedFile } from "./project-files.ts";
import {
  addEntries,
  commit,
  createRepository,
  createTree,
  git,
  type ReadResult,
  readResult,
  whileDenied,
} from "./temporary-tree.contract.ts";
import { testTool } from "./tool.contract.ts";

testTool("project_files", { create: createProjectFiles, args: { mode: "files" } });
testTool("project_files", { create: createProjectFiles, args: {} });

const call = { signal: new AbortController().signal };

async function list(root: string, args: Record<string, unknown> = {}, env = process.env): Promise<ReadResult> {
  return readResult(await createProjectFiles({ root, env }).run({ mode: "files", ...args }, call));
}

function pathsOf({ items }: ReadResult): string[] {
  return (items as ListedFile[]).map(({ path }) => path);
}

const tree = {
  ".gitignore": "*.log\n/build/\n",
  ".github/ci.yml": "",
  "package.json": '{ "devDependencies": { "typescript": "7" } }',
  "src/a.ts": "12345",
  "src/a/b.ts": "",
  "src/deep/1/2/3/4/5.ts": "",
  "src/.gitignore": "!keep.log\n",
  "src/keep.log": "",
  "src/drop.log": "",
  "build/out.js": "",
  "z.md": "",
};

test.each([
  ["in a repository", createRepository],
  ["without one", createTree],
])("lists files by path without those that .gitignore excludes, %s", async (_, create) => {
  const root = create(tree);
  addEntries(root, { "src/b.ts": "not tracked" });
  const result = await list(root, { include_hidden: true, max_depth: 9 });
  expect(pathsOf(result)).toEqual([
    ".github/ci.yml",
    ".gitignore",
    "package.json",
    "src/.gitignore",
    "src/a.ts",
    "src/a/b.ts",
    "src/b.ts",
    "src/deep/1/2/3/4/5.ts",
    "src/keep.log",
    "z.md",
  ]);
  expect(result).toMatchObject({
    fields: { root, path: ".", project_type: "TypeScript", gitignore_respected: true },
    total: 10,
    more: false,
    warnings: [],
  });
});

test("hidden and deep files are counted if they are not listed", async () => {
  const result = await list(createRepository(tree));
  expect(pathsOf(result)).toEqual(["package.json", "src/a.ts", "src/a/b.ts", "src/keep.log", "z.md"]);
  expect(result.fields).toMatchObject({ hidden_files: 3, deeper_files: 1 });
  expect(result.warnings).toEqual(["1 file is deeper than max_depth 5 and not listed."]);
});

test.each([
  ["in a repository", createRepository],
  ["without one", createTree],
])("a path, a depth and a pattern narrow the list, %s", async (_, create) => {
  const root = create(tree);
  expect(pathsOf(await list(root, { path: "src" }))).toEqual(["src/a.ts", "src/a/b.ts", "src/keep.log"]);
  expect(pathsOf(await list(root, { path: "src", max_depth: 1 }))).toEqual(["src/a.ts", "src/keep.log"]);
  expect(pathsOf(await list(root, { path: ".github" }))).toEqual([".github/ci.yml"]);
  expect(pathsOf(await list(root, { path: "z.md" }))).toEqual(["z.md"]);
  expect(pathsOf(await list(root, { pattern: "*.{md,json}" }))).toEqual(["package.json", "z.md"]);
  expect(pathsOf(await list(root, { pattern: "src/*.ts" }))).toEqual(["src/a.ts"]);
});

test("without a repository too, an ignored directory that is named is listed", async () => {
  const root = createTree({
    ...tree,
    "build/deep/.gitignore": "x\n",
    "build/deep/x": "",
    "build/deep/y": "",
  });
  expect(pathsOf(await list(root, { path: "build" }))).toEqual(["build/deep/y", "build/out.js"]);
  expect(pathsOf(await list(root, { path: "build/deep" }))).toEqual(["build/deep/y"]);
});

test("an ignored directory that is named is listed, with a warning", async () => {
  const result = await list(createRepository(tree), { path: "build" });
  expect(pathsOf(result)).toEqual(["build/out.js"]);
  expect(result.fields).toMatchObject({ gitignore_respected: false });
  expect(result.warnings).toEqual(["git ignores build. It was listed because the call names it."]);
});

test("a maximum ends the list, and the rest follows at the next offset", async () => {
  const root = createTree(tree);
  const first = await list(root, { max_files: 2 });
  expect(pathsOf(first)).toEqual(["package.json", "src/a.ts"]);
  expect(first).toMatchObject({ total: 5, more: true });
  expect(pathsOf(await list(root, { max_files: 2, offset: 4 }))).toEqual(["z.md"]);
});

test("size, time and kind of each file are listed", async () => {
  const root = createRepository({ "a.ts": "12345", link: { link: "a.ts" }, out: { link: "/etc/passwd" } });
  utimesSync(join(root, "a.ts"), 0, Date.UTC(2026, 10, 2, 10) / 1000);
  const { items } = await list(root);
  expect(items).toEqual([
    { path: "a.ts", size: 5, mtime: "2026-11-02T10:00:00Z" },
    expect.objectContaining({ path: "link", size: 4, is_symlink: true }),
    expect.objectContaining({ path: "out", size: 11, is_symlink: true }),
  ]);
});

test("nothing is read through a tracked directory that became a link out of the root", async () => {
  const outside = createTree({ "secret.txt": "12345", "inner/deep.txt": "12345" });
  const root = createRepository({
    ...{ "a.txt": "", "dir/inner/deep.txt": "", "dir/secret.txt": "", "kept/b.txt": "", "moved/b.txt": "" },
  });
  for (const name of ["dir", "moved"]) rmSync(join(root, name), { recursive: true });
  addEntries(root, { dir: { link: outside }, moved: { link: "kept" } });
  const { items } = await list(root);
  expect(items.filter((item) => (item as ListedFile).is_deleted)).toEqual([
    { path: "dir/inner/deep.txt", is_deleted: true },
    { path: "dir/secret.txt", is_deleted: true },
  ]);
  expect(items).toContainEqual({ path: "moved/b.txt", size: 0, mtime: expect.any(String) });
});

test("a missing tracked file is marked, one in conflict is listed once, a submodule is a directory", async () => {
  const root = createRepository({ "a.txt": "1", "gone.txt": "" });
  const other = createRepository({ "inner.txt": "" });
  git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "sub");
  commit(root, "Add a submodule");
  for (const [branch, text] of [
    ["left", "2"],
    ["right", "3"],
  ] as const) {
    git(root, "checkout", "--quiet", "-b", branch, "main");
    addEntries(root, { "a.txt": text });
    commit(root, branch);
  }
  expect(() => git(root, "merge", "left")).toThrow();
  rmSync(join(root, "gone.txt"));
  addEntries(root, { "nested/file.txt": "" });
  git(join(root, "nested"), "init", "--quiet");
  const { items, total } = await list(root);
  expect(items).toEqual([
    expect.objectContaining({ path: "a.txt" }),
    { path: "gone.txt", is_deleted: true },
    expect.objectContaining({ path: "nested", is_directory: true }),
    expect.objectContaining({ path: "sub", is_directory: true }),
  ]);
  expect(total).toBe(4);
  const inner = await list(root, { path: "sub" });
  expect(pathsOf(inner)).toEqual(["sub/inner.txt"]);
  expect(inner).toMatchObject({ fields: { gitignore_respected: true }, warnings: [] });
  expect(pathsOf(await list(root, { path: "nested" }))).toEqual(["nested/file.txt"]);
});

test("files that are not checked out are not listed", async () => {
  const root = createRepository({ "in/a": "", "out/b": "" });
  git(root, "sparse-checkout", "set", "in");
  expect(pathsOf(await list(root))).toEqual(["in/a"]);
});

test("only the root is listed if it is below the repository's root", async () => {
  const root = createRepository(tree);
  expect(pathsOf(await list(join(root, "src"), { max_depth: 1 }))).toEqual(["a.ts", "keep.log"]);
});

/** Without git nothing is tracked. */
test("the list is the same without git, at the root and below it", async () => {
  const root = createTree({
    ".gitignore": "\uFEFF*.log\n/src/out\n",
    "a.log": "",
    "a.ts": "",
    secret: "",
    "src/.gitignore": "\uFEFF!keep.log\n",
    "src/keep.log": "",
    "src/out/b.ts": "",
    "src/secret": "",
    "src/sub/c.ts": "",
    "src/sub/c.log": "",
  });
  git(root, "init", "--quiet");
  addEntries(root, { ".git/info/exclude": "\uFEFFsecret\n" });
  for (const [place, path, expected] of [
    [root, ".", ["a.ts", "src/keep.log", "src/sub/c.ts"]],
    [root, "src", ["src/keep.log", "src/sub/c.ts"]],
    [join(root, "src"), ".", ["keep.log", "sub/c.ts"]],
    [join(root, "src"), "sub", ["sub/c.ts"]],
  ] as const) {
    for (const env of [process.env, {}]) expect(pathsOf(await list(place, { path }, env))).toEqual(expected);
  }
});

test("a link to a directory inside can be listed by its name", async () => {
  for (const create of [createRepository, createTree]) {
    const root = create({ "src/a.ts": "", in: { link: "src" } });
    expect(pathsOf(await list(root))).toEqual(["in", "src/a.ts"]);
    expect(await list(root, { path: "in" })).toMatchObject({ items: [{ path: "in/a.ts" }], warnings: [] });
  }
});

test("names with line breaks, quotes, umlauts or a leading dash are complete", async () => {
  const names = ["-n", "Größe.md", 'a "b".txt', "line\nbreak.txt"];
  for (const create of [createRepository, createTree]) {
    const root = create(Object.fromEntries(names.map((name) => [name, ""])));
    expect(pathsOf(await list(root)).sort()).toEqual(names);
  }
});

// Other systems do not enforce file modes.
test.skipIf(process.geteuid === undefined).each([
  ["in a repository", createRepository, ["b/2", "b/deep/3"]],
  ["without one", createTree, []],
] as const)("an unreadable directory is reported and does not end the list, %s", async (_, create, unreadable) => {
  const root = create({ "a/1": "", "b/2": "", "b/deep/3": "", "c/4": "" });
  await list(root);
  const env = { ...process.env, HOME: root };
  const { items, warnings } = await whileDenied(root, ["b"], () => list(root, {}, env));
  expect(items).toEqual([
    expect.objectContaining({ path: "a/1", size: 0 }),
    ...unreadable.map((path) => ({ path, is_unreadable: true })),
    expect.objectContaining({ path: "c/4", size: 0 }),
  ]);
  expect(warnings).toEqual(["1 directory could not be read. Its files may be missing here."]);
  const named = () => createProjectFiles({ root, env }).run({ path: "b" }, call);
  expect(await whileDenied(root, ["b"], named)).toMatchObject({
    code: "unreadable",
    message: '"b" cannot be read: permission denied.',
  });
});

test("a new file changes the version of the list", async () => {
  const root = createRepository({ "a.ts": "" });
  const before = (await list(root)).version;
  expect((await list(root)).version).toBe(before);
  addEntries(root, { "b.ts": "" });
  expect((await list(root)).version).not.toBe(before);
});

/** Lists two and a half files and never ends. `exec` makes the hanging process the one whose number it wrote. */
const hangingGit = `#!/bin/sh
case "$*" in *ls-files*) ;; *) PATH='${process.env.PATH}' exec git "$@" ;; esac
echo $$ > "$PID_FILE"
printf 'H a.ts\\0H b.ts\\0H src/half-a-na'
: > "$MARK"
exec sleep 60
`;

function createHangingGit() {
  const root = createRepository({ "a.ts": "", "bin/git": hangingGit });
  chmodSync(join(root, "bin/git"), 0o755);
  const [pidFile, mark] = [join(root, "pid"), join(root, "mark")];
  const env = { PATH: `${join(root, "bin")}:${process.env.PATH}`, PID_FILE: pidFile, MARK: mark };
  return { root, env, mark, pid: () => Number(readFileSync(pidFile, "utf8")) };
}

async function expectGone(pid: number): Promise<void> {
  expect(pid).toBeGreaterThan(1);
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), 10_000);
}

test("a git that hangs returns what it listed in time, with a warning, and is ended", async () => {
  const { root, env, mark, pid } = createHangingGit();
  const result = await readUntilHung(createProjectFiles({ root, env }), { mode: "files" }, { mark });
  expect(pathsOf(result)).toEqual(["a.ts", "b.ts"]);
  expect(result).toMatchObject({ total: undefined, more: true });
  expect(result.warnings).toEqual([
    "Stopped after 1 s: the list of files is incomplete. Name a smaller path or a narrower pattern.",
  ]);
  await expectGone(pid());
});

test("a call that is cancelled while git hangs returns, and git is ended", async () => {
  const { root, env, pid } = createHangingGit();
  const controller = new AbortController();
  const running = createProjectFiles({ root, env }).run({}, { signal: controller.signal });
  await vi.waitFor(() => expect(pid()).toBeGreaterThan(1), 5_000);
  controller.abort();
  expect(await running).toMatchObject({ code: "cancelled" });
  await expectGone(pid());
});

// Other systems do not allow such names.
test.runIf(process.platform === "linux").each([
  ["in a repository", createRepository],
  ["without one", createTree],
])("a file whose name is not UTF-8 is listed but cannot be named, %s", async (_, create) => {
  const root = create({ "b.txt": "", "z/c.txt": "" });
  for (const byte of [0xfe, 0xff]) writeFileSync(Buffer.from([...Buffer.from(`${root}/a`), byte]), "12345");
  const result = await list(root);
  expect(result.items.slice(0, 2)).toEqual([
    { path: "a\uFFFD", size: 5, mtime: expect.any(String) },
    { path: "a\uFFFD", size: 5, mtime: expect.any(String) },
  ]);
  expect(result).toMatchObject({
    total: 4,
    warnings: ["2 files here have names that are not UTF-8, shown with U+FFFD: no call can name such a file."],
  });
});

test.runIf(process.platform === "linux").each([
  ["in a repository", createRepository],
  ["without one", createTree],
])("a .gitignore in a directory whose name is not UTF-8 applies there, %s", async (_, create) => {
  const root = create({ "a.txt": "" });
  const directory = Buffer.from([...Buffer.from(`${root}/d`), 0xff]);
  const inside = (name: string) => Buffer.concat([directory, Buffer.from(`/${name}`)]);
  mkdirSync(directory);
  writeFileSync(inside(".gitignore"), "*.log\n");
  for (const name of ["x.log", "y.txt"]) writeFileSync(inside(name), "");
  expect(pathsOf(await list(root))).toEqual(["a.txt", "d\uFFFD/y.txt"]);
});
