/** Replays sessions one by one, at every window with every policy. Keeps only the results. */

import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import type { Prices } from "../../billing/index.ts";
import { ContextError } from "../../errors.ts";
import {
  type CallReplay,
  createCopyFinder,
  createUsageSum,
  exportedSessions,
  opencodeQueries,
  type PreparedSession,
  prepareStretches,
  type RecordedSession,
  type Removal,
  type ReplayPolicy,
  type ReplayTotals,
  readOpencodeSession,
  readRecording,
  replaySession,
  type SessionReplay,
  type UsageTotals,
} from "../../replay/index.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { readTextFile } from "../../workspace/index.ts";
import type { Call } from "../command.ts";
import { messagesLimit } from "../messages-input.ts";
import type { Output } from "../output.ts";
import { describeError } from "../report-error.ts";
import { problemWithWindow } from "../whole-number.ts";
import { seriesKinds, withReference } from "./report.ts";

export interface ReplayReport {
  readonly settings: ReplaySettings;
  readonly sessions: readonly ReplayedSession[];
  /** The usage that the recordings report. Absent if they report none. */
  readonly recorded?: UsageTotals | undefined;
  /** Data for the page; empty without --html. */
  readonly series: SeriesList["all"];
  /** Number of files and directories that could not be read and were reported. */
  readonly skipped: number;
  /** Number of sessions without a call, which were reported too. */
  readonly idle: number;
}

export interface ReplayedSession {
  readonly file: string;
  readonly title: string;
  readonly prefixTokens: number;
  readonly runs: readonly ReplayRun[];
  /** The usage that its recording reports, and the input cost of each answer. Absent if it reports none. */
  readonly recorded?: RecordedCosts | undefined;
}

interface RecordedCosts extends UsageTotals {
  readonly costs: readonly number[];
}

export interface ReplayRun {
  readonly window: number;
  readonly policy: ReplayPolicy;
  readonly totals: ReplayTotals;
  readonly epochs: number;
  /** Index in the list of series; -1 without --html. */
  readonly series: number;
}

export interface ReplayFilesOptions {
  readonly settings: ReplaySettings;
  readonly call: Call<{ readonly html?: string | undefined }>;
}

export async function replayFiles(found: SessionFiles, options: ReplayFilesOptions): Promise<ReplayReport> {
  const { settings, call } = options;
  const { cwd, output } = call;
  const sessions: ReplayedSession[] = [];
  const series = createSeriesList();
  const progress = createReplayProgress(output);
  const opener = createSessionOpener(options);
  const withoutRoom: ReplayPlace["withoutRoom"] = [];
  let idle = 0;
  for (const { path, reason } of found.unreadable) opener.skip(`${printable(relative(cwd, path))}: ${reason}`);
  for (const [index, path] of found.files.entries()) {
    const file = relative(cwd, path);
    const at = `session ${index + 1} of ${found.files.length}`;
    for (const { stretches, recorded } of await opener.open(path, file)) {
      const [first, ...rest] = stretches.filter(({ calls }) => calls.length > 0);
      if (first === undefined) idle++;
      else {
        const session = await replayOne([first, ...rest], { ...options, series, progress, at, withoutRoom });
        sessions.push({ ...session, ...(recorded !== undefined && { recorded }) });
      }
    }
  }
  const replayed = sessions.filter(({ runs }) => runs.length > 0);
  if (replayed.length === 0 && withoutRoom[0] !== undefined) throw withoutRoom[0].problem;
  for (const { file, problem } of withoutRoom) {
    output.note(`${printable(file)}: ${problem.message}, so this window is left out`);
  }
  const { skipped, recorded } = opener;
  return { settings, sessions: replayed, recorded, series: series.all, skipped, idle };
}

/** Reads files and reports what it leaves out. An answer that several files have counts once. */
interface SessionOpener {
  /** Returns the stretches of each session in a file. */
  open(path: string, file: string): Promise<readonly OpenedSession[]>;
  skip(problem: string): void;
  readonly skipped: number;
  readonly recorded: UsageTotals | undefined;
}

interface OpenedSession extends Pick<ReplayedSession, "recorded"> {
  readonly stretches: readonly PreparedSession[];
}

