import { json } from "node:stream/consumers";
import {
  changePlugin,
  findClients,
  installState,
  listPluginSessions,
  type PluginChange,
  type PluginClient,
  type PluginPlace,
  type PluginSession,
  type PluginSettings,
  pluginClients,
} from "../../clients/index.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { countNoun, didYouMean, formatNumber, messageOf, printable, wholeNumber } from "../../core/text/index.ts";
import {
  createDiff,
  describeError,
  findProgram,
  homeDirectory,
  lookInStore,
  openStore,
  projectRoot,
  renderTable,
  shownPath,
  storePath,
  takeEndSignals,
} from "../../host/index.ts";
import {
  type ActionHelp,
  type Call,
  type Command,
  type CommandResult,
  defineCommand,
  type OptionSpecs,
  type OptionValues,
  refuseOthers,
} from "../command.ts";
import { dryRunOption, storeOptions } from "../shared-options.ts";
import { readVersion } from "../version.ts";

const options = {
  scope: { value: "SCOPE", choices: ["user", "project"], summary: "where the plugin is (default: user)" },
  ...dryRunOption,
  "max-result-tokens": { value: "N", summary: "results above this many tokens become a page (default: 16000)" },
  "no-deltas": { summary: "leave repeated text in the results; only cut long ones" },
  trim: {
    value: "N",
    summary:
      'also trim the history to requests of N tokens, or "window" for the model\'s limit (claude-code, opencode, pi)',
  },
  images: {
    value: "N",
    summary: "send images only in the newest N results that have some, or a few more (claude-code, opencode, pi)",
  },
  guard: { summary: "also stop tool calls at the limits of guard in the configuration (claude-code)" },
  ...storeOptions,
} as const satisfies OptionSpecs;

const { store, ...installOptions } = options;
const intakeOptions = { "max-result-tokens": options["max-result-tokens"], "no-deltas": options["no-deltas"] };
const actions = {
  install: installOptions,
  uninstall: { scope: options.scope, ...dryRunOption },
  status: storeOptions,
  check: { scope: options.scope },
  serve: { ...intakeOptions, trim: options.trim, store },
  hook: { ...intakeOptions, store },
} as const;
type Action = keyof typeof actions;
type PluginCall = Call<OptionValues<typeof options>>;

const clientArgument = {
  name: "CLIENT",
  summary: `the AI client: ${Object.keys(pluginClients).join(", ")} (default: all that are found)`,
  optional: true,
} as const;

const actionHelp: Readonly<Record<Action, ActionHelp>> = {
  install: {
    summary: "add the plugin to an AI client",
    arguments: [clientArgument],
    options: actions.install,
    details: `Writes the plugin's files into the client's own folder. Other files stay as they are. A file that was
changed by hand is never overwritten. Run it again to change the settings or after an update of plimsoll.`,
    examples: [
      { line: "plimsoll plugin install claude-code", meaning: "for all your projects" },
      { line: "plimsoll plugin install claude-code --scope project", meaning: "for this project, as files to commit" },
      { line: "plimsoll plugin install claude-code --dry-run", meaning: "show the files" },
      { line: "plimsoll plugin install claude-code --guard", meaning: "with the spend guard" },
      { line: "plimsoll plugin install opencode --trim 100000", meaning: "also keep requests below 100,000 tokens" },
    ],
  },
  uninstall: {
    summary: "remove the plugin from an AI client",
    arguments: [clientArgument],
    options: actions.uninstall,
    details: `Removes exactly what install wrote. Stored results stay, so that ids in old sessions still work.`,
    examples: [{ line: "plimsoll plugin uninstall claude-code", meaning: "remove it" }],
  },
  status: {
    summary: "show whether the plugin is installed and what it did in each session",
    arguments: [clientArgument],
    options: actions.status,
    examples: [
      { line: "plimsoll plugin status claude-code", meaning: "results, edits, tokens saved, recalls, errors" },
    ],
  },
  check: {
    summary: "test whether a shortened result reaches the client's request",
    arguments: [clientArgument],
    options: actions.check,
    details: `Starts the client with the installed plugin, in a folder of its own and with a model on loopback that
follows a script. Nothing leaves this computer, and no tokens are spent. Run it after an update of the client.`,
    examples: [{ line: "plimsoll plugin check claude-code", meaning: "run the test" }],
  },
  serve: {
    summary: "the process that the plugin starts",
    arguments: [clientArgument],
    options: actions.serve,
    details: `An MCP server on stdin and stdout. The installed plugin starts it; there is no need to run it by hand.`,
    examples: [{ line: "plimsoll plugin serve claude-code", meaning: "what the client runs" }],
  },
  hook: {
    summary: "answer one event of a client",
    arguments: [clientArgument],
    options: actions.hook,
    details: `Reads the event as JSON on stdin and prints the answer, or nothing to change nothing. The installed plugin
runs it; there is no need to run it by hand.`,
    examples: [{ line: "plimsoll plugin hook gemini-cli < event.json", meaning: "what the client runs" }],
  },
};

