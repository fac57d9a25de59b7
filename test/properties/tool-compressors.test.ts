/** What stays of each tool's result in the work log. The texts are those that the design asks for, word for word. */
import { testCompressor } from "../../src/results/session/compressor.contract.ts";
import { createTools } from "../../src/results/tools/index.ts";

const tools = createTools({ root: "." });

function toolOf(name: string): (typeof tools)[number] {
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  return tool;
}

function files(paths: Readonly<Record<string, number>>): { path: string; size: number }[] {
  return Object.entries(paths).flatMap(([pattern, count]) =>
    Array.from({ length: count }, (_, index) => ({ path: pattern.replace("*", String(index)), size: 1 })),
  );
}

const page = { offset: 0, truncated: false };

testCompressor(toolOf("project_files"), [
  {
    args: { path: "src" },
    data: {
      path: "src",
      files: files({
        "src/core/*.ts": 150,
        "src/cli/*.ts": 84,
        "docs/*.md": 45,
        "src/core/deep/*.json": 12,
        "*.yml": 4,
        "*.css": 2,
        "*.html": 2,
        "*.sh": 1,
        "*.svg": 1,
        "*.txt": 1,
      }),
      ...page,
      total: 2847,
      returned: 500,
      truncated: true,
    },
    text: "Listed 500 of 2847 files in src (truncated). Types: .ts (234), .md (45), .json (12), +6 more. Key: src/core/, src/cli/, docs/",
  },
  {
    args: {},
    data: { path: ".", files: files({ "a.ts": 1, ".env": 1, LICENSE: 1 }), ...page, total: 3, returned: 3 },
    text: "Listed 3 files in the root. Types: (no extension) (2), .ts (1).",
  },
  {
    args: { path: "empty" },
    data: { path: "empty", files: [], ...page, total: 0, returned: 0 },
    text: "Listed 0 files in empty.",
  },
  {
    args: {},
    data: {
      path: ".",
      file_count: 909,
      entries: [{ path: "README.md" }, { path: "docs/", files: 9 }, { path: "src/", files: 899 }],
      ...page,
      total: 3,
      returned: 3,
    },
    text: "Listed 2 directories with 909 files in the root. Largest: src/ (899), docs/ (9)",
  },
]);

testCompressor(toolOf("search_content"), [
  {
    args: { pattern: "createStore", mode: "files" },
    data: { files: ["a", "b", "c", "d"].map((name) => ({ path: `src/${name}.ts` })), ...page, total: 12, returned: 4 },
    text: "Found 'createStore' in 4 of 12 files: a.ts, b.ts, c.ts, +1 more",
  },
  {
    args: { pattern: "createStore" },
    data: {
      matches: [
        { path: "src/store.ts", line: 14, text: "export function createStore(" },
        ...Array.from({ length: 8 }, (_, line) => ({ path: "src/store.ts", line, text: "createStore" })),
        ...Array.from({ length: 5 }, (_, line) => ({ path: "src/main.ts", line, text: "createStore" })),
        ...Array.from({ length: 9 }, (_, file) => ({
          path: `src/f${file}.ts`,
          line: 1,
          text: "createStore",
        })),
        ...Array.from({ length: 3 }, (_, line) => ({ path: "src/g.ts", line, text: "createStore" })),
      ],
      ...page,
      total: 26,
      returned: 26,
    },
    text: "Found 26 matches for 'createStore' in 12 files: store.ts (9), main.ts (5), +10 more. First: src/store.ts:14 export function createStore(",
  },
  {
    args: { pattern: "x" },
    data: {
      matches: [
        { path: "a/index.ts", line: 1, text: "x" },
        { path: "b/index.ts", line: 2, text: "x" },
      ],
      ...page,
      total: 90,
      returned: 2,
      truncated: true,
    },
    text: "Found 2 of 90 matches for 'x' in 2 files: a/index.ts (1), b/index.ts (1). First: a/index.ts:1 x",
  },
  {
    args: { pattern: "no such" },
    data: { matches: [], ...page, total: 0, returned: 0 },
    text: "Found 0 matches for 'no such'",
  },
]);

testCompressor(toolOf("read_file"), [
  {
    args: { path: "src/store.ts" },
    data: {
      path: "src/store.ts",
      size: 46_080,
      total_lines: 1234,
      first_line: 1,
      lines: [
        "import { open, type Connection, close } from 'database';",
        "",
        "export async function createStore() {",
        "function migrate(rows: Rows) {",
        "export const close = () => {",
        ...Array.from({ length: 193 }, () => "  step();"),
        "  return rows;",
        "}",
      ],
      ...page,
      total: 1234,
      returned: 200,
      truncated: true,
    },
    text: "Read src/store.ts (1234 lines, 45KB), lines 1-200. Starts: import { open, type Connection, close }… Ends: return rows; }. Sections: createStore, migrate, close",
  },
  {
    args: { path: "a.md" },
    data: {
      path: "a.md",
      size: 512,
      total_lines: 2,
      first_line: 1,
      lines: ["# Title", "text"],
      ...page,
      total: 2,
      returned: 2,
    },
    text: "Read a.md (2 lines, 512B). Starts: # Title. Ends: text. Sections: Title",
  },
  {
    args: { path: "a.png" },
    data: { path: "a.png", size: 15_000, binary: true, lines: [], ...page, total: 0, returned: 0 },
    // One decimal where there is one: the design writes 45KB and 14.6KB.
    text: "Read a.png (binary, 14.6KB)",
  },
]);

