/** Counts the tokens of one pretoken: merges the adjacent pair of lowest rank, the leftmost of equals, until none is left. */
import { createBytePairQueue } from "./byte-pair-queue.ts";
import { type BytePairRanks, noRank } from "./byte-pair-ranks.ts";

/** How many tokens `bytes` from `start` to `end` make. O(n log n) for long pretokens; short ones do without the queue. */
export function countByMerging(ranks: BytePairRanks, bytes: Uint8Array, start: number, end: number): number {
  return end - start <= shortBytes
    ? countShort(ranks, bytes, start, end)
    : countLong(ranks, bytes, start, end);
}

const shortBytes = 64;
const shortStarts = new Int32Array(shortBytes + 2);
const shortRanks = new Int32Array(shortBytes + 2);

function countShort(ranks: BytePairRanks, bytes: Uint8Array, start: number, end: number): number {
  let parts = end - start;
  for (let part = 0; part < parts; part++) {
    shortStarts[part] = start + part;
    shortRanks[part] =
      part + 1 < parts ? ranks.rankOfPair(bytes[start + part]!, bytes[start + part + 1]!) : noRank;
  }
  shortStarts[parts] = end;
  for (;;) {
    const lowest = lowestPart(parts);
    if (shortRanks[lowest] === noRank) return parts;
    parts -= 1;
    for (let part = lowest + 1; part <= parts; part++) {
      shortStarts[part] = shortStarts[part + 1]!;
      shortRanks[part] = shortRanks[part + 1]!;
    }
    shortRanks[lowest] =
      lowest + 1 < parts ? ranks.rankOf(bytes, shortStarts[lowest]!, shortStarts[lowest + 2]!) : noRank;
    if (lowest > 0) {
      shortRanks[lowest - 1] = ranks.rankOf(bytes, shortStarts[lowest - 1]!, shortStarts[lowest + 1]!);
    }
  }
}

function lowestPart(parts: number): number {
  let lowest = 0;
  let rank = shortRanks[0]!;
  for (let part = 1; part < parts; part++) {
    if (shortRanks[part]! < rank) {
      rank = shortRanks[part]!;
      lowest = part;
    }
  }
  return lowest;
}

/** The parts are a linked list, each named by the offset of its first byte from `start`. */
function countLong(ranks: BytePairRanks, bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const next = new Int32Array(length + 1);
  const previous = new Int32Array(length + 1);
  const pairRanks = new Int32Array(length + 1);
  const queue = createBytePairQueue();
  const setRank = (part: number, rank: number): void => {
    pairRanks[part] = rank;
    if (rank !== noRank) queue.push(rank, part);
  };
  const rankPairAt = (part: number): void => {
    const second = next[part]!;
    setRank(part, second < length ? ranks.rankOf(bytes, start + part, start + next[second]!) : noRank);
  };
  for (let part = 0; part < length; part++) {
    next[part] = part + 1;
    previous[part] = part - 1;
    const at = start + part;
    setRank(part, part + 1 < length ? ranks.rankOfPair(bytes[at]!, bytes[at + 1]!) : noRank);
  }
  let parts = length;
  for (let part = queue.pop(); part >= 0; part = queue.pop()) {
    if (pairRanks[part] !== queue.rank()) continue; // one of its halves has been merged since
    const second = next[part]!;
    pairRanks[second] = noRank;
    next[part] = next[second]!;
    previous[next[second]!] = part;
    parts -= 1;
    rankPairAt(part);
    if (part > 0) rankPairAt(previous[part]!);
  }
  return parts;
}
