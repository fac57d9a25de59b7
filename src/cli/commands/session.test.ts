import { expect, test } from "vitest";
import type { LogEntry, SessionReport } from "../../results/session/index.ts";
import { renderSession } from "./session.ts";

const style = { bold: (text: string) => text, dim: (text: string) => text };

function entry(number: number): LogEntry {
  const time = "2026-11-15T10:00:02.250Z";
  return { id: `r${number}`, tool: "read_file", args: "{}", time, result: `Read ${number}`, tokens: 30 };
}

function report(changes: Partial<SessionReport> = {}): SessionReport {
  return {
    id: "mcp-shop",
    started: "2026-11-15T10:00:00.000Z",
    counter: "bytes/4",
    damaged: 0,
    calls: 1_234,
    total: 100_000,
    ledger: {
      system: { used: 0, limit: 8_000 },
      history: { used: 30, limit: 12_000 },
      tool_results: { used: 39_999, limit: 40_000 },
      user: { used: 10_500, limit: 10_000 },
      response: { used: 30_000, limit: 30_000 },
    },
    remaining: 59_971,
    available: -529,
    delivered: 40_029,
    lifetime: 1_000_000,
    summary: "",
    workLog: [entry(7)],
    evicted: { count: 0, entries: [] },
    largest: [
      { id: "r5", tool: "vcs_diff", tokens: 7_990 },
      { id: "r12", tool: "read_file", tokens: 800 },
    ],
    ...changes,
  };
}

const render = (changes: Partial<SessionReport> = {}, all = false): string =>
  renderSession(report(changes), { style, all });

test("a session is its account, its work log and its largest results", () => {
  expect(render().split("\n")).toEqual([
    "mcp-shop  1,234 calls since 2026-11-15T10:00:00Z, tokens by bytes/4",
    "",
    "system        ░░░░░░░░░░░░░░░░░░░░░░░░       0 of  8,000",
    "history       █░░░░░░░░░░░░░░░░░░░░░░░      30 of 12,000",
    "tool results  ███████████████████████░  39,999 of 40,000",
    "user          ████████████████████████  10,500 of 10,000  500 over",
    "response      ████████████████████████  30,000 of 30,000  reserved",
    "-529 of 100,000 left; 40,029 delivered by tools, 1,000,000 in all conversations",
    "",
    "work log: 1",
    "  r7  2026-11-15T10:00:02Z  read_file {}",
    "      Read 7",
    "",
    "largest results: 2",
    "  r5   vcs_diff   7,990",
    "  r12  read_file    800",
  ]);
});

test("a warning comes first", () => {
  const lines = render({ calls: 1, warning: "[Budget Critical: …]" }).split("\n");
  expect(lines.slice(0, 2)).toEqual([
    "mcp-shop  1 call since 2026-11-15T10:00:00Z, tokens by bytes/4",
    "[Budget Critical: …]",
  ]);
});

test("a session without a call says that nothing is there yet", () => {
  const text = render({ workLog: [], largest: [] });
  expect(text).toContain("\nwork log: empty\n");
  expect(text).toMatch(/\nlargest results: empty$/);
  expect(text).not.toContain("evicted");
});

test("of a long work log the newest entries are shown, and with --all every one", () => {
  const workLog = Array.from({ length: 30 }, (_, index) => entry(index + 101));
  const evicted = { count: 2_100, entries: Array.from({ length: 20 }, (_, index) => entry(index + 81)) };
  const text = render({ workLog, evicted });
  expect(text).toContain("\nwork log: the newest 20 of 30\n  r111 ");
  expect(text).toContain("\nevicted: the newest 5 of 2,100; recall gets them\n  r96 ");
  const whole = render({ workLog, evicted }, true);
  expect(whole).toContain("\nwork log: 30\n  r101 ");
  expect(whole).toContain("\nevicted: the newest 20 of 2,100; recall gets them\n  r81 ");
});

test("text of a model or a file cannot control the terminal", () => {
  const odd = { ...entry(1), args: '{"path":"\u001b[2J"}', result: "one\u202e\ntwo", tool: "a\u0007" };
  const text = render({ workLog: [odd], largest: [{ id: "r1", tool: "a\u0007", tokens: 1 }] });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
  expect(text).toContain('a\\x07 {"path":"\\x1b[2J"}');
  expect(text).toContain("one\\u202e\\ntwo");
});

test("damaged entries are counted, with a hint", () => {
  const text = renderSession(report({ damaged: 2 }), { style, all: false });
  expect(text).toContain("2 entries of the work log are damaged and left out.");
  expect(text).toContain("plimsoll session rm mcp-shop");
});
