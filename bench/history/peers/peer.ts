import type { Counter } from "../../../src/core/tokens/index.ts";
import type { Reducer } from "../../../src/recordings/replay/replay-session.ts";
import type { BenchSession } from "../bench-session.ts";

/** Another package's way to make a history smaller, run as it comes from npm. */
export interface Peer {
  readonly name: string;
  /** Whether it counts the whole history anew on every call. */
  readonly isRecounting: boolean;
  open(session: BenchSession, options: PeerOptions): Reducer;
}

export interface PeerOptions {
  /** Tokens that the messages may have. */
  readonly budget: number;
  readonly stopwatch: Stopwatch;
  /** Counts every text as often as the peer asks. Absent: tokens are known beforehand and cost nothing. */
  readonly counter?: Counter | undefined;
}

/** Adds up the time inside the peer's own function: converting messages for it is not its work. */
export interface Stopwatch {
  readonly elapsedMs: number;
  time<T>(work: () => T | Promise<T>): Promise<T>;
}

export function createStopwatch(): Stopwatch {
  let elapsedMs = 0;
  return {
    get elapsedMs() {
      return elapsedMs;
    },
    async time(work) {
      const started = performance.now();
      const made = work();
      const result = made instanceof Promise ? await made : made;
      elapsedMs += performance.now() - started;
      return result;
    },
  };
}
