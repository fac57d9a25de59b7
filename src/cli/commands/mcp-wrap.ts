/** `mcp wrap`: runs other MCP servers behind a budget. */
import { resolve } from "node:path";
import { usageError } from "../../core/errors.ts";
import { takeEndSignals } from "../../host/index.ts";
import { createSessionId, wrapServer } from "../../results/mcp/index.ts";
import { loadMcpInstall } from "../../rules/index.ts";
import type { Call, CommandExit } from "../command.ts";
import { readVersion } from "../version.ts";

interface WrapFlags {
  readonly config?: string | undefined;
  readonly from?: string | undefined;
  readonly server?: readonly string[] | undefined;
  readonly as?: string | undefined;
  readonly lazy?: boolean | undefined;
  readonly intake?: boolean | undefined;
}

type WrapOptions = Parameters<typeof wrapServer>[0];

/** Runs other servers. Ends with the exit code of the server if there is one. */
export async function runWrap(
  call: Call<WrapFlags>,
  words: readonly string[],
  // The budget, the store, and the session of the command line, if any.
  {
    sessionId,
    ...settings
  }: Pick<WrapOptions, "counter" | "budget" | "storeFile" | "upkeep" | "conversation" | "pageLimit" | "format"> & {
    readonly sessionId: string | undefined;
  },
): Promise<CommandExit> {
  const { cwd, env, stdin, output } = call;
  const servers = await wrappedServers(call, words);
  const name = words.length > 0 ? serverName(words) : servers.map((server) => server.name).join("+");
  const parts = words.length > 0 ? words : servers.map((server) => JSON.stringify(server));
  // If the reader is gone, it ends with the server instead of exiting at once.
  process.stdout.removeAllListeners("error");
  const exitCode = await wrapServer({
    ...settings,
    shownAs: call.options.as,
    isLazy: call.options.lazy,
    hasIntake: call.options.intake,
    ...{ servers, cwd, env, stdin, stdout: process.stdout, version: readVersion(), log: output.note },
    sessionId: sessionId ?? createSessionId("wrap", name, [cwd, ...parts]),
    isNamed: sessionId !== undefined,
    onStart: takeEndSignals,
  });
  // The client may hold stdin open, and Node would wait for its end.
  process.stdin.destroy();
  return { exitCode };
}

/** Returns the servers to run: the command after --, or those of a file. */
async function wrappedServers(call: Call<WrapFlags>, words: readonly string[]): Promise<WrapOptions["servers"]> {
  const { config, from, server: names } = call.options;
  const [name, ...args] = words;
  const ways = [name !== undefined && "a command", config && "--config", from && "--from"].filter(Boolean);
  if (ways.length > 1) {
    throw usageError(`${ways.join(" and ")} cannot be used together`, "Leave one of them out.");
  }
  if (config !== undefined || from !== undefined) {
    // `from` reads only files under HOME: opening a foreign project must not start the programs that it names.
    const { cwd, env, output } = call;
    const wire = await loadMcpInstall();
    const options = { global: true, dryRun: true, cwd, env, note: output.note };
    const files =
      config === undefined ? await wire.serverFiles(from!, await wire.prepareInstall(options)) : [resolve(cwd, config)];
    const [first, ...others] = await wire.readServers(files, { env, cwd, names, note: output.note });
    if (first !== undefined) return [first, ...others];
    throw usageError("there is no server to run", "Add one to the file, or turn one on.");
  }
  if (names !== undefined) throw usageError("--server needs --config or --from");
  if (name !== undefined && name !== "") return [{ name: serverName(words), command: [name, ...args] }];
  throw usageError(
    `the command of the server is ${name === "" ? "empty" : "missing"}`,
    "Put it after --, as in plimsoll mcp wrap -- npx -y SERVER, or name a file with --config.",
  );
}

/** The name of the server for people: the package in `npx -y @scope/server-files .`. */
function serverName(words: readonly string[]): string {
  const [command = "", ...rest] = words;
  const isRunner = /^(npx|uvx|bunx|pnpx|node|python3?|deno|bun|docker)$/.test(command.replace(/^.*[/\\]/, ""));
  return (isRunner ? rest.find((word) => !/^(-|run$|exec$)/.test(word)) : undefined) ?? command;
}
