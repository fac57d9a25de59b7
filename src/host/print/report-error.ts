/** Reports errors. Expected errors are one line and exit 1, or 2 for wrong usage. Anything else is a bug: stack,
 *  exit 70. */
import { inspect } from "node:util";
import { ContextError, type ErrorCode } from "../../core/errors.ts";
import { messageOf, printable, printableLines } from "../../core/text/index.ts";
import type { Output } from "./output.ts";

export const exitCodes = { done: 0, failed: 1, usage: 2, bug: 70, interrupted: 130 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Prints the error to stderr, and with `--json` also as a value to stdout. */
export function reportError(error: unknown, output: Output): ExitCode {
  const usageCodes: readonly ErrorCode[] = ["usage", "unknown_counter"];
  output.settle();
  if (!(error instanceof ContextError)) {
    const hint = "This is a bug in plimsoll. Please report it with the lines above.";
    output.problem(`${inspect(error)}\n${hint}`);
    if (output.json) printJson(output, { code: "internal", message: messageOf(error), hint });
    return exitCodes.bug;
  }
  const { code, message, hint, file, line } = error;
  output.problem(describeError(error));
  if (output.json) printJson(output, { code, message, hint: hint ?? null, file, line });
  return usageCodes.includes(code) ? exitCodes.usage : exitCodes.failed;
}

/** Returns `file:line: message` and the hint, on one line if the message has one line. */
export function describeError(
  { message, hint, file, line }: ContextError,
  shown: (path: string) => string = (path) => path,
): string {
  const place = file === undefined ? "" : `${printable(shown(file))}${line === undefined ? "" : `:${line}`}: `;
  const advice = hint === undefined ? "" : `${message.includes("\n") ? "\n" : ". "}${hint}`;
  return printableLines(`${place}${message}${advice}`);
}

function printJson(output: Output, error: object): void {
  output.result(JSON.stringify({ error }, null, 2));
}

/** Handles the signals with which clients end a server, so that it shuts down in order. */
export function takeEndSignals(end: (signal: NodeJS.Signals) => void): void {
  process.removeAllListeners("SIGINT");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end(signal));
}