function createSessionOpener({ settings, call: { output } }: ReplayFilesOptions): SessionOpener {
  const copies = createCopyFinder();
  const usage = createUsageSum(settings);
  let skipped = 0;
  const skip = (problem: string): void => {
    output.problem(problem);
    skipped++;
  };
  const prepare = (recorded: RecordedSession): OpenedSession => {
    const note = (sentence: string): void => output.note(`${printable(recorded.file)}: ${printable(sentence)}`);
    for (const record of recorded.usage ?? []) usage.add(record);
    const { session, copied } = copies.withoutCopies(recorded);
    const stretches = prepareStretches(session, settings);
    for (const sentence of recorded.notes) note(sentence);
    if (copied > 0) note(`answers that another session has too: ${copied}; they are counted once`);
    const mended = stretches.reduce((sum, { mendedThinking }) => sum + mendedThinking, 0);
    if (mended > 0) note(`thinking blocks that the provider would refuse: ${mended}; they are left out`);
    const isIdle = stretches.every(({ calls }) => calls.length === 0);
    if (isIdle && copied === 0) note("has no assistant turn to replay and is left out");
    return { stretches, recorded: recordedCosts(recorded, settings) };
  };
  return {
    skip,
    async open(path, file) {
      try {
        return (await readSessions(path, file)).map(prepare);
      } catch (error) {
        if (!(error instanceof ContextError)) throw error;
        const { code, message, hint, line } = error;
        skip(describeError(new ContextError(code, message, { hint, line, file })));
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

/** Adds up the usage of one session, also of answers that other sessions have too. */
function recordedCosts({ usage = [] }: RecordedSession, settings: ReplaySettings): RecordedCosts | undefined {
  const sum = createUsageSum(settings);
  for (const record of usage) sum.add(record);
  const totals = sum.totals();
  return totals.answers === 0 ? undefined : { ...totals, costs: sum.costs().map(Math.round) };
}

/** Reads the sessions of a file. Only a database has several. */
async function readSessions(path: string, file: string): Promise<readonly RecordedSession[]> {
  if (isDatabase(path)) {
    const { queryDatabase } = await import("../../store/sqlite.ts");
    const sessions = exportedSessions(await queryDatabase(path, opencodeQueries));
    return sessions.map((session) => readOpencodeSession(session, `${file}#${session.info.id}`));
  }
  const read = await readTextFile(path, messagesLimit);
  if ("text" in read) return [readRecording(read.text, { file })];
  throw new ContextError("unreadable_input", read.reason);
}

function isDatabase(path: string): boolean {
  return path.endsWith(".db");
}

interface ReplayPlace {
  readonly series: SeriesList;
  readonly progress: ReplayProgress;
  /** Which session of how many, for progress. */
  readonly at: string;
  /** Windows that leave no room for the messages of a session. */
  readonly withoutRoom: { readonly file: string; readonly problem: ContextError }[];
}

async function replayOne(
  stretches: readonly [PreparedSession, ...PreparedSession[]],
  { settings, call, series, progress, at, withoutRoom }: ReplayFilesOptions & ReplayPlace,
): Promise<ReplayedSession> {
  const [{ file, title }] = stretches;
  const ownTokens = Math.max(...stretches.map((stretch) => stretch.prefixTokens));
  const prefixTokens = settings.prefixTokens ?? (ownTokens > 0 ? 0 : defaultPrefixTokens);
  const calls = stretches.reduce((sum, stretch) => sum + stretch.calls.length, 0);
  const { keep, threshold, prices } = settings;
  const runs: ReplayRun[] = [];
  for (const window of settings.windows) {
    const reserve = settings.reserves[window] ?? 0;
    const problem = problemWithWindow(window, { reserve, prefixTokens });
    if (problem !== undefined) {
      withoutRoom.push({ file, problem });
      continue;
    }
    for (const policy of withReference(settings.policies)) {
      const what = `${at}, ${policy} at ${formatNumber(window)}`;
      const pause = progress.start({ what, file: printable(file), calls });
      const replay = await replaySession(stretches, {
        ...{ window, policy, reserve, prefixTokens, keep, threshold, prices },
        ...{ now: () => performance.now(), pause, findsRemovals: call.options.html !== undefined },
      });
      runs.push(runOf(replay, { window, policy, series: call.options.html === undefined ? undefined : series }));
    }
  }
  return { file, title, prefixTokens: prefixTokens + ownTokens, runs };
}

function runOf(
  { calls, totals }: SessionReplay,
  { window, policy, series }: Pick<ReplayRun, "window" | "policy"> & { series: SeriesList | undefined },
): ReplayRun {
  const epochs = calls.filter(({ isEpoch }) => isEpoch).length;
  return { window, policy, totals, epochs, series: series?.add(calls) ?? -1 };
}

/** Progress of a replay: a line that changes on a terminal, or a line now and then in a log. */
interface ReplayProgress {
  /** Starts one session with one policy. Call the returned function after each call, with the number of calls so
   *  far. */
  start(run: ProgressRun): (done: number) => Promise<void> | undefined;
}

interface ProgressRun {
  /** Session number, policy and window. */
  readonly what: string;
  /** As it is shown. */
  readonly file: string;
  readonly calls: number;
}

const busyMs = 100;
/** Milliseconds between two lines in a log. */
const quietMs = 10_000;

/** Creates progress. It pauses now and then, because replaying would block drawing and interrupts. */
export function createReplayProgress(
  output: Pick<Output, "terminal" | "progress" | "note">,
  now: () => number = () => performance.now(),
): ReplayProgress {
  let lastMs = now();
  let notedMs = lastMs;
  return {
    start({ what, file, calls }) {
      output.progress(`${what}: ${file}`);
      if (!output.terminal && now() - notedMs >= quietMs) {
        notedMs = now();
        output.note(`${what}: ${file}, ${countNoun(calls, "call")}`);
      }
      return (done) => {
        if (now() - lastMs < busyMs) return undefined;
        lastMs = now();
        output.progress(`${what}, call ${formatNumber(done)} of ${formatNumber(calls)}: ${file}`);
        return new Promise((resolve) => setImmediate(resolve));
      };
    },
  };
}

interface SessionFiles {
  /** Absolute paths, each once, those of a directory sorted by name. */
  readonly files: readonly string[];
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
}

/** Finds named files, and *.jsonl, *.json and opencode.db files of directories, also ignored ones, because recordings are rarely
 *  committed. Does not follow links in directories. */
export async function findSessionFiles(paths: readonly string[], cwd: string): Promise<SessionFiles> {
  const files = new Set<string>();
  const unreadable: { path: string; reason: string }[] = [];
  const pending = paths.map((path) => resolve(cwd, path)).reverse();
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (!(await isDirectory(path))) {
      files.add(path);
      continue;
    }
    try {
      const entries = await readdir(path, { withFileTypes: true });
      pending.push(...sessionsAmong(entries, path).reverse());
    } catch (error) {
      unreadable.push({ path, reason: `cannot be listed (${(error as NodeJS.ErrnoException).code})` });
    }
  }
  return { files: [...files], unreadable };
}

/** Problems with the path are reported when it is read. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

function sessionsAmong(entries: readonly Dirent[], directory: string): string[] {
  // Claude Code describes a sub-agent in a file beside its session.
  const isSession = ({ name }: Dirent): boolean =>
    (/\.jsonl?$/.test(name) && !name.endsWith(".meta.json")) || name === "opencode.db";
  const isWanted = (entry: Dirent): boolean => entry.isDirectory() || (entry.isFile() && isSession(entry));
  const names = entries.filter(isWanted).map(({ name }) => name);
  return names.sort((left, right) => (left < right ? -1 : 1)).map((name) => join(directory, name));
}

/** Settings of a replay, from the command line and the configuration. */
export interface ReplaySettings {
  readonly windows: readonly number[];
  /** Policies in the order of the command line. */
  readonly policies: readonly ReplayPolicy[];
  /** Tokens kept free for the answer, by window. */
  readonly reserves: Readonly<Record<number, number>>;
  /** If absent: `defaultPrefixTokens`, or 0 for a session with system text and tools. */
  readonly prefixTokens: number | undefined;
  readonly keep: number;
  /** Threshold of the rfc policies. */
  readonly threshold: number;
  readonly counter: Counter;
  readonly model: string | undefined;
  /** The model whose prices and cache rules apply. */
  readonly billedAs: string;
  /** That model's price and its date, in words. */
  readonly pricing: string;
  readonly prices: Prices;
}

/** Tokens of tools and system text of a coding agent, which recordings leave out. */
const defaultPrefixTokens = 20_000;

/** The calls of all runs as JSON texts. Equal runs share one text. */
interface SeriesList {
  readonly all: readonly string[];
  /** Adds calls and returns the index of their text. */
  add(calls: readonly CallReplay[]): number;
}

/** Columns with one entry per call. */
interface CallSeries {
  readonly prefix: number;
  readonly tokens: readonly (readonly number[])[];
  readonly cost: readonly number[];
  readonly read: readonly number[];
  /** In thousandths. */
  readonly kept: readonly number[];
  /** 1: epoch, 2: break, 4: invalid. */
  readonly flags: readonly number[];
  /** The rules that invalid calls break, by call. */
  readonly rules: Readonly<Record<number, string>>;
  /** What epochs removed, by call. Absent if there are too many to show. */
  readonly removed?: Readonly<Record<number, Removal>>;
}

function createSeriesList(): SeriesList {
  const all: string[] = [];
  const known = new Map<string, number>();
  return {
    all,
    add(calls) {
      const text = JSON.stringify(seriesOf(calls));
      const index = known.get(text) ?? all.push(text) - 1;
      known.set(text, index);
      return index;
    },
  };
}

function seriesOf(calls: readonly CallReplay[]): CallSeries {
  const byCall = <Value>(read: (call: CallReplay) => Value | undefined): Record<number, Value> => {
    const values: Record<number, Value> = {};
    for (const [index, call] of calls.entries()) {
      const value = read(call);
      if (value !== undefined) values[index] = value;
    }
    return values;
  };
  const isComplete = calls.every(({ isEpoch, removed }) => !isEpoch || removed !== undefined);
  return {
    prefix: calls[0]?.tokens.prefix ?? 0,
    tokens: seriesKinds.map((kind) => calls.map(({ tokens }) => tokens[kind])),
    cost: calls.map(({ bill }) => Math.round(bill.cost)),
    read: calls.map(({ bill }) => bill.read),
    kept: calls.map(({ keptShare }) => Math.round(1000 * keptShare)),
    flags: calls.map(
      ({ isEpoch, bill, isInvalid }) => Number(isEpoch) + 2 * Number(bill.isBreak) + 4 * Number(isInvalid),
    ),
    rules: byCall(({ invalidRule }) => invalidRule),
    ...(isComplete && { removed: byCall(({ removed }) => removed) }),
  };
}
