import { chmodSync, lstatSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readUntilHung } from "./hanging-program.contract.ts";
import type { Match } from "./match.ts";
import { createSearchContent, findRipgrep } from "./search-content.ts";
import { addEntries, createRepository, createTree, type Entries, readResult } from "./temporary-tree.contract.ts";

const call = { signal: new AbortController().signal };
const program = await findRipgrep(process.env);
/** ripgrep is an optional dependency. */
const withRipgrep = test.skipIf(program === undefined);

withRipgrep("an expression that ripgrep does not know is told as such", async () => {
  const tool = createSearchContent({ root: createTree({ a: "" }), env: process.env }, async () => program);
  expect(await tool.run({ pattern: "(?=a)", is_regex: true }, call)).toMatchObject({
    code: "invalid_pattern",
    message: expect.stringContaining("look-around"),
    hint: "Rewrite it without look-around and backreferences.",
  });
});

function createHangingRipgrep(entries: Entries) {
  const root = createTree(entries);
  chmodSync(join(root, "rg"), 0o755);
  const mark = join(root, "mark");
  const env = { ...process.env, MARK: mark };
  return { tool: createSearchContent({ root, env }, async () => join(root, "rg")), mark };
}

withRipgrep("a ripgrep that hangs gives what it found until time was up", async () => {
  // Counts one file and hangs. The real ripgrep then shows the matches of that file.
  const script = `#!/bin/sh\ncase "$*" in *--column*) exec ${program} "$@" ;; esac\nprintf 'a.txt\\0001\\n'\n: > "$MARK"\nexec sleep 60\n`;
  const { tool, mark } = createHangingRipgrep({ "a.txt": "needle\n", rg: script });
  // Leaves time to show the found matches.
  const result = await readUntilHung(tool, { pattern: "needle" }, { mark, elapsedMs: 800 });
  expect(result.items).toEqual([{ path: "a.txt", line: 1, text: "needle" }]);
  expect(result.total).toBeUndefined();
  expect(result.warnings).toEqual([expect.stringMatching(/^Stopped after 1 s: the search is incomplete\./)]);
});

withRipgrep("files that ripgrep could not read are told, those that it names itself too", async () => {
  // ripgrep then exits with 2 and prints nothing.
  const fail = (when: string) =>
    `#!/bin/sh\ncase "$*" in ${when}) ${program} "$@"; exit 2 ;; esac\nexec ${program} "$@"\n`;
  const root = createRepository({ "a.log": "needle\n", "b.txt": "needle\n" });
  for (const when of ["*--count*./.", "*--count*./a.log"]) {
    addEntries(root, { ".gitignore": "*.log\nrg\n", rg: fail(when) });
    chmodSync(join(root, "rg"), 0o755);
    const tool = createSearchContent({ root, env: process.env }, async () => join(root, "rg"));
    const { items, warnings } = await readResult(await tool.run({ pattern: "needle" }, call));
    expect(items, when).toMatchObject([{ path: "a.log" }, { path: "b.txt" }]);
    expect(warnings, when).toEqual(["Some files could not be read and were not searched."]);
  }
});

withRipgrep("a file that became a pipe while it was searched is left out, not waited for", async () => {
  const swap = "rm a.log; mkfifo a.log";
  const script = `#!/bin/sh\ncase "$*" in *--count*./a.log*) ${program} "$@"; ${swap} ;; *) exec ${program} "$@" ;; esac\n`;
  // git tracks it although it is ignored. Such files are passed to ripgrep by name and checked afterwards.
  const root = createRepository({ "a.log": "needle\n", "b.txt": "needle\n" });
  addEntries(root, { ".gitignore": "*.log\nrg\n", rg: script });
  chmodSync(join(root, "rg"), 0o755);
  const tool = createSearchContent({ root, env: process.env }, async () => join(root, "rg"));
  const { items } = await readResult(await tool.run({ pattern: "needle" }, call));
  expect(items).toMatchObject([{ path: "b.txt" }]);
  expect(lstatSync(join(root, "a.log")).isFIFO()).toBe(true);
});

withRipgrep("a file that was written since has another version, also with as many matches", async () => {
  const root = createTree({ a: "needle one\n", b: "nothing\n" });
  const tool = createSearchContent({ root, env: process.env }, async () => program);
  const versionOf = async () => (await readResult(await tool.run({ pattern: "needle" }, call))).version;
  const first = await versionOf();
  addEntries(root, { b: "nothing new\n" });
  expect(await versionOf()).toBe(first);
  const { atime, mtime } = statSync(join(root, "a"));
  addEntries(root, { a: "one needle\n" });
  utimesSync(join(root, "a"), atime, new Date(mtime.getTime() + 5));
  expect(await versionOf()).not.toBe(first);
});

withRipgrep(
  "a ripgrep that hangs while it shows matches gives those until then, and says that there are more",
  async () => {
    const script = `#!/bin/sh\ncase "$*" in *--column*) ${program} "$@" | head -n 2; : > "$MARK"; sleep 60 ;; esac\nexec ${program} "$@"\n`;
    const { tool, mark } = createHangingRipgrep({ "a.txt": "needle\nneedle\nneedle\n", rg: script });
    const args = { pattern: "needle", path: "a.txt", context_lines: 0 };
    const result = await readUntilHung(tool, args, { mark });
    expect(result.items).toHaveLength(2);
    expect(result).toMatchObject({ more: true, total: undefined });
  },
);

test("a ripgrep on PATH is preferred", async () => {
  const root = createTree({ "bin/rg": "#!/bin/sh\n" });
  chmodSync(join(root, "bin/rg"), 0o755);
  expect(await findRipgrep({ PATH: join(root, "bin") })).toBe(join(root, "bin/rg"));
});

withRipgrep("a page behind very many matches of one file comes as soon as the others", async () => {
  const root = createTree({ "big.log": "x\n".repeat(1_000_000) });
  const tool = createSearchContent({ root, env: process.env }, async () => program);
  const args = { pattern: "x", offset: 999_998, context_lines: 1 };
  const result = await readResult(await tool.run(args, call));
  expect((result.items as Match[]).map(({ line }) => line)).toEqual([999_999, 1_000_000]);
  expect(result).toMatchObject({ total: 1_000_000, more: false, warnings: [] });
});
