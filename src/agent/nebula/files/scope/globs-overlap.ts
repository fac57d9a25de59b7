import type { CharacterSet, Glob } from "./glob.ts";

/** How much looking is still allowed: patterns can be written so that no time is enough. Comparing the ends of two globs costs 1. */
export interface StepBudget {
  left: number;
}

/** Against comparing ends, about what the clock says. */
const costOfStep = 8;

/** Whether some path belongs to both. Where the budget ends first the answer is no, and `left` is below 0. */
export function globsOverlap(one: Glob, two: Glob, budget: StepBudget): boolean {
  if (!couldOverlap(one, two)) return false;
  if (names(one, two) || names(two, one)) return true;
  const areBothPaths = one.path !== undefined && two.path !== undefined;
  return !areBothPaths && meet(one, two, budget);
}

/** Rules out nearly all pairs at once: what begins or ends differently is never the same. */
export function couldOverlap(one: Glob, two: Glob): boolean {
  if (names(one, two) || names(two, one)) return true;
  return (
    (one.prefix.startsWith(two.prefix) || two.prefix.startsWith(one.prefix)) &&
    (one.suffix.endsWith(two.suffix) || two.suffix.endsWith(one.suffix))
  );
}

/** Whether one names the very path of the other, or something below it, which makes that a folder whatever it is called. */
function names(one: Glob, two: Glob): boolean {
  const { path } = two;
  if (path === undefined || !one.prefix.startsWith(path)) return false;
  return one.prefix[path.length] === "/" || one.path === path;
}

/** Walks the two automata at once, each pair of states only once. */
function meet(one: Glob, two: Glob, budget: StepBudget): boolean {
  const width = two.states.length;
  const seen = new Uint8Array(one.states.length * width);
  const pending = [0];
  seen[0] = 1;
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    budget.left -= costOfStep;
    if (budget.left < 0) return false;
    if (one.states[Math.floor(pair / width)]!.accepts && two.states[pair % width]!.accepts) return true;
    for (const next of nextPairs([one, two], pair)) {
      if (seen[next] === 0) pending.push(next);
      seen[next] = 1;
    }
  }
  return false;
}

function nextPairs([one, two]: readonly [Glob, Glob], pair: number): number[] {
  const width = two.states.length;
  const [first, second] = [Math.floor(pair / width), pair % width];
  const [a, b] = [one.states[first]!, two.states[second]!];
  const next = [...a.skips.map((to) => to * width + second), ...b.skips.map((to) => first * width + to)];
  for (const move of a.moves) {
    for (const other of b.moves) {
      if (shareCharacter(move.characters, other.characters)) next.push(move.to * width + other.to);
    }
  }
  return next;
}

function shareCharacter(one: CharacterSet, two: CharacterSet): boolean {
  return one.some(([from, to]) => two.some(([low, high]) => from <= high && low <= to));
}
