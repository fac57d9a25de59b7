import type { CommandEntry } from "./command.ts";

/** Every command, in the order of the help. A new one is a file in commands/ and a line here. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: "init",
    summary: "start in a project: a configuration and a sample pack, nothing overwritten",
    load: async () => (await import("./commands/init.ts")).initCommand,
  },
  {
    name: "inject",
    summary: "write the packs into the files of AI tools, each within its budget",
    load: async () => (await import("./commands/inject.ts")).injectCommand,
  },
  {
    name: "packs",
    summary: "list the packs, show one, find mistakes in them",
    load: async () => (await import("./commands/packs.ts")).packsCommand,
  },
  {
    name: "notes",
    summary: "tell every AI tool of the project what is going on",
    load: async () => (await import("./commands/notes.ts")).notesCommand,
  },
  {
    name: "sync",
    summary: "fetch the company's packs and the texts that packs take from the web",
    load: async () => (await import("./commands/sync.ts")).syncCommand,
  },
  {
    name: "audit",
    summary: "show what each AI tool would load here, its tokens, broken limits and advice",
    load: async () => (await import("./commands/audit.ts")).auditCommand,
  },
  {
    name: "count",
    summary: "count the tokens of files, directories or standard input",
    load: async () => (await import("./commands/count.ts")).countCommand,
  },
  {
    name: "trim",
    summary: "trim a history to its model's window, so that its beginning stays cached",
    load: async () => (await import("./commands/trim.ts")).trimCommand,
  },
  {
    name: "validate",
    summary: "tell what a provider would refuse in a request or a history",
    load: async () => (await import("./commands/validate.ts")).validateCommand,
  },
  {
    name: "replay",
    summary: "tell what recorded sessions would have cost with each way of trimming them",
    load: async () => (await import("./commands/replay.ts")).replayCommand,
  },
  {
    name: "mcp",
    summary: "serve budgeted tools to an AI tool, or put a budget on another MCP server",
    load: async () => (await import("./commands/mcp.ts")).mcpCommand,
  },
  {
    name: "session",
    summary: "show the sessions of tools: their ledgers, work logs and largest results",
    load: async () => (await import("./commands/session.ts")).sessionCommand,
  },
  {
    name: "compose",
    summary: "put project, fabric and prior work into one text within a budget",
    load: async () => (await import("./commands/compose.ts")).composeCommand,
  },
  {
    name: "snapshot",
    summary: "describe a project to an agent: what it is, its tree, its conventions, within a limit",
    load: async () => (await import("./commands/snapshot.ts")).snapshotCommand,
  },
  {
    name: "fabric",
    summary: "show and add to what the phases of a nebula know of each other",
    load: async () => (await import("./commands/fabric.ts")).fabricCommand,
  },
  {
    name: "run",
    summary: "hand an agent a task with the context that it needs, within a budget",
    load: async () => (await import("./commands/run.ts")).runCommand,
  },
  {
    name: "nebula",
    summary: "check, show and run a plan of phases",
    load: async () => (await import("./commands/nebula.ts")).nebulaCommand,
  },
  {
    name: "trust",
    summary: "show the settings of a project that need your trust, and trust them",
    load: async () => (await import("./commands/trust.ts")).trustCommand,
  },
  {
    name: "config",
    summary: "show the effective configuration and where each value comes from",
    load: async () => (await import("./commands/config.ts")).configCommand,
  },
  {
    name: "completion",
    summary: "print the completion script of a shell",
    load: async () => (await import("./commands/completion.ts")).completionCommand,
  },
];
