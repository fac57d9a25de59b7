import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { recallLines } from "./recall-lines.ts";

const counter = await createCounter("bytes/4");
const lines = (first: number, count: number) => Array.from({ length: count }, (_, index) => `line ${first + index}`);
const numbered = lines(101, 80).map((line, index) => `${101 + index}\t${line}`);

test("lines without numbers are counted", () => {
  const text = lines(1, 9).join("\n");
  expect(recallLines(text, { lines: "3-4", counter }).text).toBe("line 3\nline 4");
  expect(recallLines(text, { grep: "[89]", counter }).text).toBe("8: line 8\n9: line 9");
  expect(() => recallLines(text, { lines: "12-", counter })).toThrow(
    "the result has no lines 12-: its lines are 1 to 9",
  );
});

test("lines that a tool has numbered have its numbers, as in the notes", () => {
  const text = ["<file>", ...numbered, "</file>"].join("\n");
  expect(recallLines(text, { lines: "120-121", counter }).text).toBe("120\tline 120\n121\tline 121");
  expect(recallLines(text, { lines: "180-", counter }).text).toBe("180\tline 180\n</file>");
  expect(recallLines(text, { grep: "line 1[23]0", counter }).text).toBe("120\tline 120\n130\tline 130");
  expect(recallLines(text, { counter }).text).toBe(text);
  expect(() => recallLines(text, { lines: "1-9", counter })).toThrow(
    "the result has no lines 1-9: its lines are 101 to 180",
  );
});

test("a reader who goes on where the text ended gets every line once", () => {
  const others = lines(1, 8);
  const wrapped = [...others, ...numbered, ...others].join("\n");
  const unlike = [...others, ...others, ...numbered, ...others].join("\n");
  const long = `1\t${"x".repeat(9_000)}\n2\ty`;
  for (const text of [numbered.join("\n"), wrapped, unlike, long]) {
    const maxTokens = text === long ? 510 : 40;
    const got: string[] = [];
    for (let from = ""; ; ) {
      const { shown, rest } = recallLines(text, { counter, maxTokens, ...(from !== "" && { lines: from }) });
      expect(shown).not.toEqual([]);
      got.push(...shown.map((line) => line.text));
      if (rest[0] === undefined) break;
      from = `${rest[0].number}-`;
    }
    expect(got.join("\n").replaceAll("\n", "")).toBe(text.replaceAll("\n", ""));
  }
});
