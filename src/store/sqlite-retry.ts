import { setTimeout as sleep } from "node:timers/promises";
import { busyError, isBusy, translate } from "./sqlite-errors.ts";

/**
 * Runs operations one after the other in the order of the calls, each again while the file is busy, and turns what the
 * driver throws into a `ContextError`. An operation that failed does not keep the next one from running.
 */
export type Retry = <T>(operation: () => T | Promise<T>) => Promise<T>;

export function createRetry(file: string, waitMs: number): Retry {
  let last: Promise<unknown> = Promise.resolve();
  let lastDone = 0;
  const repeat = async <T>(operation: () => T | Promise<T>, called: number): Promise<T> => {
    for (;;) {
      try {
        const result = await operation();
        lastDone = performance.now();
        return result;
      } catch (error) {
        if (!isBusy(error)) throw translate(error, file);
        // Not since this operation began: calls behind one that waited in vain would each wait as long again.
        if (performance.now() - Math.max(called, lastDone) >= waitMs) throw busyError(error, file, waitMs);
      }
      await pause();
    }
  };
  return (operation) => {
    const called = performance.now();
    const result = last.then(() => repeat(operation, called));
    last = result.catch(() => {});
    return result;
  };
}

/** The driver's own waiting would block the whole process. Not always as long, so that two that wait do not stay in step. */
export async function pause(): Promise<void> {
  await sleep(5 + 15 * Math.random());
}
