import { ContextError } from "../../errors.ts";
import { counterOptions } from "../choose-counters.ts";
import {
  type Call,
  type Command,
  type CommandExit,
  type CommandResult,
  defineCommand,
  type OptionSpecs,
  type OptionValues,
} from "../command.ts";

const serveOptions = {
  root: {
    value: "DIR",
    summary: "directory that the tools read (default: the client's root, else the current one)",
  },
  http: { value: "PORT", summary: "serve over HTTP on 127.0.0.1 instead of stdio; 0 for any free port" },
  "token-file": {
    value: "FILE",
    summary: "with --http: the token that clients send (default: one of our own)",
  },
  "no-token": { summary: "with --http: answer whoever reaches the port" },
  hints: {
    value: "MODE",
    choices: ["note", "schema", "off"],
    summary: "where the model is told what the budget allows (default: note, in each result)",
  },
} as const satisfies OptionSpecs;

/** Of serve and wrap. */
const budgetOptions = {
  total: { value: "N", summary: "tokens of the whole session (default: the configuration's, 100000)" },
  "per-tool": { value: "N", summary: "tokens of one result at most (default: the configuration's, 8000)" },
  "page-characters": { value: "N", summary: "characters of one result at most (default: by the client)" },
  store: {
    value: "FILE",
    summary: "where results are kept (default: PLIMSOLL_STORE, else the configuration's)",
  },
  "no-store": { summary: "keep results in memory only, until the server ends" },
  session: { value: "ID", summary: "go on with this session (default: one for each root or server)" },
  ...counterOptions,
} as const satisfies OptionSpecs;

const installOptions = {
  tool: { value: "ID[,ID...]", list: true, summary: "install, uninstall: only these AI tools" },
  global: { summary: "install, uninstall: the user's configuration instead of the project's" },
  "dry-run": { summary: "install, uninstall: show the changes, write nothing" },
  trust: { summary: "install, uninstall: trust the project's settings in this run" },
} as const satisfies OptionSpecs;

/** What each action takes, beside what every command does. */
const actions = {
  serve: { ...serveOptions, ...budgetOptions },
  wrap: budgetOptions,
  install: installOptions,
  uninstall: installOptions,
} as const;
type Action = keyof typeof actions;
const actionNames = Object.keys(actions) as Action[];
const options = { ...serveOptions, ...budgetOptions, ...installOptions };
type McpCall = Call<OptionValues<typeof options>>;

export const mcpCommand: Command = defineCommand({
  arguments: [
    { name: "ACTION", optional: true, choices: actionNames, summary: "what to do (default: serve)" },
    {
      ...{ name: "COMMAND", optional: true, repeated: true, mayBeEmpty: true },
      summary: "wrap, behind --: the server to run, and its arguments",
    },
  ],
  options,
  details: `serve is an MCP server on stdin and stdout. Its tools read the project (project_files, search_content, read_file,
vcs_log, vcs_diff, vcs_status, vcs_blame); a result that exceeds its share of the budget comes in pages, which
next_page, recall and budget_status go with. Results are kept, so that a page can follow after a restart.
wrap runs another server and passes all on as it is, but for results that are too large: they become pages, too.
With --http every request needs a token. It is printed at the start and kept in the file mcp-token of the state
directory; --token-file FILE or the variable PLIMSOLL_MCP_TOKEN sets another one.
install adds the server to the MCP configuration of AI tools, uninstall gives the files back as they were.
--tool takes amazon-q, amp, antigravity, augment, claude-code, codex-cli, continue, cursor, devin-cli, devin-desktop,
factory-droid, firebase-studio, gemini-cli, github-copilot, grok-cli, jetbrains-ai, junie, kilo, kiro, opencode,
qwen-code, roo, rovo-dev, zed. Of some a file is known only in a project, or only with --global; the command says so.`,
  examples: [
    { line: "plimsoll mcp install", meaning: "for the AI tools of this project" },
    {
      line: "plimsoll mcp --root . --per-tool 4000",
      meaning: "what an AI tool then runs, with smaller pages",
    },
    {
      line: "plimsoll mcp wrap -- npx -y SERVER ARGS",
      meaning: "a budget for the results of another server",
    },
    { line: "plimsoll mcp --http 8765", meaning: "for clients on this machine that speak HTTP" },
    { line: "plimsoll mcp uninstall --dry-run", meaning: "what would be taken away again" },
  ],
  run: (call) => {
    const [action = "serve", ...words] = call.arguments as readonly [Action?, ...string[]];
    refuseOthers(action, call);
    if (action !== "wrap" && words.length > 0) {
      throw new ContextError("usage", `unexpected argument "${words[0]}"`, {
        hint: 'See "plimsoll mcp --help".',
      });
    }
    return runAction(action, call, words);
  },
});

function refuseOthers(action: Action, { options: given }: McpCall): void {
  const names = Object.keys(options).filter((name) => given[name as keyof typeof given] !== undefined);
  const wrong = names.find((name) => !Object.hasOwn(actions[action], name));
  if (wrong === undefined) return;
  const takers = actionNames.filter((name) => Object.hasOwn(actions[name], wrong));
  throw new ContextError("usage", `--${wrong} does not go with ${action}`, {
    hint: `It belongs to ${takers.join(" and ")}.`,
  });
}

async function runAction(
  action: Action,
  call: McpCall,
  words: readonly string[],
): Promise<CommandResult | CommandExit | undefined> {
  switch (action) {
    case "serve":
      return (await import("../mcp/serve.ts")).runServe(call);
    case "wrap":
      return (await import("../mcp/wrap.ts")).runWrap(call, words);
    case "install":
      return (await import("../mcp/install.ts")).mcpInstall(call);
    case "uninstall":
      return (await import("../mcp/install.ts")).mcpUninstall(call);
  }
}
