/** The measurements as tables, and the goals that they are held against. */

import { formatNumber } from "../../src/core/text/index.ts";
import { renderTable } from "../../src/host/print/table.ts";
import { PREFIX_TOKENS, RESERVE } from "./bench-session.ts";
import type { Goal } from "./goals.ts";
import type { ReadPriceRow } from "./measure-read-prices.ts";
import type { TurnsReport } from "./measure-turns.ts";
import type { Row, WindowReport } from "./measure-window.ts";

export interface Report {
  readonly node: string;
  readonly counter: string;
  readonly sessions: {
    readonly source: "transcripts" | "generated";
    readonly count: number;
    readonly calls: number;
    readonly tokens: number;
  };
  readonly windows: readonly WindowReport[];
  readonly readPrices: readonly ReadPriceRow[];
  readonly turns: TurnsReport;
  readonly goals: readonly Goal[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

export function renderReport(report: Report): string {
  const sections = [
    introduction(report),
    ...report.windows.map(windowSection),
    turnsSection(report.turns),
    ["Goals", ...goalTable(report.goals)],
    ...(report.notes.length === 0 ? [] : [report.notes]),
  ];
  return sections.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

function introduction({ node, counter, sessions: { source, count, calls, tokens } }: Report): string[] {
  return [
    `${count} ${source === "transcripts" ? "recorded" : "generated"} sessions, ${formatNumber(calls)} calls, ${formatNumber(tokens)} tokens (${counter}), Node ${node}`,
    `prefix ${formatNumber(PREFIX_TOKENS)}, reserve ${formatNumber(RESERVE)}; cost is billed input, reads 0.1, writes 1.25`,
    "kept: mean share of the history that can still be read; ÷ line, ÷ bound: cost beside economic's own line and",
    "beside the best that oldest-first trimming could have done with full knowledge, both at the same kept share",
    "quotes, names, edits: what a turn used of earlier results and could still read; far: last seen 10 turns ago or earlier",
  ];
}

function windowSection({ window, needing, fitting, calls, rows, fewestBreaksPer100 }: WindowReport): string[] {
  const { protecting, newestOnly } = fewestBreaksPer100;
  const header = [
    ...["", "cost ÷ none", "÷ none, fitting", "kept %", "÷ line", "÷ bound"],
    ...["over", "invalid", "breaks/100", "ms/turn"],
  ];
  const right = (names: readonly string[]): ("left" | "right")[] => [
    "left",
    ...names.slice(1).map(() => "right" as const),
  ];
  const used = [...["", "quotes %", "far", "names %", "far", "edits %", "far", "re-fetch/100", "files named %"]];
  return [
    `Window ${formatNumber(window)}: ${needing} sessions need trimming (${formatNumber(calls)} calls), ${fitting} fit`,
    `fewest possible breaks in 100 calls: ${cell(protecting, 2)}, or ${cell(newestOnly, 2)} if only the newest turn is kept`,
    ...renderTable([header, ...rows.map(cellsOf)], right(header)),
    "",
    ...renderTable([used, ...rows.map(usedCells)], right(used)),
  ];
}

function cellsOf(row: Row): string[] {
  return [
    row.name,
    cell(row.needing, 3),
    cell(row.fitting, 3),
    cell(100 * row.kept, 1),
    cell(row.toLine, 2),
    cell(row.toBound, 2),
    formatNumber(row.overWindow),
    formatNumber(row.invalid),
    cell(row.breaksPer100, 2),
    cell(row.msPerTurn, 3),
  ];
}

/** How much of what the turns used was in their requests. */
function usedCells({ name, quotes, names, edits, refetchesPer100, filesNamed }: Row): string[] {
  const shares = [quotes, names, edits].flatMap(({ all, far }) => [cell(100 * all, 1), cell(100 * far, 1)]);
  return [name, ...shares, cell(refetchesPer100, 1), cell(100 * filesNamed, 1)];
}

function cell(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits);
}

function turnsSection({ peers, scaling, reparsed }: TurnsReport): string[] {
  const header = [`ms a turn at ${peers.messages} messages`, "tokens known", "× ours", "same counter", "× ours"];
  const rows = peers.peers.map(({ name, known, counted }) => [
    name,
    cell(known, 3),
    cell(known / peers.known, 1),
    cell(counted, 0),
    cell(counted === undefined ? undefined : counted / peers.counted, 0),
  ]);
  const ours = ["economic", cell(peers.known, 3), "", cell(peers.counted, 3), ""];
  const { short, long, ratio } = scaling;
  return [
    ...renderTable([header, ours, ...rows], ["left", "right", "right", "right", "right"]),
    ...[short, long].map(({ messages, milliseconds, plain, epoch, epochs }) => {
      const parts = `${cell(plain, 3)} ms if it only appends, ${cell(epoch, 1)} ms in each of ${epochs} epochs`;
      return `1,000 messages after ${formatNumber(messages)}: ${cell(milliseconds, 3)} ms a turn (${parts})`;
    }),
    `a turn of the long history ÷ one of the short: ${cell(ratio, 2)}`,
    ...reparsed.map(({ messages, jsonBytes, parseMs, reduceMs, ratio: share }) => {
      const size = `${formatNumber(messages)} messages, ${cell(jsonBytes / 1e6, 1)} MB of JSON`;
      return `parsed again, ${size}: JSON.parse ${cell(parseMs, 2)} ms, reduction ${cell(reduceMs, 2)} ms (× ${cell(share, 2)})`;
    }),
  ];
}

function goalTable(goals: readonly Goal[]): string[] {
  const lines = goals.map(({ goal, measured, met }) => [met ? "met" : "MISSED", cell(measured, 2), goal]);
  return renderTable(lines, ["left", "right", "left"]);
}
