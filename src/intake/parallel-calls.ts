/** Knows which calls of a conversation the model made together, if it is told of each call and of each result. */
import type { IncomingResult } from "./intake.ts";

type Call = Pick<IncomingResult, "tool" | "input">;

export interface ParallelCalls {
  /** The model has made a call. The key is its name here. */
  begin(key: unknown, call: Call): void;
  /** The call has a result. Returns what the intake needs to know of the other calls. */
  end(key: unknown): Pick<IncomingResult, "isParallel" | "unfinished">;
  /** The call has no result that the intake gets. */
  drop(key: unknown): void;
  /** The model has all results. Calls that failed may never have ended. */
  endTurn(): void;
}

export function createParallelCalls(): ParallelCalls {
  const open = new Map<unknown, { readonly call: Call; readonly resultsBefore: number }>();
  let results = 0;
  return {
    begin: (key, call) => void open.set(key, { call, resultsBefore: results }),
    end(key) {
      const { resultsBefore = results } = open.get(key) ?? {};
      const isParallel = results > resultsBefore;
      results++;
      open.delete(key);
      return { isParallel, unfinished: [...open.values()].map(({ call }) => call) };
    },
    drop: (key) => void open.delete(key),
    endTurn: () => open.clear(),
  };
}
