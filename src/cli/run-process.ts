import { fstatSync } from "node:fs";
import { ContextError } from "../errors.ts";
import type { StdinKind } from "./command.ts";
import { isSwitchedOn } from "./options.ts";
import { createOutput } from "./output.ts";
import { exitCodes, reportError } from "./report-error.ts";
import { runCli } from "./run-cli.ts";

/** Ties the command line to this process. The exit code is set, not forced, so that what is still in a pipe gets out. */
export async function runProcess(): Promise<void> {
  const { env, stdin, stdout, stderr } = process;
  const args = process.argv.slice(2);
  const report = (error: unknown, json: boolean) =>
    process.exit(reportError(error, createOutput({ stdout, stderr, env, json, quiet: false })));
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough, such as head, is no failure.
    if (error.code === "EPIPE") process.exit();
    const reason = error.code === "ENOSPC" ? "no space left" : String(error.code);
    report(new ContextError("write_failed", `cannot write to standard output: ${reason}`), false);
  });
  stderr.on("error", () => {});
  process.on("SIGINT", () => {
    if (stderr.isTTY) stderr.write("\n");
    process.exit(exitCodes.interrupted);
  });
  process.on("uncaughtException", (error) => report(error, isSwitchedOn("json", args)));
  const world = { env, stdin, stdinKind: kindOfStdin(), stdout, stderr, cwd: () => process.cwd() };
  process.exitCode = await runCli(args, world);
}

/** Asked of the descriptor: the stream that Node makes of a directory is just empty. */
function kindOfStdin(): StdinKind {
  const stats = fstatSync(0);
  if (stats.isDirectory()) return "directory";
  return stats.isFIFO() || stats.isFile() || stats.isSocket() ? "piped" : "other";
}
