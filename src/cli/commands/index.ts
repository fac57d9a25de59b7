import { type CommandEntry, subcommand } from "../command.ts";

/** All commands, in the order of the help. To add one, write a file in this folder and a line here. */
export const commandTable: readonly CommandEntry[] = [
  subcommand("init", "create a configuration and a sample pack of rules; overwrites nothing", () =>
    import("./init.ts").then((module) => module.initCommand),
  ),
  subcommand("inject", "write packs (folders of rules) into the files of AI tools, each within its budget", () =>
    import("./inject.ts").then((module) => module.injectCommand),
  ),
  subcommand("import", "turn existing instruction files into packs; changes them only with --move", () =>
    import("./import.ts").then((module) => module.importCommand),
  ),
  subcommand("setup", "install plugins, status line and guard for the AI clients of this computer", () =>
    import("./setup.ts").then((module) => module.setupCommand),
  ),
  subcommand("undo", "take back the last command that changed many files, byte for byte", () =>
    import("./undo.ts").then((module) => module.undoCommand),
  ),
  subcommand("packs", "list packs, show one, find mistakes in them", () =>
    import("./packs.ts").then((module) => module.packsCommand),
  ),
  subcommand("notes", "add, list and remove notes that every AI tool of the project sees", () =>
    import("./notes.ts").then((module) => module.notesCommand),
  ),
  subcommand("sync", "fetch the company's packs and the texts that packs take from the web", () =>
    import("./sync.ts").then((module) => module.syncCommand),
  ),
  subcommand("audit", "show what each AI tool would load here, its tokens, broken limits and advice", () =>
    import("./audit.ts").then((module) => module.auditCommand),
  ),
  subcommand("count", "count the tokens of files, directories or standard input", () =>
    import("./count.ts").then((module) => module.countCommand),
  ),
  subcommand("trim", "trim a history to fit a model's window and keep its prompt cache", () =>
    import("./trim.ts").then((module) => module.trimCommand),
  ),
  subcommand("serve", "make requests of programs in other languages fit, over stdio or HTTP", () =>
    import("./serve.ts").then((module) => module.serveCommand),
  ),
  subcommand("validate", "report what a provider would refuse in a request or a history", () =>
    import("./validate.ts").then((module) => module.validateCommand),
  ),
  subcommand("replay", "report what recorded sessions would have cost with each way of trimming them", () =>
    import("./replay.ts").then((module) => module.replayCommand),
  ),
  subcommand("bill", "report what agents spent, what losing the prompt cache cost, and why it was lost", () =>
    import("./bill.ts").then((module) => module.billCommand),
  ),
  subcommand("mcp", "serve budgeted tools to an AI tool, or put a budget on another MCP server", () =>
    import("./mcp.ts").then((module) => module.mcpCommand),
  ),
  subcommand("plugin", "shorten tool results inside an AI client, before its model first sees them", () =>
    import("./plugin.ts").then((module) => module.pluginCommand),
  ),
  subcommand("recall", "print a tool result that was shortened, as the tool returned it", () =>
    import("./recall.ts").then((module) => module.recallCommand),
  ),
  subcommand("statusline", "print a status line for Claude Code: context, cache, money, savings", () =>
    import("./spend.ts").then((module) => module.statuslineCommand),
  ),
  subcommand("guard", "show what Claude Code spent, or stop its tool calls at a limit in dollars", () =>
    import("./spend.ts").then((module) => module.guardCommand),
  ),
  subcommand("session", "list, show and delete sessions: token use, work log, largest results", () =>
    import("./session.ts").then((module) => module.sessionCommand),
  ),
  subcommand("store", "show what the store holds, delete what is old, copy it to another place", () =>
    import("./store.ts").then((module) => module.storeCommand),
  ),
  subcommand("compose", "join what an agent should know (project, related work, earlier work) within a budget", () =>
    import("./compose.ts").then((module) => module.composeCommand),
  ),
  subcommand("snapshot", "describe a project in Markdown: facts, file tree, conventions, within a limit", () =>
    import("./snapshot.ts").then((module) => module.snapshotCommand),
  ),
  subcommand("fabric", "show and change what the phases of a plan report to each other", () =>
    import("./fabric.ts").then((module) => module.fabricCommand),
  ),
  subcommand("run", "run an agent with a task and context within a budget", () =>
    import("./run.ts").then((module) => module.runCommand),
  ),
  subcommand("nebula", "check, show and run a plan (a nebula) of phases, each done by an agent", () =>
    import("./nebula.ts").then((module) => module.nebulaCommand),
  ),
  subcommand("trust", "show the settings of a project that need your trust, and trust them", () =>
    import("./trust.ts").then((module) => module.trustCommand),
  ),
  subcommand("config", "show the effective configuration and where each value comes from", () =>
    import("./config.ts").then((module) => module.configCommand),
  ),
  subcommand("completion", "print a completion script for a shell", () =>
    import("./completion.ts").then((module) => module.completionCommand),
  ),
];
