/** The report of `bill`: sums, losses of the cache and heavy results, for programs and for people. */

import { inputCost, type Prices } from "../../core/billing/index.ts";
import { compareText } from "../../core/text/index.ts";
import type { Recordings } from "../read-recordings.ts";
import { type Cause, type Confidence, causes, findLosses, inferredFrom, type Loss } from "./find-losses.ts";
import { type FixedPrefix, offerKinds, weighPrefix } from "./fixed-prefix.ts";
import { type BilledSession, billSessions } from "./price-calls.ts";
import {
  agentNames,
  type BillRow,
  type BillTotals,
  billedCalls,
  type Grouping,
  type PlacedCall,
  sumCalls,
  sumTotals,
} from "./sum-calls.ts";
import { type WeighedResult, weighResults } from "./weigh-results.ts";

export interface BillSettings {
  readonly by: Grouping;
  readonly prices: Prices;
  /** For `--what-if`: tokens kept free for the answer, and assistant turns that are trimmed last. */
  readonly reserve: number;
  readonly keep: number;
  /** In milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
  /** Only projects whose path contains this text. */
  readonly project?: string | undefined;
  /** When Plimsoll trimmed the history of a session, by its id. */
  readonly trims?: ReadonlyMap<string, readonly number[]> | undefined;
}

export interface BillReport {
  readonly settings: BillSettings;
  readonly recordings: Recordings;
  readonly sessions: readonly BilledSession[];
  readonly calls: readonly PlacedCall[];
  readonly rows: readonly BillRow[];
  readonly total: BillTotals;
  /** Dollars of all input. */
  readonly inputUsd: number;
  readonly prefix: FixedPrefix;
  /** Fixed prefix, conversation and output. */
  readonly parts: readonly BillRow[];
  /** Calls that report less output than the text of their answers needs, and how much is missing at least. */
  readonly unreported: { readonly calls: number; readonly tokens: number; readonly usd: number };
  /** The most expensive first. */
  readonly losses: readonly Loss[];
  readonly causes: readonly CauseRow[];
  readonly weights: Weights;
  /** Models without a price of their own. */
  readonly unpriced: readonly BillRow[];
  /** The months of the prices that were used. */
  readonly priceMonths: readonly string[];
}

export interface CauseRow {
  readonly cause: Cause;
  readonly events: number;
  /** The number of events for each way in which the cause is known. */
  readonly known: Readonly<Partial<Record<Confidence, number>>>;
  readonly rewritten: number;
  readonly usd: number;
  /** `usd` divided by the dollars of all input. */
  readonly share: number;
}

export interface Weights {
  readonly results: readonly WeighedResult[];
  readonly tools: readonly WeightRow[];
  readonly files: readonly WeightRow[];
  readonly servers: readonly WeightRow[];
}

export interface WeightRow {
  readonly name: string;
  readonly results: number;
  readonly tokens: number;
  /** Calls that carried a result, summed over the results. */
  readonly carried: number;
  readonly usd: number;
}

