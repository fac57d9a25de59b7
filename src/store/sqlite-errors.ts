/** What the driver and the system say, in our own words. */
import { ContextError } from "../errors.ts";

/** Codes of the SQLite driver, of the file system, or "" of anything else. */
export function driverCode(error: unknown): string {
  if (!(error instanceof Error)) return "";
  // A connection that cannot be opened has its SQLite code at the end of the message only.
  if (error.message.startsWith("ConnectionFailed")) return "SQLITE_CANTOPEN";
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

export function unavailableError(file: string, problem: string, cause?: unknown): ContextError {
  return new ContextError("store_unavailable", `the store cannot be used: ${problem}`, {
    file,
    hint: "Check the path, its permissions and the free space, or choose another path for the store.",
    cause,
  });
}

export function damagedError(file: string, problem: string, cause?: unknown): ContextError {
  return new ContextError("store_corrupt", `the store cannot be read: ${problem}`, {
    file,
    hint: "It was left as it is. Restore it from a backup, or move it away to start with an empty store.",
    cause,
  });
}

export function busyError(cause: unknown, file: string, waitMs: number): ContextError {
  return new ContextError("store_unavailable", `the store was in use by another process for ${waitMs} ms`, {
    file,
    hint: "Try again, or end the process that holds the file.",
    cause,
  });
}

export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(driverCode(error));
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "its file system is read-only",
  ENOTDIR: "a part of its path is not a directory",
  EEXIST: "a part of its path is not a directory",
  ENOSPC: "the disk is full",
};

/** What no table knows is a bug and comes through as it is. */
export function translate(error: unknown, file: string): unknown {
  const code = driverCode(error);
  const reason = error instanceof Error ? error.message : "";
  if (code.startsWith("SQLITE_NOTADB")) return damagedError(file, "the file is not a database", error);
  // The plain code is for wrong SQL, which ours is not: the file lacks what its version promises.
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_ERROR") {
    return damagedError(file, `the file is damaged (${reason})`, error);
  }
  if (code.startsWith("SQLITE_CANTOPEN")) return unavailableError(file, "the file cannot be opened", error);
  if (/^SQLITE_(READONLY|IOERR|FULL|PERM|NOLFS|PROTOCOL)/.test(code)) {
    return unavailableError(file, reason, error);
  }
  if (/^E[A-Z]+$/.test(code)) return unavailableError(file, reasons[code] ?? reason, error);
  return error;
}
