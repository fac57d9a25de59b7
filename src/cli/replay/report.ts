/** What `replay` tells: rows for programs, a table for people. */
import { addTotals, type ReplayPolicy, type ReplayTotals } from "../../replay/index.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import type { Style } from "../output.ts";
import { renderTable } from "../table.ts";
import type { ReplayReport } from "./replay-files.ts";

export interface ResultRow extends ReplayTotals {
  readonly window: number;
  readonly policy: ReplayPolicy;
  readonly sessions: number;
  readonly ratioToNone: number;
}

/** One row a window and policy, over all sessions; `policies` are those of the command line unless given. */
export function resultRows(
  report: ReplayReport,
  policies: readonly ReplayPolicy[] = report.settings.policies,
): ResultRow[] {
  const { settings, sessions } = report;
  const totalsOf = (window: number, policy: ReplayPolicy): ReplayTotals => {
    const runs = sessions.flatMap((session) => session.runs);
    return addTotals(
      runs.filter((run) => run.window === window && run.policy === policy).map(({ totals }) => totals),
    );
  };
  return settings.windows.flatMap((window) => {
    const none = totalsOf(window, "none");
    return policies.map((policy) => {
      const totals = totalsOf(window, policy);
      const ratioToNone = none.cost === 0 ? 1 : totals.cost / none.cost;
      return { window, policy, sessions: sessions.length, ...totals, ratioToNone };
    });
  });
}

export function reportJson(report: ReplayReport): object {
  const { sessions, settings } = report;
  const results = resultRows(report).map(({ window, policy, calls, cost, ratioToNone, ...row }) => ({
    ...{ window, policy, sessions: row.sessions, calls, cost: rounded(cost, 1) },
    ratioToNone: rounded(ratioToNone, 6),
    ...lastFields(row),
    msPerTurn: rounded(row.msPerTurn, 4),
  }));
  const rows = sessions.flatMap(({ file, runs }) =>
    runs
      .filter(({ policy }) => settings.policies.includes(policy))
      .map(({ window, policy, totals: { calls, cost, ...totals } }) => ({
        ...{ file, window, policy, calls, cost: rounded(cost, 1) },
        ...lastFields(totals),
      })),
  );
  return { results, sessions: rows };
}

function lastFields(
  totals: Pick<ReplayTotals, "breaks" | "overWindow" | "invalid" | "visibleShare">,
): object {
  const { breaks, overWindow, invalid, visibleShare } = totals;
  return { breaks, overWindow, invalid, visibleShare: rounded(visibleShare, 6) };
}

/** Without the noise that sums of fractions have. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

export function reportText(report: ReplayReport, style: Style): string {
  const header = ["window", "policy", "cost", "x none", "breaks", "over", "invalid", "kept", "ms/turn"];
  const rows = resultRows(report).map((row) => [
    formatNumber(row.window),
    row.policy,
    formatNumber(Math.round(row.cost)),
    row.ratioToNone.toFixed(3),
    formatNumber(row.breaks),
    formatNumber(row.overWindow),
    formatNumber(row.invalid),
    `${(100 * row.visibleShare).toFixed(1)} %`,
    row.msPerTurn.toFixed(3),
  ]);
  const right = "right" as const;
  const alignment = [right, "left" as const, ...Array.from({ length: 7 }, () => right)];
  const [head = "", ...lines] = renderTable([header, ...rows], alignment);
  return [style.dim(head), ...lines, "", style.dim(describeRun(report))].join("\n");
}

/** What the numbers were made with. */
export function describeRun({ sessions, settings }: ReplayReport): string {
  const calls = sessions.reduce((sum, { runs }) => sum + (runs[0]?.totals.calls ?? 0), 0);
  const { counter, reserve, keep, billedAs } = settings;
  return [
    countNoun(sessions.length, "session"),
    countNoun(calls, "call"),
    counter.name,
    `billed as ${printable(billedAs)}`,
    `prefix ${describeRange(sessions.map(({ prefixTokens }) => prefixTokens))}`,
    `reserve ${formatNumber(reserve)}`,
    `keep ${formatNumber(keep)}`,
  ].join(" · ");
}

function describeRange(values: readonly number[]): string {
  const least = values.reduce((left, right) => Math.min(left, right), Number.POSITIVE_INFINITY);
  const most = values.reduce((left, right) => Math.max(left, right), 0);
  return least < most ? `${formatNumber(least)} to ${formatNumber(most)}` : formatNumber(most);
}
