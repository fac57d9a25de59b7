/** Shows the phases of a nebula: how they would run, in which order, and how a run of them ended. */
import { countNoun, formatNumber, printable, printableLines } from "../core/text/index.ts";
import type { Counter } from "../core/tokens/index.ts";
import { renderTable, type Style } from "../host/index.ts";
import type { RunStart } from "../plans/index.ts";
import {
  type ApplyEvent,
  type ApplyReport,
  dollars,
  type Nebula,
  type Phase,
  type PhaseReport,
  renderTask,
  wavesOf,
} from "../plans/nebula/index.ts";

/** From where a report is looked at. */
export interface Viewer {
  /** The id of this machine. */
  readonly machine: string;
  readonly now: Date;
}

/** Renders the state of all phases, a line each, and a total. Shows machines if a phase ran on another one than this. */
export function renderApplyReport({ phases }: ApplyReport, viewer?: Viewer): string {
  const hasCost = phases.some(({ costUsd }) => costUsd !== undefined);
  const shown = viewer && phases.some(({ machine }) => machine && machine.id !== viewer.machine) ? viewer : undefined;
  const rows = phases.map((phase) => [
    printable(phase.id),
    phase.outcome ?? phase.state,
    ...(shown === undefined ? [] : [placeOf(phase, { phases, now: shown.now })]),
    ...attemptCells(phase),
    ...(hasCost ? [phase.costUsd === undefined ? "" : dollars(phase.costUsd)] : []),
    printable(phase.error?.split("\n")[0] ?? ""),
  ]);
  const alignments = [
    ...["left" as const, "left" as const, ...(shown === undefined ? [] : ["left" as const]), "left" as const],
    ...["right" as const, "right" as const, ...(hasCost ? ["right" as const] : []), "left" as const],
  ];
  return [...renderTable(rows, alignments), sumUp(phases)].join("\n");
}

function attemptCells({ attempts, state, seconds, promptTokens }: PhaseReport): string[] {
  if (attempts === 0) return ["", "", ""];
  // The time is known only after the phase has ended.
  const time = state === "running" ? "" : duration(seconds);
  return [countNoun(attempts, "attempt"), time, `${formatNumber(promptTokens)} tokens`];
}

interface Seen {
  readonly phases: readonly PhaseReport[];
  readonly now: Date;
}

/** Returns the machine of a phase, and when its run was last seen if the phase is not done. Two machines of one name are
 *  told apart by their ids. */
function placeOf({ machine, lease }: PhaseReport, { phases, now }: Seen): string {
  if (machine === undefined) return "";
  const isAmbiguous = phases.some((each) => each.machine?.name === machine.name && each.machine.id !== machine.id);
  const name = printable(isAmbiguous ? `${machine.name}/${machine.id.slice(0, 4)}` : machine.name);
  if (lease === undefined) return name;
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(lease.renewed)) / 1000));
  const ago = duration(seconds).replace(".0 ", " ");
  return seconds > lease.seconds ? `${name} (not seen for ${ago})` : `${name} (seen ${ago} ago)`;
}

function sumUp(phases: readonly PhaseReport[]): string {
  const states = ["completed", "running", "failed", "blocked", "waiting"] as const;
  const counts = states.flatMap((state) => {
    const count = phases.filter((phase) => phase.state === state).length;
    return count === 0 ? [] : `${formatNumber(count)} ${state}`;
  });
  const cost = phases.reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
  const paid = phases.some(({ costUsd }) => costUsd !== undefined) ? `, ${dollars(cost)}` : "";
  return `${countNoun(phases.length, "phase")}: ${counts.join(", ") || "nothing to do"}${paid}`;
}

type Ended = Extract<ApplyEvent, { event: "ended" }>;

/** Describes how an agent failed, and where its output is. */
export function describeFailure(
  { error = "", stderr, stdout }: Pick<Ended, "error" | "stderr" | "stdout">,
  shown: (path: string) => string,
): string {
  const [stream, file] = stderr === undefined ? ["stdout", stdout] : ["stderr", stderr];
  const place = file === undefined ? "" : `\nIts whole output on ${stream}: ${printable(shown(file))}`;
  return `${printableLines(error)}${place}`;
}

/** `0.4 s`, `12.3 s`, `4 min 10 s`. */
export function duration(seconds: number): string {
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return `${formatNumber(Math.floor(whole / 60))} min ${whole % 60} s`;
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
const maxPatterns = 3;

function firstOf(items: readonly string[]): string {
  const more = items.length - maxPatterns;
  const shown = items.slice(0, maxPatterns).map(printable).join(", ");
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
