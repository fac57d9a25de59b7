/** Reads the sessions in a file. */

import type { Prices } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { printable } from "../../core/text/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import type { Output } from "../../host/index.ts";
import { describeError, messagesLimit, readForeignText, readTextFile } from "../../host/index.ts";
import { type BilledSession, createSessionBiller } from "../bill/price-calls.ts";
import { prepareRecordedReplay, type RecordedReplay } from "../bill/recorded-replay.ts";
import { readForeignDatabase } from "../foreign-database.ts";
import type { SessionFile } from "../places.ts";
import { type ReadSession, readOpencodeExport, readSession } from "../sessions/index.ts";
import { createCopyFinder, type RecordedSession } from "../sessions/recorded-session.ts";
import { bareModel, createUsageSum, type UsageTotals } from "../sessions/recorded-usage.ts";
import { type PreparedSession, prepareStretches } from "./prepare-session.ts";

/** Reads a recording. A file that was named may be a pipe. Throws with the reason. */
export async function readSessionText({ path, within }: SessionFile): Promise<string> {
  const read =
    path === within
      ? await readTextFile(path, messagesLimit)
      : readForeignText(path, { within, ...messagesLimit, maxMs: 30_000 });
  if ("text" in read) return read.text;
  throw new ContextError("unreadable_input", read.reason);
}

/** How tokens are counted and priced. */
export interface OpenSettings {
  /** Tokens of tools and system text that are not in the file. If absent, the recording shows them, or they are
   *  assumed. */
  readonly prefixTokens: number | undefined;
  readonly counter: Counter;
  /** Whether the command line names the counter. */
  readonly hasCounter: boolean;
  readonly model: string | undefined;
  readonly prices: Prices;
}

export interface OpenedSession {
  /** The usage that its recording reports. Absent if it reports none. */
  readonly recorded?: RecordedCosts | undefined;
  readonly stretches: readonly [PreparedSession, ...PreparedSession[]];
  /** Present if the session is replayed as its provider billed it. */
  readonly asRecorded?: RecordedReplay | undefined;
}

/** Reads files and reports what it leaves out. An answer that several files have counts once. */
interface SessionOpener {
  /** Returns the sessions of a file. Those without calls are undefined. */
  open(file: SessionFile, name: string): Promise<readonly (OpenedSession | undefined)[]>;
  skip(problem: string): void;
  readonly skipped: number;
  readonly recorded: UsageTotals | undefined;
}

export function createSessionOpener(settings: OpenSettings, output: Pick<Output, "note" | "problem">): SessionOpener {
  const copies = createCopyFinder();
  const usage = createUsageSum(settings);
  const bill = createSessionBiller(settings.prices);
  let skipped = 0;
  const skip = (problem: string): void => {
    output.problem(problem);
    skipped++;
  };
  const prepare = async ({ recorded, facts }: ReadSession): Promise<OpenedSession | undefined> => {
    for (const record of recorded.usage ?? []) usage.add(record);
    const { session, copied } = copies.withoutCopies(recorded);
    const asRecorded = await prepareAsRecorded(session, facts && bill(facts), { ...settings, whole: recorded });
    const isFitted = typeof asRecorded === "object";
    const prepared = isFitted ? asRecorded.stretches : prepareStretches(session, settings);
    const [first, ...rest] = prepared.filter(({ calls }) => calls.length > 0);
    const problem = typeof asRecorded === "string" ? asRecorded : undefined;
    for (const sentence of [...recorded.notes, ...describeSession(prepared, copied, problem)]) {
      output.note(`${printable(recorded.file)}: ${printable(sentence)}`);
    }
    // With counted tokens, it would cost something else than what was recorded.
    if (first === undefined || typeof asRecorded === "string") return undefined;
    const opened = { stretches: [first, ...rest] as const, recorded: sumCosts(recorded, settings) };
    return isFitted ? { ...opened, asRecorded } : opened;
  };
  return {
    skip,
    async open(file, name) {
      try {
        const sessions: (OpenedSession | undefined)[] = [];
        for await (const session of readSessions(file, name)) sessions.push(await prepare(session));
        return sessions;
      } catch (error) {
        if (!(error instanceof ContextError)) throw error;
        const { code, message, hint, line } = error;
        skip(describeError(new ContextError(code, message, { hint, line, file: name })));
        return [];
      }
    },
    get skipped() {
      return skipped;
    },
    get recorded() {
      const totals = usage.totals();
      return totals.answers > 0 ? totals : undefined;
    },
  };
}

function describeSession(prepared: readonly PreparedSession[], copied: number, problem: string | undefined): string[] {
  const isIdle = prepared.every(({ calls }) => calls.length === 0);
  const mended = prepared.reduce((sum, { mendedThinking }) => sum + mendedThinking, 0);
  return [
    ...(copied > 0 ? [`answers that another session has too: ${copied}; they are counted once`] : []),
    ...(mended > 0 ? [`thinking blocks that the provider would refuse: ${mended}; they are left out`] : []),
    ...(isIdle && copied === 0 ? ["has no assistant turn to replay and is left out"] : []),
    ...(problem !== undefined && !isIdle
      ? [`is left out: ${problem}; --prefix-tokens N replays it with counted tokens`]
      : []),
  ];
}

/** Adds up the usage of one session, also of answers that other sessions have too. */
function sumCosts({ usage = [] }: RecordedSession, settings: OpenSettings): RecordedCosts | undefined {
  const sum = createUsageSum(settings);
  for (const record of usage) sum.add(record);
  const totals = sum.totals();
  return totals.answers === 0 ? undefined : { ...totals, costs: sum.costs().map(Math.round) };
}

/** Returns undefined if the session has no usage or the command line asks for other counts, or the reason why the
 *  session cannot be simulated. */
async function prepareAsRecorded(
  session: RecordedSession,
  billed: BilledSession | undefined,
  settings: OpenSettings & { readonly whole: RecordedSession },
): Promise<RecordedReplay | string | undefined> {
  if (billed === undefined || billed.calls.length === 0 || settings.prefixTokens !== undefined) return undefined;
  const counter = settings.hasCounter ? settings.counter : await createCounter("auto", { model: session.model });
  const replay = await prepareRecordedReplay(session, billed, {
    counter,
    prices: settings.prices,
    whole: settings.whole,
  });
  if (typeof replay === "string" || settings.model === undefined) return replay;
  return bareModel(settings.model) === bareModel(replay.model) ? replay : undefined;
}

/** Reads the sessions of a file. Only a database has several. */
async function* readSessions(file: SessionFile, name: string): AsyncGenerator<ReadSession> {
  if (isDatabase(file.path)) return yield* readDatabase(file.path, { file: name });
  yield readSession(await readSessionText(file), { file: name });
}

/** Reads all sessions of opencode's database, or the one with an id. */
export async function* readDatabase(
  path: string,
  { file, session }: { readonly file: string; readonly session?: string | undefined },
): AsyncGenerator<ReadSession> {
  for await (const each of readForeignDatabase(path, session)) {
    yield readOpencodeExport(each, { file: `${file}#${each.info.id}` });
  }
}

export function isDatabase(path: string): boolean {
  return path.endsWith(".db");
}

/** The usage of a session, and the input cost of each answer. */
export interface RecordedCosts extends UsageTotals {
  readonly costs: readonly number[];
}
