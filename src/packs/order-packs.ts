import type { Pack } from "./pack.ts";
import type { Profile } from "./profile.ts";

/** The packs of a profile, first the most important: base packs, then by weight descending, then by id. The input's order never matters. */
export function orderPacks(packs: readonly Pack[], profile?: Profile): readonly Pack[] {
  const weights = new Map(profile?.packs.map(({ id, weight }) => [id, weight]));
  const weightOf = (pack: Pack) => weights.get(pack.id) || pack.weight;
  return packs
    .filter(({ base }) => base || profile?.id !== "minimal")
    .sort((a, b) => Number(b.base) - Number(a.base) || weightOf(b) - weightOf(a) || compareText(a.id, b.id));
}

/** By code unit: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
