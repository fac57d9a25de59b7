import { chmodSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  addEntries,
  createRepository,
  createTree,
  type ReadResult,
  readResult,
} from "../frame/temporary-tree.contract.ts";
import { testTool } from "../frame/tool.contract.ts";
import { findRipgrep } from "./find-ripgrep.ts";
import type { Match } from "./match.ts";
import { createSearchContent } from "./search-content.ts";

const call = { signal: new AbortController().signal };
const without = async () => undefined;
const program = await findRipgrep(process.env);

/** ripgrep is an optional dependency: where it was left out there is one way of searching. */
const ways = [
  { tool: "javascript", find: without },
  ...(program === undefined ? [] : [{ tool: "ripgrep", find: async () => program }]),
];

describe.each(ways)("with $tool", ({ tool: searchTool, find }) => {
  const create = (root: string) => createSearchContent({ root, env: process.env }, find);

  async function search(root: string, args: Record<string, unknown>): Promise<ReadResult> {
    return readResult(await create(root).run(args, call));
  }

  const placesOf = ({ items }: ReadResult) => (items as Match[]).map(({ path, line }) => `${path}:${line}`);

  testTool("search_content", {
    create: (place) => createSearchContent(place, find),
    args: { pattern: "store" },
  });

  const tree = {
    ".gitignore": "*.log\n/build/\n",
    "build/out.ts": "needle\n",
    ".github/ci.yml": "run: needle\n",
    "b.ts": "one\nNeedle two\nthree needle needle\nfour\n",
    "a/deep/x.md": "needle\n",
    "a/x.ts": "a.b\nneedle\r\nafter\r\n",
    "c.log": "needle\n",
    "-e": "needle\n",
    "--files": "needle\n",
  };

  test("each matching line is one match, by path and line, with the lines around it", async () => {
    const root = createRepository(tree);
    addEntries(root, { "new.ts": "needle\n" });
    const result = await search(root, { pattern: "needle" });
    expect(placesOf(result)).toEqual([
      "--files:1",
      "-e:1",
      ".github/ci.yml:1",
      "a/deep/x.md:1",
      "a/x.ts:2",
      "b.ts:2",
      "b.ts:3",
      "new.ts:1",
    ]);
    expect(result).toMatchObject({
      fields: { search_tool: searchTool, files_matched: 7 },
      itemsName: "matches",
      total: 8,
      more: false,
      warnings: [],
    });
    expect(result.items.slice(4, 7)).toEqual([
      { path: "a/x.ts", line: 2, text: "needle", before: ["a.b"], after: ["after"] },
      { path: "b.ts", line: 2, text: "Needle two", before: ["one"], after: ["three needle needle", "four"] },
      { path: "b.ts", line: 3, text: "three needle needle", before: ["one", "Needle two"], after: ["four"] },
    ]);
  });

  test("every parameter narrows the search", async () => {
    const root = createTree(tree);
    const cases: [Record<string, unknown>, string[]][] = [
      [{ pattern: "needle", case_sensitive: true, path: "b.ts" }, ["b.ts:3"]],
      [{ pattern: "a.b", is_regex: false }, ["a/x.ts:1"]],
      [{ pattern: "^needle$", is_regex: true, path: "a" }, ["a/deep/x.md:1", "a/x.ts:2"]],
      [{ pattern: "needle", file_pattern: "*.ts" }, ["a/x.ts:2", "b.ts:2", "b.ts:3"]],
      [{ pattern: "needle", file_pattern: "*.{md,yml}" }, [".github/ci.yml:1", "a/deep/x.md:1"]],
      [{ pattern: "needle", file_pattern: "a/**/*.md" }, ["a/deep/x.md:1"]],
      [{ pattern: "needle", file_pattern: "[ab]*" }, ["b.ts:2", "b.ts:3"]],
      [{ pattern: "needle", path: "./-e" }, ["-e:1"]],
      [{ pattern: "needle", path: "c.log" }, ["c.log:1"]],
      [{ pattern: "needle", path: "build" }, ["build/out.ts:1"]],
      [{ pattern: "nothing like it" }, []],
    ];
    for (const [args, places] of cases)
      expect(placesOf(await search(root, args)), JSON.stringify(args)).toEqual(places);
  });

  test("context can be left out or be long", async () => {
    const root = createTree({ "a.txt": "1\n2\nx\n4\nx\n6\n7\n8\n" });
    expect((await search(root, { pattern: "x", context_lines: 0 })).items).toEqual([
      { path: "a.txt", line: 3, text: "x" },
      { path: "a.txt", line: 5, text: "x" },
    ]);
    expect((await search(root, { pattern: "x", context_lines: 3 })).items).toEqual([
      { path: "a.txt", line: 3, text: "x", before: ["1", "2"], after: ["4", "x", "6"] },
      { path: "a.txt", line: 5, text: "x", before: ["2", "x", "4"], after: ["6", "7", "8"] },
    ]);
  });

  test("a maximum ends the page, and the rest follows at the next offset", async () => {
    const root = createTree(
      Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`f${at}`, "x\nx\nx\n"])),
    );
    const whole = placesOf(await search(root, { pattern: "x", max_results: 1_000 }));
    expect(whole).toHaveLength(360);
    const joined: string[] = [];
    for (let more = true; more; ) {
      const page = await search(root, { pattern: "x", max_results: 100, offset: joined.length });
      joined.push(...placesOf(page));
      more = page.more;
    }
    expect(joined).toEqual(whole);
  });

  test("a pattern that looks like an option is a pattern", async () => {
    const root = createTree({ "a.txt": "--help\n-e\n--pre=sh\n$(id)\n" });
    for (const pattern of ["--help", "-e", "--pre=sh", "$(id)"]) {
      expect((await search(root, { pattern, context_lines: 0 })).items, pattern).toHaveLength(1);
      expect(await create(root).run({ pattern, is_regex: true }, call), pattern).toHaveProperty("items");
    }
  });

  test("binary files are left out, other encodings are read", async () => {
    const root = createTree({
      bin: Buffer.from("needle\0needle\n"),
      "latin1.txt": Buffer.from("größe needle\n", "latin1"),
      "utf16.txt": Buffer.from("\uFEFFgröße needle\n", "utf16le"),
    });
    const { items } = await search(root, { pattern: "needle" });
    expect((items as Match[]).map(({ path, text }) => `${path} ${text}`)).toEqual([
      "latin1.txt größe needle",
      "utf16.txt größe needle",
    ]);
  });

  test("of a long line the part around the match is shown", async () => {
    const root = createTree({ "a.min.js": `${"x".repeat(10_000)}é😀needle${"y".repeat(10_000)}\n` });
    const [match] = (await search(root, { pattern: "needle" })).items as Match[];
    expect(match?.text).toMatch(/^…x{97}é😀needley+…$/u);
    expect(match?.text).toHaveLength(502);
  });

  test("links are not followed, and nothing outside is searched", async () => {
    const outside = createTree({ "secret.txt": "needle\n" });
    const root = createTree({
      out: { link: outside },
      file: { link: join(outside, "secret.txt") },
      a: "needle\n",
    });
    expect(placesOf(await search(root, { pattern: "needle" }))).toEqual(["a:1"]);
  });

  test("git's own files are not searched", async () => {
    const root = createRepository({ a: "repositoryformatversion\n" });
    expect(placesOf(await search(root, { pattern: "repositoryformatversion" }))).toEqual(["a:1"]);
  });

  test("an expression that explodes elsewhere comes back in time", async () => {
    const root = createTree({ "a.txt": `${"a".repeat(50)}!\n`, "b.txt": "aaa\n" });
    const start = performance.now();
    const result = await search(root, { pattern: "^(a+)+$", is_regex: true });
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(placesOf(result)).toEqual(["b.txt:1"]);
    if (searchTool === "javascript") {
      expect(result.warnings).toEqual(["The pattern takes too long and was stopped in a.txt: simplify it."]);
    }
  });

  test("what cannot be searched for is a failure that says why", async () => {
    const tool = create(createTree({ a: "" }));
    for (const args of [
      { pattern: "a(", is_regex: true },
      { pattern: "a\nb" },
      { pattern: "x", file_pattern: "{a,b}".repeat(20) },
    ]) {
      expect(await tool.run(args, call)).toMatchObject({ code: "invalid_pattern" });
    }
    expect(await tool.run({ pattern: "x", path: "missing" }, call)).toMatchObject({ code: "not_found" });
    expect(await tool.run({ pattern: "" }, call)).toMatchObject({ code: "invalid_argument" });
  });
});

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
  const script = `#!/bin/sh\ncase "$*" in *--json*) exec ${program} "$@" ;; esac\nprintf 'a.txt\\0001\\n'\nexec sleep 60\n`;
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

test("a ripgrep on PATH is preferred", async () => {
  const root = createTree({ "bin/rg": "#!/bin/sh\n" });
  chmodSync(join(root, "bin/rg"), 0o755);
  expect(await findRipgrep({ PATH: join(root, "bin") })).toBe(join(root, "bin/rg"));
});
