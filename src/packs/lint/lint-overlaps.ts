/** Overlaps and profiles name packs by id: do those exist, and can what they say be true? */
import { didYouMean } from "../../text/index.ts";
import { compareText } from "../order-packs.ts";
import type { Pack, PackSource } from "../pack.ts";
import type { KeyPlace, LintFinding, LintInput } from "./lint-packs.ts";

type OverlapInput = Pick<LintInput, "packs" | "sources" | "profiles" | "knownIds">;

/** Ids that no pack has, packs that overlap themselves, and circles in which each pack is said to be replaced by the next. */
export function lintOverlaps(input: OverlapInput): LintFinding[] {
  const unknown = input.sources.flatMap((source) =>
    source.overlaps.flatMap((id, index) => {
      const message = id === source.id ? "overlaps itself. Take the line out." : unknownPack(id, input);
      const rule = id === source.id ? "overlap-cycle" : "unknown-overlap";
      const place = { directory: source.directory, key: ["overlaps", index] };
      return message === undefined ? [] : [{ place, severity: "error" as const, rule, message }];
    }),
  );
  return [...unknown, ...lintCycles(input)];
}

export function lintProfiles(input: OverlapInput): LintFinding[] {
  return input.profiles.flatMap((profile) =>
    profile.packs.flatMap(({ id }, index) => {
      const message = unknownPack(id, input);
      const place = { profile: profile.id, key: ["packs", index, "id"] };
      const rule = "unknown-profile-pack";
      return message === undefined ? [] : [{ place, severity: "error" as const, rule, message }];
    }),
  );
}

function unknownPack(id: string, { packs, knownIds }: OverlapInput): string | undefined {
  const ids = [...packs.map((pack) => pack.id), ...knownIds];
  if (ids.includes(id)) return undefined;
  return `no pack has the id "${id}". ${didYouMean(id, ids) ?? "Take it out, or add the pack."}`;
}

function lintCycles({ packs, sources }: OverlapInput): LintFinding[] {
  return findCycles(packs).flatMap((cycle) => {
    const place = placeOfCycle(cycle, sources);
    const path = [...cycle, cycle[0]].join(" → ");
    const message = `overlaps go in a circle: ${path}. Each is said to be replaced by the next, so which one stays depends on the order alone. Keep only the lines of the weaker packs.`;
    return place === undefined ? [] : [{ place, severity: "error", rule: "overlap-cycle", message }];
  });
}

/** Shortest circles of at least two packs, each beginning with its smallest id; every pack is in one of them at most. */
function findCycles(packs: readonly Pack[]): string[][] {
  const overlapsOf = new Map(packs.map(({ id, overlaps }) => [id, overlaps.filter((each) => each !== id)]));
  const seen = new Set<string>();
  const cycles: string[][] = [];
  for (const id of [...overlapsOf.keys()].sort(compareText)) {
    const cycle = seen.has(id) ? undefined : shortestCycle(id, overlapsOf);
    if (cycle === undefined) continue;
    for (const each of cycle) seen.add(each);
    cycles.push(cycle);
  }
  return cycles;
}

function shortestCycle(
  start: string,
  overlapsOf: ReadonlyMap<string, readonly string[]>,
): string[] | undefined {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const id of queue) {
    for (const next of overlapsOf.get(id) ?? []) {
      if (next === start) return pathTo(id, cameFrom);
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, id);
      queue.push(next);
    }
  }
  return undefined;
}

function pathTo(last: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [last];
  for (let id = cameFrom.get(last); id !== undefined; id = cameFrom.get(id)) path.unshift(id);
  return path;
}

/** The first line of the circle that is in a file people can change. */
function placeOfCycle(cycle: readonly string[], sources: readonly PackSource[]): KeyPlace | undefined {
  for (const [index, id] of cycle.entries()) {
    const next = cycle[(index + 1) % cycle.length]!;
    const source = sources.findLast((each) => each.id === id && each.overlaps.includes(next));
    if (source !== undefined) {
      return { directory: source.directory, key: ["overlaps", source.overlaps.indexOf(next)] };
    }
  }
  return undefined;
}
