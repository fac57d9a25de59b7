import { usageError } from "../../core/errors.ts";
import { countNoun, formatNumber, printable, shownTime } from "../../core/text/index.ts";
import { describeError, type Environment, lookInStore, shownPath, shownStore, storePath } from "../../host/index.ts";
import type { PageFormat } from "../../results/session/index.ts";
import type { InstallReport, McpInstallOptions } from "../../rules/index.ts";
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
import { budgetOptions, readSettings, runServe, runWrap, serveOptions, wrapOptions } from "./mcp-serve.ts";

const installOptions = {
  tool: { value: "ID[,ID...]", list: true, summary: "only these AI tools" },
  global: { summary: "use the user's configuration instead of the project's" },
  ...dryRunOption,
  trust: { summary: "trust the project's settings in this run" },
} as const satisfies OptionSpecs;

const wrapInstallOptions = {
  wrap: { value: "NAME[,NAME...]", list: true, summary: "run these servers of the configuration through mcp wrap" },
  force: { summary: "with --wrap --lazy: also if permission rules name tools of the server" },
} as const satisfies OptionSpecs;

/** The options of each action, without those that every command has. */
const actions = {
  serve: { ...serveOptions, ...budgetOptions },
  wrap: { ...wrapOptions, format: serveOptions.format, ...budgetOptions },
  install: { ...installOptions, ...wrapInstallOptions, lazy: wrapOptions.lazy },
  uninstall: installOptions,
  status: storeOptions,
} as const;
type Action = keyof typeof actions;
const options = {
  ...serveOptions,
  ...prefixed("wrap", wrapOptions),
  ...budgetOptions,
  ...prefixed("install, uninstall", installOptions),
  ...prefixed("install", wrapInstallOptions),
};

function prefixed<Specs extends OptionSpecs>(prefix: string, specs: Specs): Specs {
  const entries = Object.entries(specs).map(([name, spec]) => [
    name,
    { ...spec, summary: `${prefix}: ${spec.summary}` },
  ]);
  return Object.fromEntries(entries) as Specs;
}

const toolNames = `--tool takes amazon-q, amp, antigravity, augment, claude-code, codex-cli, continue, cursor, devin-cli,
devin-desktop, factory-droid, firebase-studio, gemini-cli, github-copilot, grok-cli, jetbrains-ai, junie, kilo, kiro,
opencode, qwen-code, roo, rovo-dev, zed. Some tools have an MCP configuration only in a project, others only with
--global. The command reports tools without one.`;

const actionHelp: Readonly<Record<Action, ActionHelp>> = {
  serve: {
    summary: "serve budgeted tools that read the project to an AI tool",
    options: actions.serve,
    details: `Runs an MCP server on stdin and stdout. Its tools read the project: project_files, search_content,
read_file, vcs_log, vcs_diff, vcs_status, vcs_blame. A result that exceeds its share of the budget is split into
pages. The model reads more with next_page and recall, and checks the budget with budget_status. Results are
stored, so a page can be read after a restart.
With --http every request needs a token. The server prints it at the start and keeps it in the file mcp-token of
the state directory. Set another token with --token-file FILE or the variable PLIMSOLL_MCP_TOKEN.`,
    examples: [
      { line: "plimsoll mcp", meaning: "serve the current directory over stdio" },
      { line: "plimsoll mcp --root . --per-tool 4000", meaning: "what an AI tool runs, here with smaller pages" },
      { line: "plimsoll mcp --http 8765", meaning: "for clients on this machine that use HTTP" },
    ],
  },
  wrap: {
    summary: "run other MCP servers and split their large results into pages",
    arguments: [
      {
        name: "COMMAND",
        optional: true,
        repeated: true,
        mayBeEmpty: true,
        summary: "after --: one server and its arguments",
      },
    ],
    options: actions.wrap,
    details: `Runs another MCP server and passes all messages through unchanged, except results that exceed their
share of the budget: those are split into pages. The model reads more with next_page and recall. plimsoll ends with
the exit code of the server.
With --config or --from it runs several servers at once, on stdio or over HTTP. They share one budget. Each tool and
prompt then has the name of its server in front, as in files_read_file. If a server fails, the others continue.
With --lazy the model sees six tools for any set of servers: find_tool, describe_tool, call_read_tool for tools
that only read, call_tool, next_page and recall.`,
    examples: [
      {
        line: "plimsoll mcp wrap --from cursor --server files,web",
        meaning: "two servers of Cursor behind one budget",
      },
      {
        line: "plimsoll mcp wrap --config servers.json --lazy",
        meaning: "all servers of a file, with short definitions",
      },
      { line: "plimsoll mcp wrap -- npx -y SERVER ARGS", meaning: "a budget for the results of another server" },
      { line: "plimsoll mcp wrap --per-tool 4000 -- node server.mjs", meaning: "with smaller pages" },
    ],
  },
  install: {
    summary: "add the server to the MCP configuration of AI tools",
    options: actions.install,
    details: `Without --tool: the tools of the configuration, or else those in use here.
--wrap changes the entries of other servers instead: each then runs through "plimsoll mcp wrap", under the same name
and with the same tools. With --lazy its tools are hidden, so the command refuses that if a permission rule names one
of them, unless you pass --force. uninstall restores the entries.
${toolNames}`,
    examples: [
      { line: "plimsoll mcp install", meaning: "add the server to the AI tools of this project" },
      { line: "plimsoll mcp install --tool cursor --dry-run", meaning: "show the change for one tool" },
      { line: "plimsoll mcp install --wrap github", meaning: "put the server github behind a budget" },
    ],
  },
  uninstall: {
    summary: "remove the server from the MCP configuration of AI tools",
    options: actions.uninstall,
    details: `Restores each file as it was before install. Without --tool: every tool that has the server.
${toolNames}`,
    examples: [
      { line: "plimsoll mcp uninstall", meaning: "remove the server from all AI tools" },
      { line: "plimsoll mcp uninstall --dry-run", meaning: "show what uninstall would remove" },
    ],
  },
  status: {
    summary: "show the servers that run, their last errors, and the tokens they saved",
    options: actions.status,
    details: `Shows each process of "mcp serve" and "mcp wrap" that uses the store on this machine, and those that
ended within a day: since when it runs, how often its server was started again, and its last errors. For wrap, "shown"
are the tokens of results that the client got, and "saved" those that pages and the intake kept back. "saved" is
estimated for large results. Pages that the client read later are subtracted. A server with --no-store is not listed.`,
    examples: [
      { line: "plimsoll mcp status", meaning: "the servers of the usual store" },
      { line: "plimsoll mcp status --json", meaning: "JSON for programs" },
    ],
  },
};

