/** One window: every way to trim on the same sessions, beside the policy's own line and the offline bound. */

import type { referenceKinds, Tally } from "../../src/recordings/replay/references.ts";
import type { ReplayTotals } from "../../src/recordings/replay/replay-session.ts";
import { type BenchSession, needsTrimming } from "./bench-session.ts";
import { type CostAt, createHull, createLine, type Point } from "./bound/frontier.ts";
import { type FewestBreaks, measureBound, measureFewestBreaks } from "./bound/measure-bound.ts";
import { measureLine } from "./measure-line.ts";
import type { Peer } from "./peers/peer.ts";
import { peerRun, policyRun, type Run, replayAll } from "./replay-runs.ts";

export interface WindowReport {
  readonly window: number;
  /** Sessions that need trimming, and their calls. */
  readonly needing: number;
  readonly calls: number;
  readonly fitting: number;
  readonly rows: readonly Row[];
  /** Costs are shares of what trimming nothing costs. */
  readonly line: readonly Point[];
  readonly bound: readonly Point[];
  /** The breaks in 100 calls that no oldest-first trimming can avoid. */
  readonly fewestBreaksPer100: FewestBreaks;
}

export interface Row {
  readonly name: string;
  readonly kind: Run["kind"];
  /** Cost as a share of what trimming nothing costs, of sessions that need trimming and of those that fit. */
  readonly needing: number;
  readonly fitting: number;
  /** Of sessions that need trimming, as are the breaks. */
  readonly kept: number;
  /** Cost as a multiple of the line's and the bound's at the same kept share; absent where these do not keep as much. */
  readonly toLine?: number | undefined;
  readonly toBound?: number | undefined;
  readonly overWindow: number;
  readonly invalid: number;
  readonly breaksPer100: number;
  readonly msPerTurn: number;
  /** What the turns used, of sessions that need trimming: shares that were in the request, and fetches a hundred calls. */
  readonly quotes: Shares;
  readonly names: Shares;
  readonly edits: Shares;
  readonly refetchesPer100: number;
  /** Of the calls after the first edit. */
  readonly filesNamed: number;
}

/** NaN where nothing was used. */
interface Shares {
  readonly all: number;
  readonly far: number;
}

export interface WindowOptions {
  readonly window: number;
  readonly peers: readonly Peer[];
  readonly isQuick: boolean;
  /** Told what begins. */
  progress(step: string): void;
}

const policies = ["none", "rfc", "rfc-headroom", "economic", "gentle", "frugal"] as const;

export async function measureWindow(sessions: readonly BenchSession[], options: WindowOptions): Promise<WindowReport> {
  const { window, peers, progress } = options;
  const needing = sessions.filter((session) => needsTrimming(session, window));
  const fitting = sessions.filter((session) => !needing.includes(session));
  const none = await replayBoth(policyRun("none"), { needing, fitting, window });
  const relative = ({ kept, cost }: Point): Point => ({ kept, cost: cost / none.needing.cost });
  progress("the line of economic");
  const line = (await measureLine(needing, options)).map(relative);
  progress("the offline bound");
  const bound = measureBound(needing, options).map(relative);
  const compared = { none, line: createLine(line), bound: createHull(bound) };
  const rows: Row[] = [];
  for (const run of [...policies.map((policy) => policyRun(policy)), ...peers.map(peerRun)]) {
    progress(run.name);
    rows.push(rowOf(run, await replayBoth(run, { needing, fitting, window }), compared));
  }
  const { calls } = none.needing;
  const { protecting, newestOnly } = measureFewestBreaks(needing, window);
  const fewestBreaksPer100 = { protecting: (100 * protecting) / calls, newestOnly: (100 * newestOnly) / calls };
  return { window, needing: needing.length, calls, fitting: fitting.length, rows, line, bound, fewestBreaksPer100 };
}

interface Both<Value> {
  readonly needing: Value;
  readonly fitting: Value;
}

async function replayBoth(
  run: Run,
  { needing, fitting, window }: Both<readonly BenchSession[]> & { window: number },
): Promise<Both<ReplayTotals>> {
  return {
    needing: await replayAll(needing, run, window),
    fitting: await replayAll(fitting, run, window),
  };
}

interface Compared {
  readonly none: Both<ReplayTotals>;
  readonly line: CostAt;
  readonly bound: CostAt;
}

function rowOf({ name, kind }: Run, totals: Both<ReplayTotals>, { none, line, bound }: Compared): Row {
  const needing = totals.needing.cost / none.needing.cost;
  const { visibleShare: kept, breaks, calls, msPerTurn } = totals.needing;
  const to = (cost: number | undefined): number | undefined => cost && needing / cost;
  const isReference = name === "none";
  return {
    name,
    kind,
    needing,
    fitting: totals.fitting.cost / none.fitting.cost,
    kept,
    ...(!isReference && { toLine: to(line(kept)), toBound: to(bound(kept)) }),
    overWindow: totals.needing.overWindow + totals.fitting.overWindow,
    invalid: totals.needing.invalid + totals.fitting.invalid,
    breaksPer100: (100 * breaks) / calls,
    msPerTurn,
    ...referencesOf(totals.needing),
  };
}

type References = Pick<Row, "quotes" | "names" | "edits" | "refetchesPer100" | "filesNamed">;

function referencesOf({ references, calls }: ReplayTotals): References {
  const share = ({ found, total }: Tally): number => found / total;
  const shares = (kind: (typeof referenceKinds)[number]): Shares => {
    return { all: share(references[kind]), far: share(references[kind].far) };
  };
  return {
    quotes: shares("quotes"),
    names: shares("names"),
    edits: shares("edits"),
    refetchesPer100: (100 * references.refetches) / calls,
    filesNamed: share(references.filesNamed),
  };
}
