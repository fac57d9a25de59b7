/** The report of `replay`: rows for programs, a table for people. */

import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import type { UsageTotals } from "../sessions/recorded-usage.ts";
import { type SentKind, sentKinds } from "./prepare-session.ts";
import { type ReferenceTotals, referenceKinds, type Tally } from "./references.ts";
import type { ReplayReport } from "./replay-files.ts";
import { addTotals, type ReplayPolicy, type ReplayTotals } from "./replay-session.ts";

export interface ResultRow extends ReplayTotals {
  readonly window: number;
  readonly policy: ReplayPolicy;
  readonly sessions: number;
  readonly ratioToNone: number;
}

/** Returns one row per window and policy over all sessions. `policies` defaults to those of the command line. */
export function resultRows(
  report: ReplayReport,
  policies: readonly ReplayPolicy[] = report.settings.policies,
): ResultRow[] {
  const { settings, sessions } = report;
  const totalsOf = (window: number, policy: ReplayPolicy): ReplayTotals => {
    const runs = sessions.flatMap((session) => session.runs);
    return addTotals(runs.filter((run) => run.window === window && run.policy === policy).map(({ totals }) => totals));
  };
  return settings.windows.flatMap((window) => {
    const none = totalsOf(window, "none");
    // A window that has no room for a session's prefix is left out for it.
    const replayed = sessions.filter(({ runs }) => runs.some((run) => run.window === window)).length;
    if (replayed === 0) return [];
    return policies.map((policy) => {
      const totals = totalsOf(window, policy);
      const ratioToNone = none.cost === 0 ? 1 : totals.cost / none.cost;
      return { window, policy, sessions: replayed, ...totals, ratioToNone };
    });
  });
}

/** Rounds away the noise of floating-point sums. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** Returns the share of references that were found, or null if there were none. */
export function shareOf({ found, total }: Tally): number | null {
  return total === 0 ? null : found / total;
}

/** Returns shares and counts of references, for programs and for the page. */
export function describeReferences({ refetches, filesNamed, notes, ...kinds }: ReferenceTotals): object {
  const described = (tally: Tally): object => {
    const share = shareOf(tally);
    return { count: tally.total, share: share === null ? null : rounded(share, 4) };
  };
  const byKind = referenceKinds.map((kind) => [kind, { ...described(kinds[kind]), far: described(kinds[kind].far) }]);
  return { ...Object.fromEntries(byKind), refetches, filesNamed: described(filesNamed), notes: described(notes) };
}

/** Names the rules that requests break, one line for each window and policy. */
export function describeInvalid(rows: readonly ResultRow[]): string[] {
  return rows.flatMap(({ window, policy, invalidRules }) => {
    const rules = Object.entries(invalidRules).map(([rule, count]) => `${countNoun(count, "call")} ${rule}`);
    return rules.length === 0 ? [] : `invalid with ${policy} at ${formatNumber(window)}: ${rules.join(", ")}`;
  });
}

/** Describes what the recordings say that their requests cost, beside what replaying them with `none` costs. */
export function describeRecorded({ recorded, sessions }: ReplayReport): string[] {
  if (recorded === undefined) return [];
  const { answers, total, read, write5m, write1h, output, cost, usd } = recorded;
  const none = addTotals(sessions.flatMap(({ runs }) => runs.find(({ policy }) => policy === "none")?.totals ?? []));
  const figures = [
    `${countNoun(answers, "answer")}`,
    `${formatNumber(total)} input tokens`,
    `${formatNumber(read)} read from the cache`,
    `${formatNumber(write5m + write1h)} written`,
    `cost ${formatNumber(Math.round(cost))}`,
    `$${usd.toFixed(2)} with ${formatNumber(output)} output tokens`,
  ];
  return [
    `recorded: ${figures.join(", ")}; none: ${countNoun(none.calls, "call")}, cost ${formatNumber(Math.round(none.cost))}`,
  ];
}

/** Describes the settings of the replay. */
export function describeRun({ sessions, settings }: ReplayReport): string {
  const calls = sessions.reduce((sum, { runs }) => sum + (runs[0]?.totals.calls ?? 0), 0);
  const { reserves, keep } = settings;
  const each = (of: "counter" | "billedAs"): string => [...new Set(sessions.map((session) => session[of]))].join(", ");
  return [
    countNoun(sessions.length, "session"),
    countNoun(calls, "call"),
    each("counter"),
    `billed as ${printable(each("billedAs"))}`,
    `prefix ${describeRange(sessions.map(({ prefixTokens }) => prefixTokens))}`,
    `reserve ${describeRange(Object.values(reserves))}`,
    `keep ${formatNumber(keep)}`,
  ].join(" · ");
}

function describeRange(values: readonly number[]): string {
  const least = values.reduce((left, right) => Math.min(left, right), Number.POSITIVE_INFINITY);
  const most = values.reduce((left, right) => Math.max(left, right), 0);
  return least < most ? `${formatNumber(least)} to ${formatNumber(most)}` : formatNumber(most);
}

/** The kinds of tokens in the order of `CallSeries.tokens`. */
export const seriesKinds: readonly SentKind[] = sentKinds.filter((kind) => kind !== "prefix");

/** Adds the policy `none`, which every cost is compared with. */
export function withReference(policies: readonly ReplayPolicy[]): readonly ReplayPolicy[] {
  return policies.includes("none") ? policies : ["none", ...policies];
}

/** The report for programs. */
export function replayJson(report: ReplayReport): object {
  const { sessions, settings } = report;
  const results = resultRows(report).map(({ window, policy, calls, cost, usd, ratioToNone, ...row }) => ({
    ...{ window, policy, sessions: row.sessions, calls, cost: rounded(cost, 1), usd: rounded(usd, 6) },
    ratioToNone: rounded(ratioToNone, 6),
    ...lastFields(row),
    msPerTurn: rounded(row.msPerTurn, 4),
  }));
  const rows = sessions.flatMap(({ file, runs }) =>
    runs
      .filter(({ policy }) => settings.policies.includes(policy))
      .map(({ window, policy, totals: { calls, cost, usd, ...totals } }) => ({
        ...{ file, window, policy, calls, cost: rounded(cost, 1), usd: rounded(usd, 6) },
        ...lastFields(totals),
      })),
  );
  return { results, sessions: rows, ...(report.recorded && { recorded: recordedJson(report.recorded) }) };
}

function recordedJson({ cost, outputCost, usd, ...tokens }: UsageTotals): object {
  return { ...tokens, cost: rounded(cost, 1), outputCost: rounded(outputCost, 1), usd: rounded(usd, 6) };
}

function lastFields(totals: LastFields): object {
  const { breaks, overWindow, invalid, invalidRules, visibleShare, references } = totals;
  const rules = Object.keys(invalidRules).length === 0 ? {} : { invalidRules };
  return {
    ...{ breaks, overWindow, invalid, ...rules, visibleShare: rounded(visibleShare, 6) },
    references: describeReferences(references),
  };
}

type LastFields = Omit<ReplayTotals, "calls" | "cost" | "usd" | "msPerTurn">;
