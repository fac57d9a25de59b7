/** Checks phases against each other: ids, dependencies, cycles, scopes. */
import { basename } from "node:path";
import { compareText, didYouMean } from "../../core/text/index.ts";
import type { ContentProblem } from "../../rules/index.ts";
import { createReach, type DependencyGraph, type DependencyWalk, walkDependencies } from "./nebula.ts";
import type { PhaseDraft } from "./nebula-files.ts";
import { couldOverlap, globsOverlap, readScope, type ScopeGlob, type StepBudget } from "./scope-globs.ts";

export function checkPhases(drafts: readonly PhaseDraft[]): {
  readonly dependencies: DependencyGraph;
  readonly problems: readonly ContentProblem[];
} {
  const { byId, problems: repeated } = checkIds(drafts);
  const { dependencies: known, problems: unknown } = checkDependencies(drafts, byId);
  const sets = new Map<string, Set<string>>([...byId.keys()].map((id) => [id, new Set()]));
  for (const { from, to } of known) sets.get(from)!.add(to);
  const graph = new Map([...sets].map(([id, on]) => [id, [...on]]));
  const walk = walkDependencies(graph);
  const overlaps = checkScopes([...byId.values()], createReach(graph, walk.order));
  return {
    dependencies: graph,
    problems: [...repeated, ...unknown, ...describeCycles(walk, known), ...overlaps],
  };
}

/** Returns the first phase of each id, and problems with the others. */
function checkIds(drafts: readonly PhaseDraft[]): {
  readonly byId: ReadonlyMap<string, PhaseDraft>;
  readonly problems: readonly ContentProblem[];
} {
  const byId = new Map<string, PhaseDraft>();
  // A case-insensitive disk would give both phases the same folder.
  const byFolder = new Map<string, PhaseDraft>();
  const problems: ContentProblem[] = [];
  for (const draft of drafts) {
    const { file, keys, lineOf } = draft;
    const { id } = keys;
    if (id === undefined) continue;
    if (!byId.has(id)) byId.set(id, draft);
    const other = byFolder.get(id.toLowerCase());
    if (other === undefined) {
      byFolder.set(id.toLowerCase(), draft);
      continue;
    }
    const place = `${basename(other.file)}:${other.lineOf(["id"])}`;
    const message =
      id === other.keys.id
        ? `id "${id}" is already used in ${place}`
        : `id "${id}" differs only in upper and lower case from "${other.keys.id}" in ${place}`;
    problems.push({ file, line: lineOf(["id"]), severity: "error", rule: "duplicate-id", message });
  }
  return { byId, problems };
}

function describeCycles({ cycles, moreCycles }: DependencyWalk, dependencies: readonly Dependency[]): ContentProblem[] {
  if (cycles.length === 0) return [];
  const places = new Map(dependencies.map((each) => [`${each.from}\n${each.to}`, each]));
  const problems = cycles.map((cycle): ContentProblem => {
    const { file, line } = places.get(`${cycle[0]}\n${cycle[1]}`)!;
    // The message has the first and the last ids of a long cycle.
    const left = cycle.length - 20;
    const ids = left > 1 ? [...cycle.slice(0, 10), `(${left} more)`, ...cycle.slice(-10)] : cycle;
    const message = `the dependencies form a cycle: ${[...ids, cycle[0]].join(" → ")}`;
    return { file, line, severity: "error", rule: "dependency-cycle", message };
  });
  if (moreCycles === 0) return problems;
  return [...problems, { ...problems.at(-1)!, message: `… and ${moreCycles} more dependency cycles` }];
}

/** `from` depends on `to`, as written in `file`. */
interface Dependency {
  readonly from: string;
  readonly to: string;
  readonly file: string;
  readonly line: number;
}

/** Returns the dependencies between known phases, in the order of files, `depends_on` before `blocks`. */
function checkDependencies(
  drafts: readonly PhaseDraft[],
  byId: ReadonlyMap<string, PhaseDraft>,
): { readonly dependencies: readonly Dependency[]; readonly problems: readonly ContentProblem[] } {
  const dependencies: Dependency[] = [];
  const problems: ContentProblem[] = [];
  const suggest = createSuggest([...byId.keys()]);
  const written = (["depends_on", "blocks"] as const).flatMap((key) =>
    drafts.flatMap((draft) => (draft.keys[key] ?? []).map((name, index) => ({ draft, key, name, index }))),
  );
  for (const { draft, key, name, index } of written) {
    const { id } = draft.keys;
    const place = { file: draft.file, line: draft.lineOf([key, index]) };
    if (name === id) {
      const message = `${key} names the phase itself, "${name}"`;
      problems.push({ ...place, severity: "error", rule: "self-dependency", message });
    } else if (!byId.has(name)) {
      // A phase with an unknown dependency can never start. An unknown name in `blocks` stops nothing.
      const severity = key === "depends_on" ? "error" : "warning";
      const message = `${key} names "${name}", but no phase has this id${suggest(name)}`;
      problems.push({ ...place, severity, rule: "unknown-dependency", message });
      // A repeated id is reported already.
    } else if (id !== undefined && byId.get(id) === draft) {
      const [from, to] = key === "depends_on" ? [id, name] : [name, id];
      dependencies.push({ ...place, from, to });
    }
  }
  return { dependencies, problems };
}

