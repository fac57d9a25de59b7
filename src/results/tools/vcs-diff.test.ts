import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readUntilHung } from "./hanging-program.contract.ts";
import { addEntries, commit, createRepository, git, type ReadResult, readResult } from "./temporary-tree.contract.ts";
import { testTool } from "./tool.contract.ts";
import { createDiffReader, createVcsDiff, type DiffHunk } from "./vcs-diff.ts";

testTool("vcs_diff", { create: createVcsDiff, args: {} });

const call = { signal: new AbortController().signal };

async function diff(root: string, args: Record<string, unknown> = {}): Promise<ReadResult> {
  return readResult(await createVcsDiff({ root, env: process.env }).run(args, call));
}

function numbers(count: number): string {
  return Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");
}

test("each hunk is an item, and the fields count files and lines", async () => {
  const root = createRepository({ "a.txt": numbers(30), "b.txt": "x\n" });
  addEntries(root, {
    "a.txt": numbers(30).replace("3\n", "three\n").replace("25\n", ""),
    "b.txt": "x\r\ny\n",
  });
  const result = await diff(root, { context_lines: 1 });
  expect(result).toMatchObject({
    fields: { files_changed: 2, insertions: 3, deletions: 3, files: ["a.txt", "b.txt"] },
    itemsName: "hunks",
    total: 3,
  });
  expect(result.items).toEqual([
    { path: "a.txt", header: "@@ -2,3 +2,3 @@", text: " 2\n-3\n+three\n 4" },
    { path: "a.txt", header: "@@ -24,3 +24,2 @@", text: " 24\n-25\n 26" },
    { path: "b.txt", header: "@@ -1,1 +1,2 @@", text: "-x\n+x\r\n+y" },
  ]);
});

test("shows staged changes, one commit, or the difference of two", async () => {
  const root = createRepository({ "a.txt": "1\n", "src/b.txt": "1\n" });
  addEntries(root, { "a.txt": "2\n" });
  commit(root, "Second");
  addEntries(root, { "src/b.txt": "2\n" });
  git(root, "add", "--all");
  addEntries(root, { "a.txt": "3\n" });
  const texts = async (args: Record<string, unknown>) =>
    ((await diff(root, args)).items as DiffHunk[]).map(({ path, text }) => `${path} ${text?.replace("\n", " ")}`);
  expect(await texts({})).toEqual(["a.txt -2 +3"]);
  expect(await texts({ staged: true })).toEqual(["src/b.txt -1 +2"]);
  expect((await diff(root, { staged: true })).fields).toMatchObject({ staged: true });
  expect(await texts({ commit: "HEAD" })).toEqual(["a.txt -1 +2"]);
  expect(await texts({ commit: "HEAD~1" })).toEqual(["a.txt +1", "src/b.txt +1"]);
  expect(await texts({ from: "HEAD~1" })).toEqual(["a.txt -1 +3", "src/b.txt -1 +2"]);
  expect(await texts({ from: "HEAD~1", to: "HEAD" })).toEqual(["a.txt -1 +2"]);
  expect(await texts({ from: "HEAD~1", path: "src" })).toEqual(["src/b.txt -1 +2"]);
  const inside = await readResult(
    await createVcsDiff({ root: join(root, "src"), env: process.env }).run({ from: "HEAD~1" }, call),
  );
  expect(inside.items).toMatchObject([{ path: "b.txt" }]);
});

test("a merge is shown against its first parent", async () => {
  const root = createRepository({ "a.txt": "1\n" });
  git(root, "checkout", "--quiet", "-b", "side");
  addEntries(root, { "b.txt": "side\n" });
  commit(root, "Side");
  git(root, "checkout", "--quiet", "main");
  addEntries(root, { "a.txt": "2\n" });
  commit(root, "Main");
  git(root, "merge", "--quiet", "--no-edit", "side");
  expect((await diff(root, { commit: "HEAD" })).items).toMatchObject([
    { path: "b.txt", change: "added", text: "+side" },
  ]);
});