export function createBillReport(recordings: Recordings, settings: BillSettings): BillReport {
  const { since, until, project } = settings;
  const isIn = (time: number): boolean => time >= since && time < until;
  const wanted = project?.toLowerCase();
  const sessions = billSessions(recordings.sessions, settings.prices).filter(
    ({ facts }) => wanted === undefined || facts.project.toLowerCase().includes(wanted),
  );
  const calls = billedCalls(sessions, ({ call }) => isIn(call.fact.time));
  const inputUsd = calls.reduce((sum, { call: { fact, price } }) => sum + (price ? inputCost(fact, price).usd : 0), 0);
  const losses = sessions
    .flatMap((session) => findLosses(session, settings.trims?.get(session.facts.session)))
    .filter(({ time }) => isIn(time));
  const lost = new Map(losses.map((loss) => [loss.facts.calls[loss.call]?.id, loss]));
  const nameCause = ({ fact }: PlacedCall["call"]): string | undefined => {
    const { cause, confidence } = lost.get(fact.id) ?? {};
    return confidence === undefined ? cause : `${cause} (${confidence})`;
  };
  const results = sessions.flatMap((session) => weighResults(session)).filter(({ time }) => isIn(time));
  const total = sumTotals(calls);
  const prefix = weighPrefix(sessions, ({ fact }) => isIn(fact.time));
  const parts = splitCalls(prefix, total, inputUsd);
  return {
    settings,
    recordings,
    sessions,
    calls,
    inputUsd,
    prefix,
    parts,
    unreported: sumUnreported(calls),
    rows: settings.by === "part" ? parts : sumCalls(calls, settings.by, nameCause),
    total,
    losses: losses.sort((left, right) => (right.usd ?? 0) - (left.usd ?? 0) || right.rewritten - left.rewritten),
    causes: causeRows(losses, inputUsd),
    weights: {
      results: findHeaviest(results),
      tools: sumWeights(results, ({ tool }) => tool),
      files: sumWeights(results, ({ file }) => file),
      servers: sumWeights(results, ({ tool }) => /^mcp__(.+?)__/.exec(tool)?.[1]),
    },
    unpriced: sumCalls(
      calls.filter(({ call }) => call.usd === undefined),
      "model",
    ),
    priceMonths: [...new Set(calls.flatMap(({ call }) => call.price?.asOf ?? []))].sort(compareText),
  };
}

function sumUnreported(calls: readonly PlacedCall[]): BillReport["unreported"] {
  const sum = { calls: 0, tokens: 0, usd: 0 };
  for (const { call } of calls) {
    const { unreported, output } = call.fact;
    if (unreported === undefined) continue;
    const tokens = Math.max(0, Math.floor(unreported / mostCharsPerToken) - output);
    sum.calls++;
    sum.tokens += tokens;
    sum.usd += (tokens * (call.price?.output ?? 0)) / 1e6;
  }
  return sum;
}

/** Answers of Claude have about 3 characters for each token, so this gives a lower bound. */
const mostCharsPerToken = 4;

function causeRows(losses: readonly Loss[], inputUsd: number): readonly CauseRow[] {
  return causes.flatMap((cause) => {
    const own = losses.filter((loss) => loss.cause === cause);
    if (own.length === 0) return [];
    const usd = own.reduce((sum, loss) => sum + (loss.usd ?? 0), 0);
    const rewritten = own.reduce((sum, loss) => sum + loss.rewritten, 0);
    const known: Partial<Record<Confidence, number>> = {};
    for (const { confidence } of own) if (confidence !== undefined) known[confidence] = (known[confidence] ?? 0) + 1;
    return { cause, events: own.length, known, rewritten, usd, share: inputUsd === 0 ? 0 : usd / inputUsd };
  });
}

const maxResults = 10;

/** The heaviest results, without sorting all of them. */
function findHeaviest(results: readonly WeighedResult[]): readonly WeighedResult[] {
  const byWeight = (left: WeighedResult, right: WeighedResult): number =>
    right.usd - left.usd || right.tokens - left.tokens;
  const heaviest: WeighedResult[] = [];
  for (const result of results) {
    const last = heaviest[maxResults - 1];
    if (result.isCopy || (last !== undefined && byWeight(last, result) <= 0)) continue;
    heaviest.push(result);
    heaviest.sort(byWeight);
    heaviest.length = Math.min(heaviest.length, maxResults);
  }
  return heaviest;
}

function sumWeights(
  results: readonly WeighedResult[],
  readName: (result: WeighedResult) => string | undefined,
): readonly WeightRow[] {
  const rows = new Map<string, { -readonly [Field in keyof WeightRow]: WeightRow[Field] }>();
  for (const result of results) {
    const name = readName(result);
    if (name === undefined) continue;
    const row = rows.get(name) ?? { name, results: 0, tokens: 0, carried: 0, usd: 0 };
    row.results += result.isCopy ? 0 : 1;
    row.tokens += result.isCopy ? 0 : result.tokens;
    row.carried += result.carried;
    row.usd += result.usd;
    rows.set(name, row);
  }
  return [...rows.values()].sort((left, right) => right.usd - left.usd || right.tokens - left.tokens);
}

