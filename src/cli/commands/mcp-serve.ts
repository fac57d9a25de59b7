/** `mcp serve` and `mcp wrap`: their options, the servers, and the settings that both have. */
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { leastAllocation } from "../../core/budget/index.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import { type SecretRules, wholeNumber } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  chooseCounter,
  type LoadedConfig,
  loadConfig,
  noteIgnoredStore,
  noteLeftOut,
  shownPath,
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
  wrapServer,
} from "../../results/mcp/index.ts";
import type { HintMode, LedgerOptions, PageFormat, PageLimit } from "../../results/session/index.ts";
import { loadMcpInstall } from "../../rules/index.ts";
import type { Call, CommandExit, OptionValues } from "../command.ts";
import { findToken, httpOptions, readPort } from "../http-options.ts";
import { counterOptions, type ListOption, type SwitchOption, type ValueOption } from "../shared-options.ts";
import { readVersion } from "../version.ts";

export const serveOptions: Readonly<
  typeof httpOptions &
    Record<"root" | "format" | "hints", ValueOption> &
    Record<"tools" | "allow-commands", ListOption> &
    Record<"allow-shell", SwitchOption>
> = {
  root: {
    value: "DIR",
    summary: "directory that the tools read (default: the client's root, or else the current one)",
  },
  ...httpOptions,
  format: {
    value: "FORM",
    choices: ["text", "json"],
    summary: "form of results: compact text, or JSON with facts about each page (default: text)",
  },
  tools: { value: "NAME[,NAME...]", list: true, summary: "serve only these tools, and next_page (default: all)" },
  "allow-commands": {
    value: "NAME[,NAME...]",
    list: true,
    summary: "also serve run_command, for these programs, or for all of them with the word all",
  },
  "allow-shell": { summary: "with --allow-commands all: run commands in a shell" },
  hints: {
    value: "MODE",
    choices: ["note", "schema", "off"],
    summary:
      "where the model reads what the budget allows (default: from the configuration; note: in each JSON result)",
  },
};

/** Options of serve and wrap. */
export const budgetOptions: Readonly<
  Record<"total" | "per-tool" | "page-characters" | "store" | "session" | "counter" | "model", ValueOption> &
    Record<"no-store", SwitchOption>
> = {
  total: {
    value: "N",
    summary: "most tokens of all results of a conversation (default: from the configuration, else no limit)",
  },
  "per-tool": {
    value: "N",
    summary: "most tokens of one result (default: from the configuration, else what the client shows)",
  },
  "page-characters": { value: "N", summary: "most characters of one result (default: depends on the client)" },
  store: {
    value: "PLACE",
    summary: "file of the store for results, or postgres://… (default: PLIMSOLL_STORE, or else from the configuration)",
  },
  "no-store": { summary: "keep results in memory only, until the server ends" },
  session: {
    value: "ID",
    summary:
      "account that servers with the same ID share (default: the client's conversation, or else one for each root or server)",
  },
  ...counterOptions,
};

export const wrapOptions: Readonly<
  Record<"config" | "from" | "as", ValueOption> & Record<"server", ListOption> & Record<"intake" | "lazy", SwitchOption>
> = {
  config: { value: "FILE", summary: "run the servers of this file: JSON or TOML, in the form of any AI tool" },
  from: { value: "ID", summary: "run the servers of this AI tool's own configuration under HOME" },
  server: {
    value: "NAME[,NAME...]",
    list: true,
    summary: "with --config or --from: only these servers (default: all)",
  },
  as: { value: "NAME", summary: "name of this server in the AI tool, so that notes name tools as the model sees them" },
  intake: { summary: "leave out of a result what earlier results already have; recall returns the whole text" },
  lazy: { summary: "offer six tools that find and call the servers' tools, instead of listing all of them" },
};

type ServeFlags = OptionValues<typeof serveOptions> & ServerFlags;

/** Serves until the client disconnects or a signal arrives. Only the protocol uses stdout. */
export async function runServe(call: Call<ServeFlags>): Promise<undefined> {
  const { options, cwd, env, output, stdin } = call;
  const port = readPort(options);
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
  if (port !== undefined)
    await serveHttp(host, {
      port,
      token: await findToken(call, { file: "mcp-token", variable: "PLIMSOLL_MCP_TOKEN" }),
    });
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

type ServerFlags = OptionValues<typeof budgetOptions>;

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

// `mcp wrap`: runs other MCP servers behind a budget.

type WrapFlags = OptionValues<typeof wrapOptions>;

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
    const read = files.map((file) => shownPath(file, cwd, env)).join(", ");
    throw usageError(`there is no server to run in ${read}`, "Add one to the file, or turn one on.");
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
