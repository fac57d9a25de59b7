/** The tools in a session with `format: "text"`: what a model reads, line by line. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { createSession, type Session } from "../session/index.ts";
import { createTools } from "./index.ts";
import { addEntries, commit, createRepository, git } from "./temporary-tree.contract.ts";

async function open(root: string, perToolCall = 8_000): Promise<Session> {
  return createSession({
    counter: await createCounter("bytes/4"),
    now: () => Date.parse("2026-11-15T12:00:00Z"),
    budget: { perToolCall },
    tools: createTools({ root }),
    format: "text",
  });
}

async function textOf(root: string, tool: string, args: Record<string, unknown> = {}): Promise<string> {
  return (await (await open(root)).call(tool, args)).text;
}

const sources = {
  "README.md": "# Shop\n",
  "src/a.ts": "one\ntwo match\nthree\nfour\nfive match\nsix\nseven\neight\nnine\nten match\n",
  "src/deep/b.ts": "match\n",
  "src/deep/er/c.ts": "nothing\n",
};

test("read_file numbers lines, from the first one of a range on", async () => {
  const root = createRepository(sources);
  expect(await textOf(root, "read_file", { path: "src/deep/b.ts" })).toBe("1\tmatch");
  expect(await textOf(root, "read_file", { path: "src/a.ts", start_line: 3, end_line: 4 })).toBe("3\tthree\n4\tfour");
  addEntries(root, { "empty.txt": "" });
  expect(await textOf(root, "read_file", { path: "empty.txt" })).toBe("[The file ends with line 0.]");
  writeFileSync(join(root, "latin.txt"), Buffer.from([0xe9, 0x0a]));
  expect(await textOf(root, "read_file", { path: "latin.txt" })).toBe("1\té\n[decoded as latin1]");
});

test("search_content names each file once and shows context once", async () => {
  const root = createRepository(sources);
  expect(await textOf(root, "search_content", { pattern: "match", context_lines: 1 })).toBe(
    [
      ...["src/a.ts", "1-one", "2:two match", "3-three", "4-four", "5:five match", "6-six", "9-nine", "10:ten match"],
      ...["", "src/deep/b.ts", "1:match"],
    ].join("\n"),
  );
  expect(await textOf(root, "search_content", { pattern: "match", mode: "files" })).toBe("src/a.ts\nsrc/deep/b.ts");
  expect(await textOf(root, "search_content", { pattern: "match", mode: "count" })).toBe("src/a.ts:3\nsrc/deep/b.ts:1");
  expect(await textOf(root, "search_content", { pattern: "absent" })).toBe("[no matches]");
});

test("context that is a match of its own is shown as a match", async () => {
  const root = createRepository({ "a.txt": "match 1\nmatch 2\nother\n" });
  const text = await textOf(root, "search_content", { pattern: "match", context_lines: 2 });
  expect(text).toBe("a.txt\n1:match 1\n2:match 2\n3-other");
});

test("project_files shows directories with their number of files, down to the depth", async () => {
  const root = createRepository({ ...sources, ".hidden": "" });
  expect(await textOf(root, "project_files")).toBe(
    "./ 4 files, 1 hidden\nREADME.md\nsrc/ 3\nsrc/deep/ 2\nsrc/deep/er/ 1",
  );
  expect(await textOf(root, "project_files", { max_depth: 1 })).toBe("./ 4 files, 1 hidden\nREADME.md\nsrc/ 3");
  expect(await textOf(root, "project_files", { path: "src" })).toBe(
    "src/ 3 files\nsrc/a.ts\nsrc/deep/ 2\nsrc/deep/er/ 1",
  );
  expect(await textOf(root, "project_files", { mode: "files" })).toBe(
    "./\nREADME.md\n\nsrc/\na.ts\n\nsrc/deep/\nb.ts\n\nsrc/deep/er/\nc.ts",
  );
});

test("vcs_log prints what git log --oneline prints, and messages in full", async () => {
  const root = createRepository(sources);
  addEntries(root, { "README.md": "# Store\n" });
  commit(root, "Rename\n\nBecause of\n\nthe name.");
  expect(await textOf(root, "vcs_log")).toBe(git(root, "log", "--oneline").trimEnd());
  const [hash, date, author] = git(root, "log", "-1", "--format=%h%n%aI%n%an").trim().split("\n");
  expect(await textOf(root, "vcs_log", { mode: "full", max_commits: 1 })).toMatch(
    `${hash} ${date} ${author}\n    Rename\n\n    Because of\n\n    the name.\n[1 of 2 commits, `,
  );
});

/** A diff without the lines that the tool leaves out or writes shorter. */
function comparable(diff: string): string {
  const left = /^(index |similarity |rename to |old mode |new mode |mode )/;
  return diff
    .trimEnd()
    .split("\n")
    .filter((line) => !left.test(line))
    .map((line) => line.replace(/^(new|added) file.*/, "added file").replace(/^deleted file.*/, "deleted file"))
    .map((line) => line.replace(/^rename(d?) from/, "renamed from").replace(/^Binary files .*/, "Binary files differ"))
    .map((line) => line.replace(/^@@ -(\d+) \+(\d+) @@/, "@@ -$1,1 +$2,1 @@").replace("+1 @@", "+1,1 @@"))
    .map((line) => line.replace("@@ -1 +", "@@ -1,1 +"))
    .join("\n");
}

