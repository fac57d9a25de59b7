import { expect, test } from "vitest";
import { createDiffReader, type DiffHunk } from "./diff-hunks.ts";

function readDiff(lines: readonly string[], prefix?: string) {
  const hunks: DiffHunk[] = [];
  const reader = createDiffReader((hunk) => hunks.push(hunk), prefix);
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
  expect(hunks).toMatchObject([
    { path: "src/a.txt", change: "conflict", text: conflict.slice(5).join("\n") },
  ]);
});

test("a conflict with nothing to compare is a file of its own, before another one, after it, and alone", () => {
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

test("the path of a conflict begins at the root, though git has it from the repository's", () => {
  expect(readDiff(conflict, "src/").facts.files).toEqual(["a.txt"]);
});

test("a carriage return stays: it may be all that changed", () => {
  const header = ["diff --git a/a b/a", "index 1..2 100644", "--- a/a", "+++ b/a", "@@ -1,2 +1,2 @@"];
  expect(readDiff([...header, "-a\r", "-b\r", "+a", "+b"]).hunks).toMatchObject([
    { text: "-a\r\n-b\r\n+a\n+b" },
  ]);
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

test("a submodule with changes of its own is told from a file with the same words", () => {
  const words = ["--- a/a", "+++ b/a", "@@ -1 +1 @@", "-Subproject commit 12", "+Subproject commit 12-dirty"];
  const start = "diff --git a/a b/a";
  expect(readDiff([start, ...words]).dirty).toEqual(["a"]);
  expect(readDiff([start, "index 12..13 160000", ...words]).dirty).toEqual(["a"]);
  expect(readDiff([start, "index 12..13 100644", ...words]).dirty).toEqual([]);
});
