import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../../../test/make-repository.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { adapterFileSchema } from "../adapters/adapter-schema.ts";
import { loadContent } from "../content/load-content.ts";
import { createFileReader, type TextFile } from "../load-model/load-files.ts";
import { type AuditedTool, audit, createRepetitionFinder } from "./audit.ts";

let adapters: readonly Adapter[];
let counter: Counter;
let base: string;
let root: string;
let home: string;

beforeAll(async () => {
  const directory = fileURLToPath(new URL("../../../content", import.meta.url));
  const layers = [{ layer: "embedded", directory, strictness: "error" }] as const;
  adapters = (await loadContent({ layers, loadAdapterSchema: async () => adapterFileSchema })).adapters;
  counter = await createCounter("bytes/4");
});

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-audit-")));
  root = join(base, "project");
  home = join(base, "home");
  makeRepository(root);
  mkdirSync(home);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function write(path: string, text: string): void {
  const place = path.startsWith("~/") ? join(home, path.slice(2)) : join(root, path);
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, text);
}

async function look(options: { in?: string; all?: boolean; adapters?: readonly Adapter[] } = {}) {
  const directory = join(root, options.in ?? "");
  const report = await audit({
    ...{ adapters: options.adapters ?? adapters, directory, home, cwd: root, counter },
    all: options.all === true,
  });
  return (id: string): AuditedTool => {
    const tool = report.tools.find((each) => each.id === id);
    if (tool === undefined) throw new Error(`${id} is not in ${report.tools.map((each) => each.id)}`);
    return tool;
  };
}

const pathsOf = (tool: AuditedTool) => tool.files.map(({ path }) => path);
const viasOf = (tool: AuditedTool) => tool.files.map(({ path, via }) => `${path}: ${via}`);

test("a tool loads the user's file, then the project's files from the root down, each with bytes and tokens", async () => {
  write("~/.claude/CLAUDE.md", "mine");
  write("CLAUDE.md", "größe");
  write("a/b/CLAUDE.md", "deeper");
  write("a/c/CLAUDE.md", "elsewhere");
  const tool = (await look({ in: "a/b" }))("claude-code");
  expect(tool.files).toEqual([
    { path: "~/.claude/CLAUDE.md", bytes: 4, tokens: 1, via: "user" },
    { path: "CLAUDE.md", bytes: 7, tokens: 2, via: "project" },
    { path: "a/b/CLAUDE.md", bytes: 6, tokens: 2, via: "project" },
  ]);
  expect(tool.tokens).toBe(5);
});

test("follows imports for five hops, in order, through circles and not in code", async () => {
  write("CLAUDE.md", "@AGENTS.md and `@no.md`\n```\n@never.md\n```\n");
  write("AGENTS.md", "@1.md @CLAUDE.md @~/own.md");
  for (const hop of [1, 2, 3, 4, 5, 6]) write(`${hop}.md`, `@${hop + 1}.md`);
  for (const name of ["no.md", "never.md", "~/own.md"]) write(name, "x");
  expect(viasOf((await look())("claude-code"))).toEqual([
    "CLAUDE.md: project",
    "AGENTS.md: import of CLAUDE.md",
    "1.md: import of AGENTS.md",
    "2.md: import of 1.md",
    "3.md: import of 2.md",
    "4.md: import of 3.md",
    "~/own.md: import of AGENTS.md",
  ]);
});

test("reports an import of a missing file, but not a word with an at sign", async () => {
  write("CLAUDE.md", "Ask @alice about @types/node, see @docs/gone.md.\n");
  expect((await look())("claude-code").advice).toEqual(["CLAUDE.md imports docs/gone.md, which does not exist."]);
});

test("looks up only the first 2,000 imports, and says which one is not counted", async () => {
  write("CLAUDE.md", Array.from({ length: 3_000 }, (_, at) => `@docs/gone${at}.md`).join("\n"));
  const { advice } = (await look())("claude-code");
  expect(advice.filter((each) => each.endsWith("which does not exist."))).toHaveLength(2_000);
  expect(advice).toContain("docs/gone2000.md comes after 2000 other imports, so it is not counted.");
});

