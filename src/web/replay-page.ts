/** The page of `replay`: its data. */
import {
  describeInvalid,
  describeRecorded,
  describeReferences,
  describeRun,
  type ReplayReport,
  resultRows,
  rounded,
  seriesKinds,
  withReference,
} from "../recordings/index.ts";
import type { ReplayFacts, RunTotals } from "./browser/page-data.ts";
import { renderHtml } from "./html-page.ts";

export function renderPage(report: ReplayReport): string {
  const { settings, sessions, series } = report;
  const policies = withReference(settings.policies);
  const results = resultRows(report, policies);
  const models = [...new Set(sessions.map(({ billedAs }) => billedAs))];
  // Sessions with usage are billed as the models that answered.
  const isBilledAlike = models.every((model) => model === settings.billedAs);
  const facts: ReplayFacts = {
    description: describeRun(report),
    pricing: isBilledAlike ? settings.pricing : `Prices of ${models.join(", ")}`,
    notes: [...describeRecorded(report), ...describeInvalid(results)],
    reserves: settings.reserves,
    windows: settings.windows,
    policies,
    selected: policies.find((policy) => policy === "economic") ?? policies.at(-1) ?? "none",
    kinds: seriesKinds,
    results: results.map((row) => ({
      ...row,
      references: describeReferences(row.references) as RunTotals["references"],
    })),
    sessions: sessions.map(({ file, title, runs, recorded }) => ({
      file,
      title,
      runs: runs.map(({ totals, ...run }) => ({
        ...run,
        calls: totals.calls,
        cost: Math.round(totals.cost),
        usd: rounded(totals.usd, 6),
        breaks: totals.breaks,
        overWindow: totals.overWindow,
        invalid: totals.invalid,
        visibleShare: rounded(totals.visibleShare, 4),
        references: describeReferences(totals.references) as RunTotals["references"],
      })),
      ...(recorded && {
        recorded: { cost: Math.round(recorded.cost), usd: rounded(recorded.usd, 6), costs: recorded.costs },
      }),
    })),
  };
  return renderHtml("replay", `{"facts":${JSON.stringify(facts)},"series":[${series.join(",")}]}`);
}
