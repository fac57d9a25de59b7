import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { createIntake } from "./intake.ts";
import { recallLines } from "./recall-lines.ts";

const counter = await createCounter("estimate:claude-5");
const source = Array.from({ length: 600 }, (_, n) => `  const value${n} = compute(${n * 7}, "some text");`);
const plain = (text: string): string => text.replace(/(?<=\[)[a-z2-7]{4}(?=[: ])/g, "mark");

test("windows of a file without line numbers keep each other's lines", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const read = (offset: number, limit = 200) =>
    intake.admit({
      tool: "read",
      input: { path: "a.ts", offset, limit },
      text: source.slice(offset - 1, offset - 1 + limit).join("\n"),
    });
  for (const offset of [1, 201, 401]) expect((await read(offset)).edit).toBe("none");
  const all = await intake.admit({ tool: "read", input: { path: "a.ts" }, text: source.join("\n") });
  expect(all.tokens).toBeLessThan(120);
  expect(plain(all.text).split("\n").slice(1)).toEqual([
    "[mark 1-200]",
    "[mark 201-400, as in read a.ts from 201]",
    "[mark 401-600, as in read a.ts from 401]",
  ]);
  const across = await read(301, 200);
  expect(plain(across.text).split("\n").slice(1)).toEqual([
    "[mark 301-400]",
    "[mark 401-500, as in read a.ts from 401]",
  ]);
});

test("a recalled window has the numbers of its notes", () => {
  const text = source.slice(200, 400).join("\n");
  expect(recallLines(text, { lines: "201-202", first: 201, counter }).text).toBe(source.slice(200, 202).join("\n"));
});

test("the shell prints a file that opencode or pi has read", async () => {
  const numbered = source.slice(0, 60).map((line, index) => `${index + 1}: ${line}`);
  const frame = ["<path>/project/a.ts</path>", "<type>file</type>", "<content>", ...numbered, "", "</content>"];
  for (const text of [frame.join("\n"), source.slice(0, 60).join("\n")]) {
    const intake = await createIntake({ counter, sessionId: "s" });
    await intake.admit({ tool: "read", input: { filePath: "/project/a.ts" }, text });
    const printed = `${source.slice(0, 60).join("\n")}\n`;
    const again = await intake.admit({ tool: "bash", input: { command: "cat a.ts" }, text: printed });
    expect(plain(again.text)).toContain("as last shown by read /project/a.ts above");
    expect(plain(again.text).split("\n").slice(1)).toEqual(["[mark 1-60]", ""]);
  }
});

test("lines in a string of a JSON answer are those of the file that was read", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const lines = source.slice(0, 60).with(30, 'say("hello\\\\n"); // a \\t');
  await intake.admit({ tool: "Read", input: { file_path: "a.ts" }, text: lines.join("\n") });
  const answer = (version: number, content: readonly string[]) =>
    intake.admit({
      tool: "get_file",
      input: { path: "a.ts", version },
      text: JSON.stringify({ version, content: content.join("\n") }),
    });
  const first = await answer(1, lines);
  expect(plain(first.text)).toContain(", split at \\n in strings. Lines in brackets with");
  expect(plain(first.text).split("\n").slice(1)).toEqual([
    `{"version":1,"content":"${lines[0]}`.replaceAll('"some text"', '\\"some text\\"'),
    "[mark 2-59]",
    `${JSON.stringify(lines[59]).slice(1)}}`,
  ]);
  const second = await answer(2, lines.with(10, "  changed"));
  expect(second.text).toContain("\n  changed\n");
  expect(second.tokens).toBeLessThan(200);
});

test("a line of a file is not the same as a part of JSON with a sign before it", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const rows = source.slice(0, 40).map((line, n) => `  "key${n}": ${JSON.stringify(line)},`);
  const hidden = rows.map((row) => `\0${row}`);
  await intake.admit({ tool: "Read", input: { file_path: "a.txt" }, text: hidden.join("\n") });
  const again = await intake.admit({
    tool: "Read",
    input: { file_path: "a.txt" },
    text: hidden.with(20, "new").join("\n"),
  });
  expect(again.edit).toBe("delta");
  expect(again.text).not.toContain("in strings");
  const json = `{\n${rows.join("\n")}\n  "z": "${"a\\n".repeat(12)}"\n}`;
  expect(await intake.admit({ tool: "get", input: { path: "a.json" }, text: json })).toMatchObject({ text: json });
});

test("a piece of a JSON file is text of the file", async () => {
  const intake = await createIntake({ counter, sessionId: "s" });
  const rows = Array.from({ length: 30 }, (_, n) => `  "key${n}": "some value\\nand another\\tline ${n}",`);
  const read = (changed: string) =>
    intake.admit({
      tool: "Read",
      input: { file_path: "a.json" },
      text: `{\n${rows.with(15, changed).join("\n")}\n  "z": 1\n}`,
      isOnePiece: true,
    });
  await read('  "key15": "one\\nline",');
  const { piece } = await read('  "key15": "other\\nline",');
  expect(piece).toMatchObject({ start: 16, end: 17, text: '  "key15": "other\\nline",' });
});

test.each(["12 PASSED, 3 FAILED", "  3 failing", "suite of the store FAILED ... ok"])(
  "the sum %j is shown again in a second run",
  async (sum) => {
    const intake = await createIntake({ counter, sessionId: "s" });
    const lines = Array.from({ length: 60 }, (_, n) => `reads the value number ${n} of the list`);
    const run = (last: string) =>
      intake.admit({ tool: "Bash", input: { command: "npm test" }, text: [...lines, sum, last].join("\n") });
    await run("one");
    expect((await run("two")).text).toContain(`\n${sum}\n`);
  },
);