test("vcs_diff prints what git diff prints, and counts by file", async () => {
  const root = createRepository({ ...sources, "gone.txt": "x\n", "old.txt": "1\n2\n3\n4\n5\n" });
  git(root, "mv", "old.txt", "new.txt");
  git(root, "rm", "--quiet", "gone.txt");
  addEntries(root, { "src/a.ts": sources["src/a.ts"].replace("three", "3"), "added.txt": "1\n2\n" });
  git(root, "add", "--all");
  const plain = git(root, "diff", "--cached", "--find-renames");
  expect(comparable(await textOf(root, "vcs_diff", { staged: true }))).toBe(comparable(plain));
  expect(await textOf(root, "vcs_diff", { staged: true, mode: "stat" })).toBe(
    "2\t0\tadded.txt (added)\n0\t1\tgone.txt (deleted)\n0\t0\told.txt => new.txt\n1\t1\tsrc/a.ts",
  );
  expect(await textOf(root, "vcs_diff", { staged: true, mode: "files" })).toBe(
    "A added.txt\nD gone.txt\nR old.txt => new.txt\nM src/a.ts",
  );
});

test("vcs_status prints what git status --short --branch prints", async () => {
  const root = createRepository(sources);
  addEntries(root, { "README.md": "changed\n", "src/new.ts": "x\n", "src/a.ts": "staged\n" });
  git(root, "add", "src/a.ts");
  git(root, "mv", "src/deep/b.ts", "src/deep/d.ts");
  const plain = git(root, "status", "--short", "--branch").trimEnd().split("\n");
  expect((await textOf(root, "vcs_status")).split("\n").sort()).toEqual(plain.sort());
});

test("vcs_blame groups lines by commit, and names each author once", async () => {
  const root = createRepository({ "a.txt": "1\n2\n3\n" });
  const first = git(root, "rev-parse", "HEAD").slice(0, 8);
  addEntries(root, { "a.txt": "1\ntwo\n3\n" });
  commit(root, "Change");
  const second = git(root, "rev-parse", "HEAD").slice(0, 8);
  const told = git(root, "log", "-1", "--format=%an %as").trim();
  expect(await textOf(root, "vcs_blame", { path: "a.txt" })).toBe(
    `${first} ${told}\n1\t1\n${second} ${told}\n2\ttwo\n${first}\n3\t3`,
  );
});

