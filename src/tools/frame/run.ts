import type { ToolCall } from "../../session/index.ts";
import type { Environment, SecretTest } from "../../workspace/index.ts";

/** Where a tool works: it reads below `root` and nowhere else. */
export interface Place {
  readonly root: string;
  readonly env: Environment;
  /** Which files' contents stay hidden. Default: those that usually hold secrets. */
  readonly isSecret?: SecretTest | undefined;
}

/** One call of a tool. */
export interface Run extends Place {
  /** Aborts when the caller wishes so and when time is up: every process and walk of this call ends with it. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Time is up. What was found until then is a result. */
  timedOut(): boolean;
  /** Nothing of this call goes on: its timer ends. */
  finish(): void;
}

/** Clients give up on a tool after a minute at the earliest; a model that waits learns nothing. */
const defaultTimeoutMs = 10_000;

export function startRun(place: Place, call: ToolCall): Run {
  const timeoutMs = call.timeoutMs ?? defaultTimeoutMs;
  const controller = new AbortController();
  const stop = () => controller.abort();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stop();
  }, timeoutMs);
  const finish = () => {
    clearTimeout(timer);
    call.signal.removeEventListener("abort", stop);
  };
  timer.unref();
  // Not AbortSignal.any: on Node 20 a long-lived signal keeps everything that was ever derived from it.
  call.signal.addEventListener("abort", stop, { once: true });
  if (call.signal.aborted) stop();
  controller.signal.addEventListener("abort", finish, { once: true });
  return { ...place, signal: controller.signal, timeoutMs, timedOut: () => late, finish };
}

/** `what` was not finished: "the list of files". */
export function lateWarning({ timeoutMs }: Run, what: string): string {
  return `Stopped after ${timeoutMs / 1000} s: ${what} is not complete. Name a smaller path or a narrower pattern.`;
}
