/** Cost against what is kept: the least cost for a kept share, between points that were measured. */
export interface Point {
  /** Mean over the calls of the share that can still be read, 0 to 1. */
  readonly kept: number;
  readonly cost: number;
}

/** The cost at a kept share; undefined where no point keeps as much, or, on a line, as little. */
export type CostAt = (kept: number) => number | undefined;

/** The lower convex hull of the points: the least cost to keep at least a share, sessions treated in different ways included. */
export function createHull(points: readonly Point[]): CostAt {
  const hull: Point[] = [];
  for (const point of ordered(points)) {
    while (hull.length > 0 && hull.at(-1)!.cost >= point.cost) hull.pop();
    while (hull.length > 1 && !isBelow(hull.at(-1)!, hull.at(-2)!, point)) hull.pop();
    hull.push(point);
  }
  const line = createLine(hull);
  const [first] = hull;
  return (kept) => (first !== undefined && kept < first.kept ? first.cost : line(kept));
}

/** From point to point, in the order of what they keep. */
export function createLine(points: readonly Point[]): CostAt {
  const sorted = ordered(points);
  return (kept) => {
    const at = sorted.findIndex((point) => point.kept >= kept);
    const [before, after] = [sorted[at - 1], sorted[at]];
    if (after === undefined) return undefined;
    if (after.kept === kept) return after.cost;
    return before === undefined ? undefined : between(before, after, kept);
  };
}

function ordered(points: readonly Point[]): Point[] {
  return points.toSorted((first, second) => first.kept - second.kept || first.cost - second.cost);
}

/** Whether a point lies below the straight line between its neighbours. */
function isBelow(point: Point, before: Point, after: Point): boolean {
  return point.cost < between(before, after, point.kept);
}

function between(before: Point, after: Point, kept: number): number {
  const share = (kept - before.kept) / (after.kept - before.kept);
  return before.cost + share * (after.cost - before.cost);
}
