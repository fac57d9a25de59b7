import { expect, test } from "vitest";
import { checkPhases } from "./check-phases.ts";
import { parsePhaseFile } from "./nebula-files.ts";

/** What is wrong between phases: file names with the lines of front matter that follow id and title, which begin on line 4. */
async function problemsOf(files: Readonly<Record<string, readonly string[]>>): Promise<string[]> {
  const texts = Object.entries(files).map(([id, lines]) => [
    `${id}.md`,
    ["+++", `id = "${id}"`, `title = "Do ${id}"`, ...lines, "+++", ""].join("\n"),
  ]);
  return problemsIn(Object.fromEntries(texts));
}

async function problemsIn(texts: Readonly<Record<string, string>>): Promise<string[]> {
  const drafts = await Promise.all(Object.entries(texts).map(([name, text]) => parsePhaseFile(text, `/plan/${name}`)));
  return checkPhases(drafts).problems.map(
    ({ file, line, severity, rule, message }) =>
      `${file.slice("/plan/".length)}:${line}: ${severity} ${rule}: ${message}`,
  );
}

test("repeated ids are reported, also if they differ in case", async () => {
  const text = (id: string) => `+++\nid = "${id}"\ntitle = "t"\n+++\n`;
  expect(
    await problemsIn({ "1.md": text("same"), "2.md": text("same"), "3.md": text("Same"), "4.md": text("x") }),
  ).toEqual([
    '2.md:2: error duplicate-id: id "same" is already used in 1.md:2',
    '3.md:2: error duplicate-id: id "Same" differs only in upper and lower case from "same" in 1.md:2',
  ]);
});

test("dependencies on nothing and on itself are errors, blocks of nothing a warning", async () => {
  expect(
    await problemsOf({
      first: ["depends_on = [", '  "secnod",', '  "first",', "]", 'blocks = ["nobody"]'],
      second: [],
    }),
  ).toEqual([
    'first.md:5: error unknown-dependency: depends_on names "secnod", but no phase has this id. Did you mean "second"?',
    'first.md:6: error self-dependency: depends_on names the phase itself, "first"',
    'first.md:8: warning unknown-dependency: blocks names "nobody", but no phase has this id',
  ]);
});

test("a phase that cannot be read is not missing to those that depend on it", async () => {
  const broken = '+++\nid = "a"\ntitle = \n+++\n';
  expect(await problemsIn({ "a.md": broken, "b.md": '+++\nid = "b"\ndepends_on = ["a"]\n+++\n' })).toEqual([]);
});

test("each cycle is reported once, as a path from the smallest id, with its line", async () => {
  expect(
    await problemsOf({
      c: ['depends_on = ["a"]'],
      b: ['depends_on = ["c"]'],
      a: ["priority = 1", 'depends_on = ["b"]'],
      x: ['depends_on = ["a"]'],
      y: ['blocks = ["z"]', 'depends_on = ["z"]'],
      z: [],
    }),
  ).toEqual([
    "a.md:5: error dependency-cycle: the dependencies form a cycle: a → b → c → a",
    "y.md:5: error dependency-cycle: the dependencies form a cycle: y → z → y",
  ]);
});

test("a long cycle is shown by its ends", async () => {
  const id = (index: number) => `p${100 + (index % 50)}`;
  const files = Array.from({ length: 50 }, (_, index) => [id(index), [`depends_on = ["${id(index + 1)}"]`]]);
  const [problem] = await problemsOf(Object.fromEntries(files));
  expect(problem).toContain("cycle: p100 → p101 → p102");
  expect(problem).toContain("p109 → (30 more) → p140");
  expect(problem).toMatch(/p149 → p100$/);
});

test("overlapping scopes are reported if both phases could run at the same time", async () => {
  expect(
    await problemsOf({
      a: ['scope = ["docs/**", "src/*.ts"]'],
      after: ['depends_on = ["between"]', 'scope = ["src/**"]'],
      b: ["scope = [", '  "src/*.md",', '  "src/b.ts",', "]"],
      between: ['depends_on = ["a", "b"]'],
      free: ['scope = ["**"]', "allow_scope_overlap = true"],
    }),
  ).toEqual([
    'b.md:6: error scope-overlap: scope "src/b.ts" of "b" overlaps with "src/*.ts" of "a" (a.md), and both phases could run at the same time. Add a dependency, narrow a scope, or set allow_scope_overlap',
  ]);
});

test("of very many overlaps some are listed, with a line that there are more", async () => {
  const files = Array.from({ length: 30 }, (_, index) => [`p${index}`, ['scope = ["src/"]']]);
  const problems = await problemsOf(Object.fromEntries(files));
  expect(problems).toHaveLength(101);
  expect(problems.at(-1)).toBe(
    "p29.md:1: error scope-overlap: more than 100 scopes overlap; the others are not listed",
  );
});

test("a scope that is too complex is an error", async () => {
  expect(await problemsOf({ a: [`scope = ["${"{a,b}".repeat(20)}"]`] })).toEqual([
    expect.stringMatching(/^a\.md:4: error invalid-scope: /),
  ]);
});
