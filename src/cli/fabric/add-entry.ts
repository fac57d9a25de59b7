import { addToFabric, type FabricKind, type FabricReport } from "../../compose/index.ts";
import type { CommandResult } from "../command.ts";
import { changeFabric, type FabricCall, tellId } from "./open-fabric.ts";

type Reported<Kind extends FabricKind> = NonNullable<FabricReport[Kind]>[number];

/** Adds one entry, and tells its id. One that is there already keeps the id that it has. */
export async function addEntry<Kind extends FabricKind>(
  call: FabricCall,
  kind: Kind,
  entry: Reported<Kind>,
): Promise<CommandResult> {
  let [id, from, isNew] = ["", "", false];
  const fabric = await changeFabric(call, (before, reporter) => {
    const { fabric: after, ids } = addToFabric(before, { [kind]: [entry] }, reporter);
    [id, from, isNew] = [ids[kind][0]!, reporter.from, after !== before];
    return after;
  });
  const added = fabric[kind].find((each) => each.id === id);
  if (!isNew) call.output.note(`${from} reported that before: it is ${id}`);
  return tellId(call, { entry: added, id, note: isNew ? `added ${id}` : undefined });
}
