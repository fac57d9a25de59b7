import { type Fabric, resolveEntry } from "../../compose/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { changeFabric, fabricOptions, tellId } from "./open-fabric.ts";

export const resolveCommand: Command = defineCommand({
  arguments: [{ name: "ID", summary: 'the entry, as "plimsoll fabric show --json" names it' }],
  options: fabricOptions,
  details: `A discovery that is resolved is no longer shown to phases; reported again, it is a new one. Any other entry is taken out:
a claim, a note, an entanglement. Prints the id, inside of a running phase on stderr.`,
  examples: [
    { line: "plimsoll fabric resolve d2", meaning: "inside of a running phase" },
    { line: "plimsoll fabric resolve c3 --nebula plan", meaning: "as a person: the path is free again" },
  ],
  async run(call) {
    const [id = ""] = call.arguments;
    let before: Fabric | undefined;
    const after = await changeFabric(call, (fabric) => {
      before = fabric;
      return resolveEntry(fabric, id);
    });
    const isNew = after !== before;
    if (!isNew) call.output.note(`${id} was resolved before`);
    // What was taken out is only in what was there before.
    const entry = find(after, id) ?? find(before, id);
    return tellId(call, { entry, id, note: isNew ? `resolved ${id}` : undefined });
  },
});

function find(fabric: Fabric | undefined, id: string): object | undefined {
  if (fabric === undefined) return undefined;
  const { entanglements, claims, discoveries, notes } = fabric;
  return [...entanglements, ...claims, ...discoveries, ...notes].find((each) => each.id === id);
}