test("a page that is not the whole result ends with what continues it, and its id", async () => {
  const lines = Array.from({ length: 1_299 }, (_, index) => `line ${index + 1} of a file`);
  const root = createRepository({ "long.txt": `${lines.join("\n")}\n` });
  const session = await open(root, 1_000);
  const first = await session.call("read_file", { path: "long.txt" });
  const shown = first.text.split("\n").slice(0, -1);
  expect(first.text.split("\n").at(-1)).toBe(
    `[${shown.length} of 1,299 lines, ${first.tokens < 1_000 ? first.tokens : "1.0k"} tokens; next: offset=${shown.length} · id ${first.id}]`,
  );
  expect(first.tokens).toBeGreaterThan(950);
  expect(first.tokens).toBeLessThanOrEqual(1_000);
  const second = await session.call("read_file", { path: "long.txt", offset: shown.length });
  expect(second.text).toMatch(new RegExp(`^${shown.length + 1}\tline ${shown.length + 1} of a file\n`));
  expect(second.text).toMatch(
    new RegExp(`\n\\[lines ${shown.length + 1}-\\d+ of 1,299, .*; next: offset=\\d+ · id ${second.id}\\]$`),
  );
});

test("a recalled page has the line numbers of the file", async () => {
  const lines = Array.from({ length: 200 }, (_, index) => `line ${index + 1}`);
  const root = createRepository({ "long.txt": `${lines.join("\n")}\n` });
  const session = await open(root);
  const first = await session.call("read_file", { path: "long.txt", start_line: 11 });
  const { text, id } = await session.recall(first.id, { offset: 5 });
  expect(text.split("\n")[0]).toBe("16\tline 16");
  expect(text.split("\n").at(-1)).toMatch(/^\[lines 6-190 of 190, [\d.]+k? tokens · id \w{16}\]$/);
  expect(text).toContain(`id ${id}]`);
});

test("an item that is larger than a page is continued by its token", async () => {
  const root = createRepository({ "long.txt": `${"0123456789".repeat(900)}\n` });
  const session = await open(root, 600);
  const args = { path: "long.txt", max_line_length: 100_000 };
  const pages = [await session.call("read_file", args)];
  for (let token: string | undefined = ""; token !== undefined; ) {
    token = / next: next_page token=(\S+) /.exec(pages.at(-1)!.text)?.[1];
    if (token !== undefined) pages.push(await session.nextPage(token));
  }
  const joined = pages.map(({ text }) => text.slice(0, text.lastIndexOf("\n["))).join("");
  expect(joined).toBe(`1\t${"0123456789".repeat(900)}`);
  expect(pages.length).toBeGreaterThan(3);
  expect(pages[0]!.text).toMatch(/\n\[item 0: characters 0-[\d,]+ of 9,000, \d+ tokens; next: next_page token=\w{16}:/);
});

test("a name with a line break stays on one line, as git quotes it", async () => {
  const root = createRepository({ "a\nb/c.txt": "match\n", "plain.txt": "match\n" });
  expect(await textOf(root, "project_files", { mode: "files" })).toBe('"a\\nb/"\nc.txt\n\n./\nplain.txt');
  expect(await textOf(root, "project_files")).toBe('./ 2 files\nplain.txt\n"a\\nb/" 1');
  expect(await textOf(root, "search_content", { pattern: "match", mode: "count" })).toBe(
    '"a\\nb/c.txt":1\nplain.txt:1',
  );
  expect(await textOf(root, "search_content", { pattern: "match" })).toContain('"a\\nb/c.txt"\n1:match\n');
  addEntries(root, { "a\nb/c.txt": "changed\n" });
  expect(await textOf(root, "vcs_status")).toContain(' M "a\\nb/c.txt"');
  expect(await textOf(root, "vcs_diff", { mode: "files" })).toBe('M "a\\nb/c.txt"');
  expect(await textOf(root, "vcs_diff")).toMatch(/^diff --git "a\/a\\nb\/c\.txt" "b\/a\\nb\/c\.txt"\n--- "a\/a/);
});

test("an error is one line", async () => {
  const root = createRepository(sources);
  const { text, envelope } = await (await open(root)).call("read_file", { path: "none" });
  expect(text).toBe('Error (not_found): "none" does not exist. Use project_files to list existing files.');
  expect(envelope.status).toBe("error");
});
