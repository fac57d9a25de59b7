/** Every command and program that README.md, docs/ and examples/ show runs, and prints what they show. How to mark a block:
 *  test/docs-run/read-page.ts. One page: `npx vitest run test/docs-run.test.ts -t docs/inject.md`. With `DOCS_UPDATE=1` the test
 *  writes the real output into the pages; read the diff before you commit it. `npm test` runs the first pages alone, because a
 *  page starts many processes. `npm run test:deep` runs all of them. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createScratch, isShown, runPage, type Source, updatePage, writePrograms } from "./docs-run/run-page.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const docs = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const examples = readdirSync(join(root, "examples")).map((name) => `examples/${name}/README.md`);
const sources = ["README.md", ...docs.map((name) => `docs/${name}`), ...examples].map((name) => ({
  name,
  text: readFileSync(join(root, name), "utf8"),
}));

/** The pages that a newcomer meets first. Everyday runs execute these, and check the types of all programs. */
const firstPages = ["README.md", "docs/commands.md"];
const isFirst = ({ name }: { name: string }) => firstPages.includes(name);

const pageOf = (name: string, lines: readonly string[]): Source => ({ name, text: lines.join("\n") });

const goodPage = pageOf("good.md", [
  ...["```console", "$ mkdir a && cd a", "$ pwd; false", "/home/me/shop/a", "$ echo $?", "1", "```"],
  ...["<!-- file: b/c.txt -->", "```yaml", "key: 1", "other: 2", "```"],
  ...["```console", "$ cat \\", "  b/c.txt", "…", "other: 2", "```"],
  ...["```sh", "cd b    # a comment", "ls", "```", "", "```", "c.txt", "```"],
  ...["```js", 'import { countTools } from "plimsoll/messages";', "console.log(typeof countTools);", "```"],
  ...["```text", "function", "```"],
  ...["<!-- continues -->", "```js", 'console.log(process.cwd(), "took 12 ms", countTools.length > 0);'],
  ...["```", "It prints", "<!-- output -->", "```text", "/home/me/shop/a/b took 99 ms true", "```"],
  ...["```ts", "const n: number = 1;", "console.log(n);", "```", "```", "1", "```"],
  ...["<!-- run: setup git-project -->", "```console", "$ git log --format=%h:%s", "a4eaf7f:Start the shop", "```"],
  ...["<!-- not run: it would end the machine -->", "```sh", "exit 1", "```"],
  ...["<!-- types only: needs a key -->", "```ts", "throw new Error('never thrown');", "```"],
]);

const badPage = pageOf("bad.md", [
  ...["```console", "$ echo one", "two", "```"],
  ...["```sh", "false", "true", "```"],
  ...["```js", 'import "plimsoll/nowhere";', "```"],
  ...["<!-- types only: needs a key -->", "```ts", 'const n: number = "one";', "```"],
  ...["Prose.", "```", "what is this?", "```"],
  ...["<!-- not run -->", "```sh", "ls", "```"],
  ...["<!-- run: setup no-such-setup -->", "```sh", "ls", "```"],
]);

