import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { createIntake } from "./intake.ts";

const counter = await createCounter("estimate:claude-5");
const open = () => createIntake({ counter, sessionId: "s", maxResultTokens: 3_000, pageTokens: 2_000 });
const cat = (command: string, text: string) => ({ tool: "Bash", input: { command }, text });

/** A file with a function every ten lines, and with words of failures. */
function file(name: string, functions: number): string[] {
  return Array.from({ length: functions }, (_, n) => [
    `export function ${name}${n}(input: string): string {`,
    `  if (input === "") throw new Error("the error failed");`,
    ...Array.from({ length: 6 }, (_, line) => `  const value${line} = compute(${n}, "some text");`),
    "  return input;",
    "}",
  ]).flat();
}

test("a page of source code is its beginning, with an outline of the rest", async () => {
  const source = file("run", 60);
  const { text, edit, tokens } = await (await open()).admit(cat("cd /project && cat src/run.ts", source.join("\n")));
  expect(edit).toBe("page");
  expect(tokens).toBeLessThanOrEqual(2_000);
  const lines = text.split("\n");
  const note = lines.findIndex((line) => line.includes("left out"));
  expect(note).toBeGreaterThan(80);
  expect(lines.slice(0, note)).toEqual(source.slice(0, note));
  expect(lines[note]).toContain(`: … ${source.length - note} lines left out. Declarations in them, with line numbers`);
  const outline = lines.slice(note + 1, -1);
  expect(outline.length).toBeGreaterThan(5);
  for (const line of outline) {
    const [, number, body] = /^(\d+): (export function .*)$/.exec(line) ?? [];
    expect(source[Number(number) - 1]).toBe(body);
  }
});

test("a page of several files that the command names has the beginning of each", async () => {
  const files = ["one", "two", "three"].map((name) => [`==> src/${name}.ts <==`, ...file(name, 30)]);
  const { text } = await (await open()).admit(cat("head -n 400 src/*.ts", files.flat().join("\n")));
  const parts = text.split(/\n\[[a-z2-7]{4}: … \d+ lines left out\]\n/);
  expect(parts).toHaveLength(4);
  for (const [index, part] of parts.slice(0, 3).entries()) {
    const shown = part.split("\n");
    expect(shown).toEqual(files[index]?.slice(0, shown.length));
    expect(shown.length).toBeGreaterThan(20);
  }
});

test("a log that is printed is no source code, so its failures come first", async () => {
  const log = Array.from(
    { length: 900 },
    (_, n) => `2026-11-19 10:00:${n % 60} worker ${n % 7} took the item ${n * 31}`,
  );
  const { text } = await (await open()).admit(cat("cat app.log", log.with(500, "Error: it failed").join("\n")));
  expect(text).toContain("\nError: it failed\n");
});

test("a page names the file of the client, and the same result again is a duplicate", async () => {
  const intake = await open();
  const shareOfLimit = (text: string): number => text.length / 9_000;
  const call = { ...cat("cat src/run.ts", file("run", 60).join("\n")), shareOfLimit, savedAs: "/tmp/[k]/tool-1.txt" };
  const first = await intake.admit(call);
  expect(first.text).toContain(" The client saved it as /tmp/(k)/tool-1.txt. To read the rest: ");
  const second = await intake.admit(call);
  expect(second.edit).toBe("duplicate");
  expect(second.text).toContain(
    ": Same text as the result of Bash cat src/run.ts above, which is a page of it (600 lines",
  );
  expect((await intake.admit(call)).edit).toBe("duplicate");
  expect((await intake.admit({ ...call, text: `${call.text}\n// more` })).edit).toBe("page");
});

test.each([
  [
    "thousands of headings",
    Array.from({ length: 6_000 }, (_, n) => `== f${n}.ts ==\nconst a = ${n};\nrun(a);`).join("\n"),
  ],
  ["a long first line", [`const x = "${"y".repeat(9_000)}";`, ...file("run", 60)].join("\n")],
])("source code with %s is no longer than a page", async (_, text) => {
  const { edit, tokens } = await (await open()).admit({ tool: "Read", input: { file_path: "a.ts" }, text });
  expect(edit).toBe("page");
  expect(tokens).toBeLessThanOrEqual(2_000);
});

test("a log that a filter shortens is no source code, and its failures are shown", async () => {
  const intake = await open();
  const log = (end: string) =>
    Array.from({ length: 300 }, (_, n) =>
      JSON.stringify({
        level: n === 150 ? "fatal" : "info",
        n,
        msg: n === 150 ? "Error: the disk is full" : `${end} ${n}`,
      }),
    ).join("\n");
  for (const command of ["npm start 2>&1 | tail -300", "cat app.log"])
    expect((await intake.admit(cat(command, log(`served ${command}`)))).text).toContain("the disk is full");
});
