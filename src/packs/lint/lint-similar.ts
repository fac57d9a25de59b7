/** Packs that say nearly the same: tools with room get it twice unless one of them declares `overlaps`. */
import { textAt } from "../../text/index.ts";
import type { Pack, PackSource } from "../pack.ts";
import type { LintFinding, LintInput } from "./lint-packs.ts";

/** A pack is a near-duplicate when this share of its runs of words is in another pack, too. */
const similarShare = 0.6;
/** Words in a run: long enough that two texts on one subject do not share many by chance. */
const runWords = 5;
/** With fewer runs than this a share says nothing. */
const leastRuns = 12;
/** Above this many runs in all packs together only a fixed part of them, chosen by hash, is compared: the memory stays bounded. */
const mostRuns = 400_000;
/** A run that more packs than this have in common is boilerplate; comparing with the first ones keeps the work linear. */
const mostOwners = 16;

export function lintSimilar({ packs, sources }: Pick<LintInput, "packs" | "sources">): LintFinding[] {
  return similarPacks(packs).flatMap(({ earlier, later, share }) => {
    if (earlier.overlaps.includes(later.id) || later.overlaps.includes(earlier.id)) return [];
    // The weaker one carries the line; where that one ships with the program, the other is what can be changed.
    const own = sourceOf(later, sources) ?? sourceOf(earlier, sources);
    if (own === undefined) return [];
    const place = { directory: own.directory, key: ["id"] };
    const message = describe(own.id === later.id ? [later, earlier] : [earlier, later], share);
    return [{ place, severity: "warning", rule: "near-duplicate", message }];
  });
}

function sourceOf({ id }: Pack, sources: readonly PackSource[]): PackSource | undefined {
  return sources.findLast((source) => source.id === id);
}

function describe([own, other]: readonly [Pack, Pack], share: number): string {
  const percent = Math.floor(share * 100);
  // Base packs are exempt from overlaps, so declaring one would change nothing.
  const advice =
    own.base || other.base
      ? "Take the repetition out of one of them."
      : `Add \`overlaps: [${other.id}]\` if it is redundant beside "${other.id}", or take the repetition out.`;
  return `"${own.id}" and "${other.id}" say nearly the same: they share ${percent} % of the runs of ${runWords} words of the shorter one (${similarShare * 100} % or more is reported). ${advice}`;
}

export interface SimilarPacks {
  readonly earlier: Pack;
  readonly later: Pack;
  /** Of the runs of the one with fewer. */
  readonly share: number;
}

/** Pairs in the order of the packs. The work grows with the text, not with the number of pairs. */
export function similarPacks(packs: readonly Pack[]): SimilarPacks[] {
  const texts = packs.map(
    ({ context, constraints }) => `${textAt(constraints, "full")}\n${textAt(context, "full")}`,
  );
  const mask = maskFor(texts);
  const owners = new Map<number, number[]>();
  const sizes: number[] = [];
  const similar: SimilarPacks[] = [];
  for (const [index, text] of texts.entries()) {
    const runs = hashRuns(text, mask);
    sizes.push(runs.size);
    for (const [other, shared] of countShared(runs, owners)) {
      const least = Math.min(runs.size, sizes[other]!);
      if (least < leastRuns || shared / least < similarShare) continue;
      similar.push({ earlier: packs[other]!, later: packs[index]!, share: shared / least });
    }
    for (const run of runs) addOwner(owners, run, index);
  }
  return similar;
}

/** Low bits that a hash must have clear to be compared: none, one, two… so that about `mostRuns` are. */
function maskFor(texts: readonly string[]): number {
  const words = texts.reduce((sum, text) => sum + text.length / 6, 0);
  const halvings = Math.max(0, Math.ceil(Math.log2(words / mostRuns)));
  return 2 ** Math.min(halvings, 20) - 1;
}

/** Hashes of every run of words; letter case and punctuation do not count. */
function hashRuns(text: string, mask: number): Set<number> {
  const words = (text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).map(hashWord);
  const runs = new Set<number>();
  for (let at = 0; at + runWords <= words.length; at++) {
    let hash = 0;
    for (let offset = 0; offset < runWords; offset++) hash = mix(hash ^ words[at + offset]!);
    if ((hash & mask) === 0) runs.add(hash);
  }
  return runs;
}

/** FNV-1a. */
function hashWord(word: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < word.length; at++) hash = Math.imul(hash ^ word.charCodeAt(at), 0x01000193);
  return hash;
}

/** Spreads every bit over the whole number, so that its low bits may choose. */
function mix(value: number): number {
  const half = Math.imul(value ^ (value >>> 16), 0x45d9f3b);
  const whole = Math.imul(half ^ (half >>> 16), 0x45d9f3b);
  return (whole ^ (whole >>> 16)) >>> 0;
}

/** How many of the runs each earlier pack has, too; by its index, ascending. */
function countShared(runs: ReadonlySet<number>, owners: ReadonlyMap<number, number[]>): [number, number][] {
  const counts = new Map<number, number>();
  for (const run of runs) {
    for (const owner of owners.get(run) ?? []) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  return [...counts].sort(([a], [b]) => a - b);
}

function addOwner(owners: Map<number, number[]>, run: number, index: number): void {
  const list = owners.get(run);
  if (list === undefined) owners.set(run, [index]);
  else if (list.length < mostOwners) list.push(index);
}
