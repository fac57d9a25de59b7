/** The built command: existing instruction files become packs, and inject writes their text again. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { caseCount } from "../case-count.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const runs = caseCount({ few: 6, deep: 60, long: 300 });

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const packs = () => join(sandbox.cwd, ".plimsoll/packs");
const contextOf = (id: string) => readFileSync(join(packs(), id, "context.md"), "utf8");

test("the help is as pinned", async () => {
  const help = await sandbox.call(["import", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot("golden/help-import.txt");
});

test("without files there is nothing to import", async () => {
  const { code, stdout } = await sandbox.run(["import"]);
  expect(code).toBe(0);
  expect(stdout).toContain("Found no instruction files of AI tools here.");
  expect(existsSync(join(sandbox.cwd, ".plimsoll"))).toBe(false);
});

test("finds the files of every tool, and leaves them as they are", async () => {
  const files: Record<string, string> = {
    "AGENTS.md": "# Shop\n\nUse pnpm in this repository.\n",
    "CLAUDE.md": "@AGENTS.md\n\nUse plan mode for migrations.\n",
    "GEMINI.md": "# Shop\n\nUse pnpm in this\nrepository.\n",
    ".cursorrules": "Never use default exports.\r\n",
    ".cursor/rules/web/react.mdc": "---\nglobs: src/**/*.tsx\n---\nComponents are functions.\n",
    ".github/copilot-instructions.md": "Answer in English, always.\n",
    ".github/instructions/py.instructions.md": '---\napplyTo: "**/*.py"\n---\nUse type hints everywhere.\n',
    ".claude/rules/db.md": "---\npaths:\n  - db/**\n---\nNever edit a migration.\n",
  };
  for (const [path, text] of Object.entries(files)) sandbox.write(path, text);
  const { code, stdout, stderr } = await sandbox.call(["import"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("GEMINI.md:3 is also in AGENTS.md:3");
  expect(stdout).toContain("remove the old text from AGENTS.md, CLAUDE.md,");
  const ids = ["agents", "claude", "copilot-instructions", "cursorrules", "db", "py", "react"];
  expect(readdirSync(packs()).sort()).toEqual(ids);
  expect(contextOf("claude")).toBe("Use plan mode for migrations.\n");
  expect(readFileSync(join(packs(), "py/pack.yaml"), "utf8")).toContain('globs: ["**/*.py"]');
  for (const [path, text] of Object.entries(files)) expect(readFileSync(join(sandbox.cwd, path), "utf8")).toBe(text);
  expect((await sandbox.call(["packs", "lint"])).stdout).toContain("0 errors, 0 warnings");
});

test("replaces no pack without --force, and writes nothing with --dry-run", async () => {
  sandbox.write("CLAUDE.md", "Use pnpm in this repository.\n");
  const trial = await sandbox.call(["import", "--dry-run"]);
  expect(trial.stdout).toContain("Nothing was written");
  expect(existsSync(packs())).toBe(false);
  sandbox.write(".plimsoll/packs/claude/context.md", "mine\n");
  const kept = await sandbox.call(["import"]);
  expect(kept.code).toBe(1);
  expect(kept.stderr).toContain("exists and has another text, so it is kept. Use --force to replace it.");
  expect(contextOf("claude")).toBe("mine\n");
  expect(existsSync(join(packs(), "claude/pack.yaml"))).toBe(false);
  expect(JSON.parse((await sandbox.call(["import", "--force", "--json"])).stdout).packs).toMatchObject([
    { id: "claude", from: "CLAUDE.md", state: "replaced", path: ".plimsoll/packs/claude", lines: 1, globs: [] },
  ]);
  expect(contextOf("claude")).toBe("Use pnpm in this repository.\n");
  expect((await sandbox.call(["import"])).stdout).toContain("unchanged");
});

test("named files are imported alone, and a folder's file becomes a pack for that folder", async () => {
  sandbox.write("AGENTS.md", "Not this one.\n");
  sandbox.write("services/api/AGENTS.md", "Validate every input.\n");
  await sandbox.call(["import", "services/api/AGENTS.md"]);
  expect(readdirSync(packs())).toEqual(["services-api-agents"]);
  expect(readFileSync(join(packs(), "services-api-agents/pack.yaml"), "utf8")).toContain(
    'globs: ["services/api/**"]\nnested: true\n',
  );
  const missing = await sandbox.call(["import", "nowhere.md"]);
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("nowhere.md") });
  expect((await sandbox.call(["import", "services"])).code).toBe(1);
});

