import { type FabricState, renderFabric } from "../../compose/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { fabricOptions, readFabric } from "./open-fabric.ts";

export const showCommand: Command = defineCommand({
  options: fabricOptions,
  details: `Prints the Markdown that phases get as their fabric layer, before it is truncated to its share. Claims of completed phases
and resolved discoveries are not in it; --json has them. The command only reads: the nebula may be running.`,
  examples: [
    { line: "plimsoll fabric show --nebula plan", meaning: "what the phases of ./plan know of each other" },
    {
      line: "plimsoll fabric show --nebula plan | plimsoll compose --fabric -",
      meaning: "as a prompt would have it",
    },
    { line: "plimsoll fabric show --nebula plan --json | jq .discoveries", meaning: "for programs" },
  ],
  async run(call) {
    const state = (await readFabric(call)) ?? nothing;
    const text = renderFabric(state);
    if (text === "") call.output.note("the fabric is empty: nothing ran yet, and nothing was added");
    return { json: state, text };
  },
});

const nothing: FabricState = { phases: [], entanglements: [], claims: [], discoveries: [], notes: [] };
