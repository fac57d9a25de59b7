import { expect, test } from "vitest";
import { importTexts } from "./import-texts.ts";

const file = (path: string, text: string, folder = "", imports: readonly string[] = []) => ({
  ...{ path, text, folder, imports },
});
const importAll = (...files: ReturnType<typeof file>[]) => importTexts(files, { takenIds: ["testing"], earlier: [] });
const textOf = (text: string) => importAll(file("CLAUDE.md", text))[0]?.text;

test("a file becomes a pack with its name, title and source", () => {
  expect(importAll(file("CLAUDE.md", "# Shop\n\nUse pnpm in this repository.\n"))).toEqual([
    {
      id: "claude",
      name: "Shop",
      description: "Imported from CLAUDE.md",
      globs: [],
      nested: false,
      from: "CLAUDE.md",
      text: "## Shop\n\nUse pnpm in this repository.\n",
      isEmpty: false,
      duplicates: [],
      notes: [],
    },
  ]);
});

test.each([
  ["headings move below the block's title", "# A\n## B ##\n###### C\n", "## A\n### B\n###### C\n"],
  ["headings that start lower stay", "## A\n\na\n\n### B\n", "## A\n\na\n\n### B\n"],
  ["underlined headings become marked ones", "Title\n=====\n\na\n\nPart\n----\nb\n", "## Title\n\na\n\n### Part\nb\n"],
  ["code is not a heading", "```sh\n# a\n\n# b\n```\n", "```sh\n# a\n\n# b\n```\n"],
  ["a table and a rule are not headings", "| a |\n|---|\n\n---\n\nb\n", "| a |\n|---|\n\n---\n\nb\n"],
  ["byte order mark and CRLF go", "\uFEFF# 标题\r\n\r\n- 一\r\n- 二\r\n", "## 标题\n\n- 一\n- 二\n"],
  [
    "an item keeps its paragraphs and code",
    "- a\n\n  b\n\n  ```\n  c\n  ```\n- d\n",
    "- a\n\n  b\n\n  ```\n  c\n  ```\n- d\n",
  ],
  ["front matter goes", "---\nalwaysApply: true\n---\n\na\n", "a\n"],
  ["a rule at the top is not front matter", "---\n\na\n", "---\n\na\n"],
  ["empty front matter goes", "---\n---\na\n", "a\n"],
])("%s", (_, text, expected) => expect(textOf(text)).toBe(expected));

test("our own blocks are left out, also edited ones, but not examples of them", () => {
  const block = "<!-- plimsoll:start:context sha256=0 -->\n# Developer Context\n```\n<!-- plimsoll:end:context -->";
  expect(textOf(`a\n\n${block}\n\nb\n`)).toBe("a\n\nb\n");
  expect(textOf(`${block}\nb\n${block}\nc\n`)).toBe("b\n\nc\n");
  const example = "```\n<!-- plimsoll:start:context -->\n<!-- plimsoll:end:context -->\n```\n";
  expect(textOf(example)).toBe(example);
});

/** Returns what is left of the second file. */
const secondOf = (first: string, second: string) =>
  importAll(file("AGENTS.md", first), file("CLAUDE.md", second))[1]?.text;

test("a section of several files is kept in the first, whatever its spaces, line breaks and list marks", () => {
  const [, cursor] = importAll(
    file(
      "AGENTS.md",
      "Run the tests before\nyou commit anything.\n\n## Style\n\n- Use tabs, not spaces.\n- Never push to main.\n",
    ),
    file(
      ".cursorrules",
      "Run the  tests before you commit\nanything.\n\n## STYLE ##\n* Use tabs,\n  not spaces.\n* Never push to main.\n\n## Data\n\nAsk first.\n",
    ),
  );
  expect(cursor?.text).toBe("## Data\n\nAsk first.\n");
  expect(cursor?.duplicates).toEqual([
    { line: 1, sameAs: { path: "AGENTS.md", line: 1 } },
    { line: 5, sameAs: { path: "AGENTS.md", line: 6 } },
  ]);
});

