import { expect, test } from "vitest";
import { countLineParts, splitLines } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { countLarge, makePage as cutPage, type ResultPage, type ResultPageOptions } from "./page.ts";

const counter = await createCounter("estimate:claude-5");
const mark = "abcd";

function makePage(text: string, options: Omit<ResultPageOptions, "resultTokens">): ResultPage | undefined {
  return cutPage(text, { ...options, resultTokens: countLarge(text, counter) });
}

/** What a runner prints for one test that passes, for one that fails, and at the end, in the shape of the real one. */
interface Runner {
  passed(n: number): string;
  failed(n: number): readonly string[];
  readonly end: readonly string[];
  /** What must be on the page for each failure. */
  kept(n: number): readonly string[];
  readonly endKept: readonly string[];
}

const esc = "\u001b";

const runners: Readonly<Record<string, Runner>> = {
  vitest: {
    passed: (n) => ` ${esc}[32m✓${esc}[39m src/a.test.ts ${esc}[2m>${esc}[22m handles error ${n} 1ms`,
    failed: (n) => [
      `${esc}[31m FAIL ${esc}[39m src/a.test.ts > case ${n}`,
      `${esc}[1mAssertionError${esc}[22m: expected ${n} to be ${n + 1}`,
      ` ❯ src/a.test.ts:${n}:5`,
      "",
    ],
    end: [" Test Files  1 failed | 12 passed (13)", "      Tests  4 failed | 396 passed (400)"],
    kept: (n) => [` FAIL  src/a.test.ts > case ${n}`, `AssertionError: expected ${n} to be ${n + 1}`],
    endKept: ["      Tests  4 failed | 396 passed (400)"],
  },
  jest: {
    passed: (n) => `    ✓ throws an error in case ${n} (2 ms)`,
    failed: (n) => [
      ...[`  ● suite › case ${n}`, "", `    the message of case ${n}`, ""],
      ...[`    - wanted ${n + 1}`, `    + found ${n}`, "", `      at a.test.js:${n}:5`, ""],
    ],
    end: ["Test Suites: 1 failed, 1 total", "Tests:       4 failed, 396 passed, 400 total"],
    kept: (n) => [`  ● suite › case ${n}`, `    the message of case ${n}`, `    + found ${n}`],
    endKept: ["Tests:       4 failed, 396 passed, 400 total"],
  },
  pytest: {
    passed: (n) => `tests/test_error.py::test_failure_${n} PASSED                   [ 10%]`,
    failed: (n) => [`_______ test_case_${n} _______`, `>       assert f(${n}) == 0`, `E       assert ${n} == 0`, ""],
    end: ["FAILED tests/test_a.py::test_case_0 - assert 0 == 1", "==== 4 failed, 396 passed in 0.31s ===="],
    kept: (n) => [`_______ test_case_${n} _______`, `E       assert ${n} == 0`],
    endKept: ["==== 4 failed, 396 passed in 0.31s ===="],
  },
  cargo: {
    passed: (n) => `test tests::error_${n} ... ok`,
    failed: (n) => [
      `---- tests::case_${n} stdout ----`,
      `thread 'tests::case_${n}' panicked at src/lib.rs:${n}:9:`,
      "",
    ],
    end: ["test result: FAILED. 396 passed; 4 failed; 0 ignored", "error: test failed, to rerun pass `--lib`"],
    kept: (n) => [`---- tests::case_${n} stdout ----`, `thread 'tests::case_${n}' panicked at src/lib.rs:${n}:9:`],
    endKept: ["test result: FAILED. 396 passed; 4 failed; 0 ignored"],
  },
  "go test": {
    passed: (n) => `--- PASS: TestError${n} (0.00s)`,
    failed: (n) => [`--- FAIL: TestCase${n} (0.01s)`, `    a_test.go:${n}: got ${n}, want 0`],
    end: ["FAIL", "FAIL\texample.com/demo\t0.213s"],
    kept: (n) => [`--- FAIL: TestCase${n} (0.01s)`, `    a_test.go:${n}: got ${n}, want 0`],
    endKept: ["FAIL\texample.com/demo\t0.213s"],
  },
  tsc: {
    passed: (n) => `TSFILE: /project/dist/errors-${n}.js`,
    failed: (n) => [`src/a.ts(${n},7): error TS2322: Type 'number' is not assignable to type 'string'.`],
    end: ["Found 4 errors in the same file, starting at: src/a.ts:1"],
    kept: (n) => [`src/a.ts(${n},7): error TS2322: Type 'number' is not assignable to type 'string'.`],
    endKept: ["Found 4 errors in the same file, starting at: src/a.ts:1"],
  },
  "node --test": {
    passed: (n) => `✔ handles error ${n} (0.1ms)`,
    failed: (n) => [`✖ case ${n} (0.5ms)`, "  AssertionError [ERR_ASSERTION]: values differ", "", `  ${n} !== 0`, ""],
    end: ["ℹ tests 400", "ℹ pass 396", "ℹ fail 4"],
    kept: (n) => [`✖ case ${n} (0.5ms)`, `  ${n} !== 0`],
    endKept: ["ℹ pass 396", "ℹ fail 4"],
  },
  eslint: {
    passed: (n) => `  ${n}:1  warning  Unexpected console statement  no-console`,
    failed: (n) => ["", `/project/src/file-${n}.ts`, `  ${n}:10  error  'x' is not defined  no-undef`, ""],
    end: ["✖ 404 problems (4 errors, 400 warnings)"],
    kept: (n) => [`/project/src/file-${n}.ts`, `  ${n}:10  error  'x' is not defined  no-undef`],
    endKept: ["✖ 404 problems (4 errors, 400 warnings)"],
  },
};