/** Suggests ids for at most 50 wrong names. Comparing all ids with thousands of them would take minutes. */
function createSuggest(ids: readonly string[]): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined || known.size >= 50) return found ?? "";
    const meant = didYouMean(name, ids);
    const sentence = meant === undefined ? "" : `. ${meant}`;
    known.set(name, sentence);
    return sentence;
  };
}

/** One glob of a phase's scope. */
interface Claimed {
  readonly phase: number;
  /** Index of the item of the scope. */
  readonly item: number;
  readonly glob: ScopeGlob;
}

/** Reports scopes that overlap although their phases could run at the same time. */
function checkScopes(drafts: readonly PhaseDraft[], isConnected: ReturnType<typeof createReach>): ContentProblem[] {
  const { claimed, problems } = readScopes(drafts);
  const maxOverlaps = 100;
  // Two or three seconds of work.
  const budget: StepBudget = { left: 40_000_000 };
  const overlaps = new Set<number>();
  for (const [one, two] of findCandidates(claimed, budget)) {
    const [first, second] = one.phase < two.phase ? [one, two] : [two, one];
    const [other, own] = [drafts[first.phase]!, drafts[second.phase]!];
    const pair = first.phase * drafts.length + second.phase;
    if (overlaps.has(pair) || isConnected(other.keys.id!, own.keys.id!)) continue;
    if (!globsOverlap(first.glob, second.glob, budget)) continue;
    overlaps.add(pair);
    if (overlaps.size > maxOverlaps) break;
    const [theirs, mine] = [other.keys.scope![first.item]!, own.keys.scope![second.item]!];
    problems.push({
      file: own.file,
      line: own.lineOf(["scope", second.item]),
      severity: "error",
      rule: "scope-overlap",
      message: `scope "${mine}" of "${own.keys.id}" overlaps with "${theirs}" of "${other.keys.id}" (${basename(other.file)}), and both phases could run at the same time. Add a dependency, narrow a scope, or set allow_scope_overlap`,
    });
  }
  // An incomplete check is reported, because silence would mean "no overlaps".
  const place = { file: drafts.at(-1)?.file ?? "", line: 1, rule: "scope-overlap" };
  if (overlaps.size > maxOverlaps) {
    const message = `more than ${maxOverlaps} scopes overlap; the others are not listed`;
    return [...problems, { ...place, severity: "error", message }];
  }
  const message = "there are too many or too complex scopes, so not all were compared";
  return budget.left > 0 ? problems : [...problems, { ...place, severity: "warning", message }];
}

function readScopes(drafts: readonly PhaseDraft[]): { claimed: Claimed[]; problems: ContentProblem[] } {
  const claimed: Claimed[] = [];
  const problems: ContentProblem[] = [];
  const compiled = new Map<string, ScopeGlob[] | undefined>();
  for (const [phase, { keys, file, lineOf }] of drafts.entries()) {
    for (const [item, pattern] of (keys.scope ?? []).entries()) {
      if (!compiled.has(pattern)) compiled.set(pattern, readScope(pattern));
      const globs = compiled.get(pattern);
      if (globs === undefined) {
        problems.push({
          file,
          line: lineOf(["scope", item]),
          severity: "error",
          rule: "invalid-scope",
          message:
            "the pattern is longer than 1,024 characters, or its braces expand to more than 256 patterns. Split it",
        });
      } else if (keys.allow_scope_overlap !== true) claimed.push(...globs.map((glob) => ({ phase, item, glob })));
    }
  }
  return { claimed, problems };
}

/** Yields pairs that may overlap. The literal prefix of one glob must start with that of the other, so sorting by
 *  prefix puts such pairs together. */
function* findCandidates(claimed: readonly Claimed[], budget: StepBudget): Generator<readonly [Claimed, Claimed]> {
  const sorted = [...claimed].sort(
    (a, b) => compareText(a.glob.prefix, b.glob.prefix) || a.phase - b.phase || a.item - b.item,
  );
  for (const [index, one] of sorted.entries()) {
    for (let at = index + 1; at < sorted.length && budget.left > 0; at++) {
      const two = sorted[at]!;
      if (!two.glob.prefix.startsWith(one.glob.prefix)) break;
      budget.left--;
      if (one.phase !== two.phase && couldOverlap(one.glob, two.glob)) yield [one, two];
    }
  }
}