test("a link shows its target, and a broken link is reported", async () => {
  write("AGENTS.md", "Use tabs in every file.");
  symlinkSync("AGENTS.md", join(root, "CLAUDE.md"));
  symlinkSync("gone.md", join(root, "GEMINI.md"));
  const find = await look();
  expect(viasOf(find("claude-code"))).toEqual(["CLAUDE.md: link to AGENTS.md"]);
  expect(find("gemini-cli").advice).toEqual(["GEMINI.md is a link that leads nowhere, so it is not counted."]);
  expect(find("augment").advice).toEqual(["AGENTS.md and CLAUDE.md are the same file, and both names are loaded."]);
});

test("Codex cuts the chain at 32,768 bytes, root first, and the user's file does not count", async () => {
  write("~/.codex/AGENTS.md", "x".repeat(9000));
  write("AGENTS.md", "123456789\n".repeat(3000));
  write("a/AGENTS.md", "123456789\n".repeat(500));
  write("a/b/AGENTS.md", "late");
  const tool = (await look({ in: "a/b" }))("codex-cli");
  expect(tool.limits).toEqual([
    {
      ...{ value: 32768, unit: "bytes", kind: "hard", scope: "chain", evidence: "source" },
      ...{ used: 35004, exceeded: true },
    },
  ]);
  expect(tool.advice[0]).toBe(
    "The files together have 35,004 bytes; Codex CLI takes 32,768: a/AGENTS.md is cut after 2,768 of its 5,000 bytes, in line 277; what follows there and all of a/b/AGENTS.md are lost.",
  );
  expect((await look())("codex-cli").limits[0]).toMatchObject({ used: 30000, exceeded: false });
});

test("a limit applies only to its own tool", async () => {
  write("AGENTS.md", "x".repeat(40_000));
  const find = await look();
  expect(find("amp").limits).toEqual([]);
  expect(find("copilot-cli").limits).toEqual([]);
  expect(find("codex-cli").limits[0]?.exceeded).toBe(true);
});

test("a limit on a file shows the largest file that it applies to, in the limit's own unit", async () => {
  write(".devin/rules/a.md", "ü".repeat(11_999));
  write(".devin/rules/b.md", "😀".repeat(12_001));
  write("AGENTS.md", "x".repeat(20_000));
  const tool = (await look())("devin-desktop");
  expect(tool.limits.map(({ value, used, exceeded }) => ({ value, used, exceeded }))).toEqual([
    { value: 12000, used: 12_001, exceeded: true },
    { value: 6000, used: 0, exceeded: false },
  ]);
  expect(tool.advice).toEqual([
    ".devin/rules/b.md has 12,001 characters; Devin Desktop takes 12,000: the last 1 character, from line 1 on, is lost (for each rule file).",
  ]);
});

test("advises against more than 200 lines for Claude Code", async () => {
  write("CLAUDE.md", "line\n".repeat(200));
  expect((await look())("claude-code").advice).toEqual([]);
  write("CLAUDE.md", "line\n".repeat(201));
  const { limits, advice } = (await look())("claude-code");
  expect(limits.find(({ unit }) => unit === "lines")).toMatchObject({ used: 201, exceeded: true });
  expect(advice[0]).toMatch(/^CLAUDE\.md has 201 lines; fewer than 200 are advised for Claude Code/);
});

