/** Runs `--what-if` over the files of a report, one session at a time. */

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
import { usdText } from "./bill-text.ts";
import { computeWhatIf, type VariantResult, variants } from "./what-if.ts";

interface WhatIfReport {
  readonly sessions: number;
  /** Input dollars that were recorded for these sessions. */
  readonly usd: number;
  /** The simulated bill of what was sent, divided by the recorded one. */
  readonly fit: number;
  readonly variants: readonly VariantResult[];
  /** Why sessions were left out, and the input dollars of each. */
  readonly leftOut: readonly { readonly session: string; readonly reason: string; readonly usd: number }[];
}

/** Returns the result for programs and for people. */
export async function computeWhatIfs(
  report: BillReport,
  { output }: Pick<Caller, "output">,
): Promise<{ readonly json: object; lines(style: Style): string[] }> {
  const databases = createDatabases();
  const found = await simulateAll(report, { output, databases }).finally(databases.close);
  return { json: createJson(found), lines: (style) => createLines(found, style) };
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
  const total = { sessions: 0, usd: 0, simulated: 0 };
  const sums = variants.map(({ name }) => ({ name, usd: 0, found: 0, total: 0, refetches: 0, calls: 0 }));
  const leftOut: { session: string; reason: string; usd: number }[] = [];
  const inRange = new Set(report.calls.map((placed) => placed.facts));
  const sessions = report.sessions.filter(({ facts }) => inRange.has(facts));
  let pausedAt = performance.now();
  const pause = (): Promise<void> | undefined => {
    if (performance.now() - pausedAt < 100) return undefined;
    pausedAt = performance.now();
    return new Promise((resolve) => setImmediate(resolve));
  };
  for (const [index, session] of sessions.entries()) {
    output.progress(`what if: session ${index + 1} of ${sessions.length}`);
    const own = session.calls.filter(({ isCopy }) => !isCopy);
    const usd = own.reduce((sum, each) => sum + (each.usd ?? 0), 0);
    const result = await simulate(session, { report, copies, pause, databases });
    if (typeof result === "string") {
      leftOut.push({ session: session.facts.session, reason: result, usd });
      continue;
    }
    total.sessions++;
    total.usd += result.usd;
    total.simulated += result.usd * result.fit;
    for (const [at, each] of result.variants.entries()) {
      const sum = sums[at] as (typeof sums)[number];
      sum.usd += each.usd;
      sum.found += each.references.found;
      sum.total += each.references.total;
      sum.refetches += each.refetches;
      sum.calls += each.calls;
    }
  }
  const rows = sums.map(({ found, total: all, ...rest }) => ({ ...rest, references: { found, total: all } }));
  return { sessions: total.sessions, usd: total.usd, fit: total.simulated / total.usd, variants: rows, leftOut };
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
    return await computeWhatIf(recorded, session, { counter, prices, reserve, keep, pause });
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

function createJson({ variants: rows, ...rest }: WhatIfReport): object {
  const round = (value: number): number => Number(value.toFixed(6));
  return {
    sessions: rest.sessions,
    usd: round(rest.usd),
    fit: round(rest.fit),
    variants: rows.map(({ usd, references, ...row }) => ({
      ...row,
      usd: round(usd),
      saved: rest.usd === 0 ? 0 : round(1 - usd / rest.usd),
      recall: references.total === 0 ? null : round(references.found / references.total),
    })),
    leftOut: rest.leftOut.map((each) => ({ ...each, usd: round(each.usd) })),
  };
}

function createLines(report: WhatIfReport, style: Style): string[] {
  const { sessions, usd, fit, leftOut } = report;
  const reasons = new Map<string, number>();
  for (const { reason } of leftOut) {
    const kind = reason.startsWith("simulated as") ? "simulated more than 5 % off what was recorded" : reason;
    reasons.set(kind, (reasons.get(kind) ?? 0) + 1);
  }
  const left = [...reasons].map(([reason, count]) => style.dim(`left out: ${countNoun(count, "session")}, ${reason}`));
  if (sessions === 0) return [style.bold("What would have been cheaper: no session could be simulated"), ...left];
  const rows = report.variants.map(({ name, usd: own, references, refetches, calls }) => [
    name,
    usdText(own),
    `${(100 * (own / usd - 1)).toFixed(1)} %`,
    references.total === 0 ? "-" : `${((100 * references.found) / references.total).toFixed(1)} %`,
    calls === 0 ? "-" : ((100 * refetches) / calls).toFixed(1),
  ]);
  const header = ["with", "input dollars", "change", "references kept", "re-fetch/100"];
  const [head = "", ...lines] = renderTable([header, ...rows], ["left", "right", "right", "right", "right"]);
  const about = `${countNoun(sessions, "session")}, input ${usdText(usd)}, simulated as ${(100 * fit).toFixed(1)} % of it`;
  return [style.bold(`What would have been cheaper (${about})`), style.dim(head), ...lines, ...left];
}
