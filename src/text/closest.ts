/** The candidate a person most likely meant, `undefined` when none is near enough to be worth suggesting. Ties go to the earlier one. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  const letters = wanted.replace(/^-+/, "").length;
  // Of one letter any other is one step away.
  if (letters < 2) return undefined;
  const allowed = Math.max(1, Math.floor(wanted.length / 3));
  let best: string | undefined;
  let bestDistance = allowed + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best ?? candidates.find((candidate) => candidate.toLowerCase().includes(wanted));
}

/** The suggestion as a sentence, or nothing. */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
  const match = closest(word, candidates);
  return match === undefined ? undefined : `Did you mean "${match}"?`;
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment); anything ≥ `enough` comes back as `enough`. */
function editDistance(from: string, to: string, enough: number): number {
  if (Math.abs(from.length - to.length) >= enough) return enough;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      let cost = Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1);
      if (isSwap(from, to, [row, column])) cost = Math.min(cost, beforePrevious[column - 2]! + 1);
      current.push(cost);
    }
    if (Math.min(...current) >= enough) return enough;
    beforePrevious = previous;
    previous = current;
  }
  return Math.min(previous[to.length]!, enough);
}

function isSwap(from: string, to: string, [row, column]: readonly [number, number]): boolean {
  return row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
}
