/** What can be wrong between the phases of a nebula: ids, dependencies, cycles, scopes. */
import { basename } from "node:path";
import type { ContentProblem } from "../../../../workspace/index.ts";
import type { PhaseDraft } from "../phase-file.ts";
import { checkDependencies, type Dependency } from "./check-dependencies.ts";
import { checkScopes } from "./check-scopes.ts";
import { type DependencyGraph, type Walk, walkDependencies } from "./walk-dependencies.ts";

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
  /** Of several phases with one id the first. */
  readonly byId: ReadonlyMap<string, PhaseDraft>;
  readonly problems: readonly ContentProblem[];
}

function checkIds(drafts: readonly PhaseDraft[]): CheckedIds {
  const byId = new Map<string, PhaseDraft>();
  // Disks that do not tell capitals apart would give both phases one folder.
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
      ? `id "${keys.id}" is taken: ${place} has it too`
      : `id "${keys.id}" differs only in capitals from "${other.keys.id}" in ${place}`;
  return { file, line: lineOf(["id"]), severity: "error", rule: "duplicate-id", message };
}

function graphOf(
  byId: ReadonlyMap<string, PhaseDraft>,
  dependencies: readonly Dependency[],
): DependencyGraph {
  const graph = new Map<string, Set<string>>([...byId.keys()].map((id) => [id, new Set()]));
  for (const { from, to } of dependencies) graph.get(from)!.add(to);
  return new Map([...graph].map(([id, on]) => [id, [...on]]));
}

/** A longer path is told by its ends. */
const longestPath = 20;

function cycleProblems({ cycles, moreCycles }: Walk, dependencies: readonly Dependency[]): ContentProblem[] {
  if (cycles.length === 0) return [];
  const places = new Map(dependencies.map((each) => [`${each.from}\n${each.to}`, each]));
  const problems = cycles.map((cycle): ContentProblem => {
    const { file, line } = places.get(`${cycle[0]}\n${cycle[1]}`)!;
    const left = cycle.length - longestPath;
    const shown = left > 1 ? [...cycle.slice(0, 10), `(${left} more)`, ...cycle.slice(-10)] : cycle;
    const message = `phases depend on each other in a circle: ${[...shown, cycle[0]].join(" → ")}`;
    return { file, line, severity: "error", rule: "dependency-cycle", message };
  });
  if (moreCycles === 0) return problems;
  return [...problems, { ...problems.at(-1)!, message: `… and ${moreCycles} more circles of dependencies` }];
}