// The pages are written for a POSIX shell.
const hasShell = process.platform !== "win32";
let scratch = "";
let typeErrors: readonly string[] = [];
// The compiler runs once for all pages.
beforeAll(async () => {
  scratch = createScratch();
  if (hasShell) typeErrors = await writePrograms([...sources, goodPage, badPage], scratch);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.skipIf(!hasShell)("documentation", () => {
  test("the programs of the pages have no type errors", () => {
    expect(typeErrors.filter((error) => !error.startsWith(badPage.name)).join("\n")).toBe("");
  });

  const expectShown = async (source: (typeof sources)[number]) => {
    const problems = await runPage(source, scratch);
    if (process.env.DOCS_UPDATE === "1") writeFileSync(join(root, source.name), updatePage(source, problems));
    if (problems.length > 0) expect.fail(`\n${problems.map(({ text }) => text).join("\n\n")}`);
  };
  const pageTimeout = { timeout: 300_000 };
  test.concurrent.each(sources.filter(isFirst))("$name shows what happens", pageTimeout, expectShown);
  test.concurrent.each(sources.filter((source) => !isFirst(source)))(
    "$name shows what happens",
    { ...pageTimeout, tags: ["deep"] },
    expectShown,
  );

  test("the first pages are pages", () => {
    expect(sources.filter(isFirst).map(({ name }) => name)).toEqual(firstPages);
  });
});

test("the picture of the README is what the script draws, and the README has its numbers", {
  tags: ["deep"],
}, async () => {
  const shown = join(root, "docs/public/agent-session.svg");
  const drawn = process.env.DOCS_UPDATE === "1" ? shown : join(scratch, "picture.svg");
  const script = join(root, "scripts/draw-readme-picture.mjs");
  await promisify(execFile)(process.execPath, [script, join(scratch, "sessions/run-1.jsonl"), drawn]);
  const picture = readFileSync(drawn, "utf8");
  expect(readFileSync(shown, "utf8")).toBe(picture);
  const [none, ours] = [...picture.matchAll(/([\d.]+M) billed/g)].map(([, number]) => number);
  expect(sources[0]?.text.replaceAll("\n", " ")).toContain(`billed as ${ours} tokens instead of ${none}`);
});

describe.skipIf(!hasShell)("the check of the documentation", () => {
  const problemsOf = async (source: Source) => {
    const problems = await runPage(source, scratch);
    return {
      texts: [...typeErrors.filter((error) => error.startsWith(source.name)), ...problems.map(({ text }) => text)],
      updated: updatePage(source, problems),
    };
  };

  test("accepts a page whose blocks print what it shows", async () => {
    expect((await problemsOf(goodPage)).texts).toEqual([]);
  });

  test("finds wrong output, failures, type errors and blocks without a meaning", async () => {
    const problems = (await problemsOf(badPage)).texts.join("\n");
    expect(problems).toMatch(/bad\.md:2: \$ echo one\n--- shown on the page\n\+\+\+ printed\n@@.*\n-two\n\+one/);
    expect(problems).toContain("bad.md:5: the script failed with exit code 1");
    expect(problems).toContain("bad.md:9: the program failed with exit code 1");
    expect(problems).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
    expect(problems).toMatch(/bad\.md:13\(1,7\): error TS2322/);
    expect(problems).toContain("bad.md:17: the block has no language");
    expect(problems).toContain('bad.md:21: "not run" needs words after a colon');
    expect(problems).toContain("bad.md:25: the page did not run beyond this");
  });

  test("writes the real output into a page on request, but not where lines are left out", async () => {
    const page = ["```console", "$ echo one", "two", "three", "$ seq 3", "0", "…", "$ echo \\", "  four", "```"];
    const js = ["```js", "console.log(5)", "```", "", "```text", "6", "```"];
    const source = pageOf("update.md", [...page, ...js]);
    await writePrograms([source], scratch);
    const { updated } = await problemsOf(source);
    const expected = ["```console", "$ echo one", "one", "$ seq 3", "0", "…", "$ echo \\", "  four", "four", "```"];
    expect(updated.split("\n")).toEqual([...expected, ...js.with(5, "5")]);
  });

  test("leaves out only what a line … stands for", () => {
    expect(isShown(["a", "…", "c"], ["a", "b", "b", "c"])).toBe(true);
    expect(isShown(["…", "c"], ["c"])).toBe(true);
    expect(isShown(["a", "…"], ["b", "c"])).toBe(false);
    expect(isShown(["a", "…", "c"], ["a", "c", "d"])).toBe(false);
    expect(isShown(["a…"], ["a", "b"])).toBe(false);
  });

  test("compares everything but times, ids of processes and random ids", () => {
    expect(isShown(["phase done  0.1 s  222 tokens"], ["phase done 12.3 s  222 tokens"])).toBe(true);
    expect(isShown(["phase done  0.1 s  222 tokens"], ["phase done  0.1 s  223 tokens"])).toBe(false);
    expect(isShown(["at 2026-11-15T23:21:31.545Z"], ["at 2027-01-01T00:00:00Z"])).toBe(true);
    expect(isShown(["economic  36.2 %    0.553"], ["economic  36.2 %   10.123"])).toBe(true);
    expect(isShown(["economic  36.2 %    0.553"], ["economic  36.3 %    0.553"])).toBe(false);
  });
});
