/** What a layer asks for, and what it may count on. */
export interface Demand {
  /** Tokens of the whole layer; infinite where it is larger than any grant. */
  readonly need: number;
  /** Tokens below which more is lost than items: for them, layers behind this one give way. */
  readonly least: number;
  /** Of the total, from 0 to 1. */
  readonly share: number;
}

/** Splits `total` in order: a layer gets its share and what those before it did not need. Then one that is below its least takes from
 *  what nobody needs, and from the layers behind it, the last first. Grants never add up to more than `total`. */
export function allocate(total: number, demands: readonly Demand[]): number[] {
  let carried = 0;
  let left = total;
  const grants = demands.map(({ need, share }) => {
    const offered = Math.min(carried + Math.floor(total * share), left);
    const grant = Math.min(need, offered);
    carried = offered - grant;
    left -= grant;
    return grant;
  });
  for (const [index, { need, least }] of demands.entries()) {
    const missing = Math.min(need, least) - grants[index]!;
    if (missing > 0) grants[index]! += takeBehind(grants, { index, missing, total });
  }
  return grants;
}

interface Shortage {
  readonly index: number;
  readonly missing: number;
  readonly total: number;
}

function takeBehind(grants: number[], { index, missing, total }: Shortage): number {
  let taken = Math.min(missing, total - grants.reduce((sum, grant) => sum + grant, 0));
  for (let behind = grants.length - 1; behind > index; behind--) {
    const part = Math.min(missing - taken, grants[behind]!);
    grants[behind]! -= part;
    taken += part;
  }
  return taken;
}