test("our own files and blocks, private files and links out of the project are left out", async () => {
  sandbox.write("CLAUDE.md", "Use pnpm in this repository.\n");
  await sandbox.call(["inject", "--tool", "claude-code", "--tool", "cursor"]);
  sandbox.write("CLAUDE.local.md", "My own password is hunter2.\n");
  const outside = join(dirname(sandbox.cwd), "outside.md");
  writeFileSync(outside, "Not of this project.\n");
  symlinkSync(outside, join(sandbox.cwd, "GEMINI.md"));
  symlinkSync("CLAUDE.md", join(sandbox.cwd, "AGENTS.override.md"));
  const { code, stderr } = await sandbox.call(["import"]);
  expect(code).toBe(0);
  expect(readdirSync(packs())).toEqual(["claude"]);
  expect(contextOf("claude")).toBe("Use pnpm in this repository.\n");
  expect(stderr).toContain("CLAUDE.local.md is one person's own");
  expect(stderr).toContain("GEMINI.md leads out of the project");
});

test("a link in place of the packs does not let it write elsewhere", async () => {
  sandbox.write("CLAUDE.md", "Use pnpm in this repository.\n");
  const outside = join(dirname(sandbox.cwd), "outside");
  mkdirSync(outside);
  symlinkSync(outside, join(sandbox.cwd, ".plimsoll"));
  const { code, stderr } = await sandbox.call(["import"]);
  expect(code).toBe(1);
  expect(stderr).toContain("symbolic link");
  expect(readdirSync(outside)).toEqual([]);
});

/** A line with words that no other line has. */
interface Words {
  next(): string;
}

function createWords(language: string): Words {
  let count = 0;
  const middle = language === "zh" ? "请使用空格而不是制表符" : "use spaces and never tabs";
  return { next: () => `w${++count}q ${middle} x${count}q` };
}

const blocks = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("heading" as const), level: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ kind: fc.constantFrom("paragraph" as const, "quote" as const), level: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constantFrom("list" as const, "steps" as const), level: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constantFrom("code" as const, "tildes" as const), level: fc.integer({ min: 1, max: 3 }) }),
    fc.record({
      kind: fc.constantFrom("underlined" as const, "table" as const),
      level: fc.integer({ min: 1, max: 2 }),
    }),
  ),
  { minLength: 1, maxLength: 10 },
);

type Block = typeof blocks extends fc.Arbitrary<(infer Value)[]> ? Value : never;

function render({ kind, level }: Block, words: Words): string {
  const lines = (count: number, start: string) =>
    Array.from({ length: count }, () => `${start}${words.next()}`).join("\n");
  // inject leaves out a heading without text.
  if (kind === "heading") return `${"#".repeat(level)} ${words.next()}\n\n${words.next()}`;
  if (kind === "underlined") return `${words.next()}\n${(level === 1 ? "=" : "-").repeat(5)}\n\n${words.next()}`;
  if (kind === "list") return `${lines(1, "- ")}\n${lines(level, "  - ")}\n\n${lines(1, "  ")}`;
  if (kind === "code") return `\`\`\`sh\n# ${words.next()}\n\n${lines(level, "  ")}\n\`\`\``;
  if (kind === "tildes") return `~~~\n\`\`\`\n${lines(level, "- ")}\n~~~`;
  if (kind === "table") return `| ${words.next()} |\n|---|\n${lines(level, "| ")}`;
  return lines(level, kind === "quote" ? "> " : kind === "steps" ? "1. " : "");
}

test("inject writes for the same tools after the old files are deleted", async () => {
  const old = ["AGENTS.md", "CLAUDE.md", ".cursorrules", "GEMINI.md"];
  for (const path of old) sandbox.write(path, `Use pnpm in ${path}.\n`);
  const config = join(sandbox.cwd, ".plimsoll/config.yaml");
  const created = "created .plimsoll/config.yaml with tools: [agents-md, claude-code, cursor, gemini-cli]\n";
  expect((await sandbox.call(["import", "--dry-run"])).stdout).toContain(created);
  expect(existsSync(config)).toBe(false);
  const { stdout } = await sandbox.call(["import"]);
  expect(stdout).toContain(created);
  expect(stdout).toContain(
    "  2. remove the old text from AGENTS.md, CLAUDE.md, .cursorrules, GEMINI.md (keep or delete the files)\n",
  );
  for (const path of old) rmSync(join(sandbox.cwd, path));
  await sandbox.call(["inject"]);
  for (const path of ["AGENTS.md", "CLAUDE.md", "GEMINI.md"]) {
    expect(readFileSync(join(sandbox.cwd, path), "utf8")).toContain("Use pnpm in CLAUDE.md.");
  }
});