export const pluginCommand: Command = defineCommand({
  arguments: [
    { name: "ACTION", choices: Object.keys(actions), summary: "install, uninstall, status or check" },
    clientArgument,
  ],
  options,
  details: `A plugin shortens tool results inside an AI client before its model first sees them: text that the
conversation already has becomes a note, a very long result becomes a page. The original is kept on this computer, and
the model can ask for it. "plimsoll help plugin ACTION" shows the help of one action.`,
  examples: [
    { line: "plimsoll plugin install claude-code", meaning: "add the plugin for all your projects" },
    { line: "plimsoll plugin status claude-code", meaning: "what it saved in each session" },
    { line: "plimsoll plugin check claude-code", meaning: "test it with the installed client, without a network" },
    { line: "plimsoll plugin uninstall claude-code", meaning: "remove it" },
    { line: "plimsoll plugin status", meaning: "all clients that are found" },
  ],
  actions: actionHelp,
  async run(call) {
    const [action, name] = call.arguments as readonly [Action, string?];
    refuseOthers(action, call.options, { options, actions });
    if (name !== undefined) return runFor(action, await findClient(name), call);
    if (action === "serve" || action === "hook") throw usageError(`${action} needs the name of a client`);
    const found = await findClients(pluginClients, call.env);
    // What was never installed is neither removed nor tested.
    const isMeant = async (client: PluginClient): Promise<boolean> =>
      action === "install" || action === "status" || (await installState(client, findPlace(call))) !== "absent";
    const results: CommandResult[] = [];
    for (const client of found)
      if (await isMeant(client)) results.push((await runFor(action, client, call)) as CommandResult);
    if (results.length === 0) return { json: [], text: "Found no AI client with a plugin." };
    return {
      json: results.map(({ json }) => json),
      text: results.map(({ text }) => text).join("\n"),
      failed: results.some(({ failed }) => failed === true),
    };
  },
});

async function runFor(action: Action, client: PluginClient, call: PluginCall): Promise<CommandResult | undefined> {
  if (action === "serve") return runServe(call, client, readSettings(call));
  if (action === "hook") return runHook(call, client, readSettings(call));
  if (action === "status") return showStatus(call, client);
  if (action === "install" || action === "uninstall") return change(call, client, action);
  call.output.progress(`starting ${client.id}`);
  const { passed, version, lines } = await client.check(findPlace(call));
  const title = `${client.id}${version === undefined ? "" : ` ${version}`}: ${passed ? "the plugin works" : "the plugin does not work"}`;
  return {
    json: { client: client.id, version: version ?? null, passed, lines },
    text: [...lines, title].join("\n"),
    failed: !passed,
  };
}

async function findClient(name: string): Promise<PluginClient> {
  if (Object.hasOwn(pluginClients, name)) return pluginClients[name]!();
  const names = Object.keys(pluginClients);
  if (/^codex/.test(name)) {
    throw usageError(
      "Codex has no hook that replaces a tool result without showing it as blocked",
      'Use "plimsoll mcp install --tool codex-cli": its tools page their results, and mcp wrap does it for other servers.',
    );
  }
  const hint = didYouMean(name, names) ?? `Clients with a plugin: ${names.join(", ")}.`;
  throw usageError(`there is no plugin for "${printable(name)}"`, hint);
}

function findPlace({ options: given, cwd, env }: PluginCall): PluginPlace {
  const home = homeDirectory(env);
  const scope = given.scope === "project" ? "project" : "user";
  return { scope, root: scope === "project" ? projectRoot(cwd, home) : home, env };
}

