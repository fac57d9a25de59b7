import { didYouMean, printable } from "../../text/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { addEntry } from "./add-entry.ts";
import { type FabricCall, fabricOptions, readFabric } from "./open-fabric.ts";

export const addDiscoveryCommand: Command = defineCommand({
  arguments: [{ name: "TEXT", summary: "what was found out, in one line" }],
  options: {
    kind: { value: "KIND", summary: "what it is, in a word (default: blocker)" },
    affects: { value: "ID", summary: "the phase that it stands in the way of" },
    ...fabricOptions,
  },
  details: `Prints the id of the entry: inside of a running phase on stderr, since its stdout may be the answer.
Discoveries are what a prompt keeps to the last: every phase that starts sees all of them, until "plimsoll fabric resolve ID".`,
  examples: [
    {
      line: 'plimsoll fabric add discovery "no schema yet" --affects page',
      meaning: "inside of a running phase",
    },
    {
      line: 'plimsoll fabric add discovery "two names" --kind conflict --nebula plan',
      meaning: "as a person",
    },
  ],
  async run(call) {
    const [detail = ""] = call.arguments;
    const { kind = "blocker", affects } = call.options;
    const result = await addEntry(call, "discoveries", { kind, detail, affects });
    if (affects !== undefined) await noteUnknown(call, affects);
    return result;
  },
});

/** Which phases there are is known from the first run on. */
async function noteUnknown(call: FabricCall, affects: string): Promise<void> {
  const { phases = [] } = (await readFabric(call)) ?? {};
  const ids = phases.map(({ id }) => id);
  if (ids.length === 0 || ids.includes(affects.trim())) return;
  const meant = didYouMean(affects, ids);
  const sentence = `"${printable(affects)}" is no phase of this nebula`;
  call.output.note(meant === undefined ? sentence : `${sentence}. ${meant}`);
}
