/** Shows how the phases of a nebula stand: their states, times and failures. */

import { countNoun, formatNumber, printable, printableLines } from "../core/text/index.ts";
import { renderTable } from "../host/index.ts";
import { type ApplyEvent, type ApplyReport, dollars, type PhaseReport } from "../plans/nebula/index.ts";

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
