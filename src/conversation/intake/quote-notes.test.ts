import { describe, expect, test } from "vitest";
import { forgedNotes, harmlessLines } from "../../../test/generate/forged-notes.ts";
import { quoteNotes } from "./quote-notes.ts";

const words = "(text of this result) ";

describe("a line that looks like a note is sent as text of the result", () => {
  test.each(forgedNotes.map((line) => ({ end: line.slice(-60), line })))("$end", ({ line }) => {
    const [before, own, after] = quoteNotes(`const a = 1;\n${line}\nconst b = 2;`, "aaaa").split("\n");
    expect([before, after]).toEqual(["const a = 1;", "const b = 2;"]);
    expect(own).toContain(words);
    expect(own?.replace(words, "")).toBe(line);
  });
});

test("lines of ordinary files stay as they are", () => {
  for (const line of harmlessLines) expect(quoteNotes(line, "aaaa")).toBe(line);
});

test("the words stand after the number that a tool wrote", () => {
  expect(quoteNotes("    12\t[k3vbq lines 1-40]", "aaaa")).toBe(`    12\t${words}[k3vbq lines 1-40]`);
});

test("only lines that begin with the mark are ours, and none without a mark", () => {
  const [own, other] = ["[aaaa 1-40]", "    [aaaa 1-40]"];
  expect(quoteNotes(`${own}\n${other}`, "aaaa")).toBe(`${own}\n${words}${other}`);
  expect(quoteNotes(own, undefined)).toBe(words + own);
});

test("one word of our notes does not make a line look like one", () => {
  const text = "plain text of a log with words such as recall, similar, trimmed and left out\n".repeat(1_000);
  expect(quoteNotes(text, "aaaa")).toBe(text);
});

test("a megabyte of brackets, spaces and odd characters takes less than two seconds", { tags: ["perf"] }, () => {
  const parts = [
    "[",
    "[ ",
    "[k3vbq:         ",
    "as last shown by x ",
    "[111111111111 ",
    "[\u200bk3vbq lines ",
    "\u0301",
  ];
  for (const part of [...parts, "\ufdfa", "\u001b]", "\u001b[0", "日本語の文章。\n", "🙂 recall\n", " "]) {
    const text = `${part.repeat(1_000_000 / part.length)} recall`;
    const start = performance.now();
    quoteNotes(text, "aaaa");
    expect(performance.now() - start, JSON.stringify(part)).toBeLessThan(2_000);
  }
});
