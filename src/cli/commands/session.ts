import type { CommandGroup } from "../command.ts";

export const sessionCommand: CommandGroup = {
  subcommands: [
    {
      name: "list",
      summary: "list the sessions in the store, latest used first",
      load: async () => (await import("../session/list.ts")).listCommand,
    },
    {
      name: "show",
      summary: "show one session: its ledger, its work log, what was evicted, its largest results",
      load: async () => (await import("../session/show.ts")).showCommand,
    },
    {
      name: "rm",
      summary: "delete sessions for good: records, results, work logs",
      load: async () => (await import("../session/rm.ts")).rmCommand,
    },
  ],
  examples: [
    { line: "plimsoll session list", meaning: "which sessions there are" },
    { line: "plimsoll session show", meaning: "how the latest used one stands" },
    { line: "plimsoll session rm --older-than 7d", meaning: "delete those that nobody used for a week" },
  ],
};
