/** Problems beside a call: a callback that throws, a store that fails. They never stop the call, so somebody has to hear
 *  of them another way. */
import { ContextError } from "../../core/errors.ts";

/** Takes a problem. `source` is the name of the callback, or `store`. */
export type ReportFailure = (source: string, cause: unknown) => void;

/** Reports each source once, because a broken callback fails on every call. Without `onError`, the report is a warning of
 *  the process: it shows on stderr, `--no-warnings` hides it, and a listener for `warning` gets it. */
export function createFailureReporter({
  onError,
  onReport,
}: {
  readonly onError?: ((error: unknown) => unknown) | undefined;
  /** Called with each source that is reported. */
  readonly onReport?: ((source: string) => void) | undefined;
}): ReportFailure {
  const reported = new Set<string>();
  return (source, cause) => {
    if (reported.has(source)) return;
    reported.add(source);
    const error = createProblem(source, cause);
    onReport?.(source);
    if (onError !== undefined) return callQuietly(() => onError(error));
    // Runtimes other than Node may have no process.
    const { process } = globalThis as { process?: { emitWarning?: (text: string, options: object) => void } };
    const code = `PLIMSOLL_${error.code.toUpperCase()}`;
    process?.emitWarning?.(`${error.message}. ${error.hint}`, { type: "PlimsollWarning", code });
  };
}

/** Calls a function of the caller, and ignores what it throws or rejects with. */
export function callQuietly(call: () => unknown): void {
  try {
    void Promise.resolve(call()).catch(() => undefined);
  } catch {
    // Nobody is left who could handle it.
  }
}

function createProblem(source: string, cause: unknown): ContextError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (source !== "store")
    return new ContextError("hook_failed", `${source} failed: ${reason}`, {
      hint: "The request was sent without it. Later failures are not reported.",
      cause,
    });
  const code = cause instanceof ContextError ? cause.code : "store_unavailable";
  return new ContextError(code, `the store failed: ${reason}`, {
    hint: "Requests are still trimmed, from memory. What was trimmed cannot be recalled or resumed until the store works again.",
    cause,
  });
}
