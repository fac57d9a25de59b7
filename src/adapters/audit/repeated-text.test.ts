import { expect, test } from "vitest";
import type { TextFile } from "./audit-reader.ts";
import { createRepetitionFinder } from "./repeated-text.ts";

const { find: findRepetitions, isSameText, isShareOf } = createRepetitionFinder({ count: () => 0 });

function file(path: string, text: string): TextFile {
  return { path, realPath: path, isLink: false, text, bytes: text.length, tokens: 0 };
}

test("a line that stands in several files counts against the first", () => {
  const [a, b, c] = [
    file("a", "Use tabs here.\n"),
    file("b", "Use tabs here.\n"),
    file("c", "Use tabs here.\n"),
  ];
  const found = findRepetitions([a, b, c]).map((each) => [each.file.path, each.original.path, each.lines]);
  expect(found).toEqual([
    ["b", "a", ["Use tabs here."]],
    ["c", "a", ["Use tabs here."]],
  ]);
});

test("a line twice in one file is no repetition", () => {
  expect(findRepetitions([file("a", "Use tabs here.\nUse tabs here.\n")])).toEqual([]);
});

test("front matter, headings, comments, fences, rules and short lines say nothing", () => {
  const text =
    "---\nalwaysApply: true\n---\n## Testing it\n<!-- a comment -->\n```typescript\n----------\n| --- | --- |\nok\n";
  expect(findRepetitions([file("a", text), file("b", `${text}More.`)])).toEqual([]);
});

test("line ends, indentation and a byte order mark make no difference", () => {
  const [a, b] = [
    file("a", "Use tabs here.\nAnd no spaces.\n"),
    file("b", "\uFEFFUse tabs here.\r\nAnd no spaces."),
  ];
  expect(isSameText(a, b)).toBe(true);
  expect(findRepetitions([a, b])[0]).toMatchObject({
    identical: true,
    lines: ["Use tabs here.", "And no spaces."],
  });
  expect(findRepetitions([a, file("c", "  Use tabs here.")])[0]).toMatchObject({ identical: false });
});

test("empty files are not the same text", () => {
  expect(isSameText(file("a", "\n"), file("b", " "))).toBe(false);
});

test("the share is of the lines that say something", () => {
  const [a, b] = [file("a", "Use tabs here.\n"), file("b", "# Rules\nUse tabs here.\nAnd no spaces.\n")];
  const [repetition] = findRepetitions([a, b]);
  expect(isShareOf(repetition!, b, 0.5)).toBe(true);
  expect(isShareOf(repetition!, b, 0.6)).toBe(false);
});

test("two copies of 5 MB are compared in time that grows with the text", { timeout: 60_000 }, () => {
  const numbers = Array.from({ length: 420_000 }, (_, line) => line + 100_000);
  const text = numbers.map((number) => `rule ${number}\n`).join("");
  const [a, b] = [file("a", text), file("b", `${text}One more line.\n`)];
  const finder = createRepetitionFinder({ count: () => 0 });
  const started = process.cpuUsage();
  const [repetition] = finder.find([a, b]);
  const { user, system } = process.cpuUsage(started);
  expect(repetition!.lines.length).toBe(numbers.length);
  // About half a second; with a list that is copied for every line it would be an hour.
  expect((user + system) / 1e6).toBeLessThan(5);
  // Another tool that loads the same files costs nothing.
  expect(finder.find([a, b])[0]!.lines).toBe(repetition!.lines);
});
