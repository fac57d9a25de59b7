import type { CommandEntry } from "../command.ts";

/** All commands, in the order of the help. To add one, write a file in this folder and a line here. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: "init",
    summary: "create a configuration and a sample pack of rules; overwrites nothing",
    load: async () => (await import("./init.ts")).initCommand,
  },
  {
    name: "inject",
    summary: "write packs (folders of rules) into the files of AI tools, each within its budget",
    load: async () => (await import("./inject.ts")).injectCommand,
  },
  {
    name: "import",
    summary: "turn existing instruction files into packs; changes them only with --move",
    load: async () => (await import("./import.ts")).importCommand,
  },
  {
    name: "setup",
    summary: "install plugins, status line and guard for the AI clients of this computer",
    load: async () => (await import("./setup.ts")).setupCommand,
  },
  {
    name: "undo",
    summary: "take back the last command that changed many files, byte for byte",
    load: async () => (await import("./undo.ts")).undoCommand,
  },
  {
    name: "packs",
    summary: "list packs, show one, find mistakes in them",
    load: async () => (await import("./packs.ts")).packsCommand,
  },
  {
    name: "notes",
    summary: "add, list and remove notes that every AI tool of the project sees",
    load: async () => (await import("./notes.ts")).notesCommand,
  },
  {
    name: "sync",
    summary: "fetch the company's packs and the texts that packs take from the web",
    load: async () => (await import("./sync.ts")).syncCommand,
  },
  {
    name: "audit",
    summary: "show what each AI tool would load here, its tokens, broken limits and advice",
    load: async () => (await import("./audit.ts")).auditCommand,
  },
  {
    name: "count",
    summary: "count the tokens of files, directories or standard input",
    load: async () => (await import("./count.ts")).countCommand,
  },
  {
    name: "trim",
    summary: "trim a history to fit a model's window and keep its prompt cache",
    load: async () => (await import("./trim.ts")).trimCommand,
  },
  {
    name: "validate",
    summary: "report what a provider would refuse in a request or a history",
    load: async () => (await import("./validate.ts")).validateCommand,
  },
  {
    name: "replay",
    summary: "report what recorded sessions would have cost with each way of trimming them",
    load: async () => (await import("./replay.ts")).replayCommand,
  },
  {
    name: "bill",
    summary: "report what agents spent, what losing the prompt cache cost, and why it was lost",
    load: async () => (await import("./bill.ts")).billCommand,
  },
  {
    name: "mcp",
    summary: "serve budgeted tools to an AI tool, or put a budget on another MCP server",
    load: async () => (await import("./mcp.ts")).mcpCommand,
  },
  {
    name: "plugin",
    summary: "shorten tool results inside an AI client, before its model first sees them",
    load: async () => (await import("./plugin.ts")).pluginCommand,
  },
  {
    name: "recall",
    summary: "print a tool result that was shortened, as the tool returned it",
    load: async () => (await import("./recall.ts")).recallCommand,
  },
  {
    name: "statusline",
    summary: "print a status line for Claude Code: context, cache, money, savings",
    load: async () => (await import("./spend.ts")).statuslineCommand,
  },
  {
    name: "guard",
    summary: "show what Claude Code spent, or stop its tool calls at a limit in dollars",
    load: async () => (await import("./spend.ts")).guardCommand,
  },
  {
    name: "session",
    summary: "list, show and delete sessions: token use, work log, largest results",
    load: async () => (await import("./session.ts")).sessionCommand,
  },
  {
    name: "store",
    summary: "show what the store holds, delete what is old, copy it to another place",
    load: async () => (await import("./store.ts")).storeCommand,
  },
  {
    name: "compose",
    summary: "join what an agent should know (project, related work, earlier work) within a budget",
    load: async () => (await import("./compose.ts")).composeCommand,
  },
  {
    name: "snapshot",
    summary: "describe a project in Markdown: facts, file tree, conventions, within a limit",
    load: async () => (await import("./snapshot.ts")).snapshotCommand,
  },
  {
    name: "fabric",
    summary: "show and change what the phases of a plan report to each other",
    load: async () => (await import("./fabric.ts")).fabricCommand,
  },
  {
    name: "run",
    summary: "run an agent with a task and context within a budget",
    load: async () => (await import("./run.ts")).runCommand,
  },
  {
    name: "nebula",
    summary: "check, show and run a plan (a nebula) of phases, each done by an agent",
    load: async () => (await import("./nebula.ts")).nebulaCommand,
  },
  {
    name: "trust",
    summary: "show the settings of a project that need your trust, and trust them",
    load: async () => (await import("./trust.ts")).trustCommand,
  },
  {
    name: "config",
    summary: "show the effective configuration and where each value comes from",
    load: async () => (await import("./config.ts")).configCommand,
  },
  {
    name: "completion",
    summary: "print a completion script for a shell",
    load: async () => (await import("./completion.ts")).completionCommand,
  },
];
