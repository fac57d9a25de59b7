/** What a replay tells while it is at work: a line that changes on a terminal, a line now and then in a log. */
import { performance } from "node:perf_hooks";
import { countNoun, formatNumber } from "../../text/index.ts";
import type { Output } from "../output.ts";

export interface ReplayProgress {
  /** Begins one session with one policy. What it gives is called after each call, with the calls so far. */
  start(run: ProgressRun): (done: number) => Promise<void> | undefined;
}

export interface ProgressRun {
  /** Which one of how many, policy and window. */
  readonly what: string;
  /** As it is shown. */
  readonly file: string;
  readonly calls: number;
}

const busyMs = 100;
/** A log has no use for more. */
const quietMs = 10_000;

/** Replaying keeps the process busy: in a pause the progress is drawn and an interrupt gets through. */
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
