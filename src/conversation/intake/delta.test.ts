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
  expect(plain(across.text).split("\n").slice(1)).toEqual(["[mark 301-400]", "[mark 401-500, as in read a.ts from 401]"]);
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
