import type { DependencyGraph } from "./walk-dependencies.ts";

/** Tells whether one of two phases depends on the other, however far away. In `order` dependencies come first; where cycles make that
 *  impossible, what lies on one is connected all the same. */
export function createReach(
  graph: DependencyGraph,
  order: readonly string[],
): (one: string, two: string) => boolean {
  const numbers = new Map(order.map((id, index) => [id, index]));
  const dependencies = order.map((id) => (graph.get(id) ?? []).map((on) => numbers.get(on)!));
  const words = Math.ceil(order.length / 32);
  const rows = new Uint32Array(order.length * words);
  // Once is enough without cycles; the round after tells.
  while (addOnce(rows, dependencies, words));
  const has = (from: number, to: number) => (rows[from * words + (to >>> 5)]! & (1 << (to & 31))) !== 0;
  return (one, two) => {
    const [a, b] = [numbers.get(one)!, numbers.get(two)!];
    return has(a, b) || has(b, a);
  };
}

/** A row has a bit for each phase that is depended on. */
function addOnce(rows: Uint32Array, dependencies: readonly (readonly number[])[], words: number): boolean {
  let changed = false;
  for (const [from, direct] of dependencies.entries()) {
    const row = rows.subarray(from * words, (from + 1) * words);
    for (const to of direct) {
      const other = rows.subarray(to * words, (to + 1) * words);
      for (let word = 0; word < words; word++) {
        const before = row[word]!;
        row[word] = before | other[word]! | (word === to >>> 5 ? 1 << (to & 31) : 0);
        changed ||= row[word] !== before;
      }
    }
  }
  return changed;
}