test("an existing configuration is not changed, and a step says what to add to it", async () => {
  sandbox.write("CLAUDE.md", "Use pnpm in this repository.\n");
  sandbox.write(".plimsoll/config.yaml", "title: Shop\n");
  const { stdout } = await sandbox.call(["import"]);
  expect(stdout).toContain("remove the old text from CLAUDE.md (keep or delete the file)\n");
  expect(stdout).toContain(
    "  3. add this line to .plimsoll/config.yaml, because a tool is not found without its file: tools: [claude-code]\n",
  );
  expect(readFileSync(join(sandbox.cwd, ".plimsoll/config.yaml"), "utf8")).toBe("title: Shop\n");
  sandbox.write(".plimsoll/config.yaml", "tools: [cursor]\n");
  expect((await sandbox.call(["import"])).stdout).toContain("add claude-code to tools in .plimsoll/config.yaml");
  const config = { path: ".plimsoll/config.yaml", state: "incomplete", tools: ["claude-code"] };
  expect(JSON.parse((await sandbox.call(["import", "--json"])).stdout)).toMatchObject({ config });
  sandbox.write(".plimsoll/config.yaml", "tools: [cursor, claude-code]\n");
  expect((await sandbox.call(["import"])).stdout).not.toContain("config.yaml");
});

test("steps name no empty file and only what is left to do", async () => {
  sandbox.write("AGENTS.md", "Use pnpm in this repository.\n");
  sandbox.write("CLAUDE.md", "@AGENTS.md\n");
  sandbox.write("GEMINI.md", "\n");
  expect((await sandbox.call(["import"])).stdout).toContain("remove the old text from AGENTS.md (keep");
  const again = (await sandbox.call(["import"])).stdout;
  expect(again.slice(again.indexOf("Next:"))).toBe(
    "Next:\n  1. remove the old text from AGENTS.md (keep or delete the file)\n  2. plimsoll inject                     write it\n",
  );
  sandbox.write("AGENTS.md", "");
  const done = (await sandbox.call(["import"])).stdout;
  expect(done).toContain("Nothing is left to do.");
  expect(done).not.toContain("Next:");
});

test("a file that is not UTF-8 is named, and the others are imported", async () => {
  sandbox.write("CLAUDE.md", "Use pnpm in this repository.\n");
  writeFileSync(join(sandbox.cwd, "AGENTS.md"), Buffer.from([0x61, 0xff, 0x0a]));
  for (const names of [[], ["AGENTS.md", "CLAUDE.md"]]) {
    const { code, stderr } = await sandbox.call(["import", ...names]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      "AGENTS.md cannot be read (invalid UTF-8 in line 1: convert it first). It was not imported.",
    );
    expect(readdirSync(packs())).toEqual(["claude"]);
  }
  expect(await sandbox.call(["import", "AGENTS.md"])).toMatchObject({ code: 1, stdout: "" });
  const unreadable = [{ path: "AGENTS.md", reason: expect.stringContaining("invalid UTF-8") }];
  expect(JSON.parse((await sandbox.call(["import", "--json"])).stdout)).toMatchObject({ unreadable });
});

test("a later import is compared with the packs of an earlier one", async () => {
  const style = "## Style\n\n- Use tabs, not spaces.\n";
  sandbox.write("AGENTS.md", style);
  sandbox.write("CLAUDE.md", `${style}\n## Data\n\nAsk first here.\n`);
  await sandbox.call(["import"]);
  sandbox.write("services/api/AGENTS.md", `${style}\n## Input\n\nValidate every input.\n`);
  const { stdout } = await sandbox.call(["import", "services/api/AGENTS.md"]);
  expect(stdout).toContain("services/api/AGENTS.md:3 is also in .plimsoll/packs/agents/context.md:3");
  expect(contextOf("services-api-agents")).toBe("## Input\n\nValidate every input.\n");
  expect((await sandbox.call(["import", "CLAUDE.md"])).stdout).toContain("unchanged  claude");
  // A person decides when this pack is loaded, so it may be absent.
  sandbox.write(".plimsoll/packs/agents/pack.yaml", "id: agents\nname: Agents\nweight: 80\n");
  expect((await sandbox.call(["import", "services/api/AGENTS.md"])).stderr).toContain("exists and has another text");
});

