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
