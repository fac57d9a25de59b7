/** Shows in which order the phases of a nebula would run, and how the agent of each one would run, for a person who must
 *  decide whether to trust a plan. */
import { relative, resolve } from "node:path";
import { countNoun, formatNumber, printable } from "../core/text/index.ts";
import type { Counter } from "../core/tokens/index.ts";
import type { Style } from "../host/index.ts";
import { followLinks, renderTable } from "../host/index.ts";
import type { ChosenAgent } from "../plans/agent/choose-agent.ts";
import { dollars, type Nebula, type Phase, renderTask, wavesOf } from "../plans/nebula/index.ts";

export interface RunStart {
  readonly id: string;
  /** Relative to the current directory, with links resolved. */
  readonly workingDirectory: string;
  /** Null if the nebula names none. */
  readonly model: string | null;
  /** Null if no agent is chosen. */
  readonly command: string | null;
  readonly permissions: string;
  /** The most that all attempts of the phase may cost together, in dollars. Null without a limit. */
  readonly maxBudgetUsd: number | null;
}

export async function phaseRuns(
  { phases, workingDirectory: named }: Nebula,
  agent: ChosenAgent,
  cwd: string,
): Promise<RunStart[]> {
  const workingDirectory = await shownWorkingDirectory(named, cwd);
  return phases.map((phase) => ({
    ...{ id: phase.id, workingDirectory, model: agent.model(phase) ?? null },
    ...{ command: agent.line(phase), permissions: agent.permissions(phase) },
    maxBudgetUsd: phase.maxBudgetUsd ?? null,
  }));
}

async function shownWorkingDirectory(named: string | undefined, cwd: string): Promise<string> {
  const path = await followLinks(resolve(cwd, named ?? ""));
  return relative(await followLinks(cwd), path) || ".";
}

/** Renders a line per phase, or one line if all run the same way. Shows limits of the cost if there are any. */
export function renderPhaseRuns(runs: readonly RunStart[], { execution }: Pick<Nebula, "execution">): string[] {
  const hasLimits = runs.some(({ maxBudgetUsd }) => maxBudgetUsd !== null);
  const cells = runs.map(({ id, workingDirectory, model, command, permissions, maxBudgetUsd }) => {
    const unnamed = `(no agent chosen, use --agent)${model === null ? "" : `, model ${model}`}`;
    const limit = hasLimits ? [maxBudgetUsd === null ? "" : dollars(maxBudgetUsd)] : [];
    return [id, workingDirectory, command ?? unnamed, permissions, ...limit].map(printable);
  });
  const alike = new Set(cells.map(([, ...rest]) => rest.join("\n"))).size === 1 && cells.length > 1;
  const rows = alike ? [["all", ...cells[0]!.slice(1)]] : cells;
  if (rows.length === 0) return [];
  const header = ["phase", "works in", "command", "permissions", ...(hasLimits ? ["limit"] : [])];
  const together = execution.maxBudgetUsd;
  return [
    ...renderTable(
      [header, ...rows],
      header.map(() => "left" as const),
    ),
    ...(together === undefined ? [] : [`All phases together may cost ${dollars(together)}.`]),
  ];
}

interface CountedNebula {
  readonly nebula: Nebula;
  readonly waves: readonly (readonly Phase[])[];
  /** Tokens of the tasks, by the ids of the phases. */
  readonly tokens: ReadonlyMap<string, number>;
  readonly counter: Counter;
  readonly runs: readonly RunStart[];
}

interface ShownWaves {
  readonly json: object;
  mermaid(): string;
  text(style: Style): string;
}

/** Shows the phases in waves, with the tokens of their tasks and how each one would run. */
export function showWaves(nebula: Nebula, counter: Counter, runs: readonly RunStart[]): ShownWaves {
  const waves = wavesOf(nebula.phases);
  const tokens = new Map(nebula.phases.map((phase) => [phase.id, counter.count(renderTask(nebula, phase))]));
  const counted = { nebula, waves, tokens, counter, runs };
  return {
    json: describe(counted),
    mermaid: () => renderMermaid(waves),
    text: (style) => renderWaves(counted, style),
  };
}

function describe({ nebula, waves, tokens, runs }: CountedNebula): object {
  return {
    name: nebula.name,
    maxBudgetUsd: nebula.execution.maxBudgetUsd ?? null,
    waves: waves.map((wave) => wave.map(({ id }) => id)),
    phases: waves.flat().map(({ id, title, dependsOn, scope, gate }) => {
      const shown = { id, title, dependsOn, scope, gate, promptTokens: tokens.get(id)! };
      return { ...shown, ...runs.find((run) => run.id === id) };
    }),
  };
}

function renderWaves({ nebula, waves, tokens, counter, runs }: CountedNebula, style: Style): string {
  const rows = waves.flatMap((wave, index) =>
    wave.map(({ id, title, dependsOn, gate, scope }) => [
      String(index + 1),
      id,
      printable(title),
      firstOf(dependsOn),
      gate,
      formatNumber(tokens.get(id)!),
      firstOf(scope),
    ]),
  );
  const [header = "", ...lines] = renderTable(
    [["wave", "id", "title", "depends on", "gate", "tokens", "scope"], ...rows],
    ["right", "left", "left", "left", "left", "right", "left"],
  );
  const total = [...tokens.values()].reduce((sum, each) => sum + each, 0);
  const size = `${countNoun(rows.length, "phase")} in ${countNoun(waves.length, "wave")}`;
  const summary = `${printable(nebula.name)}: ${size}, ${formatNumber(total)} tokens of tasks by ${counter.name}`;
  if (rows.length === 0) return summary;
  return [style.dim(header), ...lines, "", summary, "", ...renderPhaseRuns(runs, nebula)].join("\n");
}

/** How many patterns the table shows; the JSON has all. */
const mostShown = 3;

function firstOf(items: readonly string[]): string {
  const more = items.length - mostShown;
  const shown = items.slice(0, mostShown).map(printable).join(", ");
  return more > 0 ? `${shown}, +${more}` : shown;
}

/** Renders a `graph LR` with one subgraph per wave. Phases get short names, because an id may be a reserved word of
 *  Mermaid. */
export function renderMermaid(waves: readonly (readonly Phase[])[]): string {
  const names = new Map(waves.flat().map(({ id }, index) => [id, `p${index + 1}`]));
  const groups = waves.flatMap((wave, index) => [
    `  subgraph wave${index + 1}["wave ${index + 1}"]`,
    ...wave.map(({ id, title }) => `    ${names.get(id)}["${label(id)}<br/>${label(title)}"]`),
    "  end",
  ]);
  const arrows = waves
    .flat()
    .flatMap(({ id, dependsOn }) => dependsOn.map((on) => `  ${names.get(on)} --> ${names.get(id)}`));
  return ["graph LR", ...groups, ...arrows].join("\n");
}

/** Escapes characters that Mermaid or HTML could interpret, as Mermaid's entity codes. */
function label(text: string): string {
  return text.replace(/\s+/g, " ").replace(/["#&;<>\\`\p{Cc}]/gu, (character) => `#${character.codePointAt(0)};`);
}
