/** Shows the phases of a nebula: how they would run, in which order, and how a run of them ended. */
import { countNoun, formatNumber, oneLine, printable, printableLines } from "../core/text/index.ts";
import type { Counter } from "../core/tokens/index.ts";
import { renderTable, type Style } from "../host/index.ts";
import type { RunStart } from "../plans/index.ts";
import {
  type ApplyEvent,
  type ApplyReport,
  dollars,
  groupWaves,
  type Nebula,
  type Phase,
  type PhaseReport,
  renderTask,
} from "../plans/nebula/index.ts";

/** Renders the state of all phases, a line each, and a total. Shows machines if a phase ran on another one than the
 *  viewer's, which is named by its id. */
export function renderApplyReport(
  { phases }: ApplyReport,
  viewer?: { readonly machine: string; readonly now: Date },
): string {
  const hasCost = phases.some(({ costUsd }) => costUsd !== undefined);
  const shown = viewer && phases.some(({ machine }) => machine && machine.id !== viewer.machine) ? viewer : undefined;
  const rows = phases.map((phase) => [
    printable(phase.id),
    phase.outcome ?? phase.state,
    ...(shown === undefined ? [] : [describeMachine(phase, phases, shown.now)]),
    ...(phase.attempts === 0
      ? ["", "", ""]
      : [
          countNoun(phase.attempts, "attempt"),
          // The time is known only after the phase has ended.
          phase.state === "running" ? "" : duration(phase.seconds),
          `${formatNumber(phase.promptTokens)} tokens`,
        ]),
    ...(hasCost ? [phase.costUsd === undefined ? "" : dollars(phase.costUsd)] : []),
    describeState(phase),
  ]);
  const [left, right] = ["left" as const, "right" as const];
  const machine = shown === undefined ? [] : [left];
  const alignments = [left, left, ...machine, left, right, right, ...(hasCost ? [right] : []), left];
  return [...renderTable(rows, alignments), sumUp(phases)].join("\n");
}

/** What its agent does now, or what went wrong, or that nothing has checked the work. */
function describeState({ doing, error, state, checks }: PhaseReport): string {
  if (doing !== undefined) {
    const cost = doing.costUsd === undefined ? "" : `, ${dollars(doing.costUsd)} so far`;
    const tokens =
      doing.usage === undefined ? "" : `, ${formatNumber(doing.usage.inputTokens + doing.usage.outputTokens)} tokens`;
    return `${printable(oneLine(doing.text))} (since ${duration(doing.seconds)}${tokens}${cost})`;
  }
  if (error !== undefined) return printable(error.split("\n")[0]!);
  if (state !== "completed") return "";
  return checks === undefined ? "not checked" : `checks ${checks}`;
}

/** Says what a person can do next: read the work, merge it, or continue. */
export function nextSteps(
  { phases }: ApplyReport,
  { plan, branch }: { readonly plan: string; readonly branch?: string | undefined },
): string[] {
  const unfinished = phases.filter(({ state }) => state !== "completed");
  const hasWork = branch !== undefined && phases.some(({ state }) => state === "completed");
  const failed = phases.filter(({ state }) => state === "failed");
  const most = 5;
  return [
    ...failed.slice(0, most).map(({ id, attempts }) => {
      return `${printable(id)} failed in ${countNoun(attempts, "attempt")}. See "plimsoll nebula logs ${plan} ${printable(id)}"`;
    }),
    ...(unfinished.length > 0 ? [`continue with the same command and --resume`] : []),
    ...(hasWork
      ? [
          `the work is on the branch ${branch}. See it with "git diff HEAD...${branch}", merge it with "git merge ${branch}"`,
        ]
      : []),
  ];
}

/** Returns the machine of a phase, and when its run was last seen if the phase is not done. Two machines of one name are
 *  told apart by their ids. */
function describeMachine({ machine, lease }: PhaseReport, phases: readonly PhaseReport[], now: Date): string {
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

/** Describes how an agent failed, and where its output is. */
export function describeFailure(
  { error = "", stderr, stdout }: Pick<Extract<ApplyEvent, { event: "ended" }>, "error" | "stderr" | "stdout">,
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

/** Shows the phases in waves, with the tokens of their tasks and how each one would run. */
export function showWaves(
  nebula: Nebula,
  counter: Counter,
  runs: readonly RunStart[],
): { readonly json: object; mermaid(): string; text(style: Style): string } {
  const waves = groupWaves(nebula.phases);
  const tokens = new Map(nebula.phases.map((phase) => [phase.id, counter.count(renderTask(nebula, phase))]));
  const json = {
    name: nebula.name,
    maxBudgetUsd: nebula.execution.maxBudgetUsd ?? null,
    waves: waves.map((wave) => wave.map(({ id }) => id)),
    phases: waves.flat().map(({ id, title, dependsOn, scope, gate }) => ({
      id,
      title,
      dependsOn,
      scope,
      gate,
      promptTokens: tokens.get(id)!,
      ...runs.find((run) => run.id === id),
    })),
  };
  const renderText = (style: Style): string => {
    const total = [...tokens.values()].reduce((sum, each) => sum + each, 0);
    const size = `${countNoun(nebula.phases.length, "phase")} in ${countNoun(waves.length, "wave")}`;
    const summary = `${printable(nebula.name)}: ${size}, ${formatNumber(total)} tokens of tasks by ${counter.name}`;
    if (nebula.phases.length === 0) return summary;
    return [...renderWaves(waves, tokens, style), "", summary, "", ...renderPhaseRuns(runs, nebula)].join("\n");
  };
  return { json, mermaid: () => renderMermaid(waves), text: renderText };
}

function renderWaves(
  waves: readonly (readonly Phase[])[],
  tokens: ReadonlyMap<string, number>,
  style: Style,
): string[] {
  const rows = waves.flatMap((wave, index) =>
    wave.map(({ id, title, dependsOn, gate, scope }) => [
      String(index + 1),
      id,
      printable(title),
      renderFirst(dependsOn),
      gate,
      formatNumber(tokens.get(id)!),
      renderFirst(scope),
    ]),
  );
  const headings = ["wave", "id", "title", "depends on", "gate", "tokens", "scope"];
  return renderTable([headings, ...rows], ["right", "left", "left", "left", "left", "right", "left"], style);
}

/** How many patterns the table shows; the JSON has all. */
const maxPatterns = 3;

function renderFirst(items: readonly string[]): string {
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
