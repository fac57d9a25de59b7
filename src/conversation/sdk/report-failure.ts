/** Problems beside a call: a callback that throws, a store that fails. They never stop the call, so somebody has to hear
 *  of them another way. */
import { ContextError } from "../../core/errors.ts";

/** Takes a problem. `source` is the name of the callback, or `store`. */
export type ReportFailure = (source: string, cause: unknown) => void;

interface ReporterOptions {
  readonly onError?: ((error: unknown) => unknown) | undefined;
  /** Called with each source that is reported. */
  readonly onReport?: ((source: string) => void) | undefined;
}

/** Reports each source once, because a broken callback fails on every call. Without `onError`, the report is a warning of
 *  the process: it shows on stderr, `--no-warnings` hides it, and a listener for `warning` gets it. */
export function createFailureReporter({ onError, onReport }: ReporterOptions): ReportFailure {
  const reported = new Set<string>();
  return (source, cause) => {
    if (reported.has(source)) return;
    reported.add(source);
    const error = source === "store" ? storeProblem(cause) : hookProblem(source, cause);
    onReport?.(source);
    if (onError === undefined) warn(error);
    else callQuietly(() => onError(error));
  };
}

/** Calls a function of the caller, and ignores what it throws or rejects with. */
export function callQuietly(call: () => unknown): void {
  try {
    void Promise.resolve(call()).catch(() => undefined);
  } catch {
    // There is nobody left to tell.
  }
}

function storeProblem(cause: unknown): ContextError {
  const code = cause instanceof ContextError ? cause.code : "store_unavailable";
  return new ContextError(code, `the store failed: ${describe(cause)}`, {
    hint: "Requests are still trimmed, from memory. What was trimmed cannot be recalled or resumed until the store works again.",
    cause,
  });
}

function hookProblem(name: string, cause: unknown): ContextError {
  return new ContextError("hook_failed", `${name} failed: ${describe(cause)}`, {
    hint: "The request was sent without it. Later failures are not reported.",
    cause,
  });
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Runtimes other than Node may have no process. */
function warn({ message, hint, code }: ContextError): void {
  const { process } = globalThis as { process?: { emitWarning?: (text: string, options: object) => void } };
  process?.emitWarning?.(`${message}. ${hint}`, { type: "PlimsollWarning", code: `PLIMSOLL_${code.toUpperCase()}` });
}
