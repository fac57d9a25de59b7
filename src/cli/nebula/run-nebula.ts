/** A nebula applied in front of a person or a program: what happens is told, and what ends us ends the agents. */
import {
  type ApplyOptions,
  type ApplyReport,
  applyNebula,
  type Nebula,
  nebulaKey,
  openNebulaRecord,
  standingOf,
} from "../../agent/index.ts";
import { countNoun, printable } from "../../text/index.ts";
import type { CommandResult } from "../command.ts";
import { takeEndSignals } from "../end-signals.ts";
import { shownPath } from "../shown-path.ts";
import { withStore } from "../store-file.ts";
import { createApplyProgress } from "./apply-progress.ts";
import { renderApplyReport } from "./apply-report.ts";
import type { ApplyCall, ApplySettings } from "./apply-settings.ts";
import { createQuestions, type QuestionOptions } from "./ask-person.ts";

export type RunSettings = ApplySettings & Pick<ApplyOptions, "command">;

export function runNebula(nebula: Nebula, settings: RunSettings, call: ApplyCall): Promise<CommandResult> {
  const { output, cwd, env } = call;
  const signal = takeInterrupt();
  return withStore(settings.storeFile, async (store) => {
    const before = standingOf(nebula, await openNebulaRecord(store, nebulaKey(nebula.directory)).read());
    const resume = call.options.resume === true;
    const progress = createApplyProgress({
      output,
      phases: before.phases.length,
      completed: resume ? completedIn(before) : 0,
      shown: (path) => shownPath(path, cwd, env),
      now: () => new Date(),
    });
    const ask = createAsk(call, { signal, onAsking: progress.pause });
    const mayBegin = resume || (await mayRunAgain(before, ask));
    const tell = progress.tell;
    const options = { ...settings, store, resume, approve: approver(call, ask), signal, tell };
    const report = mayBegin ? await applyNebula(nebula, options) : before;
    const interrupted = signal.aborted && completedIn(report) < report.phases.length;
    if (interrupted) progress.interrupt();
    else if (!mayBegin) output.problem("nothing was run: --resume goes on where the run before stopped");
    const failed = !mayBegin || completedIn(report) < report.phases.length;
    return { json: report, text: renderApplyReport(report), failed, interrupted };
  });
}

function takeInterrupt(): AbortSignal {
  const interrupted = new AbortController();
  takeEndSignals(() => {
    // The terminal has shown ^C in the line that is begun.
    if (process.stderr.isTTY && !interrupted.signal.aborted) process.stderr.write("\n");
    interrupted.abort();
  });
  return interrupted.signal;
}

function completedIn({ phases }: ApplyReport): number {
  return phases.filter(({ state }) => state === "completed").length;
}

type Ask = (question: string) => Promise<boolean>;

/** A person can be asked only where one sits at the other end of stdin. */
function createAsk(
  { options, stdin, output }: ApplyCall,
  asking: Pick<QuestionOptions, "signal" | "onAsking">,
): Ask | undefined {
  const terminal = stdin as NodeJS.ReadStream;
  if (options.yes === true || terminal.isTTY !== true) return undefined;
  return createQuestions({ stdin: terminal, output, ...asking }).ask;
}

/** Whoever forgets --resume loses what has completed. Where the run before came to its end, running it again is what is meant. */
export async function mayRunAgain(before: ApplyReport, ask: Ask | undefined): Promise<boolean> {
  const [completed, all] = [completedIn(before), before.phases.length];
  if (ask === undefined || completed === 0 || completed === all) return true;
  const stand = `${completed} of ${countNoun(all, "phase")} have completed in the run before`;
  return ask(`${stand}, and --resume keeps them. Run all again?`);
}

function approver({ options }: ApplyCall, ask: Ask | undefined): ApplyOptions["approve"] {
  if (ask === undefined) return async () => options.yes === true;
  return ({ id, title, gate }) =>
    ask(`phase ${printable(id)}, "${printable(title)}", asks for a person (gate ${gate}). Start it?`);
}
