/** `mcp serve`: the server itself, and the settings that it shares with `mcp wrap`. */
import { realpath, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { leastAllocation } from "../../core/budget/index.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import type { SecretRules } from "../../core/text/index.ts";
import { wholeNumber } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  chooseCounter,
  type LoadedConfig,
  loadConfig,
  noteIgnoredStore,
  noteLeftOut,
  shownPath,
  stateDirectory,
  storeFile,
  takeEndSignals,
} from "../../host/index.ts";
import {
  type Conversation,
  chooseRoot,
  createSessionId,
  findConversation,
  type ServedPlace,
  serveHttp,
  serverToolNames,
  serveStdio,
} from "../../results/mcp/index.ts";
import type { HintMode, LedgerOptions, PageFormat, PageLimit } from "../../results/session/index.ts";
import type { Call } from "../command.ts";
import { readVersion } from "../version.ts";

type ServeFlags = ServerFlags & {
  readonly root?: string | undefined;
  readonly http?: string | undefined;
  readonly hints?: string | undefined;
  readonly format?: string | undefined;
  readonly tools?: readonly string[] | undefined;
  readonly "allow-commands"?: readonly string[] | undefined;
  readonly "allow-shell"?: boolean | undefined;
  readonly "token-file"?: string | undefined;
  readonly "no-token"?: boolean | undefined;
};

/** Serves until the client disconnects or a signal arrives. Only the protocol uses stdout. */
export async function runServe(call: Call<ServeFlags>): Promise<undefined> {
  const { options, cwd, env, output, stdin } = call;
  const port = wholeNumber(options.http, "http", 0);
  const needsHttp = (["token-file", "no-token"] as const).find((name) => options[name] !== undefined);
  if (port === undefined && needsHttp !== undefined) {
    throw usageError(`--${needsHttp} needs --http`, "A server on stdio has one client.");
  }
  const names = serverToolNames(env);
  const wrong = options.tools?.find((name) => !names.includes(name));
  if (wrong !== undefined) throw usageError(`--tools: there is no tool "${wrong}"`, `Known: ${names.join(", ")}.`);
  const named = options.root === undefined ? undefined : await namedRoot(options.root, cwd);
  const places = remembered(async (root: string) => {
    const { sessionId, ...settings } = await readSettings(call, root);
    const id = sessionId ?? createSessionId("mcp", root, [root]);
    return { ...settings, root, sessionId: id, isNamed: sessionId !== undefined };
  });
  const findRoot = remembered(async (roots: readonly string[] | undefined) => chooseRoot(roots, { cwd, env }));
  const place = async (roots: readonly string[] | undefined): Promise<ServedPlace> =>
    places(named ?? (await findRoot(roots)));
  // Reports mistakes in flags and configuration before a client waits. A missing directory is not one of them, because
  // the client may offer one.
  const start = named ?? (await chooseRoot(undefined, { cwd, env }).catch((error: unknown) => error));
  if (start instanceof ContextError) output.note(`${start.message}. ${start.hint}`);
  else if (typeof start !== "string") throw start;
  const configured = typeof start === "string" ? (await places(start)).hints : undefined;
  const end = new AbortController();
  takeEndSignals(() => end.abort());
  const host = {
    place,
    pageLimit: readPageLimit(options),
    asksRoots: named === undefined,
    hints: (options.hints ?? configured) as HintMode | undefined,
    format: (options.format ?? "text") as PageFormat,
    tools: options.tools,
    commands: readCommands(options),
    env,
    version: readVersion(),
    signal: end.signal,
    log: output.note,
  };
  if (port !== undefined) await serveHttp(host, { port, token: await findToken(call) });
  else {
    if (process.stdin.isTTY) output.note("waiting for an MCP client on standard input; Ctrl-C ends the server");
    // If the reader is gone, the server shuts down in order instead of exiting at once.
    process.stdout.removeAllListeners("error");
    await serveStdio(host, { stdin, stdout: process.stdout });
    // After a signal stdin is still open, and Node would wait for its end.
    process.stdin.destroy();
  }
  return undefined;
}

/** Returns what the model may run. Only the person who starts the server can allow it. */
function readCommands(options: ServeFlags): Parameters<typeof serveStdio>[0]["commands"] {
  const { "allow-commands": names, "allow-shell": allowsShell = false } = options;
  const isAll = names?.includes("all") === true;
  if (allowsShell && !isAll) {
    throw usageError("--allow-shell needs --allow-commands all", "A shell can start any program.");
  }
  return names === undefined ? undefined : { programs: isAll ? "all" : names, allowsShell };
}

/** Remembers the result for each argument. Tries again after a failure, because a person may have fixed it. */
function remembered<Argument, Result>(
  ask: (argument: Argument) => Promise<Result>,
): (argument: Argument) => Promise<Result> {
  const answers = new Map<string | undefined, Promise<Result>>();
  return (argument) => {
    const key = JSON.stringify(argument);
    const answer = answers.get(key) ?? ask(argument);
    answers.set(key, answer);
    answer.catch(() => answers.delete(key));
    return answer;
  };
}

