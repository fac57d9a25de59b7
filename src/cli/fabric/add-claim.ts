import { type Command, defineCommand } from "../command.ts";
import { addEntry } from "./add-entry.ts";
import { fabricOptions } from "./open-fabric.ts";

export const addClaimCommand: Command = defineCommand({
  arguments: [{ name: "PATH", summary: "a file, a folder or a pattern, as others would write it" }],
  options: fabricOptions,
  details: `Prints the id of the entry: inside of a running phase on stderr, since its stdout may be the answer.
A claim is shown to others until the phase that owns it is completed. Nothing enforces it: phases claim their scope by themselves
when they start.`,
  examples: [
    { line: "plimsoll fabric add claim src/parse.ts", meaning: "inside of a running phase" },
    { line: 'plimsoll fabric add claim "docs/**" --nebula plan', meaning: "as a person" },
  ],
  async run(call) {
    const [path = ""] = call.arguments;
    return addEntry(call, "claims", { path });
  },
});
