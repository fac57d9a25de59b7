/** The one error class. Its code is stable and for programs; its message is for people: what happened, then what to do. */
export class ContextError extends Error {
  override readonly name = "ContextError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.hint = details.hint;
    this.file = details.file;
    this.line = details.line;
  }
}

export interface ErrorDetails {
  /** What to do about it, one sentence. */
  hint?: string | undefined;
  file?: string | undefined;
  /** 1-based. */
  line?: number | undefined;
  cause?: unknown;
}

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
] as const;

export type ErrorCode = (typeof errorCodes)[number];
