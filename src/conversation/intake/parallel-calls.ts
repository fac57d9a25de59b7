/** Finds out which calls the model made together. The caller reports when each call begins and ends. */
import type { IncomingResult } from "./intake.ts";

type Call = Pick<IncomingResult, "tool" | "input">;

export interface ParallelCalls {
  /** The model has made a call. Later it is named by this key. */
  begin(key: unknown, call: Call): void;
  /** The call has a result. Returns what the intake needs to know of the other calls. */
  end(key: unknown): Pick<IncomingResult, "isParallel" | "unfinished">;
  /** The call has no result that the intake gets. */
  drop(key: unknown): void;
  /** The model has all results. Also drops failed calls that nobody reported as ended. */
  endTurn(): void;
}

/** A call that has no result after so many others has been left behind by the model. */
const maxResults = 40;

export function createParallelCalls(): ParallelCalls {
  const open = new Map<unknown, { readonly call: Call; results: number }>();
  // Calls that begin while another one runs belong to its turn, even if some have ended.
  let hasResult = false;
  return {
    begin(key, call) {
      if (open.size === 0) hasResult = false;
      open.set(key, { call, results: 0 });
    },
    end(key) {
      const isParallel = open.delete(key) && hasResult;
      hasResult = true;
      for (const [other, made] of open) if (++made.results > maxResults) open.delete(other);
      return { isParallel, unfinished: [...open.values()].map(({ call }) => call) };
    },
    drop: (key) => void open.delete(key),
    endTurn: () => open.clear(),
  };
}
