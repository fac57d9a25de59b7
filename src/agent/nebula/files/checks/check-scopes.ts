/** Phases that could run at the same time and claim the same paths. */
import { basename } from "node:path";
import type { ContentProblem } from "../../../../workspace/index.ts";
import type { PhaseDraft } from "../phase-file.ts";
import { expandPattern } from "../scope/expand-pattern.ts";
import { compileGlob, type Glob } from "../scope/glob.ts";
import { couldOverlap, globsOverlap, type StepBudget } from "../scope/globs-overlap.ts";
import { createReach } from "./reach.ts";
import type { DependencyGraph } from "./walk-dependencies.ts";

export interface Graph {
  readonly graph: DependencyGraph;
  /** Dependencies first. */
  readonly order: readonly string[];
}

/** One glob of a phase's scope. */
interface Claimed {
  readonly phase: number;
  /** Which item of the scope it comes from. */
  readonly item: number;
  readonly glob: Glob;
}

/** Two or three seconds of looking. */
const mostSteps = 40_000_000;
const mostOverlaps = 100;

export function checkScopes(drafts: readonly PhaseDraft[], { graph, order }: Graph): ContentProblem[] {
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
  return [
    ...problems,
    ...overlaps.map((each) => overlapProblem(drafts, each)),
    ...unlooked(drafts, { told, budget }),
  ];
}

type Overlap = readonly [first: Claimed, second: Claimed];

function readScopes(drafts: readonly PhaseDraft[]): { claimed: Claimed[]; problems: ContentProblem[] } {
  const claimed: Claimed[] = [];
  const problems: ContentProblem[] = [];
  const compiled = new Map<string, Glob[] | undefined>();
  for (const [phase, { keys, file, lineOf }] of drafts.entries()) {
    for (const [item, pattern] of (keys.scope ?? []).entries()) {
      if (!compiled.has(pattern)) compiled.set(pattern, expandPattern(pattern)?.map(compileGlob));
      const globs = compiled.get(pattern);
      if (globs === undefined) problems.push({ file, line: lineOf(["scope", item]), ...tooMuch });
      else if (keys.allow_scope_overlap !== true)
        claimed.push(...globs.map((glob) => ({ phase, item, glob })));
    }
  }
  return { claimed, problems };
}

const tooMuch = {
  severity: "error",
  rule: "invalid-scope",
  message:
    "the pattern is longer than 1,024 characters or its braces stand for more than 256 patterns: split it",
} as const;

/** Two globs can only meet where what one begins with is the beginning of the other: sorted so, those stand together. */
function* candidates(claimed: readonly Claimed[], budget: StepBudget): Generator<Overlap> {
  const sorted = [...claimed].sort(
    (a, b) => compare(a.glob.prefix, b.glob.prefix) || a.phase - b.phase || a.item - b.item,
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

function compare(one: string, two: string): number {
  return one < two ? -1 : one > two ? 1 : 0;
}

function overlapProblem(drafts: readonly PhaseDraft[], [first, second]: Overlap): ContentProblem {
  const [other, own] = [drafts[first.phase]!, drafts[second.phase]!];
  const [theirs, mine] = [other.keys.scope![first.item]!, own.keys.scope![second.item]!];
  return {
    file: own.file,
    line: own.lineOf(["scope", second.item]),
    severity: "error",
    rule: "scope-overlap",
    message: `scope "${mine}" of "${own.keys.id}" overlaps with "${theirs}" of "${other.keys.id}" (${basename(other.file)}), and both could run at the same time: add a dependency, narrow a scope, or set allow_scope_overlap`,
  };
}

/** Silence would look like "no overlaps". */
function unlooked(
  drafts: readonly PhaseDraft[],
  { told, budget }: { readonly told: ReadonlySet<number>; readonly budget: StepBudget },
): ContentProblem[] {
  const place = { file: drafts.at(-1)?.file ?? "", line: 1, rule: "scope-overlap" };
  if (told.size > mostOverlaps) {
    const message = `more than ${mostOverlaps} scopes overlap: the others are not listed`;
    return [{ ...place, severity: "error", message }];
  }
  const message = "the scopes are too many or too intricate: not all were compared with each other";
  return budget.left > 0 ? [] : [{ ...place, severity: "warning", message }];
}