test.each(Object.entries(runners))("a page of %s keeps every failure and the sum", (_name, runner) => {
  const failures = [3, 120, 250, 390];
  const lines = Array.from({ length: 400 }, (_, n) => (failures.includes(n) ? runner.failed(n) : [runner.passed(n)]));
  const text = [...lines.flat(), ...runner.end].join("\n");
  expect(counter.count(text)).toBeGreaterThan(3_000);
  const page = makePage(text, { counter, maxTokens: 2_000, about: "[about]", mark, isOutput: true });
  expect(page?.tokens).toBeLessThanOrEqual(2_000);
  const shown = page?.text.split("\n");
  for (const each of [...failures.flatMap(runner.kept), ...runner.endKept]) expect(shown).toContain(each);
});

test("the text of a file is cut between lines, with its beginning and its end", () => {
  const lines = Array.from({ length: 900 }, (_, n) => `const value${n} = new Error("failed ${n}");`);
  const page = makePage(lines.join("\n"), { counter, maxTokens: 1_500, about: "[about]", mark, isOutput: false });
  const shown = page?.text.split("\n") ?? [];
  const [note = ""] = shown.filter((line) => line.startsWith("[abcd"));
  const missing = Number(/\[abcd: … (\d+) lines left out\]/.exec(note)?.[1]);
  expect(shown.length - 2 + missing).toBe(900);
  const [head, tail] = [shown.indexOf(note), shown.length - 2 - shown.indexOf(note)];
  expect(shown.slice(0, head)).toEqual(lines.slice(0, head));
  expect(shown.slice(head + 1, -1)).toEqual(lines.slice(-tail));
  expect(head / (head + tail)).toBeCloseTo(0.7, 1);
});

test("a page that not even its notes fit is not made", () => {
  const text = Array.from({ length: 300 }, (_, n) => `line ${n}`).join("\n");
  expect(makePage(text, { counter, maxTokens: 3, about: "[about]", mark, isOutput: false })).toBeUndefined();
});

test("a page of several megabytes keeps failures from the middle, and counts exactly what is missing", () => {
  const logLine = (n: number) => `2026-11-17 worker-${"abcdefg"[n % 7]} handled ${(n * 7919) % 100_003} requests`;
  const lines = Array.from({ length: 60_000 }, (_, n) => logLine(n));
  const large = lines.with(30_000, "FAIL src/cart.test.ts > adds the tax").join("\n");
  const { text, tokens } = makePage(large, { counter, maxTokens: 2_000, about: "[about]", mark, isOutput: true })!;
  expect(text).toContain("FAIL src/cart.test.ts > adds the tax");
  expect(text.startsWith(`${lines[0]}\n`)).toBe(true);
  expect(text).toContain(lines.at(-1));
  const shown = text.split("\n").filter((line) => !line.startsWith("["));
  const missing = [...text.matchAll(/\[abcd: … ([\d,]+) lines? left out\]/g)].map(([, count = ""]) => count);
  expect(shown.length + missing.reduce((sum, count) => sum + Number(count.replaceAll(",", "")), 0)).toBe(lines.length);
  expect(tokens).toBeLessThanOrEqual(2_000);
});

test("a page of a large JSON list has whole elements of its beginning and its end, and counts the rest", () => {
  const rows = Array.from({ length: 20_000 }, (_, n) => ({ id: n, name: `row ${n}`, note: 'a "quote", a [ and a \\' }));
  const cut = (text: string) =>
    makePage(text, { counter, maxTokens: 2_000, about: "[about]", mark, isOutput: true })?.text;
  for (const text of [JSON.stringify(rows), JSON.stringify(rows, undefined, 2), ` ${JSON.stringify(rows)}\n`]) {
    const [before = "", missing = "", after = ""] = cut(text)?.split(/^\[abcd: … ([\d,]+) elements left out\]$/m) ?? [];
    const read = (part: string): unknown[] => JSON.parse(`[${part.trim().replaceAll("}\n{", "},\n{")}]`) as unknown[];
    const [first, last] = [read(before), read(after.replace("[about]", ""))];
    expect(first).toEqual(rows.slice(0, first.length));
    expect(last).toEqual(rows.slice(-last.length));
    expect(first.length + last.length + Number(missing.replaceAll(",", ""))).toBe(rows.length);
    expect(Math.min(first.length, last.length)).toBeGreaterThan(5);
  }
});