test("refuses arguments that contradict each other", async () => {
  const tool = createVcsDiff({ root: createRepository({ a: "" }), env: process.env });
  for (const args of [{ commit: "HEAD", from: "HEAD" }, { to: "HEAD" }, { from: "HEAD", to: "HEAD", staged: true }]) {
    expect(await tool.run(args, call)).toMatchObject({ code: "invalid_argument" });
  }
  expect(await tool.run({ from: "--output=made" }, call)).toMatchObject({ code: "unknown_revision" });
});

test("a file that changed without a hunk is an item too", async () => {
  const root = createRepository({
    "old name.txt": numbers(20),
    "mode.sh": "x\n",
    "image.png": Buffer.from([0, 1, 2]),
    "gone.txt": "",
    'q"uote.txt': numbers(40),
  });
  git(root, "mv", "old name.txt", "new näme.txt");
  git(root, "mv", 'q"uote.txt', "tab\there.txt");
  chmodSync(join(root, "mode.sh"), 0o755);
  rmSync(join(root, "gone.txt"));
  addEntries(root, { "image.png": Buffer.from([0, 2]) });
  git(root, "add", "--all");
  const { items, fields } = await diff(root, { staged: true });
  expect(items).toEqual([
    { path: "gone.txt", change: "deleted" },
    { path: "image.png", binary: true },
    { path: "mode.sh", mode: "100644 → 100755" },
    { path: "new näme.txt", change: "renamed", from: "old name.txt" },
    { path: "tab\there.txt", change: "renamed", from: 'q"uote.txt' },
  ]);
  expect(fields).toMatchObject({ files_changed: 5, insertions: 0, deletions: 0 });
  commit(root, "All that");
  addEntries(root, { "empty file": "" });
  git(root, "add", "--all");
  expect((await diff(root, { staged: true })).items).toEqual([{ path: "empty file", change: "added" }]);
});

test("the header names the function of a hunk", async () => {
  const root = createRepository({ "a.ts": `function open() {\n${"  step();\n".repeat(10)}}\n` });
  addEntries(root, { "a.ts": `function open() {\n${"  step();\n".repeat(9)}  last();\n}\n` });
  expect((await diff(root)).items).toMatchObject([{ header: "@@ -8,5 +8,5 @@ function open() {" }]);
});

test("a long hunk comes in parts whose headers have the lines' own numbers", async () => {
  const root = createRepository({ "a.txt": numbers(3) });
  addEntries(root, { "a.txt": `${numbers(3)}${numbers(1_000)}` });
  const hunks = (await diff(root)).items as DiffHunk[];
  expect(hunks.map(({ header }) => header)).toEqual([
    "@@ -1,3 +1,200 @@",
    "@@ -4,0 +201,200 @@",
    "@@ -4,0 +401,200 @@",
    "@@ -4,0 +601,200 @@",
    "@@ -4,0 +801,200 @@",
    "@@ -4,0 +1001,3 @@",
  ]);
  const lines = hunks.flatMap(({ text = "" }) => text.split("\n"));
  expect(lines).toHaveLength(1_003);
  expect(lines.at(-1)).toBe("+1000");
});

test("a line of a megabyte is cut with a note", async () => {
  const root = createRepository({ "a.js": "x\n" });
  addEntries(root, { "a.js": `${"y".repeat(1_000_000)}\n` });
  const [hunk] = (await diff(root)).items as DiffHunk[];
  expect(hunk?.text).toBe(`-x\n+${"y".repeat(1_999)}… [998001 more characters]`);
});

test("a line is never cut inside a character", async () => {
  const root = createRepository({ "a.js": "x\n" });
  addEntries(root, { "a.js": `${"y".repeat(1_998)}😀yy\n` });
  const [hunk] = (await diff(root)).items as DiffHunk[];
  expect(hunk?.text).toBe(`-x\n+${"y".repeat(1_998)}… [4 more characters]`);
});