test("the first match hides the others, unless they have the same text", async () => {
  write(".rules", "Be brief in all answers.");
  write("AGENTS.md", "Run the tests before a commit.");
  write("CLAUDE.md", "@AGENTS.md");
  write("GEMINI.md", "Be brief in all answers.");
  write(".junie/AGENTS.md", "Use Kotlin everywhere.");
  const find = await look();
  expect(pathsOf(find("zed"))).toEqual([".rules"]);
  expect(find("zed").advice).toEqual([".rules hides AGENTS.md and CLAUDE.md: Zed reads only the first that it finds."]);
  expect(find("junie").advice).toEqual([".junie/AGENTS.md hides AGENTS.md: Junie reads only the first that it finds."]);
  rmSync(join(root, ".rules"));
  mkdirSync(join(root, ".rules"));
  expect(pathsOf((await look())("zed"))).toEqual(["AGENTS.md"]);
});

test("Claude Code and Pi also load files above the repository, and such a CLAUDE.md hides AGENTS.md", async () => {
  const above = (name: string) => `${join(base, name)}: folder above`;
  write("AGENTS.md", "ours");
  write("../AGENTS.md", "above");
  expect(viasOf((await look())("claude-code"))).toEqual([above("AGENTS.md"), "AGENTS.md: project"]);
  write("../CLAUDE.md", "mine");
  const find = await look();
  expect(viasOf(find("pi"))).toEqual([above("AGENTS.md"), "AGENTS.md: project"]);
  expect(viasOf(find("codex-cli"))).toEqual(["AGENTS.md: project"]);
  expect(viasOf(find("claude-code"))).toEqual([above("CLAUDE.md")]);
  expect(find("claude-code").advice).toEqual([
    `${join(base, "CLAUDE.md")} hides ${join(base, "AGENTS.md")} and AGENTS.md: Claude Code reads only the first that it finds.`,
  ]);
});

test("reports text that a tool loads twice: plimsoll's block, a copy, a part", async () => {
  const rules = Array.from({ length: 30 }, (_, n) => `- Rule number ${n} of this project`).join("\n");
  write("AGENTS.md", `Ours\n\n<!-- plimsoll:start:context sha256=0 -->\n${rules}\n<!-- plimsoll:end:context -->\n`);
  write(".cursor/rules/plimsoll.mdc", `---\nalwaysApply: true\n---\n<!-- plimsoll:owns sha256=0 -->\n${rules}\n`);
  write("CLAUDE.md", `Something of its own stands here\n${rules}\n`);
  const find = await look();
  expect(find("cursor").advice).toEqual([
    ".cursor/rules/plimsoll.mdc and AGENTS.md both hold Plimsoll's block (about 245 tokens twice): inject it into one of them only.",
  ]);
  expect(find("augment").advice).toEqual([
    "CLAUDE.md repeats about 245 tokens of AGENTS.md, and both are loaded: keep that text in one of them.",
  ]);
  expect(find("claude-code").advice).toEqual([
    "CLAUDE.md and AGENTS.md share much text. Move it into packs with plimsoll import --move.",
  ]);
});

test("reports identical files however short, whatever their line ends", async () => {
  write("AGENTS.md", "Use tabs.\n");
  write("CLAUDE.md", "Use tabs.\r\n\r\n");
  const find = await look();
  expect(find("claude-code").advice[0]).toBe(
    "CLAUDE.md and AGENTS.md hold the same text. Make the first a link to the second.",
  );
  expect(find("devin-cli").advice[0]).toMatch(/^AGENTS\.md and CLAUDE\.md hold the same text/);
});

test("rules that are loaded on demand are listed as such and do not count toward the chain", async () => {
  write(".claude/rules/a/api.md", "---\npaths: [src/**]\n---\nUse verbs in names.");
  write(".claude/rules/all.md", "Always true.");
  write(".devin/rules/all.md", "1234");
  write(".devin/rules/some.md", "---\nglobs: ['*.ts']\n---\nTypes.");
  write(".github/instructions/a.instructions.md", "---\napplyTo: '**'\n---\nAll.");
  write(".github/instructions/b.instructions.md", "---\napplyTo: '**/*.ts'\n---\nSome.");
  const find = await look();
  expect(viasOf(find("claude-code"))).toEqual([
    ".claude/rules/a/api.md: project, on demand",
    ".claude/rules/all.md: project",
  ]);
  expect(find("claude-code").advice[0]).toMatch(/^1 file with \d+ tokens: Claude Code loads it only when/);
  expect(find("devin-cli").limits[0]).toMatchObject({ scope: "chain", used: 4 });
  expect(viasOf(find("github-copilot"))).toEqual([
    ".github/instructions/a.instructions.md: project",
    ".github/instructions/b.instructions.md: project, on demand",
  ]);
});

