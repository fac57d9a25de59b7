/** Callbacks of a caller that cannot stop a call. */
import { Buffer } from "../../core/bytes.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { ReportFailure } from "./report-failure.ts";

type Judge = (message: object, index: number) => boolean;

interface Hooks {
  readonly isPinned?: Judge | undefined;
  readonly isTrimmable?: "machine-made" | Judge | undefined;
  readonly onPressure?: ((pressure: never) => unknown) | undefined;
  readonly summarise?: ((removed: never) => unknown) | undefined;
}

export interface GuardedHooks<Given extends Hooks> {
  /** The same options. Their callbacks do not throw, except `summarise`, whose failure the trimmer handles. */
  readonly hooks: Given;
  /** From now on, a message whose `isPinned` throws is not pinned. Returns whether that changes anything. */
  unpinFailed(): boolean;
}

/** Guards the callbacks of one conversation. If `isPinned` throws, the message counts as pinned: content that may matter
 *  stays. If `isTrimmable` throws, the message is not trimmed, as without that option. */
export function guardHooks<Given extends Hooks>(options: Given, report: ReportFailure): GuardedHooks<Given> {
  const { isPinned, isTrimmable, onPressure, summarise } = options;
  let hasFailed = false;
  let keepsFailed = true;
  const pinned: Judge = (message, index) => {
    try {
      return isPinned?.(message, index) ?? false;
    } catch (error) {
      report("isPinned", error);
      hasFailed = true;
      return keepsFailed;
    }
  };
  const trimmable: Judge = (message, index) => {
    try {
      return typeof isTrimmable === "function" && isTrimmable(message, index);
    } catch (error) {
      report("isTrimmable", error);
      return false;
    }
  };
  const summariseOrFail = async (removed: never): Promise<unknown> => {
    try {
      return await summarise?.(removed);
    } catch (error) {
      // An aborted summary came too late, which is not a failure.
      if (Reflect.get(Object(removed), "signal")?.aborted !== true) report("summarise", error);
      throw error;
    }
  };
  const hooks = {
    ...options,
    ...(isPinned !== undefined && { isPinned: pinned }),
    ...(typeof isTrimmable === "function" && { isTrimmable: trimmable }),
    ...(onPressure !== undefined && { onPressure: notify("onPressure", onPressure, report) }),
    ...(summarise !== undefined && { summarise: summariseOrFail }),
  };
  const unpinFailed = (): boolean => {
    const isChange = hasFailed && keepsFailed;
    keepsFailed = false;
    return isChange;
  };
  return { hooks, unpinFailed };
}

/** Returns a callback whose errors and rejections are reported. */
export function notify<Event>(
  name: string,
  callback: ((event: Event) => unknown) | undefined,
  report: ReportFailure,
): (event: Event) => void {
  const fail = (error: unknown): void => report(name, error);
  return (event) => {
    try {
      const result = callback?.(event);
      if (result instanceof Promise) result.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

/** Guards a counter. A text that it cannot count is estimated from its length. */
export function guardCounter(counter: Counter, report: ReportFailure): Counter {
  return {
    name: counter.name,
    count(text) {
      try {
        const tokens = counter.count(text);
        if (Number.isFinite(tokens) && tokens >= 0) return tokens;
        report("counter", new TypeError(`it counted ${tokens}`));
      } catch (error) {
        report("counter", error);
      }
      // More tokens than nearly all text and code has, so that the request still fits.
      return Math.ceil(Buffer.byteLength(text) / 3);
    },
  };
}
