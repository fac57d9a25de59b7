/** The page of `bill`: its data. */
import { inputCost } from "../core/billing/index.ts";
import { countNoun, formatNumber } from "../core/text/index.ts";
import {
  agentNames,
  type BilledSession,
  type BillReport,
  describeKnown,
  describeUnreported,
  iso,
  periodOf,
  prefixTable,
  stamp,
} from "../recordings/index.ts";
import type { BillFacts, BillSession } from "./browser/page-data.ts";
import { renderHtml } from "./html-page.ts";

/** A page with more would be slow to open. */
const maxSessions = 400;
/** Rows of each table. */
const maxRows = 10;

/** `whatIf` is the table of `--what-if`. */
export function renderBillPage(report: BillReport, whatIf?: BillFacts["whatIf"]): string {
  const { total, causes, weights, unpriced, unreported, recordings, priceMonths } = report;
  const wanted = new Set(report.calls.map(({ call }) => call));
  const sessions = report.sessions
    .map((session) => describeSession(session, { report, wanted }))
    .filter(({ calls }) => calls > 0)
    .sort((left, right) => right.usd - left.usd || right.calls - left.calls);
  const description = [countNoun(sessions.length, "session"), countNoun(total.calls, "call")];
  if (recordings.damaged > 0) description.push(`${countNoun(recordings.damaged, "damaged line")} skipped`);
  if (priceMonths.length > 0) description.push(`prices as of ${priceMonths.at(-1)}`);
  const notes = unpriced.map(
    ({ key, calls }) => `No price of its own: ${key}, ${countNoun(calls, "call")}, not in the dollars.`,
  );
  notes.push(...describeUnreported(unreported).map((note) => `${note}.`));
  if (sessions.length > maxSessions) {
    const [shown, all] = [formatNumber(maxSessions), formatNumber(sessions.length)];
    notes.push(`The page shows the ${shown} most expensive of ${all} sessions.`);
  }
  const facts: BillFacts = {
    total,
    causes: causes.map((row) => ({ ...row, knownFrom: describeKnown(row) })),
    description: description.join(" · "),
    notes,
    days: spendByDay(report),
    losses: report.losses
      .slice(0, maxRows)
      .map(({ facts, cause, confidence = "-", time, rewritten, usd = null, detail }) => ({
        cause,
        confidence,
        time: stamp(time),
        rewritten,
        usd,
        detail,
        session: facts.session,
        project: facts.project,
      })),
    prefix: prefixTable(report),
    whatIf,
    weights: {
      tools: weights.tools.slice(0, maxRows),
      files: weights.files.slice(0, maxRows),
      servers: weights.servers.slice(0, maxRows),
    },
    sessions: sessions.slice(0, maxSessions),
  };
  return renderHtml("bill", JSON.stringify({ facts }));
}

function spendByDay({ calls }: BillReport): BillFacts["days"] {
  const days = new Map<string, number[]>();
  for (const { call } of calls) {
    const { fact, price, usd } = call;
    if (price === undefined || usd === undefined) continue;
    const day = periodOf(fact.time, "day");
    const sums = days.get(day) ?? [0, 0, 0, 0];
    const none = { read: 0, write5m: 0, write1h: 0, uncached: 0 };
    const read = inputCost({ ...none, read: fact.read }, price).usd;
    const written = inputCost({ ...none, write5m: fact.write5m, write1h: fact.write1h }, price).usd;
    const fresh = inputCost({ ...none, uncached: fact.uncached }, price).usd;
    for (const [at, value] of [read, written, fresh, Math.max(0, usd - read - written - fresh)].entries()) {
      sums[at] = (sums[at] ?? 0) + value;
    }
    days.set(day, sums);
  }
  return [...days].sort(([left], [right]) => (left < right ? -1 : 1)).map(([day, sums]) => ({ day, sums }));
}

/** Describes the calls of a session that the report is about. */
function describeSession(
  { facts, calls }: BilledSession,
  { report, wanted }: { readonly report: BillReport; readonly wanted: ReadonlySet<BilledSession["calls"][number]> },
): BillSession {
  const own = calls.filter((call) => wanted.has(call));
  const indexes = new Map(own.map((call, index) => [call, index]));
  const losses = report.losses.flatMap((loss) => {
    const lossy = loss.facts === facts ? calls[loss.call] : undefined;
    const call = lossy && indexes.get(lossy);
    if (call === undefined) return [];
    const { cause, detail, rewritten, usd = null } = loss;
    return [{ call, cause, detail, rewritten, usd }];
  });
  return {
    session: facts.session,
    project: facts.project,
    subAgent: facts.subAgent,
    losses: losses.toSorted((left, right) => left.call - right.call),
    agent: agentNames[facts.agent],
    models: [...new Set(own.map(({ fact }) => fact.model))],
    start: iso(own[0]?.fact.time ?? 0),
    calls: own.length,
    usd: own.reduce((sum, { usd = 0 }) => sum + usd, 0),
    lossUsd: losses.reduce((sum, { usd }) => sum + (usd ?? 0), 0),
    read: own.map(({ fact }) => fact.read),
    written: own.map(({ fact }) => fact.write5m + fact.write1h),
    fresh: own.map(({ fact }) => fact.uncached),
    cost: own.map(({ usd = 0 }) => Number(usd.toFixed(5))),
    times: own.map(({ fact }) => fact.time),
    tools: own.map(({ fact }) => fact.tool ?? ""),
  };
}
