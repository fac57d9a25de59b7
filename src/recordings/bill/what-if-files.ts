/** Runs `--what-if` over the files of a report, one session at a time. */

import { inputCost } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { countNoun, messageOf } from "../../core/text/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import type { Caller, Style } from "../../host/index.ts";
import { renderTable } from "../../host/index.ts";
import type { SessionFile } from "../places.ts";
import { isDatabase, readDatabase, readSessionText } from "../replay/open-sessions.ts";
import { readRecording } from "../sessions/index.ts";
import { createCopyFinder, type RecordedSession } from "../sessions/recorded-session.ts";
import type { BillReport } from "./bill-report.ts";
import { type ReportTable, usdText } from "./bill-text.ts";
import { compactionTokens, computeIdleCosts, type IdleCosts, type PauseTotals } from "./idle-costs.ts";
import { computeWhatIf, type VariantResult, variants } from "./what-if.ts";

interface WhatIfReport {
  /** The sessions that could be simulated, and those of the report. */
  readonly sessions: number;
  readonly allSessions: number;
  /** Input dollars that were recorded for the simulated sessions, and for all. */
  readonly usd: number;
  readonly allUsd: number;
  /** The simulated bill of what was sent, divided by the recorded one. */
  readonly fit: number;
  /** The largest difference of a session. */
  readonly worstFit: number;
  readonly rows: readonly WhatIfRow[];
  readonly idle: IdleCosts;
  /** Why sessions were left out, and the input dollars of each. */
  readonly leftOut: readonly { readonly session: string; readonly reason: string; readonly usd: number }[];
}

interface WhatIfRow {
  readonly name: string;
  /** How many sessions the row covers, and the input dollars that were recorded for them. */
  readonly sessions: number;
  readonly recordedUsd: number;
  readonly usd: number;
  /** Absent if this variant removes nothing that later turns could refer to, or if the removal cannot be simulated. */
  readonly references?: VariantResult["references"] | undefined;
  readonly refetches?: number | undefined;
  readonly calls?: number | undefined;
}

/** Returns the result for programs and for people. */
export async function computeWhatIfs(
  report: BillReport,
  { output }: Pick<Caller, "output">,
): Promise<{
  readonly json: object;
  readonly csv: string;
  readonly table: ReportTable;
  lines(style: Style): string[];
}> {
  const databases = createDatabases();
  const found = await simulateAll(report, { output, databases }).finally(databases.close);
  const table = createTable(found);
  return { json: createJson(found), csv: createCsv(found), table, lines: (style) => createLines(table, style) };
}

interface Databases {
  read(file: string, session: string): Promise<RecordedSession>;
  close(): Promise<void>;
}

/** Reads each database from its start to its end, in the order of the report. A process for each session would take longer
 *  than its simulation. */
function createDatabases(): Databases {
  const open = new Map<string, ReturnType<typeof readDatabase>>();
  return {
    async read(file, session) {
      const sessions = open.get(file) ?? readDatabase(file, { file });
      open.set(file, sessions);
      for (let next = await sessions.next(); next.done !== true; next = await sessions.next()) {
        if (next.value.recorded.file === `${file}#${session}`) return next.value.recorded;
      }
      // It was passed already, because the report has another order.
      for await (const { recorded } of readDatabase(file, { file, session })) return recorded;
      throw new ContextError("unreadable_input", "it is no longer in the database");
    },
    async close() {
      for (const sessions of open.values()) await sessions.return(undefined);
    },
  };
}

