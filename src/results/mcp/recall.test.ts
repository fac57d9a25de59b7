/** `recall` with a pattern or a range: a search in a stored result. */
import { expect, test } from "vitest";
import { createSession, type Delivered, type Session } from "../session/index.ts";
import { recallPageTool } from "./page-tools.ts";

const lines = Array.from(
  { length: 5_000 },
  (_, index) => `line ${index + 1} of the log${index % 100 === 0 ? " ERROR" : ""}`,
);

async function openWith(items: readonly unknown[], fields: Record<string, unknown> = {}): Promise<Session> {
  const session = await createSession({ format: "text", now: () => 0, model: "claude-sonnet-5" });
  await session.deliver({ fields, itemsName: "lines", items, offset: 0 }, { tool: "read", args: {} });
  return session;
}

const recall = (session: Session, args: Record<string, unknown>): Promise<Delivered> =>
  recallPageTool.run(session, { id: "r1", ...args });

test("returns the matching lines of the whole result with their numbers", async () => {
  const session = await openWith(lines);
  const { text } = await recall(session, { pattern: "\\b(4[0-9]01) .*ERROR$" });
  expect(text.split("\n")).toEqual([
    ...[4001, 4101, 4201, 4301, 4401, 4501, 4601, 4701, 4801, 4901].map(
      (number) => `${number}:line ${number} of the log ERROR`,
    ),
  ]);
  expect((await recall(session, { pattern: "absent" })).text).toBe("[no matches]");
  expect((await recall(session, { pattern: "(?i)error", lines: "1-300" })).text.split("\n")).toHaveLength(3);
});

test("returns a range of lines", async () => {
  const session = await openWith(lines);
  const numbers = async (range: string) =>
    (await recall(session, { lines: range })).text.split("\n").map((line) => Number(/^(\d+):line \1 /.exec(line)?.[1]));
  expect(await numbers("10-13")).toEqual([10, 11, 12, 13]);
  expect(await numbers("4321")).toEqual([4321]);
  expect(await numbers("4998-")).toEqual([4998, 4999, 5000]);
  expect(await numbers("4999-9000")).toEqual([4999, 5000]);
  expect((await recall(session, { lines: "9000-" })).text).toBe("[no lines]");
});

test("stays within the budget, and its pages joined are all matches", async () => {
  const session = await openWith(lines);
  const found: string[] = [];
  let page = await recall(session, { pattern: "line", budget: 2_000 });
  for (;;) {
    expect(page.tokens).toBeLessThanOrEqual(8_000);
    const [, token] = /next: next_page token=(\S+) · id \w{16}\]$/.exec(page.text) ?? [];
    found.push(...page.text.split("\n").filter((line) => !line.startsWith("[")));
    if (token === undefined) break;
    page = await session.nextPage(token);
  }
  expect(found).toEqual(lines.map((line, index) => `${index + 1}:${line}`));
});

test("searches lists of objects and fields, and shows only a part of a long line", async () => {
  const rows = Array.from({ length: 50 }, (_, id) => ({ id, name: `row ${id}`, text: "x".repeat(5_000) }));
  const session = await openWith(rows, { title: "all rows" });
  expect((await recall(session, { pattern: "all rows" })).text).toBe('1:{"title":"all rows"}');
  const { text } = await recall(session, { pattern: "row 7\\b" });
  expect(text).toMatch(/^9:\{"id":7,"name":"row 7","text":"x+…$/);
  expect(text.length).toBeLessThan(420);
});

test.each([
  [{ id: "r99", pattern: "x" }, "unknown_result", /r99/],
  [{ pattern: "a(" }, "invalid_pattern", /Unterminated group/],
  [{ pattern: "^(\\w+\\s?)+!$" }, "timed_out", /too long/],
  [{ lines: "ten" }, "invalid_argument", /"ten".*10-40/],
  [{ lines: "9-3" }, "invalid_argument", /"9-3"/],
])("says what is wrong with %j", async (args, code, message) => {
  const session = await openWith([...lines, `${"word ".repeat(10)}${"a".repeat(60)}`]);
  const { envelope, text } = await recall(session, args);
  expect(envelope).toMatchObject({ status: "error", error: { code } });
  expect(text).toMatch(message);
});

test("counts the parts of a long line of a shortened result as its note does", async () => {
  const text = Array.from({ length: 900 }, (_, index) => `word${index}`).join(" ");
  const session = await openWith([]);
  const original = async () => text;
  const page = await recallPageTool.run(session, { id: "abcdefghij", lines: "2-3" }, { original });
  expect(page.text).toBe(`2:${text.slice(2_000, 4_000)}\n3:${text.slice(4_000, 6_000)}`);
});
