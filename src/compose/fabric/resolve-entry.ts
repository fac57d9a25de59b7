import { ContextError } from "../../errors.ts";
import type { Fabric } from "./fabric-state.ts";

/** The fabric without that entry in the way of anybody. A discovery becomes resolved: it stays, and is no longer rendered; one that was
 *  resolved before changes nothing. Any other entry is taken out. */
export function resolveEntry(fabric: Fabric, id: string): Fabric {
  const { discoveries } = fabric;
  const found = discoveries.find((each) => each.id === id);
  if (found?.resolved) return fabric;
  if (found !== undefined) {
    const resolved = { ...found, resolved: true };
    return { ...fabric, discoveries: discoveries.map((each) => (each === found ? resolved : each)) };
  }
  for (const kind of ["entanglements", "claims", "notes"] as const) {
    const kept = (fabric[kind] as readonly { readonly id: string }[]).filter((each) => each.id !== id);
    if (kept.length < fabric[kind].length) return { ...fabric, [kind]: kept };
  }
  throw unknownEntry(fabric, id);
}

/** Ids that are told: nobody reads more in one line. */
const mostIds = 10;

/** Discoveries first: they are what is resolved most. */
function unknownEntry({ entanglements, claims, discoveries, notes }: Fabric, id: string): ContextError {
  const open = discoveries.filter(({ resolved }) => !resolved);
  const all = [...open, ...entanglements, ...claims, ...notes].map((each) => each.id);
  const ids = [...all.slice(0, mostIds), ...(all.length > mostIds ? ["…"] : [])];
  const hint = all.length === 0 ? "It has nothing to resolve." : `It has ${ids.join(", ")}.`;
  return new ContextError("invalid_argument", `the fabric has no entry ${JSON.stringify(id)}`, { hint });
}
