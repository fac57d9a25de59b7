import { textAt, type Verbosity } from "../text/index.ts";
import type { Pack } from "./pack.ts";

export interface TrimmedPacks {
  readonly packs: readonly Pack[];
  readonly dropped: readonly DroppedPack[];
}

export interface DroppedPack {
  readonly id: string;
  readonly reason: "overlap" | "budget";
  /** The pack that includes it. */
  readonly by?: string | undefined;
}

/** Drops packs that another pack includes, then keeps as many as fit into `maxBytes` (0 or less means no limit).
 *  `packs` are sorted, most important first. Base packs come first and are always kept. The first pack that does not
 *  fit is dropped with all packs after it, so no smaller pack takes its place. */
export function trimPacks(packs: readonly Pack[], maxBytes: number, verbosity: Verbosity): TrimmedPacks {
  const base = packs.filter((pack) => pack.base);
  const { kept, dropped } = dropSubsumed(packs.filter((pack) => !pack.base));
  const fitting = countFitting(kept, maxBytes, verbosity);
  return {
    packs: [...base, ...kept.slice(0, fitting)],
    dropped: [...dropped, ...kept.slice(fitting).map(({ id }) => ({ id, reason: "budget" as const }))],
  };
}

/** A pack is dropped if a pack that it names came earlier and was kept, whatever their weights. This is not transitive.
 *  If two packs name each other, the earlier one is kept. */
function dropSubsumed(packs: readonly Pack[]): { kept: Pack[]; dropped: DroppedPack[] } {
  const kept: Pack[] = [];
  const dropped: DroppedPack[] = [];
  const included = new Set<string>();
  for (const pack of packs) {
    const by = pack.overlaps.find((id) => included.has(id));
    if (by !== undefined) {
      dropped.push({ id: pack.id, reason: "overlap", by });
      continue;
    }
    kept.push(pack);
    included.add(pack.id);
  }
  return { kept, dropped };
}

function countFitting(packs: readonly Pack[], maxBytes: number, verbosity: Verbosity): number {
  if (maxBytes <= 0) return packs.length;
  let used = 0;
  for (const [index, pack] of packs.entries()) {
    used += bytesAt(pack, verbosity);
    if (used > maxBytes) return index;
  }
  return packs.length;
}

function bytesAt({ context, constraints }: Pack, verbosity: Verbosity): number {
  return Buffer.byteLength(textAt(context, verbosity)) + Buffer.byteLength(textAt(constraints, verbosity));
}
