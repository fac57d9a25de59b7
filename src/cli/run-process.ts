import { ContextError } from "../errors.ts";
import { createOutput } from "./output.ts";
import { exitCodes, reportError } from "./report-error.ts";
import { runCli } from "./run-cli.ts";

/** Ties the command line to this process. The exit code is set, not forced, so that what is still in a pipe gets out. */
export async function runProcess(): Promise<void> {
  const { argv, env, stdin, stdout, stderr } = process;
  const bare = createOutput({ stdout, stderr, env, json: false, quiet: false });
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough, such as head, is no failure.
    if (error.code === "EPIPE") process.exit();
    const reason = error.code === "ENOSPC" ? "no space left" : String(error.code);
    process.exit(
      reportError(new ContextError("write_failed", `cannot write to standard output: ${reason}`), bare),
    );
  });
  stderr.on("error", () => {});
  process.on("SIGINT", () => {
    if (stderr.isTTY) stderr.write("\n");
    process.exit(exitCodes.interrupted);
  });
  process.on("uncaughtException", (error) => process.exit(reportError(error, bare)));
  process.exitCode = await runCli(argv.slice(2), { env, stdin, stdout, stderr, cwd: () => process.cwd() });
}
