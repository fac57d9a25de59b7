import type { CommandGroup } from "../command.ts";

export const fabricCommand: CommandGroup = {
  subcommands: [
    {
      name: "show",
      summary: "show what the phases of a nebula know of each other",
      load: async () => (await import("../fabric/show.ts")).showCommand,
    },
    {
      name: "add",
      summary: "add an entanglement, a claim, a discovery or a note",
      load: async () => (await import("../fabric/add.ts")).addGroup,
    },
    {
      name: "resolve",
      summary: "mark a discovery as resolved, or take another entry out",
      load: async () => (await import("../fabric/resolve.ts")).resolveCommand,
    },
  ],
  examples: [
    { line: "plimsoll fabric show --nebula plan", meaning: "what the phases of ./plan know of each other" },
    {
      line: 'plimsoll fabric add discovery "no schema yet" --affects page',
      meaning: "inside of a running phase",
    },
    { line: "plimsoll fabric resolve d2 --nebula plan", meaning: "it no longer stands in the way" },
  ],
};
