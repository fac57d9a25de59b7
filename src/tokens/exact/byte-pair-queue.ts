/** Pairs that wait to be merged: lowest rank first, among equals the leftmost. One bucket a rank and a heap of the ranks in use,
 *  because the pairs of a long run share few ranks; a heap of the pairs themselves takes more than twice the time. */
export interface BytePairQueue {
  push(rank: number, part: number): void;
  /** The part that the next pair begins at, and -1 when none waits. Its rank is then `rank()`. */
  pop(): number;
  rank(): number;
}

export function createBytePairQueue(): BytePairQueue {
  const buckets = new Map<number, Bucket>();
  const ranks: number[] = [];
  let poppedRank = -1;
  return {
    push(rank, part) {
      const bucket = buckets.get(rank);
      if (bucket === undefined) {
        buckets.set(rank, { parts: [part], taken: 0, sorted: true });
        pushRank(ranks, rank);
      } else {
        if (part < bucket.parts[bucket.parts.length - 1]!) bucket.sorted = false;
        bucket.parts.push(part);
      }
    },
    pop() {
      while (ranks.length > 0) {
        poppedRank = ranks[0]!;
        const bucket = buckets.get(poppedRank)!;
        if (bucket.taken < bucket.parts.length) return takeLeftmost(bucket);
        buckets.delete(poppedRank);
        popRank(ranks);
      }
      return -1;
    },
    rank: () => poppedRank,
  };
}

interface Bucket {
  parts: number[];
  taken: number;
  sorted: boolean;
}

// A bucket is sorted at most once: what is pushed while it empties holds a token that its own pairs made, and is longer
// than they are, so that it goes to another bucket.
function takeLeftmost(bucket: Bucket): number {
  if (!bucket.sorted) {
    bucket.parts = bucket.parts.slice(bucket.taken).sort((a, b) => a - b);
    bucket.taken = 0;
    bucket.sorted = true;
  }
  return bucket.parts[bucket.taken++]!;
}

function pushRank(heap: number[], rank: number): void {
  let at = heap.length;
  heap.push(rank);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= rank) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = rank;
}

function popRank(heap: number[]): void {
  const rank = heap.pop()!;
  if (heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = at * 2 + 1;
    const least = left + 1 < heap.length && heap[left + 1]! < heap[left]! ? left + 1 : left;
    if (least >= heap.length || heap[least]! >= rank) break;
    heap[at] = heap[least]!;
    at = least;
  }
  heap[at] = rank;
}
