/** The page of `replay`: its data. */

import type { ReplayReport } from "../../recordings/index.ts";
import {
  describeInvalid,
  describeRecorded,
  describeReferences,
  describeRun,
  type ResultRow,
  resultRows,
  rounded,
  seriesKinds,
  withReference,
} from "../../recordings/index.ts";
import { renderHtml } from "../page/html-page.ts";
import { pageScript } from "./page-script.ts";

export function renderPage(report: ReplayReport): string {
  return renderHtml({ name: "replay", script: pageScript, data: pageData(report) });
}

function pageData(report: ReplayReport): string {
  const { settings, sessions, series } = report;
  const policies = withReference(settings.policies);
  const facts = {
    description: describeRun(report),
    pricing: describePricing(report),
    notes: [...describeRecorded(report), ...describeInvalid(resultRows(report, policies))],
    reserves: settings.reserves,
    windows: settings.windows,
    policies,
    selected: policies.find((policy) => policy === "economic") ?? policies.at(-1),
    kinds: seriesKinds,
    results: resultRows(report, policies).map(withReferences),
    sessions: sessions.map(({ file, title, runs, recorded }) => ({
      ...{ file, title, runs: runs.map(compactRun) },
      ...(recorded !== undefined && { recorded: compactRecorded(recorded) }),
    })),
  };
  return `{"facts":${JSON.stringify(facts)},"series":[${series.join(",")}]}`;
}

/** Sessions with usage are billed as the models that answered. */
function describePricing({ settings, sessions }: ReplayReport): string {
  const models = [...new Set(sessions.map(({ billedAs }) => billedAs))];
  return models.every((model) => model === settings.billedAs) ? settings.pricing : `Prices of ${models.join(", ")}`;
}

function withReferences<Row extends ResultRow>(row: Row): object {
  return { ...row, references: describeReferences(row.references) };
}

function compactRun({ totals, ...run }: ReplayReport["sessions"][number]["runs"][number]): object {
  const { calls, cost, usd, breaks, overWindow, invalid, visibleShare } = totals;
  const references = describeReferences(totals.references);
  const rest = { breaks, overWindow, invalid, visibleShare: rounded(visibleShare, 4), references };
  return { ...run, calls, cost: Math.round(cost), usd: rounded(usd, 6), ...rest };
}

function compactRecorded(recorded: NonNullable<ReplayReport["sessions"][number]["recorded"]>): object {
  const { answers, total, read, output, cost, usd, costs } = recorded;
  return { answers, total, read, output, cost: Math.round(cost), usd: rounded(usd, 6), costs };
}
