import type { CommandGroup } from "../command.ts";

export const nebulaCommand: CommandGroup = {
  subcommands: [
    {
      name: "validate",
      summary: "find mistakes in nebula.toml and the phase files",
      load: async () => (await import("../nebula/validate.ts")).validateCommand,
    },
    {
      name: "show",
      summary: "show the phases in waves: what can run together",
      load: async () => (await import("../nebula/show.ts")).showCommand,
    },
    {
      name: "apply",
      summary: "run the phases with an agent, each when all that it depends on has completed",
      load: async () => (await import("../nebula/apply.ts")).applyCommand,
    },
    {
      name: "status",
      summary: "show how the last run stands, or what a phase answered",
      load: async () => (await import("../nebula/status.ts")).statusCommand,
    },
  ],
  examples: [
    { line: "plimsoll nebula validate plan", meaning: "what is wrong with a nebula" },
    { line: "plimsoll nebula show plan", meaning: "what would run, and in which order" },
    { line: "plimsoll nebula apply plan --agent claude", meaning: "run it" },
    { line: "plimsoll nebula status plan", meaning: "how it stands" },
  ],
};