test("comments and imports in old files do nothing unexpected in packs", async () => {
  sandbox.write("services/api/docs/rules.md", "Validate every input.\n");
  sandbox.write(
    "services/api/CLAUDE.md",
    'Read @docs/rules.md first.\n\n<!-- verbosity:extended -->\n<!-- sync:fetch url="http://127.0.0.1:9/x" -->\n',
  );
  const { stderr } = await sandbox.call(["import", "services/api/CLAUDE.md"]);
  expect(stderr).toContain("services/api/CLAUDE.md: line 1: @docs/rules.md is now @services/api/docs/rules.md");
  expect(stderr).toContain("services/api/CLAUDE.md: line 4: a comment that Plimsoll would act on is now plain text");
  expect(contextOf("services-api-claude")).toBe(
    'Read @services/api/docs/rules.md first.\n\n&lt;!-- verbosity:extended -->\n&lt;!-- sync:fetch url="http://127.0.0.1:9/x" -->\n',
  );
  expect((await sandbox.call(["packs", "lint"])).stdout).toContain("0 errors, 0 warnings");
});

test("a rule is not dropped because another file allows the same", async () => {
  const code = "```sh\ngit push --force\n```";
  sandbox.write(
    "AGENTS.md",
    `## Allowed\n\n- Force push to shared branches\n\n## Git\n\n- Delete old feature branches\n\n${code}\n`,
  );
  const claude = [
    "## Never\n\n- Force push to shared branches\n",
    "## Git\n\nNever do any of these:\n\n- Delete old feature branches\n",
    `## Shared branches\n\ndo NOT use this command:\n\n${code}\n`,
  ].join("\n");
  sandbox.write("CLAUDE.md", claude);
  expect((await sandbox.call(["import"])).stdout).not.toContain("is also in");
  expect(contextOf("claude")).toBe(claude);
});

test("import and inject keep every line, and sections that are the same only once", {
  timeout: runs * 10_000,
}, async () => {
  const cases = fc.record({
    shared: blocks,
    hasTitle: fc.boolean(),
    own: fc.array(blocks, { minLength: 2, maxLength: 2 }),
    language: fc.constantFrom("en", "zh"),
    lineEnd: fc.constantFrom("\n", "\r\n"),
    mark: fc.constantFrom("", "\uFEFF"),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ shared, hasTitle, own, language, lineEnd, mark }) => {
      const [words, place, empty] = [createWords(language), createSandbox(), createSandbox()];
      try {
        // Without a title of its own, shared text is under other headings in each file and may be kept twice.
        const title = hasTitle ? [`# ${words.next()}\n\n${words.next()}`] : [];
        const common = [...title, ...shared.map((block) => render(block, words))];
        const texts = own.map((list) => [...list.map((block) => render(block, words)), ...common].join("\n\n"));
        place.write("AGENTS.md", mark + `${texts[0]}\n`.replaceAll("\n", lineEnd));
        place.write("CLAUDE.md", mark + `${texts[1]}`.replaceAll("\n", lineEnd));
        const done = await place.call(["import"]);
        expect(done).toMatchObject({ code: 0, stderr: "" });
        cpSync(join(place.cwd, ".plimsoll"), join(empty.cwd, ".plimsoll"), { recursive: true });
        expect((await empty.call(["inject", "--tool", "claude-code", "--verbosity", "full"])).code).toBe(0);
        const written = readFileSync(join(empty.cwd, "CLAUDE.md"), "utf8").split("\n");
        const lines = new Set(texts.flatMap((text) => text.split("\n")).filter((line) => line.includes("q ")));
        const mayRepeat = new Set(hasTitle ? [] : common.join("\n").split("\n"));
        for (const line of lines) {
          const content = line.replace(/^#+ (?=w\d)/, "");
          const found = written.filter((each) => each.replace(/^#+ (?=w\d)/, "") === content);
          const isRight = found.length === 1 || (found.length === 2 && mayRepeat.has(line));
          expect([line, found.length, isRight]).toEqual([line, found.length, true]);
        }
      } finally {
        place.remove();
        empty.remove();
      }
    }),
    { numRuns: runs },
  );
});