/** The report as JSON. Dollars are rounded to a millionth. */
export function billJson(report: BillReport): object {
  const { recordings, settings, inputUsd } = report;
  const { files, bytesRead, damaged } = recordings;
  return {
    by: settings.by,
    rows: report.rows.map(({ key, ...totals }) => ({ key, ...totalsJson(totals) })),
    total: totalsJson(report.total),
    inputUsd: round(inputUsd),
    ...(report.unreported.calls > 0 && {
      unreportedOutput: { ...report.unreported, usd: round(report.unreported.usd) },
    }),
    // These three add up to the total.
    spent: Object.fromEntries(report.parts.map(({ key, usd }) => [key, round(usd)])),
    fixedPrefix: prefixJson(report.prefix),
    causes: report.causes.map((row) => ({
      ...row,
      usd: round(row.usd),
      share: round(row.share),
      ...(row.known.inferred !== undefined && inferredFrom[row.cause] && { inferredFrom: inferredFrom[row.cause] }),
    })),
    losses: report.losses.map(
      ({ facts: { session, project, agent }, cause, confidence, time, lost, rewritten, usd, detail }) => ({
        cause,
        ...(confidence && { confidence }),
        time: iso(time),
        agent: agentNames[agent],
        session,
        project,
        lost,
        rewritten,
        ...(usd !== undefined && { usd: round(usd) }),
        detail,
      }),
    ),
    heaviest: {
      results: report.weights.results.map(({ facts, tool, file, time, tokens, carried, usd }) => ({
        tool,
        ...(file !== undefined && { file }),
        session: facts.session,
        time: iso(time),
        tokens,
        carried,
        usd: round(usd),
      })),
      tools: report.weights.tools.map(weightJson),
      files: report.weights.files.slice(0, maxFiles).map(weightJson),
      servers: report.weights.servers.map(weightJson),
    },
    unpriced: report.unpriced.map(({ key, ...totals }) => ({ model: key, ...totalsJson(totals) })),
    recordings: { files, sessions: report.sessions.length, bytesRead, damagedLines: damaged },
  };
}

const maxFiles = 100;

/** Splits all calls: what each request starts with, the rest of the input, and the output. */
function splitCalls(prefix: FixedPrefix, total: BillTotals, inputUsd: number): readonly BillRow[] {
  const { calls, unpriced, output, usd } = total;
  const { read, write5m, write1h, uncached } = prefix.sent;
  const own = {
    read: Math.round(read),
    write5m: Math.round(write5m),
    write1h: Math.round(write1h),
    uncached: Math.round(uncached),
  };
  const rest = {
    read: total.read - own.read,
    write5m: total.write5m - own.write5m,
    write1h: total.write1h - own.write1h,
    uncached: total.uncached - own.uncached,
  };
  const none = { read: 0, write5m: 0, write1h: 0, uncached: 0, output: 0 };
  return [
    { key: "fixed prefix", calls, unpriced, ...none, ...own, usd: prefix.usd },
    { key: "conversation", calls, unpriced, ...none, ...rest, usd: inputUsd - prefix.usd },
    { key: "output", calls, unpriced, ...none, output, usd: usd - inputUsd },
  ];
}

function prefixJson({ usd, parts, offered, sent: _, ...prefix }: FixedPrefix): object {
  return {
    ...prefix,
    usd: round(usd),
    parts: parts.map((part) => ({ ...part, usd: round(part.usd) })),
    offered: Object.fromEntries(
      offerKinds.map((kind) => [kind, { ...offered[kind], unused: offered[kind].unused.slice(0, maxFiles) }]),
    ),
  };
}

function totalsJson(totals: BillTotals): object {
  return { ...totals, usd: round(totals.usd) };
}

function weightJson(row: WeightRow): object {
  return { ...row, usd: round(row.usd) };
}

function round(value: number): number {
  return Number(value.toFixed(6));
}

export function iso(time: number): string | null {
  return time > 0 ? new Date(time).toISOString() : null;
}
