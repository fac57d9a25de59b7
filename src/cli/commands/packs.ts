import type { CommandGroup } from "../command.ts";

export const packsCommand: CommandGroup = {
  subcommands: [
    {
      name: "list",
      summary: "list the packs in their order, with the tokens of each tier",
      load: async () => (await import("../packs/list.ts")).listCommand,
    },
    {
      name: "show",
      summary: "show one pack: where it comes from, what replaces it, its text",
      load: async () => (await import("../packs/show.ts")).showCommand,
    },
    {
      name: "lint",
      summary: "find mistakes in packs, profiles and adapters",
      load: async () => (await import("../packs/lint.ts")).lintCommand,
    },
  ],
  examples: [
    { line: "plimsoll packs list", meaning: "what this project gets" },
    { line: "plimsoll packs show base", meaning: "all of a pack" },
    { line: "plimsoll packs lint", meaning: "what is wrong with them" },
  ],
};