async function simulateAll(
  report: BillReport,
  { output, databases }: Pick<Caller, "output"> & Pick<Simulation, "databases">,
): Promise<WhatIfReport> {
  const copies = createCopyFinder();
  const total = { sessions: 0, usd: 0, simulated: 0, worst: 0 };
  const sums = variants.map(({ name }) => {
    return { name, sessions: 0, recordedUsd: 0, usd: 0, found: 0, total: 0, refetches: 0, calls: 0 };
  });
  const leftOut: { session: string; reason: string; usd: number }[] = [];
  const inRange = new Set(report.calls.map((placed) => placed.facts));
  const sessions = report.sessions.filter(({ facts, calls }) => inRange.has(facts) && calls.some(isMain));
  let pausedAt = performance.now();
  const pause = (): Promise<void> | undefined => {
    if (performance.now() - pausedAt < 100) return undefined;
    pausedAt = performance.now();
    return new Promise((resolve) => setImmediate(resolve));
  };
  for (const [index, session] of sessions.entries()) {
    output.progress(`what if: session ${index + 1} of ${sessions.length}`);
    const result = await simulate(session, { report, copies, pause, databases });
    if (typeof result === "string") {
      leftOut.push({ session: session.facts.session, reason: result, usd: sumInput([session]) });
      continue;
    }
    total.sessions++;
    total.usd += result.usd;
    total.simulated += result.usd * result.fit;
    total.worst = Math.max(total.worst, Math.abs(result.fit - 1));
    for (const [at, each] of result.variants.entries()) {
      if (each === undefined) continue;
      const sum = sums[at] as (typeof sums)[number];
      sum.sessions++;
      sum.recordedUsd += result.usd;
      sum.usd += each.usd;
      sum.found += each.references.found;
      sum.total += each.references.total;
      sum.refetches += each.refetches;
      sum.calls += each.calls;
    }
  }
  const idle = computeIdleCosts(sessions);
  const simulated = sums.map(({ found, total: all, ...rest }) => ({ ...rest, references: { found, total: all } }));
  return {
    sessions: total.sessions,
    allSessions: sessions.length,
    usd: total.usd,
    allUsd: sumInput(sessions),
    fit: total.simulated / total.usd,
    worstFit: total.worst,
    rows: [...simulated.slice(0, idlePlace), ...describeIdle(idle), ...simulated.slice(idlePlace)],
    idle,
    leftOut,
  };
}

/** The rows about pauses follow those about lifetimes. */
const idlePlace = 3;

/** Only the main conversation is simulated. Sub-agents are short. */
function isMain({ fact, isCopy }: BillReport["calls"][number]["call"]): boolean {
  return fact.chain === 0 && !isCopy;
}

function sumInput(sessions: BillReport["sessions"]): number {
  const calls = sessions.flatMap((session) => session.calls.filter(isMain));
  return calls.reduce((sum, { fact, price }) => sum + (price ? inputCost(fact, price).usd : 0), 0);
}

function describeIdle({ sessions, usd, pings, compaction }: IdleCosts): readonly WhatIfRow[] {
  const covered = { sessions, recordedUsd: usd };
  return [
    { ...covered, name: `keep-alive pings, up to ${pings.limit}`, usd: pings.usd },
    { ...covered, name: `idle compaction from ${compactionTokens / 1000}k`, usd: compaction.usd },
  ];
}

async function simulate(
  session: BillReport["sessions"][number],
  { report, copies, pause, databases }: Simulation,
): ReturnType<typeof computeWhatIf> {
  const { prices, reserve, keep } = report.settings;
  try {
    const { facts } = session;
    const file = report.recordings.fileOf.get(facts) as SessionFile;
    const read = isDatabase(file.path)
      ? await databases.read(file.path, facts.session)
      : readRecording(withoutDamage(await readSessionText(file)), { file: file.path });
    const recorded = copies.withoutCopies(read).session;
    const counter = await createCounter("auto", { model: recorded.model });
    return await computeWhatIf(recorded, session, { whole: read, counter, prices, reserve, keep, pause });
  } catch (error) {
    return messageOf(error);
  }
}

interface Simulation {
  readonly report: BillReport;
  readonly copies: ReturnType<typeof createCopyFinder>;
  readonly databases: Databases;
  readonly pause: () => Promise<void> | undefined;
}

/** The reader of sessions refuses a damaged line in the middle. */
function withoutDamage(text: string): string {
  const isWhole = (line: string): boolean => {
    try {
      JSON.parse(line);
      return true;
    } catch {
      return false;
    }
  };
  // Only a line that does not end like an object can be damaged by a crash; others are checked when they are read.
  const isSuspect = (line: string): boolean => line !== "" && !(line.startsWith("{") && line.trimEnd().endsWith("}"));
  if (!text.includes("\n{")) return text;
  return text
    .split("\n")
    .filter((line) => !isSuspect(line) || isWhole(line))
    .join("\n");
}

