/** The only error class that Plimsoll throws. Programs branch on `code`, which never changes its meaning. People read
 *  `message`, which says what happened, and `hint`, which says what to do.
 *
 * @example
 * ```ts
 * import { ContextError } from "plimsoll";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * try {
 *   await openSqliteStore({ path: "state.db" });
 * } catch (error) {
 *   if (!(error instanceof ContextError) || error.code !== "store_unavailable") throw error;
 *   console.error(error.message, error.hint);
 * }
 * ```
 */
export class ContextError extends Error {
  override readonly name = "ContextError";
  readonly code: ErrorCode;
  /** What to do about the error, in one sentence. */
  readonly hint: string | undefined;
  /** The file with the problem. */
  readonly file: string | undefined;
  /** The line of that file, counted from 1. */
  readonly line: number | undefined;
  /** How large the request is and what fills it, if the code is `context_overflow`. */
  readonly overflow: ErrorDetails["overflow"];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.hint = details.hint;
    this.file = details.file;
    this.line = details.line;
    this.overflow = details.overflow;
  }
}

interface ErrorDetails {
  /** What to do about the error, in one sentence. */
  hint?: string | undefined;
  file?: string | undefined;
  /** Counted from 1. */
  line?: number | undefined;
  cause?: unknown;
  /** The smallest valid request, what may be sent, and the largest parts that are left, largest first. */
  overflow?:
    | {
        readonly tokens: number;
        readonly limit: number;
        readonly largest: readonly {
          /** Such as `messages[3].content[0]`. */
          readonly path: string;
          readonly role: string;
          readonly kind: string;
          readonly tokens: number;
        }[];
      }
    | undefined;
}

/** Creates the error for a wrong argument. `hint` says what to pass instead. */
export function invalidArgument(message: string, hint: string): ContextError {
  return new ContextError("invalid_argument", message, { hint });
}

/** Throws problems of files as one error, if there are any. The first problem gives the error its place. Each other
 *  problem adds a line with its own place to the message. */
export function throwProblems(
  code: ErrorCode,
  problems: readonly { readonly file: string; readonly line: number; readonly message: string }[],
  hint?: string,
): void {
  const [first, ...rest] = problems;
  if (first === undefined) return;
  const lines = rest.map(({ file, line, message }) => `${file}:${line}: ${message}`);
  throw new ContextError(code, [first.message, ...lines].join("\n"), { file: first.file, line: first.line, hint });
}

/** Creates the error for a wrong command line or request. `hint` says what to do instead. */
export function usageError(message: string, hint?: string): ContextError {
  return new ContextError("usage", message, { hint });
}

/** Every error code. Codes are stable, so programs can branch on them.
 *
 * @example
 * ```ts
 * import { type ErrorCode, errorCodes } from "plimsoll";
 *
 * const isErrorCode = (text: string): text is ErrorCode => errorCodes.some((code) => code === text);
 * console.log(isErrorCode("store_conflict"));
 * ```
 */
export const errorCodes = [
  "usage",
  "unknown_counter",
  "invalid_argument",
  "invalid_config",
  "untrusted",
  "invalid_content",
  "invalid_message",
  "context_overflow",
  "unreadable_input",
  "refused_target",
  "write_failed",
  "store_unavailable",
  "store_corrupt",
  "store_newer",
  "store_conflict",
  "hook_failed",
] as const;

/** The `code` of a `ContextError`. */
export type ErrorCode = (typeof errorCodes)[number];