test.each([
  ["whose strings do not end", '["'],
  ["whose brackets do not match", "[[1],"],
  ["that something follows", "[1] "],
])("a large text like a list %s is cut as lines", (_name, start) => {
  const text = start + "\nx, y".repeat(80_000);
  const page = makePage(text, { counter, maxTokens: 500, about: "[about]", mark, isOutput: false })!;
  expect(page.text).toMatch(/lines left out/);
});

test.each([
  ["an object", (rows: object[]) => JSON.stringify({ total: rows.length, rows })],
  ["a list of few large elements", (rows: object[]) => JSON.stringify([rows, rows])],
  ["text", (rows: object[]) => rows.map((row) => Object.values(row).join(" ")).join(" ")],
])("a page of one long line of %s has its beginning and its end, and counts the rest in parts", (_name, render) => {
  const text = render(Array.from({ length: 2_000 }, (_, n) => ({ id: n, name: `row ${n}` })));
  const page = makePage(text, { counter, maxTokens: 3_000, about: "[about]", mark, isOutput: false })!;
  const [before = "", missing = "", after = ""] = page.text.split(/^\[abcd: … ([\d,]+) lines left out\]$/m);
  const end = after.replace("[about]", "").trim();
  expect(text.startsWith(before.trimEnd())).toBe(true);
  expect(text.endsWith(end)).toBe(true);
  expect(Math.min(before.length, end.length)).toBeGreaterThan(500);
  const shown = splitLines(before.trimEnd()).length + splitLines(end).length;
  expect(shown + Number(missing.replaceAll(",", ""))).toBe(countLineParts(text));
});

const pieces = ["a\n", "[", "[,", '["",', "1,\n", "\n"];

// The last one takes the longest.
test.each(process.env.PLIMSOLL_DEEP === "1" ? pieces : pieces.slice(0, -1))(
  "400,000 characters of %j become a page",
  (piece) => {
    const text = piece.repeat(400_000 / piece.length);
    for (const isOutput of [true, false]) {
      const page = makePage(text, { counter, maxTokens: 2_000, about: "[about]", mark, isOutput })!;
      expect(page.tokens).toBeLessThanOrEqual(2_000);
      expect(page.text).toContain("left out]");
    }
  },
);

const outputPage = (text: string, maxTokens = 2_000): string =>
  makePage(text, { counter, maxTokens, about: "[about]", mark, isOutput: true })?.text ?? "";

test.each([
  ["CSV", "id,name,state", (n: number) => `${n},item ${n},${n % 9 === 0 ? "failed with an error" : "ok"}`],
  ["Markdown", "| id | name |\n|---|---|", (n: number) => `| ${n} | error ${n} |`],
  ["psql", " id | name \n----+------", (n: number) => ` ${n} | failed ${n}`],
])("a page of a %s table keeps its header, and shows rows instead of folding them", (_name, header, row) => {
  const page = outputPage([header, ...Array.from({ length: 3_000 }, (_, n) => row(n))].join("\n"));
  expect(page.startsWith(`${header}\n`)).toBe(true);
  expect(page.split("\n").length).toBeGreaterThan(100);
});

test("one failure among many others of another kind stays", () => {
  const noise = (n: number) => `ERROR: could not reach host-${n}.example.com, trying again`;
  const lines = Array.from({ length: 300 }, (_, n) => noise(n));
  const page = outputPage(lines.with(150, "FAIL src/a.test.ts > adds two numbers").join("\n"));
  expect(page).toContain("FAIL src/a.test.ts > adds two numbers");
});

test("a failure in a large run stays, although many passing lines have words of failures", () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `✓ src/a.test.ts > handles an error of kind ${n}`);
  const page = outputPage(lines.with(15_000, "FAIL src/a.test.ts > adds two numbers").join("\n"));
  expect(page).toContain("FAIL src/a.test.ts > adds two numbers");
});

test("a list with an exit code after it is cut between its elements", () => {
  const list = JSON.stringify(Array.from({ length: 2_000 }, (_, id) => ({ id, name: `item ${id}` })));
  const page = outputPage(`${list}\n[exit code 0]`);
  expect(page).toMatch(/\[abcd: … [\d,]+ elements left out\]/);
  expect(page).toContain("[exit code 0]\n[about]");
});