function createJson({ rows, idle, ...rest }: WhatIfReport): object {
  const { pings, compaction, pauses, largePauses } = idle;
  return {
    ...rest,
    usd: round(rest.usd),
    allUsd: round(rest.allUsd),
    fit: round(rest.fit),
    worstFit: round(rest.worstFit),
    variants: rows.map(({ usd, recordedUsd, references, ...row }) => ({
      ...row,
      recordedUsd: round(recordedUsd),
      usd: round(usd),
      saved: recordedUsd === 0 ? 0 : round(1 - usd / recordedUsd),
      recall: references === undefined || references.total === 0 ? null : round(references.found / references.total),
    })),
    idle: {
      pings: { limit: pings.limit, ...roundAll(pauses) },
      compaction: {
        compactions: compaction.compactions,
        savedOnReturn: round(compaction.savedOnReturn),
        ...roundAll(largePauses),
      },
    },
    leftOut: rest.leftOut.map((each) => ({ ...each, usd: round(each.usd) })),
  };
}

function round(value: number): number {
  return Number(value.toFixed(6));
}

function roundAll({ count, returned, breakEven }: PauseTotals): object {
  return { pauses: count, returned: round(returned), breakEven: round(breakEven) };
}

function createCsv({ rows }: WhatIfReport): string {
  const lines = rows.map(({ name, sessions, recordedUsd, usd, references, refetches = "" }) => {
    const recall = references === undefined || references.total === 0 ? "" : references.found / references.total;
    return [`"${name}"`, sessions, round(recordedUsd), round(usd), recall && round(recall), refetches];
  });
  return [["with", "sessions", "recorded_usd", "usd", "references_kept", "refetches"], ...lines]
    .map((line) => `${line.join(",")}\n`)
    .join("");
}

function createTable(report: WhatIfReport): ReportTable {
  const { sessions, allSessions, usd, allUsd, fit, worstFit, leftOut, rows } = report;
  const reasons = new Map<string, number>();
  for (const { reason } of leftOut) {
    const kind = reason.startsWith("simulated as") ? "simulated more than 5 % off what was recorded" : reason;
    reasons.set(kind, (reasons.get(kind) ?? 0) + 1);
  }
  const left = [...reasons].map(([reason, count]) => `left out: ${countNoun(count, "session")}, ${reason}`);
  const header = ["with", "sessions", "recorded", "input dollars", "change", "references kept", "re-fetch/100"];
  const title = "What would have been cheaper";
  if (sessions === 0) return { title: `${title}: no session could be simulated`, header, rows: [], notes: left };
  const about = [
    `${sessions} of ${countNoun(allSessions, "session")}`,
    `${usdText(usd)} of ${usdText(allUsd)} for input`,
    `simulated as ${percent(fit)} of it, each within ${percent(worstFit)}`,
  ];
  return {
    title: `${title} (${about.join(", ")})`,
    header,
    rows: rows.map(({ name, sessions: own, recordedUsd, usd: now, references, refetches, calls = 0 }) => [
      name,
      String(own),
      usdText(recordedUsd),
      usdText(now),
      own === 0 ? "-" : `${(100 * (now / recordedUsd - 1)).toFixed(1)} %`,
      references === undefined || references.total === 0 ? "-" : percent(references.found / references.total),
      refetches === undefined || calls === 0 ? "-" : ((100 * refetches) / calls).toFixed(1),
    ]),
    notes: [...describePauses(report.idle), ...left],
  };
}

function createLines({ title, header, rows, notes }: ReportTable, style: Style): string[] {
  const alignment = header.map((_, column) => (column === 0 ? ("left" as const) : ("right" as const)));
  const [head = "", ...lines] = rows.length === 0 ? [] : renderTable([header, ...rows], alignment);
  const shown = rows.length === 0 ? [] : [style.dim(head), ...lines];
  return [style.bold(title), ...shown, ...notes.map((note) => style.dim(note))];
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** Says from when on pings and compactions pay, and how often this person came back. */
function describePauses({ pauses, largePauses, compaction }: IdleCosts): string[] {
  if (pauses.count === 0) return [];
  const ping = `a ping pays if more than ${percent(pauses.breakEven)} of pauses end within one more lifetime: ${percent(pauses.returned)} of ${countNoun(pauses.count, "pause")} did`;
  if (largePauses.count === 0) return [ping];
  const back = `${percent(largePauses.returned)} of ${countNoun(largePauses.count, "pause")} did`;
  return [
    ping,
    `idle compaction pays on return if more than ${percent(largePauses.breakEven)} of pauses end at all: ${back}`,
    `of what it saves, ${usdText(compaction.savedOnReturn)} are the calls after the pauses; the rest is the smaller context, which forgets`,
  ];
}