test("a section that an earlier file has goes with its heading, and a copy leaves nothing", () => {
  const text =
    "# Shop\n\n## Style\n\nNever:\n\n- Use default exports here.\n- No.\n\n## Build\n\n```sh\nnpm run build\n```\n";
  expect(secondOf(text, text)).toBe("");
  const more = text.replace("## Build", "## Deploy\n\nAsk the platform team.\n\n## Build");
  expect(secondOf(text, more)).toBe("## Shop\n\n### Deploy\n\nAsk the platform team.\n");
  expect(secondOf("# AGENTS.md\n\n## Style\n\nUse tabs here.\n", "# CLAUDE.md\n\n## Style\n\nUse tabs here.\n")).toBe(
    "",
  );
});

const allowed =
  "## Allowed\n\n- Force push to shared branches\n- Delete old feature branches\n\n```sh\ngit push --force\n```\n";
const sharedCode = "```sh\ngit push --force\n```\n";

test.each([
  ["another heading", allowed, "## Never\n\n- Force push to shared branches\n"],
  ["another heading above", "# Allowed\n\n## Git\n\nForce push here.\n", "## Never\n\n### Git\n\nForce push here.\n"],
  ["no heading", "Force push to shared branches.\n", "## Never\n\nForce push to shared branches.\n"],
  ["a label", allowed, "## Allowed\n\nNever do any of these:\n\n- Delete old feature branches\n"],
  ["a label without a blank line", allowed, "## Allowed\n\nNever do any of these:\n- Delete old feature branches\n"],
  ["a label above code", `## Git\n\n${sharedCode}`, `## Git\n\ndo NOT use this command:\n\n${sharedCode}`],
  ["a sentence above code", `## Git\n\n${sharedCode}`, `## Git\n\nThis command breaks things.\n\n${sharedCode}`],
  ["a line in bold", "## Git\n\nForce push here.\n", "## Git\n\n**Never**\n\nForce push here.\n"],
  ["a question", "## Git\n\nSquash?\n\nYes, always do.\n", "## Git\n\nForce push?\n\nYes, always do.\n"],
  ["a label of an outer label", "Drop:\n\n- the tables\n", "Never do:\n\nDrop:\n\n- the tables\n"],
  ["a sentence below a list", "- the tables\n", "- the tables\n\nNever drop the above.\n"],
  ["a label above a heading", "# A\n\n## Git\n\nForce push here.\n", "# A\n\nNever:\n\n## Git\n\nForce push here.\n"],
  ["another item", "## Git\n\n- Use any.\n- Not in tests.\n", "## Git\n\n- Use tabs.\n- Not in tests.\n"],
])("a text with %s is not a duplicate", (_, first, second) => {
  const [title] = second.match(/^# /) ?? [];
  expect(secondOf(first, second)).toBe(title === undefined ? second : second.replace(/^#/gm, "##"));
});

test("paragraphs at the start of a section are compared one by one", () => {
  const first = "## Style\n\nUse tabs, not spaces.\n\nEnd lines with LF.\n";
  const second = "## Style\n\nUse tabs, not spaces.\n\nNever:\n\n- Use default exports here.\n";
  expect(secondOf(first, second)).toBe("## Style\n\nNever:\n\n- Use default exports here.\n");
});

test("a heading without a text is kept once under the same headings", () => {
  expect(secondOf("# A\n\n## No commits to main\n", "# A\n\n## No commits to main\n")).toBe("");
  expect(secondOf("# A\n\n## No commits to main\n", "## B\n\n### No commits to main\n")).toBe(
    "## B\n\n### No commits to main\n",
  );
});

test("rules for some files are compared with rules for the same files and for the whole project", () => {
  const rule = (glob: string, text: string) => `---\nglobs: ${glob}\n---\n${text}`;
  const packs = importAll(
    file("react.mdc", rule("*.tsx", "Use tabs, not spaces.\n\nUse hooks, not classes.\n")),
    file("vue.mdc", rule("*.vue", "Use hooks, not classes.\n")),
    file("more.mdc", rule("*.tsx", "Use hooks, not classes.\n")),
    file("AGENTS.md", "Use tabs, not spaces.\n"),
  );
  expect(packs.map(({ id, text }) => [id, text])).toEqual([
    ["agents", "Use tabs, not spaces.\n"],
    ["react", "Use hooks, not classes.\n"],
    ["vue", "Use hooks, not classes.\n"],
    ["more", ""],
  ]);
});

test("code is the same only with the same spaces", () => {
  const code = (indent: string) => `\`\`\`py\nif ready:\n${indent}start()\n\`\`\`\n`;
  const copies = importAll(file("a.md", code("  ")), file("b.md", code("    ")), file("c.md", code("  ")));
  expect(copies.map(({ text }) => text)).toEqual([code("  "), code("    "), ""]);
});

test("repetitions within one file are kept", () => {
  expect(textOf("Run npm test first.\n\nRun npm test first.\n")).toBe("Run npm test first.\n\nRun npm test first.\n");
});

test("a line that imports another imported file goes, and other imports stay", () => {
  const [, claude] = importAll(
    file("AGENTS.md", "Use pnpm.\n"),
    file("CLAUDE.md", "@./AGENTS.md\n@docs/rules.md\n\nUse plan mode.\n"),
  );
  expect(claude?.text).toBe("@docs/rules.md\n\nUse plan mode.\n");
});

test.each([
  ["globs: src/**/*.ts, test/{a,b}/*.ts\nalwaysApply: false", ["src/**/*.ts", "test/{a,b}/*.ts"]],
  ["globs: ['*.ts', \"*.tsx\"]", ["*.ts", "*.tsx"]],
  ['applyTo: "**/*.py,**/*.pyi"', ["**/*.py", "**/*.pyi"]],
  ["paths:\n  - src/api/**\n  - './src/db/**'", ["src/api/**", "src/db/**"]],
  ["inclusion: fileMatch\nfileMatchPattern: 'components/**/*.tsx'", ["components/**/*.tsx"]],
  ["globs: *.ts\nalwaysApply: true", []],
  ["applyTo: '**'", []],
])("the patterns of %j become globs", (matter, globs) => {
  expect(importAll(file(".cursor/rules/a.mdc", `---\n${matter}\n---\nText.\n`))[0]).toMatchObject({ globs, notes: [] });
});

test.each([
  ["globs: ../x/**\nalwaysApply: false", [], "the pattern ../x/** cannot be used in a pack and is left out"],
  ['applyTo: "!src/**"', [], "the pattern !src/** cannot be used in a pack and is left out"],
  ['applyTo: "**, !src/**"', [], "the pattern !src/** cannot be used in a pack and is left out"],
  ["globs: [bad", [], '"globs: [bad" in the front matter cannot be read and is left out'],
  ['paths:\n  - "src/**', [], '"paths: "src/**" in the front matter cannot be read and is left out'],
  ["globs: src/{a,b/**", [], '"globs: src/{a,b/**" in the front matter cannot be read and is left out'],
])("the pack of %j applies to every file, and a note says so", (matter, globs, note) => {
  const [pack] = importAll(file("a.mdc", `---\n${matter}\n---\nx\n`));
  expect(pack).toMatchObject({ globs, text: "x\n" });
  expect(pack?.notes).toEqual([
    note,
    "its scope is wider now: the pack applies to every file. Write globs into its pack.yaml",
  ]);
});

test("a note says that an excluded pattern, a rule on request or the end of front matter is lost", () => {
  const notesOf = (text: string, folder = "") => importAll(file("a.mdc", text, folder))[0];
  expect(notesOf("---\nglobs: src/**, !src/x/**\n---\nx\n", "api")).toMatchObject({
    globs: ["api/src/**"],
    notes: [
      "the pattern !src/x/** cannot be used in a pack and is left out",
      "its scope is wider now: the pack also applies to the files that the pattern excluded",
    ],
  });
  expect(notesOf("---\nglobs: '!x/**'\n---\nx\n", "api")).toMatchObject({
    globs: ["api/**"],
    notes: [expect.any(String), expect.stringContaining("applies to every file in api.")],
  });
  expect(notesOf("---\ndescription: For releases\nalwaysApply: false\n---\nx\n")).toMatchObject({
    description: "For releases",
    notes: ["was loaded on request only. As a pack it is always loaded"],
  });
  expect(notesOf("---\nglobs: src/**\nx\n")?.notes[0]).toBe("its front matter has no end, so it is imported as text");
  expect(notesOf("---\nglobs: [bad\nalwaysApply: true\n---\nx\n")?.notes).toEqual([]);
});

test("a list of patterns may have several lines", () => {
  const text = '---\nglobs: [\n  "src/**",\n  "test/**"\n]\n---\nx\n';
  expect(importAll(file("a.mdc", text))[0]).toMatchObject({ globs: ["src/**", "test/**"], notes: [] });
});

test("comments that Plimsoll acts on become text, except in code", () => {
  const text =
    '<!-- sync:fetch url="https://example.com/x" -->\na\n\n  <!--verbosity:extended-->\n<!-- plimsoll:end:context -->\n<!-- other -->\n';
  const [pack] = importAll(file("CLAUDE.md", text));
  expect(pack?.text).toBe(text.replace(/<!--(?! other)/g, "&lt;!--"));
  expect(pack?.notes).toEqual(
    [1, 4, 5].map(
      (line) => `line ${line}: a comment that Plimsoll would act on is now plain text, with &lt; at its start`,
    ),
  );
  const code = "Use `<!-- verbosity:core -->` here.\n\n```\n<!-- verbosity:core -->\n```\n";
  expect(importAll(file("CLAUDE.md", code))[0]).toMatchObject({ text: code, notes: [] });
});

test("imports get a path from the root, if they name a file", () => {
  const text = "See @docs/rules.md.\n\n- @../shared.md and `@docs/rules.md`, @someone, me@docs/rules.md\n";
  const imports = ["services/api/docs/rules.md", "services/shared.md"];
  const [pack] = importAll(file("services/api/CLAUDE.md", text, "services/api", imports));
  expect(pack?.text).toBe(
    "See @services/api/docs/rules.md.\n\n- @services/shared.md and `@docs/rules.md`, @someone, me@docs/rules.md\n",
  );
  expect(pack?.notes).toEqual([
    "line 1: @docs/rules.md is now @services/api/docs/rules.md, a path from the project's root. Claude Code does not load it from a rule for some files: copy its text into the pack",
    expect.stringMatching(/^line 3: @\.\.\/shared\.md is now @services\/shared\.md, /),
  ]);
  const [root] = importAll(file("CLAUDE.md", "@./docs/rules.md\n", "", ["docs/rules.md"]));
  expect(root).toMatchObject({ text: "@./docs/rules.md\n", notes: [] });
  const [hidden] = importAll(file(".claude/CLAUDE.md", "@x.md\n", "", [".claude/x.md"]));
  expect(hidden?.notes).toEqual(["line 1: @x.md is now @.claude/x.md, a path from the project's root"]);
});

test("files are compared with packs of an earlier import, but not with the pack that they replace", () => {
  const earlier = [
    { id: "agents", path: "agents/context.md", text: "### Style\n\n- Use tabs.\n", globs: [] },
    { id: "claude", path: "claude/context.md", text: "## Data\n\nAsk first here.\n", globs: [] },
    { id: "db", path: "db/context.md", text: "## Tests\n\nUse vitest here.\n", globs: ["db/**"] },
  ];
  const text = "## Style\n\n- Use tabs.\n\n## Data\n\nAsk first here.\n\n## Tests\n\nUse vitest here.\n";
  const [pack] = importTexts([file("CLAUDE.md", text)], { takenIds: [], earlier });
  expect(pack?.text).toBe("## Data\n\nAsk first here.\n\n## Tests\n\nUse vitest here.\n");
  expect(pack?.duplicates).toEqual([{ line: 3, sameAs: { path: "agents/context.md", line: 3 } }]);
});

test("the file of a folder becomes a pack for that folder", () => {
  expect(importAll(file("services/api/AGENTS.md", "Use zod.\n", "services/api"))[0]).toMatchObject({
    id: "services-api-agents",
    globs: ["services/api/**"],
    nested: true,
  });
});

test("ids are plain, and neither repeat nor replace a pack that ships with us", () => {
  const paths = [
    "AGENTS.md",
    ".junie/AGENTS.md",
    ".cursor/rules/testing.mdc",
    ".github/instructions/api.instructions.md",
  ];
  const more = [".cursorrules", "规则.md", ".github/copilot-instructions.md", "../../x/..md"];
  const ids = importAll(...[...paths, ...more].map((path) => file(path, "x\n"))).map(({ id }) => id);
  expect(ids).toEqual([
    "agents",
    "agents-2",
    "project-testing",
    "api",
    "cursorrules",
    "imported",
    "copilot-instructions",
    "imported-2",
  ]);
});

test("markers and spaces without end do not make it slow", () => {
  const block = "<!-- plimsoll:start:x -->\n<!-- plimsoll:end:x -->\n";
  expect(textOf(`${block.repeat(5_000)}a${" ".repeat(100_000)}b\n`)).toContain("b\n");
});
