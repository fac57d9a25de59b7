import type { CommandGroup } from "../command.ts";

export const addGroup: CommandGroup = {
  subcommands: [
    {
      name: "entanglement",
      summary: "add something that others can build on: a function, a type, an endpoint",
      load: async () => (await import("./add-entanglement.ts")).addEntanglementCommand,
    },
    {
      name: "claim",
      summary: "add a path that others should leave alone for now",
      load: async () => (await import("./add-claim.ts")).addClaimCommand,
    },
    {
      name: "discovery",
      summary: "add what stands in the way of somebody, until it is resolved",
      load: async () => (await import("./add-discovery.ts")).addDiscoveryCommand,
    },
    {
      name: "note",
      summary: "add a decision, a failure, feedback, or anything else that others should know",
      load: async () => (await import("./add-note.ts")).addNoteCommand,
    },
  ],
  examples: [
    { line: "plimsoll fabric add claim src/parse.ts", meaning: "inside of a running phase" },
    { line: 'plimsoll fabric add note "ports from 4000" --nebula plan', meaning: "as a person" },
  ],
};
