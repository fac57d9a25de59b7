/** Replays sessions one by one, at every window with every policy. Keeps only the results. */

import { relative } from "node:path";
import { performance } from "node:perf_hooks";
import type { Ttl } from "../../core/billing/index.ts";
import type { ContextError } from "../../core/errors.ts";
import { countNoun, formatNumber, printable, problemWithWindow } from "../../core/text/index.ts";
import type { Caller, Output } from "../../host/index.ts";
import type { SessionFiles } from "../places.ts";
import type { UsageTotals } from "../sessions/recorded-usage.ts";
import { createSessionOpener, type OpenedSession, type OpenSettings, type RecordedCosts } from "./open-sessions.ts";
import { type CallReplay, type ReplayPolicy, type ReplayTotals, replaySession } from "./replay-session.ts";
import { seriesKinds, withReference } from "./report.ts";
import type { Removal } from "./request-observer.ts";

export interface ReplayReport {
  readonly settings: ReplaySettings;
  readonly sessions: readonly ReplayedSession[];
  /** The usage that the recordings report. Absent if they report none. */
  readonly recorded?: UsageTotals | undefined;
  /** Data for the page; empty without --html. */
  readonly series: SeriesList["all"];
  /** Number of files and directories that could not be read and were reported. */
  readonly skipped: number;
  /** Number of sessions that could not be replayed: without a call, or not as they were billed. They were reported too. */
  readonly idle: number;
}

export interface ReplayedSession {
  readonly file: string;
  readonly title: string;
  readonly prefixTokens: number;
  /** The model whose prices and cache rules apply. */
  readonly billedAs: string;
  /** How its tokens are counted, in words. */
  readonly counter: string;
  readonly runs: readonly ReplayRun[];
  /** The usage that its recording reports, and the input cost of each answer. Absent if it reports none. */
  readonly recorded?: RecordedCosts | undefined;
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
  readonly call: Caller;
  /** Whether a page will show every call. */
  readonly isPage: boolean;
}

export async function replayFiles(found: SessionFiles, options: ReplayFilesOptions): Promise<ReplayReport> {
  const { settings, call } = options;
  const { cwd, output } = call;
  const sessions: ReplayedSession[] = [];
  const series = createSeriesList();
  const progress = createReplayProgress(output);
  const opener = createSessionOpener(settings, output);
  const withoutRoom: ReplayPlace["withoutRoom"] = [];
  let idle = 0;
  for (const { path, reason } of found.unreadable) opener.skip(`${printable(relative(cwd, path))}: ${reason}`);
  for (const [index, file] of found.files.entries()) {
    const at = `session ${index + 1} of ${found.files.length}`;
    for (const session of await opener.open(file, relative(cwd, file.path))) {
      if (session === undefined) idle++;
      else sessions.push(await replayOne(session, { ...options, series, progress, at, withoutRoom }));
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

interface ReplayPlace {
  readonly series: SeriesList;
  readonly progress: ReplayProgress;
  /** Which session of how many, for progress. */
  readonly at: string;
  /** Windows that leave no room for the messages of a session. */
  readonly withoutRoom: { readonly file: string; readonly problem: ContextError }[];
}

async function replayOne(
  { stretches, asRecorded, recorded }: OpenedSession,
  { settings, isPage, series, progress, at, withoutRoom }: ReplayFilesOptions & ReplayPlace,
): Promise<ReplayedSession> {
  const [{ file, title }] = stretches;
  const ownTokens = Math.max(...stretches.map((stretch) => stretch.prefixTokens));
  const assumed = settings.prefixTokens ?? (ownTokens > 0 ? 0 : defaultPrefixTokens);
  const prefixTokens = asRecorded?.prefixTokens ?? assumed;
  const calls = stretches.reduce((sum, stretch) => sum + stretch.calls.length, 0);
  const { keep, threshold, prices, ttl } = settings;
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
      const run = {
        window,
        policy,
        reserve,
        keep,
        threshold,
        ttl,
        pause,
        now: () => performance.now(),
        findsRemovals: isPage,
      };
      const replay = await (asRecorded?.run(run) ?? replaySession(stretches, { ...run, prefixTokens, prices }));
      const epochs = replay.calls.filter(({ isEpoch }) => isEpoch).length;
      const { totals } = replay;
      runs.push({ window, policy, totals, epochs, series: isPage ? series.add(replay.calls) : -1 });
    }
  }
  return {
    file,
    title,
    runs,
    ...(recorded && { recorded }),
    ...(asRecorded
      ? { prefixTokens, billedAs: asRecorded.model, counter: `${asRecorded.counter.name} fitted to usage` }
      : { prefixTokens: prefixTokens + ownTokens, billedAs: settings.billedAs, counter: settings.counter.name }),
  };
}

/** Progress of a replay: a line that changes on a terminal, or a line now and then in a log. */
interface ReplayProgress {
  /** Starts one session with one policy. Call the returned function after each call, with the number of calls so
   *  far. */
  start(run: {
    /** Session number, policy and window. */
    readonly what: string;
    /** As it is printed. */
    readonly file: string;
    readonly calls: number;
  }): (done: number) => Promise<void> | undefined;
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

/** Settings of a replay, from the command line and the configuration. */
export interface ReplaySettings extends OpenSettings {
  readonly windows: readonly number[];
  /** Policies in the order of the command line. */
  readonly policies: readonly ReplayPolicy[];
  /** Tokens kept free for the answer, by window. */
  readonly reserves: Readonly<Record<number, number>>;
  readonly keep: number;
  /** Threshold of the rfc policies. */
  readonly threshold: number;
  /** The cache lifetime that requests ask for. If absent: as recorded, or 5 minutes. */
  readonly ttl: Ttl | undefined;
  /** The model whose prices and cache rules apply to sessions without usage. */
  readonly billedAs: string;
  /** That model's price and its date, in words. */
  readonly pricing: string;
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
      const text = JSON.stringify(createSeries(calls));
      const index = known.get(text) ?? all.push(text) - 1;
      known.set(text, index);
      return index;
    },
  };
}

function createSeries(calls: readonly CallReplay[]): CallSeries {
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
