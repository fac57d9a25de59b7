/** Session after session: read, made ready, replayed at every window with every policy. Only the outcome is kept. */
import { relative } from "node:path";
import { performance } from "node:perf_hooks";
import { ContextError } from "../../errors.ts";
import {
  type PreparedSession,
  prepareSession,
  type ReplayPolicy,
  type ReplayTotals,
  readSession,
  replaySession,
  type SessionReplay,
} from "../../replay/index.ts";
import { formatNumber, printable } from "../../text/index.ts";
import { readTextFile } from "../../workspace/index.ts";
import { checkWindow } from "../check-window.ts";
import type { Call } from "../command.ts";
import { messagesLimit } from "../messages-input.ts";
import { describeError } from "../report-error.ts";
import { createSeriesList, type SeriesList } from "./page/call-series.ts";
import { createReplayProgress, type ReplayProgress } from "./progress.ts";
import type { SessionFiles } from "./session-files.ts";
import { defaultPrefixTokens, type ReplayFlags, type ReplaySettings } from "./settings.ts";

export interface ReplayReport {
  readonly settings: ReplaySettings;
  readonly sessions: readonly ReplayedSession[];
  /** What the page draws; empty where no page is wanted. */
  readonly series: SeriesList["all"];
  /** Files and directories that could not be read, each told already. */
  readonly skipped: number;
  /** Sessions without a call, which have nothing to replay; told, too. */
  readonly idle: number;
}

export interface ReplayedSession {
  readonly file: string;
  readonly title: string;
  readonly prefixTokens: number;
  readonly runs: readonly ReplayRun[];
}

export interface ReplayRun {
  readonly window: number;
  readonly policy: ReplayPolicy;
  readonly totals: ReplayTotals;
  readonly epochs: number;
  /** Its place in the list of series; -1 where no page is wanted. */
  readonly series: number;
}

export interface ReplayFilesOptions {
  readonly settings: ReplaySettings;
  readonly call: Call<ReplayFlags>;
}

export async function replayFiles(found: SessionFiles, options: ReplayFilesOptions): Promise<ReplayReport> {
  const { settings, call } = options;
  const { cwd, output } = call;
  const sessions: ReplayedSession[] = [];
  const series = createSeriesList();
  const progress = createReplayProgress(output);
  let [skipped, idle] = [0, 0];
  const skip = (problem: string): void => {
    output.problem(problem);
    skipped++;
  };
  for (const { path, reason } of found.unreadable) skip(`${printable(relative(cwd, path))}: ${reason}`);
  for (const [index, path] of found.files.entries()) {
    const file = relative(cwd, path);
    const at = `session ${index + 1} of ${found.files.length}`;
    const session = await openSession(path, file, { ...options, skip });
    if (session === undefined) continue;
    if (session.calls.length > 0) {
      sessions.push(await replayOne(session, { ...options, series, progress, at }));
      continue;
    }
    output.note(`${printable(file)}: has no assistant turn to replay and is left out`);
    idle++;
  }
  return { settings, sessions, series: series.all, skipped, idle };
}

async function openSession(
  path: string,
  file: string,
  { settings, call, skip }: ReplayFilesOptions & { skip(problem: string): void },
): Promise<PreparedSession | undefined> {
  const read = await readTextFile(path, messagesLimit);
  if (!("text" in read)) {
    skip(`${printable(file)}: ${read.reason}`);
    return undefined;
  }
  try {
    const recorded = readSession(read.text, { file });
    for (const note of recorded.notes) call.output.note(`${printable(file)}: ${printable(note)}`);
    return prepareSession(recorded, settings);
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const { code, message, hint, line } = error;
    skip(describeError(new ContextError(code, message, { hint, line, file })));
    return undefined;
  }
}

interface ReplayPlace {
  readonly series: SeriesList;
  readonly progress: ReplayProgress;
  /** Which session of how many. */
  readonly at: string;
}

async function replayOne(
  session: PreparedSession,
  { settings, call, series, progress, at }: ReplayFilesOptions & ReplayPlace,
): Promise<ReplayedSession> {
  const { file, title } = session;
  const hasOwnPrefix = session.prefixTokens > 0;
  const prefixTokens = settings.prefixTokens ?? (hasOwnPrefix ? 0 : defaultPrefixTokens);
  const { reserve, keep, threshold, prices } = settings;
  for (const window of settings.windows) checkWindow(window, { reserve, prefixTokens });
  const runs: ReplayRun[] = [];
  for (const window of settings.windows) {
    for (const policy of withReference(settings.policies)) {
      const what = `${at}, ${policy} at ${formatNumber(window)}`;
      const pause = progress.start({ what, file: printable(file), calls: session.calls.length });
      const replay = await replaySession(session, {
        ...{ window, policy, reserve, prefixTokens, keep, threshold, prices },
        ...{ now: () => performance.now(), pause },
      });
      runs.push(
        runOf(replay, { window, policy, series: call.options.html === undefined ? undefined : series }),
      );
    }
  }
  return { file, title, prefixTokens: prefixTokens + session.prefixTokens, runs };
}

/** Every cost is told beside that of trimming nothing. */
export function withReference(policies: readonly ReplayPolicy[]): readonly ReplayPolicy[] {
  return policies.includes("none") ? policies : ["none", ...policies];
}

function runOf(
  { calls, totals }: SessionReplay,
  { window, policy, series }: Pick<ReplayRun, "window" | "policy"> & { series: SeriesList | undefined },
): ReplayRun {
  const epochs = calls.filter(({ isEpoch }) => isEpoch).length;
  return { window, policy, totals, epochs, series: series?.add(calls) ?? -1 };
}
