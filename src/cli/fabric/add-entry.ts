import { isDeepStrictEqual } from "node:util";
import { addToFabric, emptyFabric, type FabricKind, type FabricReport } from "../../compose/index.ts";
import type { CommandResult } from "../command.ts";
import { changeFabric, type FabricCall, tellId } from "./open-fabric.ts";

type Reported<Kind extends FabricKind> = NonNullable<FabricReport[Kind]>[number];

/** Adds one entry, and tells its id. One that is there already keeps the id that it has. */
export async function addEntry<Kind extends FabricKind>(
  call: FabricCall,
  kind: Kind,
  entry: Reported<Kind>,
): Promise<CommandResult> {
  let [isNew, from] = [false, ""];
  const report: FabricReport = { [kind]: [entry] };
  const fabric = await changeFabric(call, (before, reporter) => {
    const after = addToFabric(before, report, reporter.from, reporter.date);
    [isNew, from] = [after !== before, reporter.from];
    return after;
  });
  const [wanted] = addToFabric(emptyFabric, report, from)[kind];
  const added = fabric[kind].findLast((each) => isDeepStrictEqual(bare(each), bare(wanted)));
  const id = added?.id ?? "";
  if (!isNew) call.output.note(`${from} reported that before: it is ${id}`);
  return tellId(call, { entry: added, id, note: isNew ? `added ${id}` : undefined });
}

function bare(entry: object | undefined): object {
  return { ...entry, id: undefined, date: undefined };
}
