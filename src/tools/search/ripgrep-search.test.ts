import { chmodSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addEntries, createTree, readResult } from "../frame/temporary-tree.contract.ts";
import { findRipgrep } from "./find-ripgrep.ts";
import type { Match } from "./match.ts";
import { createSearchContent } from "./search-content.ts";

const call = { signal: new AbortController().signal };
const program = await findRipgrep(process.env);

test("an expression that ripgrep does not know is told as such", async () => {
  if (program === undefined) return;
  const tool = createSearchContent({ root: createTree({ a: "" }), env: process.env }, async () => program);
  expect(await tool.run({ pattern: "(?=a)", is_regex: true }, call)).toMatchObject({
    code: "invalid_pattern",
    message: expect.stringContaining("look-around"),
    hint: "Rewrite it without.",
  });
});

test("a ripgrep that hangs gives what it found until time was up", async () => {
  if (program === undefined) return;
  // Counts one file and hangs; to show what is in it is the real one's work.
  const script = `#!/bin/sh\ncase "$*" in *--column*) exec ${program} "$@" ;; esac\nprintf 'a.txt\\0001\\n'\nexec sleep 60\n`;
  const root = createTree({ "a.txt": "needle\n", rg: script });
  chmodSync(join(root, "rg"), 0o755);
  const tool = createSearchContent({ root, env: process.env }, async () => join(root, "rg"));
  const start = performance.now();
  const result = await readResult(await tool.run({ pattern: "needle" }, { ...call, timeoutMs: 2_000 }));
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(result.items).toEqual([{ path: "a.txt", line: 1, text: "needle" }]);
  expect(result.total).toBeUndefined();
  expect(result.warnings).toEqual([
    expect.stringMatching(/^Stopped after 2 s: the search is not complete\./),
  ]);
});

test("a file that was written since has another version, also with as many matches", async () => {
  if (program === undefined) return;
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

test("a ripgrep that hangs while it shows matches gives those until then, and says that there are more", async () => {
  if (program === undefined) return;
  const script = `#!/bin/sh\ncase "$*" in *--column*) ${program} "$@" | head -n 2; sleep 60 ;; esac\nexec ${program} "$@"\n`;
  const root = createTree({ "a.txt": "needle\nneedle\nneedle\n", rg: script });
  chmodSync(join(root, "rg"), 0o755);
  const tool = createSearchContent({ root, env: process.env }, async () => join(root, "rg"));
  const args = { pattern: "needle", path: "a.txt", context_lines: 0 };
  const start = performance.now();
  const result = await readResult(await tool.run(args, { ...call, timeoutMs: 1_000 }));
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(result.items).toHaveLength(2);
  expect(result).toMatchObject({ more: true, total: undefined });
});

test("a line of any length costs no more than what is shown of it", async () => {
  if (program === undefined) return;
  const half = Buffer.alloc(30_000_000, "a");
  const root = createTree({ "one.txt": Buffer.concat([half, Buffer.from("é needle "), half]) });
  const tool = createSearchContent({ root, env: process.env }, async () => program);
  const before = process.memoryUsage.rss();
  const { items } = await readResult(await tool.run({ pattern: "needle" }, call));
  expect(process.memoryUsage.rss() - before).toBeLessThan(40_000_000);
  expect((items as Match[])[0]?.text).toMatch(/^…a+é needle a+…$/);
});

test("a ripgrep on PATH is preferred", async () => {
  const root = createTree({ "bin/rg": "#!/bin/sh\n" });
  chmodSync(join(root, "bin/rg"), 0o755);
  expect(await findRipgrep({ PATH: join(root, "bin") })).toBe(join(root, "bin/rg"));
});

test("a page behind very many matches of one file comes as soon as the others", async () => {
  if (program === undefined) return;
  const root = createTree({ "big.log": "x\n".repeat(1_000_000) });
  const tool = createSearchContent({ root, env: process.env }, async () => program);
  const args = { pattern: "x", offset: 999_998, context_lines: 1 };
  const result = await readResult(await tool.run(args, { ...call, timeoutMs: 2_000 }));
  expect((result.items as Match[]).map(({ line }) => line)).toEqual([999_999, 1_000_000]);
  expect(result).toMatchObject({ total: 1_000_000, more: false, warnings: [] });
});