test("lines that look like the diff's own are lines", async () => {
  const text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n";
  const root = createRepository({ "a.txt": text });
  addEntries(root, { "a.txt": `${text}${text}` });
  const result = await diff(root);
  expect(result.items).toHaveLength(1);
  expect(result.fields).toMatchObject({ files_changed: 1, insertions: 4, deletions: 0 });
});

test("a conflict is marked, also if one side has no file", async () => {
  const root = createRepository({ "in/a.txt": "1\n", "in/b.txt": "1\n" });
  for (const branch of ["left", "right"]) {
    git(root, "checkout", "--quiet", "-b", branch, "main");
    addEntries(root, { "in/a.txt": `${branch}\n`, "in/b.txt": `${branch}\n` });
    if (branch === "left") rmSync(join(root, "in/b.txt"));
    commit(root, branch);
  }
  expect(() => git(root, "merge", "left")).toThrow();
  const conflicts = ["a.txt", "b.txt"].map((path) => ({ path, change: "conflict" }));
  const { items, fields } = await diff(join(root, "in"));
  expect(items).toMatchObject([
    { ...conflicts[0], header: expect.stringMatching(/^@@@ /), text: expect.stringMatching(/>>> left$/) },
    conflicts[1],
  ]);
  expect(fields).toEqual({ files_changed: 2, insertions: 5, deletions: 0, files: ["a.txt", "b.txt"] });
  expect((await diff(join(root, "in"), { staged: true })).items).toEqual(conflicts);
});

test("no program that the repository names is run", async () => {
  const root = createRepository({ "a.txt": "1\n", ".gitattributes": "* diff=own\n" });
  const mark = join(root, "was-run");
  for (const name of ["diff.own.textconv", "diff.own.command", "diff.external", "core.fsmonitor", "core.pager"]) {
    git(root, "config", name, `touch ${mark}; true`);
  }
  addEntries(root, { "a.txt": "2\n" });
  const env = { ...process.env, GIT_EXTERNAL_DIFF: `touch ${mark}`, GIT_PAGER: `touch ${mark}` };
  const result = await readResult(await createVcsDiff({ root, env }).run({}, call));
  expect(result.items).toMatchObject([{ path: "a.txt", text: "-1\n+2" }]);
  expect(existsSync(mark)).toBe(false);
});

test("settings of the repository do not change the format", async () => {
  const root = createRepository({ "a.txt": "1\n" });
  for (const [name, value] of [
    ["diff.noprefix", "true"],
    ["diff.mnemonicPrefix", "true"],
    ["color.diff", "always"],
    ["diff.wordRegex", "."],
    ["diff.colorMoved", "zebra"],
    ["diff.submodule", "log"],
    ["diff.relative", "false"],
  ] as const) {
    git(root, "config", name, value);
  }
  addEntries(root, { "a.txt": "2\n" });
  expect((await diff(root)).items).toMatchObject([{ path: "a.txt", text: "-1\n+2" }]);
});

test("lines that are not UTF-8 are read as latin1", async () => {
  const root = createRepository({ "a.txt": Buffer.from("größe\n", "latin1"), "b.txt": "größe\n" });
  addEntries(root, { "a.txt": Buffer.from("größer\r\n", "latin1"), "b.txt": "größer\n" });
  const { items } = await diff(root);
  expect((items as DiffHunk[]).map(({ text }) => text)).toEqual(["-größe\n+größer\r", "-größe\n+größer"]);
});

test("a git that hangs returns the complete hunks printed in time", async () => {
  const root = createRepository({ "a.txt": "1\n", "b.txt": "1\n" });
  addEntries(root, { "a.txt": "2\n", "b.txt": "2\n3\n" });
  const script = `#!/bin/sh\nPATH='${process.env.PATH}'\ncase "$*" in *--patch*) git "$@" | head -n 13; : > "$MARK"; sleep 60 ;; esac\nexec git "$@"\n`;
  addEntries(root, { "bin/git": script });
  chmodSync(join(root, "bin/git"), 0o755);
  const mark = join(root, "mark");
  const tool = createVcsDiff({ root, env: { PATH: `${join(root, "bin")}:${process.env.PATH}`, MARK: mark } });
  const result = await readUntilHung(tool, {}, { mark });
  expect((result.items as DiffHunk[]).map(({ path, text }) => [path, text])).toEqual([["a.txt", "-1\n+2"]]);
  expect(result).toMatchObject({ total: undefined, more: true });
});

