import type { CommandEntry } from "./command.ts";

/** Every command, in the order of the help. A new one is a file in commands/ and a line here. */
export const commandTable: readonly CommandEntry[] = [
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
