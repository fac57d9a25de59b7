/** Checks phases against each other: ids, dependencies, cycles, scopes. */
import { basename } from "node:path";
import { compareText, didYouMean } from "../../core/text/index.ts";
import type { ContentProblem } from "../../rules/index.ts";
import { createReach, type DependencyGraph, type DependencyWalk, walkDependencies } from "./nebula.ts";
import type { PhaseDraft } from "./nebula-files.ts";
import { couldOverlap, globsOverlap, readScope, type ScopeGlob, type StepBudget } from "./scope-globs.ts";

export interface CheckedPhases {
  readonly dependencies: DependencyGraph;
  readonly problems: readonly ContentProblem[];
}

export function checkPhases(drafts: readonly PhaseDraft[]): CheckedPhases {
  const { byId, problems: repeated } = checkIds(drafts);
  const { dependencies: known, problems: unknown } = checkDependencies(drafts, byId);
  const graph = graphOf(byId, known);
  const walk = walkDependencies(graph);
  const overlaps = checkScopes([...byId.values()], { graph, order: walk.order });
  return {
    dependencies: graph,
    problems: [...repeated, ...unknown, ...cycleProblems(walk, known), ...overlaps],
  };
}

interface CheckedIds {
  /** The first phase of each id. */
  readonly byId: ReadonlyMap<string, PhaseDraft>;
  readonly problems: readonly ContentProblem[];
}

function checkIds(drafts: readonly PhaseDraft[]): CheckedIds {
  const byId = new Map<string, PhaseDraft>();
  // A case-insensitive disk would give both phases the same folder.
  const byFolder = new Map<string, PhaseDraft>();
  const problems: ContentProblem[] = [];
  for (const draft of drafts) {
    const { id } = draft.keys;
    if (id === undefined) continue;
    const other = byFolder.get(id.toLowerCase());
    if (other !== undefined) problems.push(repeatedId(draft, other));
    else byFolder.set(id.toLowerCase(), draft);
    if (!byId.has(id)) byId.set(id, draft);
  }
  return { byId, problems };
}

function repeatedId({ file, keys, lineOf }: PhaseDraft, other: PhaseDraft): ContentProblem {
  const place = `${basename(other.file)}:${other.lineOf(["id"])}`;
  const message =
    keys.id === other.keys.id
      ? `id "${keys.id}" is already used in ${place}`
      : `id "${keys.id}" differs only in upper and lower case from "${other.keys.id}" in ${place}`;
  return { file, line: lineOf(["id"]), severity: "error", rule: "duplicate-id", message };
}

function graphOf(byId: ReadonlyMap<string, PhaseDraft>, dependencies: readonly Dependency[]): DependencyGraph {
  const graph = new Map<string, Set<string>>([...byId.keys()].map((id) => [id, new Set()]));
  for (const { from, to } of dependencies) graph.get(from)!.add(to);
  return new Map([...graph].map(([id, on]) => [id, [...on]]));
}

/** A longer cycle is shown by its ends. */
const longestPath = 20;