test("Antigravity does not load files that git ignores, but other tools do", async () => {
  write(".gitignore", ".agents/\n*.local.md\n");
  write(".agents/rules/a.md", "Rule.");
  write("AGENTS.md", "Text.");
  write("CLAUDE.local.md", "Mine.");
  const find = await look();
  expect(pathsOf(find("antigravity"))).toEqual(["AGENTS.md"]);
  expect(find("antigravity").advice).toEqual([
    ".agents/rules/a.md is ignored by git, and Antigravity does not load ignored files.",
  ]);
  expect(pathsOf(find("claude-code"))).toEqual(["CLAUDE.local.md"]);
});

test("shows a folder whose name starts with two dots by its real place", async () => {
  write(".gitignore", "..secret/\n");
  write("..secret/a.md", "x");
  write("CLAUDE.md", "@~/..own/own.md");
  write("~/..own/own.md", "x");
  expect(pathsOf((await look())("claude-code"))).toEqual(["CLAUDE.md", "~/..own/own.md"]);
  expect(await createFileReader(counter).isIgnored(join(root, "..secret/a.md"), root)).toBe(true);
});

test("reports empty files and files that are not text", async () => {
  write("GEMINI.md", " \n");
  write("QWEN.md", "a\0b");
  const find = await look();
  expect(find("gemini-cli").advice).toEqual(["GEMINI.md is empty."]);
  expect(find("qwen-code")).toMatchObject({
    files: [],
    advice: ["QWEN.md cannot be read (binary file), so it is not counted."],
  });
});

test("Aider loads the files that its configuration lists, and nothing else", async () => {
  write("AGENTS.md", "Text.");
  await expect(look().then((find) => find("aider"))).rejects.toThrow("aider is not in");
  write(".aider.conf.yml", "model: x\nread: # these\n  - AGENTS.md\n  - 'docs/a.md' # too\nauto-commits: false\n");
  write("docs/a.md", "Text.");
  expect(pathsOf((await look())("aider"))).toEqual(["AGENTS.md", "docs/a.md"]);
  write(".aider.conf.yml", "read: [docs/a.md]\n");
  expect(pathsOf((await look())("aider"))).toEqual(["docs/a.md"]);
});

test("tools that load nothing are shown only on request", async () => {
  await expect(look().then((find) => find("zed"))).rejects.toThrow("zed is not in");
  expect((await look({ all: true }))("zed").files).toEqual([]);
});

test("every embedded adapter's file is a file that its tool loads, and AGENTS.md is for the tools that read it", async () => {
  const files = adapters.filter((adapter) => adapter.type === "file-inject" && adapter.id !== "agents-md");
  for (const { id, targets } of files) {
    for (const { path, preamble = "" } of targets) {
      write(path, `${preamble}Text.`);
      expect(viasOf((await look())(id)), id).toContainEqual(expect.stringMatching(/: (?:user|project)$/));
      rmSync(path.startsWith("~/") ? join(home, path.slice(2)) : join(root, path));
    }
  }
  write("AGENTS.md", "Text.");
  write(".aider.conf.yml", "read: AGENTS.md\n");
  const find = await look();
  for (const id of adapters.find((adapter) => adapter.id === "agents-md")?.reads ?? []) {
    expect(pathsOf(find(id)), id).toEqual(["AGENTS.md"]);
  }
});