export const mcpCommand: Command = defineCommand({
  arguments: [
    {
      name: "ACTION",
      optional: true,
      choices: Object.keys(actions),
      summary: "serve (the default), wrap, install, uninstall or status",
    },
    {
      name: "COMMAND",
      optional: true,
      repeated: true,
      mayBeEmpty: true,
      summary: "wrap, after --: the server to run, and its arguments",
    },
  ],
  options,
  details: `serve runs an MCP server whose tools read the project and keep within a token budget. Large results are
split into pages. wrap runs another MCP server and does the same for its results. install adds the server to the
configuration of AI tools, uninstall removes it. status shows the servers that run. "plimsoll help mcp ACTION" shows the
help of one action.`,
  examples: [
    { line: "plimsoll mcp install", meaning: "add the server to the AI tools of this project" },
    { line: "plimsoll mcp --root . --per-tool 4000", meaning: "what an AI tool runs, here with smaller pages" },
    { line: "plimsoll mcp wrap -- npx -y SERVER ARGS", meaning: "a budget for the results of another server" },
    { line: "plimsoll mcp --http 8765", meaning: "for clients on this machine that use HTTP" },
    { line: "plimsoll mcp uninstall --dry-run", meaning: "show what uninstall would remove" },
  ],
  actions: actionHelp,
  async run(call) {
    const [action = "serve", ...words] = call.arguments as readonly [Action?, ...string[]];
    refuseOthers(action, call.options, { options, actions });
    if (action !== "wrap" && words.length > 0) {
      throw usageError(`unexpected argument "${words[0]}"`, 'See "plimsoll mcp --help".');
    }
    if (action === "serve") return runServe(call);
    if (action === "wrap") {
      const settings = await readSettings(call, call.cwd);
      const format = (call.options.format ?? "text") as PageFormat;
      return runWrap(call, words, { ...settings, format });
    }
    if (action === "status") return showStatus(call);
    return action === "install" ? install(call) : uninstall(call);
  },
});

async function showStatus(call: Call<{ readonly store?: string | undefined }>): Promise<CommandResult> {
  const { cwd, env, output } = call;
  const { listServers } = await import("../../results/mcp/index.ts");
  const place = await storePath(call.options.store, call);
  const servers = (await lookInStore(place, listServers)) ?? [];
  if (servers.length === 0) {
    output.note(`no server has used ${shownStore(place, cwd, env)} within a day`);
    output.note("begin with: plimsoll mcp install, or plimsoll mcp install --wrap NAME for a server that is there");
  }
  const iso = (time: number) => new Date(time).toISOString();
  const json = servers.map(({ kind, name, cwd, pid, state, since, restarts, errors, results, shown, saved }) => ({
    ...{ kind, name, cwd, pid, state, since: iso(since), restarts, results },
    ...(kind === "wrap" ? { tokens: { shown, saved } } : {}),
    errors: errors.map(({ time, message }) => ({ time: iso(time), message })),
  }));
  return { json, text: renderStatus(json, cwd, env) };
}