function cycleProblems({ cycles, moreCycles }: DependencyWalk, dependencies: readonly Dependency[]): ContentProblem[] {
  if (cycles.length === 0) return [];
  const places = new Map(dependencies.map((each) => [`${each.from}\n${each.to}`, each]));
  const problems = cycles.map((cycle): ContentProblem => {
    const { file, line } = places.get(`${cycle[0]}\n${cycle[1]}`)!;
    const left = cycle.length - longestPath;
    const shown = left > 1 ? [...cycle.slice(0, 10), `(${left} more)`, ...cycle.slice(-10)] : cycle;
    const message = `the dependencies form a cycle: ${[...shown, cycle[0]].join(" → ")}`;
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

interface CheckedDependencies {
  /** Dependencies between known phases, in the order of files; `depends_on` before `blocks`. */
  readonly dependencies: readonly Dependency[];
  readonly problems: readonly ContentProblem[];
}

function checkDependencies(drafts: readonly PhaseDraft[], byId: ReadonlyMap<string, PhaseDraft>): CheckedDependencies {
  const dependencies: Dependency[] = [];
  const problems: ContentProblem[] = [];
  const suggest = createSuggest([...byId.keys()]);
  for (const { draft, key, name, index } of namedIn(drafts)) {
    const { id } = draft.keys;
    const place = { file: draft.file, line: draft.lineOf([key, index]) };
    const problem = problemOf(key, { name, id, isKnown: byId.has(name), suggest });
    if (problem !== undefined) problems.push({ ...place, ...problem });
    // A repeated id is reported already.
    else if (id !== undefined && byId.get(id) === draft) dependencies.push({ ...place, ...ends(key, id, name) });
  }
  return { dependencies, problems };
}

const keys = ["depends_on", "blocks"] as const;

interface NamedPhase {
  readonly draft: PhaseDraft;
  readonly key: (typeof keys)[number];
  readonly name: string;
  readonly index: number;
}

function namedIn(drafts: readonly PhaseDraft[]): NamedPhase[] {
  return keys.flatMap((key) =>
    drafts.flatMap((draft) => (draft.keys[key] ?? []).map((name, index) => ({ draft, key, name, index }))),
  );
}

function ends(key: NamedPhase["key"], id: string, name: string): Pick<Dependency, "from" | "to"> {
  return key === "depends_on" ? { from: id, to: name } : { from: name, to: id };
}

interface Named {
  readonly name: string;
  readonly id: string | undefined;
  readonly isKnown: boolean;
  suggest(name: string): string;
}

function problemOf(
  key: string,
  { name, id, isKnown, suggest }: Named,
): Omit<ContentProblem, "file" | "line"> | undefined {
  if (name === id) {
    return {
      severity: "error",
      rule: "self-dependency",
      message: `${key} names the phase itself, "${name}"`,
    };
  }
  if (isKnown) return undefined;
  return {
    // A phase with an unknown dependency can never start. An unknown name in `blocks` stops nothing.
    severity: key === "depends_on" ? "error" : "warning",
    rule: "unknown-dependency",
    message: `${key} names "${name}", but no phase has this id${suggest(name)}`,
  };
}

/** Comparing all ids with thousands of wrong names would take minutes. */
const mostSuggestions = 50;

function createSuggest(ids: readonly string[]): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const found = known.get(name);
    if (found !== undefined || known.size >= mostSuggestions) return found ?? "";
    const meant = didYouMean(name, ids);
    const sentence = meant === undefined ? "" : `. ${meant}`;
    known.set(name, sentence);
    return sentence;
  };
}

interface Graph {
  readonly graph: DependencyGraph;
  /** Dependencies first. */
  readonly order: readonly string[];
}

/** One glob of a phase's scope. */
interface Claimed {
  readonly phase: number;
  /** Index of the item of the scope. */
  readonly item: number;
  readonly glob: ScopeGlob;
}

/** Two or three seconds of work. */
const mostSteps = 40_000_000;
const mostOverlaps = 100;

function checkScopes(drafts: readonly PhaseDraft[], { graph, order }: Graph): ContentProblem[] {
  const { claimed, problems } = readScopes(drafts);
  const connected = createReach(graph, order);
  const overlaps: Overlap[] = [];
  const budget: StepBudget = { left: mostSteps };
  const told = new Set<number>();
  for (const [one, two] of candidates(claimed, budget)) {
    const [first, second] = one.phase < two.phase ? [one, two] : [two, one];
    const pair = first.phase * drafts.length + second.phase;
    if (told.has(pair) || connected(drafts[first.phase]!.keys.id!, drafts[second.phase]!.keys.id!)) continue;
    if (!globsOverlap(first.glob, second.glob, budget)) continue;
    told.add(pair);
    if (overlaps.length === mostOverlaps) break;
    overlaps.push([first, second]);
  }
  return [...problems, ...overlaps.map((each) => overlapProblem(drafts, each)), ...unlooked(drafts, { told, budget })];
}

type Overlap = readonly [first: Claimed, second: Claimed];

function readScopes(drafts: readonly PhaseDraft[]): { claimed: Claimed[]; problems: ContentProblem[] } {
  const claimed: Claimed[] = [];
  const problems: ContentProblem[] = [];
  const compiled = new Map<string, ScopeGlob[] | undefined>();
  for (const [phase, { keys, file, lineOf }] of drafts.entries()) {
    for (const [item, pattern] of (keys.scope ?? []).entries()) {
      if (!compiled.has(pattern)) compiled.set(pattern, readScope(pattern));
      const globs = compiled.get(pattern);
      if (globs === undefined) problems.push({ file, line: lineOf(["scope", item]), ...tooMuch });
      else if (keys.allow_scope_overlap !== true) claimed.push(...globs.map((glob) => ({ phase, item, glob })));
    }
  }
  return { claimed, problems };
}

const tooMuch = {
  severity: "error",
  rule: "invalid-scope",
  message: "the pattern is longer than 1,024 characters, or its braces expand to more than 256 patterns. Split it",
} as const;

/** Yields pairs that may overlap. The literal prefix of one glob must start with that of the other, so sorting by
 *  prefix puts such pairs together. */
function* candidates(claimed: readonly Claimed[], budget: StepBudget): Generator<Overlap> {
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

function overlapProblem(drafts: readonly PhaseDraft[], [first, second]: Overlap): ContentProblem {
  const [other, own] = [drafts[first.phase]!, drafts[second.phase]!];
  const [theirs, mine] = [other.keys.scope![first.item]!, own.keys.scope![second.item]!];
  return {
    file: own.file,
    line: own.lineOf(["scope", second.item]),
    severity: "error",
    rule: "scope-overlap",
    message: `scope "${mine}" of "${own.keys.id}" overlaps with "${theirs}" of "${other.keys.id}" (${basename(other.file)}), and both phases could run at the same time. Add a dependency, narrow a scope, or set allow_scope_overlap`,
  };
}

/** Reports an incomplete check, because silence would mean "no overlaps". */
function unlooked(
  drafts: readonly PhaseDraft[],
  { told, budget }: { readonly told: ReadonlySet<number>; readonly budget: StepBudget },
): ContentProblem[] {
  const place = { file: drafts.at(-1)?.file ?? "", line: 1, rule: "scope-overlap" };
  if (told.size > mostOverlaps) {
    const message = `more than ${mostOverlaps} scopes overlap; the others are not listed`;
    return [{ ...place, severity: "error", message }];
  }
  const message = "there are too many or too complex scopes, so not all were compared";
  return budget.left > 0 ? [] : [{ ...place, severity: "warning", message }];
}
