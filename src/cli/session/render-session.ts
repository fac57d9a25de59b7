/** A session as people look at it: the ledger as bars, the work log, what was evicted, the largest results. */
import type { LogEntry, SessionReport } from "../../session/index.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import type { Style } from "../output.ts";
import { renderTable } from "../table.ts";
import { entryLines, shownTime } from "./entry-lines.ts";
import { renderTiers } from "./tier-bars.ts";

export interface RenderOptions {
  readonly style: Style;
  /** Every entry, not only the newest. */
  readonly all: boolean;
}

/** Entries shown unless all are asked for. */
const mostEntries = 20;
const mostEvicted = 5;

export function renderSession(report: SessionReport, { style, all }: RenderOptions): string {
  const { workLog, evicted, largest } = report;
  const log = newest(workLog, all ? workLog.length : mostEntries);
  const gone = newest(evicted.entries, all ? evicted.entries.length : mostEvicted);
  const sections = [
    introduction(report, style),
    [...renderTiers(report.ledger), sums(report)],
    damageOf(report),
    section(`work log${share(log.length, workLog.length)}`, renderEntries(log), style),
    evicted.count === 0
      ? []
      : section(`evicted${share(gone.length, evicted.count)}; recall gets them`, renderEntries(gone), style),
    section(`largest results${share(largest.length, largest.length)}`, renderLargest(largest), style),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

function introduction({ id, started, calls, counter, warning }: SessionReport, style: Style): string[] {
  const counted = `${countNoun(calls, "call")} since ${shownTime(started)}`;
  return [
    `${style.bold(printable(id))}  ${counted}, tokens by ${printable(counter)}`,
    ...(warning === undefined ? [] : [warning]),
  ];
}

function sums({ remaining, available, total, delivered }: SessionReport): string {
  const left = `${formatNumber(remaining)} of ${formatNumber(total)} remaining, ${formatNumber(available)} available`;
  return `${left}; ${formatNumber(delivered)} delivered by tools so far`;
}

function damageOf({ id, damaged }: SessionReport): string[] {
  if (damaged === 0) return [];
  const what =
    damaged === 1
      ? "1 entry of the work log is damaged and left out"
      : `${formatNumber(damaged)} entries of the work log are damaged and left out`;
  return [`${what}. plimsoll session rm ${printable(id)} deletes the session.`];
}

function section(title: string, lines: readonly string[], style: Style): string[] {
  return [style.dim(title), ...lines];
}

function newest(entries: readonly LogEntry[], most: number): readonly LogEntry[] {
  return entries.slice(Math.max(0, entries.length - most));
}

/** Says what is left out. */
function share(shown: number, all: number): string {
  if (all === 0) return ": empty";
  return shown === all ? `: ${formatNumber(all)}` : `: the newest ${shown} of ${formatNumber(all)}`;
}

function renderEntries(entries: readonly LogEntry[]): string[] {
  return entries.flatMap(entryLines);
}

function renderLargest(largest: SessionReport["largest"]): string[] {
  const rows = largest.map(({ id, tool, tokens }) => [`  ${id}`, printable(tool), formatNumber(tokens)]);
  return renderTable(rows, ["left", "left", "right"]);
}