test("a tool that only an adapter describes loads that adapter's targets and has its limits", async () => {
  const own: Adapter = {
    ...adapters.find((adapter) => adapter.id === "replit")!,
    id: "ours",
    reads: ["theirs"],
    targets: [{ scope: "project", path: "OURS.md", mode: "replace-section", section: "context" }],
    limits: [{ value: 3, unit: "chars", kind: "warn", scope: "file", evidence: "docs", checked: "2026-11-15" }],
  };
  write("OURS.md", "Text");
  const find = await look({ adapters: [...adapters, own] });
  expect(pathsOf(find("theirs"))).toEqual(["OURS.md"]);
  expect(find("ours").limits[0]).toMatchObject({ used: 4, exceeded: true });
});

const { find: findRepetitions, isSameText, isShareOf } = createRepetitionFinder({ count: () => 0 });

function file(path: string, text: string): TextFile {
  return { path, realPath: path, isLink: false, text, bytes: text.length, tokens: 0 };
}

test("a line in several files counts for the first one", () => {
  const [a, b, c] = [file("a", "Use tabs here.\n"), file("b", "Use tabs here.\n"), file("c", "Use tabs here.\n")];
  const found = findRepetitions([a, b, c]).map((each) => [each.file.path, each.original.path, each.lines]);
  expect(found).toEqual([
    ["b", "a", ["Use tabs here."]],
    ["c", "a", ["Use tabs here."]],
  ]);
});

test("a line twice in one file is not a repetition", () => {
  expect(findRepetitions([file("a", "Use tabs here.\nUse tabs here.\n")])).toEqual([]);
});

test("front matter, headings, comments, fences, rules and short lines do not count", () => {
  const text =
    "---\nalwaysApply: true\n---\n## Testing it\n<!-- a comment -->\n```typescript\n----------\n| --- | --- |\nok\n";
  expect(findRepetitions([file("a", text), file("b", `${text}More.`)])).toEqual([]);
});

test("line ends, indentation and a byte order mark make no difference", () => {
  const [a, b] = [file("a", "Use tabs here.\nAnd no spaces.\n"), file("b", "\uFEFFUse tabs here.\r\nAnd no spaces.")];
  expect(isSameText(a, b)).toBe(true);
  expect(findRepetitions([a, b])[0]).toMatchObject({
    identical: true,
    lines: ["Use tabs here.", "And no spaces."],
  });
  expect(findRepetitions([a, file("c", "  Use tabs here.")])[0]).toMatchObject({ identical: false });
});

test("empty files are not the same text", () => {
  expect(isSameText(file("a", "\n"), file("b", " "))).toBe(false);
});

test("the share counts only the lines with content", () => {
  const [a, b] = [file("a", "Use tabs here.\n"), file("b", "# Rules\nUse tabs here.\nAnd no spaces.\n")];
  const [repetition] = findRepetitions([a, b]);
  expect(isShareOf(repetition!, b, 0.5)).toBe(true);
  expect(isShareOf(repetition!, b, 0.6)).toBe(false);
});

test("compares two copies of a large file in linear time", { timeout: 60_000 }, () => {
  const length = process.env.PLIMSOLL_DEEP === "1" ? 420_000 : 100_000;
  const numbers = Array.from({ length }, (_, line) => line + 100_000);
  const text = numbers.map((number) => `rule ${number}\n`).join("");
  const [a, b] = [file("a", text), file("b", `${text}One more line.\n`)];
  const finder = createRepetitionFinder({ count: () => 0 });
  const started = process.cpuUsage();
  const [repetition] = finder.find([a, b]);
  const { user, system } = process.cpuUsage(started);
  expect(repetition!.lines.length).toBe(numbers.length);
  // This takes half a second at most. Copying a list for every line would take minutes.
  expect((user + system) / 1e6).toBeLessThan(5);
  // Another tool that loads the same files costs nothing.
  expect(finder.find([a, b])[0]!.lines).toBe(repetition!.lines);
});
