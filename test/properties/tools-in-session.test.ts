/** The real tools in a real session, page by page to the end: every page within its allocation, all pages together the whole. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createMemoryStore } from "../../src/core/store/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { createSession, type PageData, type Session } from "../../src/results/session/index.ts";
import { createTools } from "../../src/results/tools/index.ts";

const root = createProject();
afterAll(() => rmSync(root, { recursive: true, force: true }));

const cases: readonly [tool: string, args: Record<string, unknown>, itemsName: string][] = [
  ["project_files", {}, "entries"],
  ["project_files", { mode: "files" }, "files"],
  ["project_files", { mode: "files", max_files: 20 }, "files"],
  ["search_content", { pattern: "return", mode: "files" }, "files"],
  ["search_content", { pattern: "return", mode: "count" }, "files"],
  ["search_content", { pattern: "return" }, "matches"],
  ["search_content", { pattern: "return", max_results: 40, context_lines: 0 }, "matches"],
  ["read_file", { path: "src/file1.ts" }, "lines"],
  ["read_file", { path: "long.txt", max_line_length: 100_000 }, "lines"],
  ["vcs_log", { max_commits: 3 }, "commits"],
  ["vcs_log", { max_commits: 3, mode: "full" }, "commits"],
  ["vcs_diff", { commit: "HEAD", mode: "stat" }, "files"],
  ["vcs_diff", { commit: "HEAD", mode: "files" }, "files"],
  ["vcs_diff", { commit: "HEAD" }, "hunks"],
  ["vcs_status", {}, "changes"],
  ["vcs_blame", { path: "src/file1.ts" }, "lines"],
];

/** Each page starts programs again: small pages are for the deep run. */
const sizes = process.env.PLIMSOLL_DEEP === "1" ? [600, 2_000] : [2_500];
const forms = sizes.flatMap((size) => [[size, "json"] as const, [size, "text"] as const]);

describe.each(forms)("with %i tokens a call, as %s", (perToolCall, format) => {
  test.each(cases)("%s %j", async (tool, args, itemsName) => {
    const tools = createTools({ root });
    const session = await createSession({
      counter: await createCounter("bytes/4"),
      store: createMemoryStore(),
      now: () => Date.parse("2026-11-15T12:00:00Z"),
      budget: { perToolCall },
      tools,
      format,
    });
    const { items, pages } = await pageThrough(session, { tool, args, itemsName, perToolCall });
    const whole = await wholeResult(tool, args);
    expect(items).toEqual(whole);
    if (format === "json" && JSON.stringify(whole).length > perToolCall * 8) expect(pages).toBeGreaterThan(2);
    const log = session.workLog("full");
    if (!("entries" in log)) throw new Error("the full view has entries");
    expect(log.entries.length).toBeGreaterThan(0);
    for (const { result } of log.entries) {
      expect(result.length).toBeLessThanOrEqual(500);
      expect(result).not.toContain("[no summary");
    }
  });
});

interface Reading {
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly itemsName: string;
  readonly perToolCall: number;
}

/** As a model would: the tool again with an offset, or next_page with the token. */
async function pageThrough(session: Session, { tool, args, itemsName, perToolCall }: Reading) {
  const items: unknown[] = [];
  let delivered = await session.call(tool, args);
  for (let pages = 1; ; pages++) {
    expect(delivered.tokens).toBeLessThanOrEqual(perToolCall);
    expect(Math.ceil(Buffer.byteLength(delivered.text) / 4)).toBe(delivered.tokens);
    if (delivered.envelope.status === "error") throw new Error(delivered.text);
    const { data } = delivered.envelope;
    addItems(items, data, itemsName);
    const token = data.continuation_token;
    if (token === undefined) return { items, pages };
    const offset = /^offset:(\d+)$/.exec(token)?.[1];
    delivered = await (offset === undefined
      ? session.nextPage(token)
      : session.call(tool, { ...args, offset: Number(offset) }));
  }
}

/** Parts of one item are joined where the page says that they belong. */
function addItems(items: unknown[], data: PageData, itemsName: string): void {
  const page = data[itemsName] as unknown[];
  const { cut } = data;
  if (cut === undefined || cut.from === 0) {
    items.push(...page);
    return;
  }
  const last = items.pop();
  if (cut.at === undefined) throw new Error("an item of these tools has one long text");
  if (cut.at === "") items.push(String(last) + String(page[0]));
  else {
    const name = cut.at.slice(1);
    const item = last as Record<string, string>;
    items.push({ ...item, [name]: `${item[name]}${page[0]}` });
  }
}

async function wholeResult(name: string, args: Record<string, unknown>): Promise<unknown[]> {
  const tool = createTools({ root }).find((each) => each.name === name);
  const { max_files, max_results, max_commits, ...rest } = args;
  const limit = tool?.limitParameter === undefined ? {} : { [tool.limitParameter]: 100_000 };
  const sizes = name === "read_file" ? { max_size: 10_000_000 } : {};
  const result = await tool?.run({ ...rest, ...limit, ...sizes }, { signal: new AbortController().signal });
  if (result === undefined || !("items" in result)) throw new Error(JSON.stringify(result));
  const items: unknown[] = [];
  for await (const item of result.items) items.push(item);
  return items;
}

function createProject(): string {
  const directory = mkdtempSync(join(tmpdir(), "tools-session-"));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  const git = (...args: string[]) =>
    execFileSync(
      "git",
      ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "maintenance.auto=false", ...args],
      { cwd: directory },
    );
  for (let file = 0; file < 30; file++) {
    write(`src/file${file}.ts`, `export function f${file}() {\n  return ${file};\n}\n`.repeat(10));
  }
  write("long.txt", `first\n${"a long line, ".repeat(2_000)}\nlast\n`);
  git("init", "--quiet");
  git("add", "--all");
  for (let count = 0; count < 8; count++) git("commit", "--quiet", "--allow-empty", "-m", `Commit ${count}`);
  write("src/file1.ts", `export function other() {\n  return "größer";\n}\n`.repeat(80));
  git("add", "--all");
  git("commit", "--quiet", "-m", "Change much");
  for (let file = 0; file < 20; file++) write(`new/untracked ${file}.txt`, "");
  return directory;
}
