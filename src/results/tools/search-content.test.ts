import { execFileSync } from "node:child_process";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Match } from "./match.ts";
import { createSearchContent, findRipgrep } from "./search-content.ts";
import { addEntries, createRepository, createTree, type ReadResult, readResult } from "./temporary-tree.contract.ts";
import { testTool } from "./tool.contract.ts";

const call = { signal: new AbortController().signal };
const without = async () => undefined;
const program = await findRipgrep(process.env);

/** ripgrep is an optional dependency. Without it there is only one way of searching. */
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
    const result = await search(root, { pattern: "needle", context_lines: 2 });
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

  test("a pattern with capitals is searched as it is written, unless the call says otherwise", async () => {
    const root = createTree({ "a.txt": "Needle\nneedle\nNEEDLE\n" });
    const lines = async (args: Record<string, unknown>) =>
      (await search(root, args)).items.map((item) => (item as { line: number }).line);
    expect(await lines({ pattern: "needle" })).toEqual([1, 2, 3]);
    expect(await lines({ pattern: "Needle" })).toEqual([1]);
    expect(await lines({ pattern: "Needle", case_sensitive: false })).toEqual([1, 2, 3]);
    expect(await lines({ pattern: "needle", case_sensitive: true })).toEqual([2]);
    expect(await lines({ pattern: "\\Wneedle|^needle", is_regex: true })).toEqual([1, 2, 3]);
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
    const root = createTree(Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`f${at}`, "x\nx\nx\n"])));
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

  test("shows the part of a long line around the match", async () => {
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

  test("tracked files are searched although .gitignore excludes them, as they are listed", async () => {
    const outside = createTree({ "secret.log": "needle\n", "d/secret.log": "needle\n" });
    const root = createRepository({
      "a.log": "needle\n",
      "d/b.log": "needle\n",
      "link.log": { link: join(outside, "secret.log") },
      "gone.log": "needle\n",
      "moved/secret.log": "x\n",
      "hooks/a.log": "x\n",
      "binary.log": Buffer.from("\0needle\n"),
      "z.ts": "needle\n",
    });
    addEntries(root, { ".gitignore": "*.log\n", "new.log": "needle\n" });
    rmSync(join(root, "gone.log"));
    rmSync(join(root, "moved"), { recursive: true });
    symlinkSync(join(outside, "d"), join(root, "moved"));
    rmSync(join(root, "hooks"), { recursive: true });
    symlinkSync(join(root, ".git"), join(root, "hooks"));
    addEntries(root, { ".git/a.log": "needle\n" });
    const result = await search(root, { pattern: "needle" });
    expect(placesOf(result)).toEqual(["a.log:1", "d/b.log:1", "z.ts:1"]);
    expect(placesOf(await search(root, { pattern: "needle", path: "d" }))).toEqual(["d/b.log:1"]);
    expect(placesOf(await search(root, { pattern: "needle", file_pattern: "*.ts" }))).toEqual(["z.ts:1"]);
    const second = await search(root, { pattern: "needle", offset: 1, max_results: 1 });
    expect(placesOf(second)).toEqual(["d/b.log:1"]);
  });

  test("git's own files are not searched", async () => {
    const root = createRepository({ a: "repositoryformatversion\n" });
    expect(placesOf(await search(root, { pattern: "repositoryformatversion" }))).toEqual(["a:1"]);
  });

  // Other systems do not allow such names.
  test.runIf(process.platform === "linux")(
    "names that are not UTF-8, or have line breaks, lose and repeat no match",
    async () => {
      const root = createTree({
        "-": "needle dash\n",
        "a\nb.txt": "needle one\nneedle two\n",
        ...Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`f${at + 10}`, `needle ${at}\n`])),
      });
      for (const byte of [0xfe, 0xff]) {
        const name = Buffer.from([...Buffer.from(`${root}/a`), byte]);
        writeFileSync(name, `x\nneedle ${byte}\ny\nneedle ${byte} again\n`);
      }
      const texts: string[] = [];
      for (let more = true; more; ) {
        const page = await search(root, { pattern: "needle", max_results: 3, offset: texts.length });
        texts.push(...(page.items as Match[]).map(({ path, text }) => `${path} ${text}`));
        more = page.more;
      }
      expect(texts).toEqual([
        "- needle dash",
        "a\nb.txt needle one",
        "a\nb.txt needle two",
        "a\uFFFD needle 254",
        "a\uFFFD needle 254 again",
        "a\uFFFD needle 255",
        "a\uFFFD needle 255 again",
        ...Array.from({ length: 12 }, (_, at) => `f${at + 10} needle ${at}`),
      ]);
      expect((await search(root, { pattern: "needle 255", context_lines: 1 })).items).toEqual([
        { path: "a\uFFFD", line: 2, text: "needle 255", before: ["x"], after: ["y"] },
        { path: "a\uFFFD", line: 4, text: "needle 255 again", before: ["y"] },
      ]);
      expect((await search(root, { pattern: "needle" })).warnings).toEqual([
        "2 files here have names that are not UTF-8, shown with U+FFFD: no call can name such a file.",
      ]);
    },
  );

  test("a page deep in one file begins where the previous page ended", { tags: ["deep"] }, async () => {
    const lines = Array.from({ length: 3_000 }, (_, at) => (at % 3 === 0 ? `x ${at}` : `${at}`));
    const root = createTree({ a: "x\n", "b.log": `${lines.join("\n")}\n` });
    for (const context_lines of [0, 1, 4]) {
      const whole = (await search(root, { pattern: "x", max_results: 5_000, context_lines })).items;
      expect(whole).toHaveLength(1_001);
      for (const offset of [1, 2, 500, 999, 1_000]) {
        const args = { pattern: "x", max_results: 2, offset, context_lines };
        expect((await search(root, args)).items).toEqual(whole.slice(offset, offset + 2));
      }
    }
  });

  test("an ignored folder or file is searched if it is named, with a warning", async () => {
    const root = createRepository(tree);
    for (const path of ["build", "c.log"]) {
      const result = await search(root, { pattern: "needle", path });
      expect(result.items).toHaveLength(1);
      expect(result.warnings).toEqual([`git ignores ${path}. It was searched because the call names it.`]);
    }
    expect((await search(root, { pattern: "needle", path: "a" })).warnings).toEqual([]);
  });

  test.skipIf(process.platform === "win32")("a pipe is refused, not waited for", async () => {
    const root = createTree({ a: "needle\n" });
    execFileSync("mkfifo", [join(root, "pipe")]);
    expect(await create(root).run({ pattern: "x", path: "pipe" }, call)).toMatchObject({
      code: "unreadable",
      message: '"pipe" is a pipe, socket or device.',
    });
    expect(placesOf(await search(root, { pattern: "needle" }))).toEqual(["a:1"]);
  });

  test("a flag at the start of an expression applies", async () => {
    const root = createTree({ a: "Needle\nneedle\n" });
    const args = { pattern: "(?i)NEEDLE", is_regex: true, case_sensitive: true };
    expect(placesOf(await search(root, args))).toEqual(["a:1", "a:2"]);
  });

  test("an expression that backtracks without end in other engines ends in time", async () => {
    const root = createTree({ "a.txt": `${"a".repeat(50)}!\n`, "b.txt": "aaa\n" });
    const before = process.cpuUsage();
    const result = await search(root, { pattern: "^(a+)+$", is_regex: true });
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(5_000);
    expect(placesOf(result)).toEqual(["b.txt:1"]);
    if (searchTool === "javascript") {
      expect(result.warnings).toEqual(["The pattern takes too long and was stopped in a.txt. Simplify it."]);
    }
  });

  test("a pattern that cannot be searched for is a failure that says why", async () => {
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