testCompressor(toolOf("vcs_diff"), [
  {
    args: {},
    data: {
      files_changed: 5,
      insertions: 234,
      deletions: 89,
      files: ["src/a.ts", "src/b.ts", "src/c.ts", "d.ts", "e.ts"],
      hunks: [{ path: "src/a.ts", header: "@@ -1,1 +1,1 @@", text: "-1\n+2" }],
      ...page,
      total: 30,
      returned: 1,
      truncated: true,
    },
    text: "Diff: 5 files, +234/-89 lines. Modified: a.ts, b.ts, c.ts, +2 more",
  },
  {
    args: { staged: true },
    data: {
      staged: true,
      files_changed: 0,
      insertions: 0,
      deletions: 0,
      files: [],
      hunks: [],
      ...page,
      total: 0,
      returned: 0,
    },
    text: "Diff (staged): no changes",
  },
  {
    args: { from: "main", offset: 40 },
    data: {
      files_changed: 5,
      insertions: 234,
      deletions: 89,
      files: ["src/a.ts", "src/b.ts", "src/c.ts", "d.ts", "e.ts"],
      hunks: ["src/c.ts", "src/c.ts", "d.ts"].map((path) => ({ path, header: "@@", text: "+x" })),
      total: 75,
      returned: 3,
      offset: 40,
      truncated: true,
    },
    text: "Diff: 5 files, +234/-89 lines. Hunks 41-43 of 75: c.ts, d.ts",
  },
  {
    args: { from: "main", offset: 74 },
    data: {
      files_changed: 5,
      insertions: 234,
      deletions: 89,
      hunks: [{ path: "e.ts", change: "renamed", from: "f.ts" }],
      total: 75,
      returned: 1,
      offset: 74,
      truncated: false,
    },
    text: "Diff: 5 files, +234/-89 lines. Hunk 75 of 75: e.ts",
  },
  {
    args: { from: "main", offset: 80 },
    data: {
      files_changed: 5,
      insertions: 234,
      deletions: 89,
      hunks: [],
      total: 75,
      returned: 0,
      offset: 80,
      truncated: false,
    },
    text: "Diff: 5 files, +234/-89 lines. No hunks from 81 on",
  },
]);

testCompressor(toolOf("vcs_log"), [
  {
    args: {},
    data: {
      commits: [
        { hash: "1a2b3c4", author: "Ada", date: "2026-11-02", message: "Add store\n\nWith a body." },
        { hash: "5d6e7f8", author: "Ada", date: "2026-11-01", message: "Fix paging" },
        ...Array.from({ length: 13 }, (_, index) => ({ hash: `000000${index}`, message: "Older" })),
      ],
      ...page,
      total: 15,
      returned: 15,
    },
    text: "15 commits. Recent: 1a2b3c4 Add store, 5d6e7f8 Fix paging, +13 more",
  },
  { args: {}, data: { commits: [], ...page, total: 0, returned: 0 }, text: "No commits" },
]);

testCompressor(toolOf("vcs_status"), [
  {
    args: {},
    data: {
      branch: "main",
      ahead: 2,
      behind: 0,
      staged: 1,
      modified: 2,
      untracked: 1,
      conflicts: 0,
      changes: [],
      ...page,
      total: 4,
      returned: 4,
    },
    text: "main [ahead 2]: 1 staged, 2 modified, 1 untracked",
  },
  {
    args: {},
    data: {
      branch: "main",
      ahead: 2,
      behind: 1,
      clean: true,
      staged: 0,
      modified: 0,
      untracked: 0,
      changes: [],
      ...page,
      total: 0,
      returned: 0,
    },
    text: "main (clean) [ahead 2, behind 1]",
  },
]);

testCompressor(toolOf("vcs_blame"), [
  {
    args: { path: "src/store.ts" },
    data: {
      path: "src/store.ts",
      authors: 4,
      newest: "2026-11-02",
      lines: [{ line: 1, hash: "1a2b3c4d", author: "Ada", date: "2026-11-02", text: "x" }],
      ...page,
      total: 1234,
      returned: 1,
      truncated: true,
    },
    text: "Blame src/store.ts: 1234 lines, 4 authors, newest 2026-11-02",
  },
]);