interface ShownServer {
  readonly kind: string;
  readonly name: string;
  readonly pid: number;
  readonly state: string;
  readonly since: string;
  readonly restarts: number;
  readonly results: number;
  readonly tokens?: { readonly shown: number; readonly saved: number };
  readonly errors: readonly { readonly time: string; readonly message: string }[];
}

function renderStatus(servers: readonly ShownServer[], cwd: string, env: Environment): string {
  return servers
    .flatMap(({ kind, name, pid, state, since, restarts, results, tokens, errors }) => [
      `${kind === "serve" ? shownPath(name, cwd, env) || "." : printable(name)} (${kind}): ${state}, process ${pid}, since ${shownTime(since)}`,
      [
        `  ${countNoun(results, "result")}`,
        ...(tokens ? [`${formatNumber(tokens.shown)} tokens shown, ${formatNumber(tokens.saved)} saved`] : []),
        ...(restarts > 0 ? [countNoun(restarts, "restart")] : []),
      ].join(", "),
      ...errors.map(({ time, message }) => `  ${shownTime(time)}  ${printable(message)}`),
    ])
    .join("\n");
}

type InstallCall = Call<OptionValues<typeof actions.install>>;

async function install(call: InstallCall): Promise<CommandResult> {
  const { prepareInstall, runMcpInstall, serverTools } = await (await import("../../rules/index.ts")).loadMcpInstall();
  const options = readInstallOptions(call);
  const reports = await runMcpInstall(options);
  if (reports.length > 0) return renderReports(reports, call);
  // Its notes were printed before.
  const ids = serverTools(await prepareInstall({ ...options, note: () => {} })).join(", ");
  call.output.problem(`found no AI tool with an MCP configuration here. Name one with --tool: ${ids}`);
  return { json: [], text: "", failed: true };
}

async function uninstall(call: InstallCall): Promise<CommandResult> {
  const { runMcpUninstall } = await (await import("../../rules/index.ts")).loadMcpInstall();
  const reports = await runMcpUninstall(readInstallOptions(call));
  return reports.length > 0 ? renderReports(reports, call) : { json: [], text: "found nothing that Plimsoll wrote" };
}

function readInstallOptions({ options, cwd, env, output }: InstallCall): McpInstallOptions {
  const { tool: tools, global, "dry-run": dryRun, wrap: names, lazy, force } = options;
  if (names === undefined && (lazy === true || force === true)) {
    throw usageError(`--${lazy === true ? "lazy" : "force"} needs --wrap`);
  }
  const wrap = names && { names, isLazy: lazy === true, isForced: force === true };
  return {
    wrap,
    tools,
    global: global === true,
    dryRun: dryRun === true,
    cwd,
    env,
    note: output.note,
  };
}

const verbs: Readonly<Record<InstallReport["status"], readonly [done: string, planned: string]>> = {
  added: ["plimsoll added", "would add plimsoll"],
  wrapped: ["wrapped", "would wrap"],
  current: ["already there", "already there"],
  restored: ["restored", "would restore"],
  deleted: ["deleted", "would delete"],
  failed: ["", ""],
};

function renderReports(reports: readonly InstallReport[], { cwd, env, options, output }: InstallCall): CommandResult {
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of reports) if (problem !== undefined) output.problem(describeError(problem, shown));
  for (const next of new Set(reports.flatMap((report) => report.next ?? []))) output.note(`next: ${next}`);
  const done = reports.filter(({ status }) => status !== "failed");
  const lines = done.map(
    ({ path, tools, status }) => `${path} (${tools.join(", ")}): ${verbs[status][options["dry-run"] === true ? 1 : 0]}`,
  );
  return {
    json: reports.map(({ problem, ...report }) => ({
      ...report,
      ...(problem && {
        error: {
          code: problem.code,
          message: problem.message,
          hint: problem.hint ?? null,
          file: problem.file === undefined ? undefined : shown(problem.file),
          line: problem.line,
        },
      }),
    })),
    text: [...done.flatMap(({ diff }) => diff ?? []), ...lines].join("\n"),
    failed: done.length < reports.length,
  };
}
