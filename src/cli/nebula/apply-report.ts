import type { ApplyPlan, ApplyReport, PhaseReport, PlannedPhase } from "../../agent/index.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import { layerName, missing } from "../compose/describe-context.ts";
import { renderTable } from "../table.ts";
import { duration } from "./apply-progress.ts";

/** How all phases stand, a line each, and in one line for all. */
export function renderApplyReport({ phases }: ApplyReport): string {
  const rows = phases.map((phase) => [
    printable(phase.id),
    phase.state,
    phase.attempts === 0 ? "" : countNoun(phase.attempts, "attempt"),
    // It is known once the phase has ended.
    phase.attempts === 0 || phase.state === "running" ? "" : duration(phase.seconds),
    phase.attempts === 0 ? "" : `${formatNumber(phase.promptTokens)} tokens`,
    printable(phase.error?.split("\n")[0] ?? ""),
  ]);
  return [...renderTable(rows, ["left", "left", "left", "right", "right", "left"]), sumUp(phases)].join("\n");
}

function sumUp(phases: readonly PhaseReport[]): string {
  const states = ["completed", "running", "failed", "blocked", "waiting"] as const;
  const counts = states.flatMap((state) => {
    const count = phases.filter((phase) => phase.state === state).length;
    return count === 0 ? [] : `${formatNumber(count)} ${state}`;
  });
  return `${countNoun(phases.length, "phase")}: ${counts.join(", ") || "nothing to do"}`;
}

/** The waves with each phase's prompt, and what of each layer would be in it. */
export function renderApplyPlan({ waves }: Pick<ApplyPlan, "waves">): string {
  const lines = waves.flatMap((wave, index) => [
    `wave ${index + 1}`,
    ...renderTable(wave.map(rowOf), ["left", "left", "right", "left"]).map((line) => `  ${line}`),
  ]);
  return [
    ...lines,
    "Nothing was run. Prior work is what dependencies answer, so it is known when they have run.",
  ].join("\n");
}

function rowOf({ id, title, state, promptTokens, layers, overflow }: PlannedPhase): string[] {
  const parts = layers.map(
    ({ name, tokens, truncated }) =>
      `${layerName(name)} ${formatNumber(tokens)}${truncated ? " (truncated)" : ""}`,
  );
  if (overflow > 0) parts.push(missing(overflow));
  if (state === "completed") return [printable(id), printable(title), "", "completed"];
  return [
    printable(id),
    printable(title),
    `${formatNumber(promptTokens)} tokens`,
    parts.join(", ") || "no context",
  ];
}
