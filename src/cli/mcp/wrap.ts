import { ContextError } from "../../errors.ts";
import { sessionIdOf, wrapServer } from "../../mcp/index.ts";
import type { Call, CommandExit } from "../command.ts";
import { takeEndSignals } from "../end-signals.ts";
import { readPageLimit, readSettings, type ServerFlags } from "./settings.ts";

/** Runs another server, and ends as it ends: with its exit code. */
export async function runWrap(
  call: Call<ServerFlags>,
  [name, ...args]: readonly string[],
): Promise<CommandExit> {
  if (name === undefined || name === "") {
    throw new ContextError("usage", `the server's command is ${name === "" ? "empty" : "missing"}`, {
      hint: "Put it behind --, as in plimsoll mcp wrap -- npx -y SERVER.",
    });
  }
  const { cwd, stdin, output } = call;
  const { sessionId, ...settings } = await readSettings(call, cwd);
  // Where nobody reads any more it ends as the server does: the frame would exit at once.
  process.stdout.removeAllListeners("error");
  const exitCode = await wrapServer({
    ...settings,
    pageLimit: readPageLimit(call.options),
    command: [name, ...args],
    ...{ cwd, stdin, stdout: process.stdout, log: output.note },
    sessionId: sessionId ?? sessionIdOf("wrap", serverName([name, ...args]), [cwd, name, ...args]),
    goesOn: sessionId !== undefined,
    onStart: takeEndSignals,
  });
  // The client may still hold it open, and Node would wait for its end.
  process.stdin.destroy();
  return { exitCode };
}

/** What people would call it: of `npx -y @scope/server-files .` the package. */
function serverName(words: readonly string[]): string {
  const [command = "", ...rest] = words;
  const isRunner = /^(npx|uvx|bunx|pnpx|node|python3?|deno|bun|docker)$/.test(
    command.replace(/^.*[/\\]/, ""),
  );
  return (isRunner ? rest.find((word) => !/^(-|run$|exec$)/.test(word)) : undefined) ?? command;
}
