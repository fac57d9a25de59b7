import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { readConventions } from "./scan-project.ts";

let root: string;
beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-conventions-"));
  root = join(folder, "project");
  mkdirSync(root);
  return () => rmSync(folder, { recursive: true });
});

type Entries = Readonly<Record<string, string | Buffer | { readonly link: string }>>;

async function namesOf(entries: Entries): Promise<string[]> {
  return (await read(entries)).files.map(({ path }) => path);
}

function read(entries: Entries) {
  for (const [path, entry] of Object.entries(entries)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    if (typeof entry === "string" || Buffer.isBuffer(entry)) writeFileSync(join(root, path), entry);
    else symlinkSync(entry.link, join(root, path));
  }
  return readConventions(root);
}

it("finds nothing in an empty folder", async () => {
  expect(await read({})).toEqual({ files: [], problems: [] });
});

it("reads the files for the whole project, for agents first, in any letter case", async () => {
  expect(
    await namesOf({
      "Contributing.md": "contributing",
      ".cursorrules": "cursor",
      ".github/copilot-instructions.md": "copilot",
      "GEMINI.md": "gemini",
      "claude.md": "claude",
      "AGENTS.md": "agents",
      "CLAUDE.local.md": "mine",
      ".cursor/rules/one.mdc": "rule",
      "README.md": "readme",
    }),
  ).toEqual([
    "AGENTS.md",
    "claude.md",
    "GEMINI.md",
    ".github/copilot-instructions.md",
    ".cursorrules",
    "Contributing.md",
  ]);
});

it("does not repeat a file that is a link to another one", async () => {
  expect(await namesOf({ "AGENTS.md": "a", "CLAUDE.md": { link: "AGENTS.md" } })).toEqual(["AGENTS.md"]);
});

it("replaces a file of imports with the files that it imports, once", async () => {
  expect(await namesOf({ "AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\n" })).toEqual(["AGENTS.md"]);
});

it("follows imports of Markdown inside the project, together with the importing text", async () => {
  writeFileSync(join(root, "../outside.md"), "secret");
  const text =
    "Own words.\n\n@docs/style.md and @package.json, @../outside.md, @~/mine.md, @missing.md\n`@docs/no.md`\n";
  expect(
    await namesOf({
      "CLAUDE.md": text,
      "docs/style.md": "style\n@deeper.md",
      "docs/deeper.md": "deeper\n@../CLAUDE.md",
      "docs/no.md": "no",
      "package.json": "{}",
    }),
  ).toEqual(["CLAUDE.md", "docs/style.md", "docs/deeper.md"]);
});

it("treats @ as an import only where tools do", async () => {
  const { files } = await read({ "AGENTS.md": "@docs/style.md\n", "docs/style.md": "style" });
  expect(files).toEqual([{ path: "AGENTS.md", text: "@docs/style.md\n" }]);
});

it("keeps a file of broken imports", async () => {
  expect(await namesOf({ "CLAUDE.md": "@missing.md\n" })).toEqual(["CLAUDE.md"]);
});

it("does not repeat a copy, or a text that a longer file contains", async () => {
  expect(
    await namesOf({
      "AGENTS.md": "one\ntwo\n",
      "CLAUDE.md": "one\r\ntwo\r\n\r\n",
      "GEMINI.md": "zero\none\ntwo\nthree\n",
      ".cursorrules": "  \n",
    }),
  ).toEqual(["GEMINI.md"]);
  expect(await namesOf({ "GEMINI.md": "one\ntwo" })).toEqual(["AGENTS.md"]);
});

it("reports what it does not read: links out of the project, and files that are not UTF-8", async () => {
  writeFileSync(join(root, "../outside.md"), "secret");
  const { files, problems } = await read({
    "AGENTS.md": { link: "../outside.md" },
    "CLAUDE.md": Buffer.from([0x61, 0x0a, 0xff]),
    "GEMINI.md": { link: "nowhere" },
  });
  expect(files).toEqual([]);
  expect(problems).toEqual([
    { path: "AGENTS.md", reason: "is a link out of the project, which is not followed" },
    { path: "CLAUDE.md", reason: "invalid UTF-8 in line 2: convert it first" },
  ]);
});

it("reads no file that usually holds secrets, and no file of git, whatever a link or an import calls it", async () => {
  const { files, problems } = await read({
    ".env": "PASSWORD=x",
    ".git/config": "[core]",
    "secrets.md": "token",
    "AGENTS.md": { link: ".env" },
    "CLAUDE.md": "Read @secrets.md",
    "GEMINI.md": { link: ".git/config" },
  });
  expect(files).toEqual([{ path: "CLAUDE.md", text: "Read @secrets.md" }]);
  expect(problems).toEqual([
    { path: "AGENTS.md", reason: "is not read: .env usually holds secrets" },
    { path: "secrets.md", reason: "is not read: secrets.md usually holds secrets" },
    { path: "GEMINI.md", reason: "is not read: .git/config belongs to git" },
  ]);
});

it("ignores folders of that name, and does not wait for a pipe", { timeout: 5_000 }, async () => {
  execFileSync("mkfifo", [join(root, "AGENTS.md")]);
  const { files, problems } = await read({ ".windsurfrules/rule.md": "x", "CLAUDE.md": "c" });
  expect(files.map(({ path }) => path)).toEqual(["CLAUDE.md"]);
  expect(problems.map(({ path }) => path)).toEqual(["AGENTS.md"]);
});