function readSettings({ options: given }: PluginCall): PluginSettings {
  return {
    maxResultTokens: wholeNumber(given["max-result-tokens"], "max-result-tokens", 500),
    deltas: given["no-deltas"] !== true,
    guard: given.guard === true,
    images: wholeNumber(given.images, "images", 1),
    trim: given.trim === "window" ? given.trim : wholeNumber(given.trim, "trim", 8_000),
  };
}

async function change(call: PluginCall, client: PluginClient, action: "install" | "uninstall"): Promise<CommandResult> {
  const { cwd, env, output } = call;
  const dryRun = call.options["dry-run"] === true;
  const place = findPlace(call);
  const reports = await changePlugin(client, { action, place, settings: readSettings(call), dryRun });
  const shown = (path: string) => shownPath(path, cwd, env);
  const problems = reports.flatMap(({ problem }) => problem ?? []);
  for (const problem of problems) output.problem(describeError(problem, shown));
  const isChanged = reports.some((report) => ["written", "deleted"].includes(describeChange(report)));
  const notOnPath =
    'plimsoll is not on PATH, so the client cannot start it and all results stay as they are. Run "npm install -g plimsoll"';
  if (action === "install" && isChanged && !dryRun && problems.length === 0) {
    for (const note of client.notes) output.note(note);
    if ((await findProgram("plimsoll", env)) === undefined) output.note(notOnPath);
  }
  if (action === "install" && !dryRun && (await client.endSilence?.(place)))
    output.note(`${client.id} had given up the plugin's process, and starts it again in its next session.`);
  const diffOf = dryRun ? await createDiff(shown) : () => "";
  const files = reports.map((report) => ({ path: shown(report.path), status: describeChange(report) }));
  const verb = { install: "installed", uninstall: "uninstalled" }[action];
  const sum = isChanged ? `${client.id}: ${dryRun ? "would be " : ""}${verb}` : `${client.id}: nothing to change`;
  const diffs = reports.flatMap(({ change }) => (change === undefined ? [] : diffOf(change))).filter(Boolean);
  const lines = files.filter(({ status }) => status !== "same").map(({ path, status }) => `${path}: ${status}`);
  return {
    json: { client: client.id, action, scope: place.scope, dry_run: dryRun, files },
    text: [...diffs, ...(dryRun ? [] : lines), ...(problems.length > 0 ? [] : [sum])].join("\n"),
    failed: problems.length > 0,
  };
}

function describeChange({ change, problem }: PluginChange): "written" | "deleted" | "same" | "failed" {
  if (problem !== undefined || change === undefined) return "failed";
  if (change.before === change.after) return "same";
  return change.after === undefined ? "deleted" : "written";
}

async function showStatus(call: PluginCall, client: PluginClient): Promise<CommandResult> {
  const scopes = ["user", "project"] as const;
  const states = await Promise.all(
    scopes.map(async (scope) => {
      const place = findPlace({ ...call, options: { ...call.options, scope } });
      const state = await installState(client, place);
      return { scope, state, settings: state === "installed" ? client.installedSettings(place) : undefined };
    }),
  );
  const sessions =
    (await lookInStore(await storePath(call.options.store, call), (store) => listPluginSessions(store, client.id))) ??
    [];
  const silence = client.findSilence?.(findPlace(call));
  const words = { installed: "installed", other: "installed by another version, or changed", absent: "not installed" };
  const places = states.map(({ scope, state, settings }) => `${scope}: ${words[state]}${describeSettings(settings)}`);
  const byScope = <Value>(value: (each: (typeof states)[number]) => Value) =>
    Object.fromEntries(states.map((each) => [each.scope, value(each)]));
  return {
    json: {
      client: client.id,
      installed: byScope(({ state }) => state),
      settings: byScope(({ settings }) => settings ?? null),
      last_result: sessions[0]?.lastUsed ?? null,
      inactive: silence === undefined ? null : { ...silence, since: iso(silence.since), until: iso(silence.until) },
      sessions,
    },
    text: [
      `${client.id}: ${places.join("; ")}`,
      ...(silence === undefined
        ? []
        : [`inactive since ${minute(iso(silence.since))}, until ${minute(iso(silence.until))}: ${silence.message}`]),
      ...(sessions.length === 0 ? ["no session has used it yet"] : renderSessions(sessions)),
      ...(sessions[0] === undefined ? [] : [`last result seen: ${minute(sessions[0].lastUsed)}`]),
    ].join("\n"),
  };
}