function readDiff(lines: readonly string[], prefix = "") {
  const hunks: DiffHunk[] = [];
  const reader = createDiffReader((hunk) => hunks.push(hunk), { prefix });
  for (const line of lines) reader.read(line);
  reader.end();
  return { hunks, facts: reader.facts(), dirty: reader.dirtySubmodules() };
}

const conflict = [
  "diff --cc src/a.txt",
  "index 950b81b,b19a1e9..0000000",
  "--- a/src/a.txt",
  "+++ b/src/a.txt",
  "@@@ -1,2 -1,2 +1,5 @@@",
  "++<<<<<<< HEAD",
  " +ours",
  "++=======",
  "+ theirs",
  "++>>>>>>> side",
  "- gone from ours",
  " -gone from theirs",
];

test("lines of a conflict count, whichever side they are new to", () => {
  const { hunks, facts } = readDiff(conflict);
  expect(facts).toEqual({ files_changed: 1, insertions: 5, deletions: 2, files: ["src/a.txt"] });
  expect(hunks).toMatchObject([{ path: "src/a.txt", change: "conflict", text: conflict.slice(5).join("\n") }]);
});

test("a conflict with nothing to compare is its own item, before another file, after it, and alone", () => {
  const unmerged = (name: string) => `* Unmerged path ${name}`;
  const { hunks, facts } = readDiff([unmerged("b c.txt"), ...conflict, unmerged("gr\xc3\xb6\xc3\x9fe.txt")]);
  expect(hunks).toEqual([
    { path: "b c.txt", change: "conflict" },
    expect.objectContaining({ path: "src/a.txt", text: conflict.slice(5).join("\n") }),
    { path: "größe.txt", change: "conflict" },
  ]);
  expect(facts).toMatchObject({ files_changed: 3, files: ["b c.txt", "src/a.txt", "größe.txt"] });
  expect(readDiff([unmerged("a")])).toMatchObject({ hunks: [{ path: "a" }], facts: { files_changed: 1 } });
});

test("the path of a conflict starts at the root, although git's starts at the repository", () => {
  expect(readDiff(conflict, "src/").facts.files).toEqual(["a.txt"]);
});

test("a carriage return is kept, because it may be all that changed", () => {
  const header = ["diff --git a/a b/a", "index 1..2 100644", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@"];
  expect(readDiff([...header, "-a\r", "-b\r", "+a", "+b"]).hunks).toMatchObject([{ text: "-a\r\n-b\r\n+a\n+b" }]);
});

test("a file that became a link counts once", () => {
  const { hunks, facts } = readDiff([
    ...["diff --git a/a b/a", "deleted file mode 100644", "index 1..0", "--- a/a", "+++ /dev/null"],
    ...["@@ -1 +0,0 @@", "-text"],
    ...["diff --git a/a b/a", "new file mode 120000", "index 0..2", "--- /dev/null", "+++ b/a"],
    ...["@@ -0,0 +1 @@", "+b", "\\ No newline at end of file"],
  ]);
  expect(hunks).toMatchObject([
    { path: "a", change: "deleted" },
    { path: "a", change: "added" },
  ]);
  expect(facts).toEqual({ files_changed: 1, insertions: 1, deletions: 1, files: ["a"] });
});

test("a submodule with changes is distinguished from a file with the same text", () => {
  const words = ["--- a/a", "+++ b/a", "@@ -1 +1 @@", "-Subproject commit 12", "+Subproject commit 12-dirty"];
  const start = "diff --git a/a b/a";
  expect(readDiff([start, ...words]).dirty).toEqual(["a"]);
  expect(readDiff([start, "index 12..13 160000", ...words]).dirty).toEqual(["a"]);
  expect(readDiff([start, "index 12..13 100644", ...words]).dirty).toEqual([]);
});