/** Resolves links, so that a project has one session whichever path leads to it. */
async function namedRoot(root: string, cwd: string): Promise<string> {
  const path = await realpath(resolve(cwd, root)).catch(() => undefined);
  if (path !== undefined && (await stat(path)).isDirectory()) return path;
  throw usageError(
    `--root ${root} is ${path === undefined ? "missing" : "not a directory"}`,
    "Name the directory that the tools may read.",
  );
}

/** Returns the token for HTTP requests: the given one, or our own, which is created at the first start and then
 *  reused. */
async function findToken({ options, cwd, env, output }: Call<ServeFlags>): Promise<string | undefined> {
  const file = options["token-file"];
  if (options["no-token"] === true) {
    if (file === undefined) return undefined;
    throw usageError("--token-file and --no-token cannot be used together", "Leave one of them out.");
  }
  const { checkToken, ownToken, readToken } = await import("../../host/processes/loopback-server.ts");
  if (file !== undefined) return readToken(resolve(cwd, file));
  if (env.PLIMSOLL_MCP_TOKEN) return checkToken(env.PLIMSOLL_MCP_TOKEN, "PLIMSOLL_MCP_TOKEN");
  const path = join(stateDirectory(env), "mcp-token");
  const token = await ownToken(path, env);
  output.note(`the token is in ${shownPath(path, cwd, env)}; clients send "Authorization: Bearer TOKEN"`);
  return token;
}

/** Options about the budget, the store and the session of a server. */
interface ServerFlags {
  readonly total?: string | undefined;
  readonly "per-tool"?: string | undefined;
  readonly store?: string | undefined;
  readonly "no-store"?: boolean | undefined;
  readonly session?: string | undefined;
  readonly "page-characters"?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
}

interface ServerSettings {
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  /** Undefined if results stay in memory only. */
  readonly storeFile: string | undefined;
  /** From the command line. Its servers have one account. */
  readonly sessionId: string | undefined;
  readonly conversation: Conversation | undefined;
  readonly hints: HintMode;
  readonly upkeep: ServedPlace["upkeep"];
  readonly secrets: SecretRules;
  readonly pageLimit: PageLimit | undefined;
}

/** Reads the settings of a server. The project's configuration is searched from `root`. */
export async function readSettings(call: Call<ServerFlags>, root: string): Promise<ServerSettings> {
  const { options, cwd, env, output } = call;
  if (options.store !== undefined && options["no-store"] === true) {
    throw usageError("--store and --no-store cannot be used together", "Leave one of them out.");
  }
  const config = await loadConfig({ cwd: root, env });
  noteIgnoredStore(config, call);
  noteLeftOut(config.leftOut, call, "allow");
  // No note about the default counter if no model is given.
  const quiet = options.model === undefined ? { ...output, note: () => {} } : output;
  const counter = await chooseCounter({ ...call, cwd: root, output: quiet }, "auto");
  const { retention } = config.values;
  // Deletes what is older than the user's configuration allows, once a day.
  const prune: ServedPlace["upkeep"] = async (store) => {
    const { pruneByRetention } = await import("../../clients/prune-store.ts");
    await pruneByRetention(store, { retention: retention!, env });
  };
  return {
    counter,
    budget: readBudget(options, config),
    storeFile: options["no-store"] === true ? undefined : storeFile(options.store, { cwd, env, config }),
    sessionId: options.session,
    conversation: findConversation({ env }),
    hints: config.values.session.hints,
    upkeep: retention === undefined ? undefined : prune,
    secrets: { deny: config.values.deny, allow: config.values.allow },
    pageLimit: readPageLimit(options),
  };
}

/** Reads the page limit that replaces the client's known limit. */
function readPageLimit(options: ServerFlags): PageLimit | undefined {
  const characters = wholeNumber(options["page-characters"], "page-characters", 1_000);
  return characters === undefined ? undefined : { characters };
}
/** Over MCP no client reports how full its context is, and most clients compact it. So only the limit of each result
 *  applies, unless a person sets a total. Leaves out values that nobody set, because the ledger's defaults depend on it. */
function readBudget(options: ServerFlags, { values, sources }: LoadedConfig): LedgerOptions {
  const { session } = values;
  const chosen = <Name extends keyof typeof session>(name: Name): (typeof session)[Name] | undefined =>
    sources[`session.${name}`] === "default" ? undefined : session[name];
  return {
    total: wholeNumber(options.total, "total", 1_000) ?? chosen("total") ?? "unlimited",
    perToolCall: wholeNumber(options["per-tool"], "per-tool", leastAllocation) ?? chosen("per_tool_call"),
    historyMax: chosen("history_max"),
    warningThreshold: chosen("warning_threshold"),
    tools: session.tools,
    tiers: session.tiers,
  };
}