const iso = (time: number): string => new Date(time).toISOString();
const minute = (time: string): string => time.slice(0, 16).replace("T", " ");

/** The options of install that give these settings. */
function describeSettings(settings: PluginSettings | undefined): string {
  if (settings === undefined) return "";
  const { maxResultTokens, deltas, trim, images, guard } = settings;
  const given = [
    ...(maxResultTokens === undefined ? [] : [`--max-result-tokens ${maxResultTokens}`]),
    ...(deltas ? [] : ["--no-deltas"]),
    ...(trim === undefined ? [] : [`--trim ${trim}`]),
    ...(images === undefined ? [] : [`--images ${images}`]),
    ...(guard === true ? ["--guard"] : []),
  ];
  return given.length === 0 ? "" : ` with ${given.join(" ")}`;
}

function renderSessions(sessions: readonly PluginSession[]): string[] {
  const title = ["session", "last used", "results", "duplicates", "deltas", "pages", "tokens saved", "recalls"];
  const newest = sessions.slice(0, 20);
  const rows = newest.map((each) => [
    each.sessionId,
    minute(each.lastUsed),
    ...[each.results, each.duplicates, each.deltas, each.pages, each.savedTokens, each.recalls].map(formatNumber),
  ]);
  const sides = title.map((_, index) => (index < 2 ? ("left" as const) : ("right" as const)));
  const errors = newest.flatMap(({ sessionId, errors }) => errors.map((error) => `${sessionId}: ${printable(error)}`));
  const more = sessions.length - newest.length;
  return [
    ...renderTable([title, ...rows], sides),
    ...(more > 0 ? [`${countNoun(more, "older session")} not shown; --json has all`] : []),
    ...(errors.length > 0 ? ["errors:", ...errors] : []),
  ];
}

async function runServe(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.serverTools === undefined) throw new ContextError("usage", `${client.id} has no process of its own`);
  const { servePlugin } = await import("../../clients/plugins/serve-plugin.ts");
  const { env, output, stdin } = call;
  const { store, close } = createOpener(call);
  // The first result should not wait for the database.
  store().catch(() => {});
  const endings: (() => Promise<void>)[] = [];
  const beforeEnd = (work: () => Promise<void>): void => void endings.push(work);
  const tools = client.serverTools({ settings, env, store, beforeEnd, log: output.note });
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", () => process.exit());
  const finish = async (): Promise<void> => {
    // Without a store there is nothing to finish.
    for (const work of endings) await work().catch(() => {});
    await close();
  };
  takeEndSignals(() => finish().finally(() => process.exit()));
  await servePlugin({ version: readVersion(), tools, stdin, stdout: process.stdout });
  await finish();
  return undefined;
}

/** Answers one event. A failure is a note on stderr and no answer, so that the client goes on with the original. */
async function runHook(
  call: Call<{ readonly store?: string | undefined }>,
  client: PluginClient,
  settings: PluginSettings,
): Promise<undefined> {
  if (client.hook === undefined) throw new ContextError("usage", `${client.id} has no hooks that run a command`);
  const { env, output, stdin } = call;
  const { store, close } = createOpener(call);
  try {
    const event = Object(await json(stdin));
    const answer = await client.hook(event, { settings, env, store, log: output.note });
    if (answer !== undefined) output.exactResult(`${JSON.stringify(answer)}\n`);
  } catch (error) {
    output.note(messageOf(error));
  }
  await close();
  return undefined;
}

/** Opens the store once. Opens it again after a failure, because a person may repair it during the session. */
function createOpener(call: Call<{ readonly store?: string | undefined }>) {
  let opened: Promise<Store> | undefined;
  const open = async (): Promise<Store> => {
    // A store that is busy for longer counts as broken, and the result stays as it is.
    const waitMs = 40;
    return openStore({ place: await storePath(call.options.store, call), waitMs });
  };
  return {
    store() {
      opened ??= open();
      opened.catch(() => {
        opened = undefined;
      });
      return opened;
    },
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}
