/** The measurements as two tables and the goals that they are held against. */
import { renderTable } from "../../src/host/print/table.ts";
import { ADAPTERS, PACK_BYTES, PACKS } from "./many-packs.ts";
import type { CommandRow } from "./measure-commands.ts";
import type { PacksRow } from "./measure-packs.ts";

export interface Report {
  readonly node: string;
  readonly environment: "clean" | "inherited";
  readonly rounds: number;
  readonly commands: readonly CommandRow[];
  readonly packs: readonly PacksRow[];
  readonly goals: readonly Goal[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
}

/** What the measurements are held against. A peer that was left out has no goal. */
export function goalsOf(commands: readonly CommandRow[], packs: readonly PacksRow[]): Goal[] {
  const rowOf = (name: string) => commands.find((row) => row.name === name);
  const ratio = (name: string) => rowOf(name)?.ratio ?? Number.NaN;
  const embedded = "plimsoll inject, embedded packs, first";
  const own = "plimsoll inject, own packs, first";
  const most = (goal: string, measured: number, bound: number) => ({
    goal,
    measured,
    met: measured <= bound,
  });
  const goals = [
    most("plimsoll --version, at most 1.5 × node -e 0", ratio("plimsoll --version"), 1.5),
    most(`${embedded}, at most 3 × node -e 0`, ratio(embedded), 3),
    most(`${embedded}, at most 2 × node -e 0`, ratio(embedded), 2),
    most(`${own}, at most 3 × node -e 0`, ratio(own), 3),
  ];
  const ruler = rowOf("ruler apply, first");
  if (ruler !== undefined) {
    for (const name of [embedded, own]) {
      const faster = ruler.milliseconds / rowOf(name)!.milliseconds;
      goals.push({
        goal: `${name}, at least 1.4 × as fast as ruler apply`,
        measured: faster,
        met: faster >= 1.4,
      });
    }
  }
  for (const { adapters, renderSeconds } of packs) {
    const what = `${PACKS} packs × ${ADAPTERS} adapters (${adapters})`;
    const measured = renderSeconds;
    goals.push({ goal: `${what} rendered in less than 1 s CPU`, measured, met: measured < 1 });
  }
  return goals;
}

export function renderReport({ node, environment, rounds, commands, packs, goals, notes }: Report): string {
  const sections = [
    [
      `Commands on a small project, Node ${node}, ${environment} environment, median of ${rounds} interleaved runs`,
      ...commandTable(commands),
    ],
    [
      `${PACKS} packs of ${PACK_BYTES / 1000} KB for ${ADAPTERS} adapters, seconds of processor time`,
      ...packsTable(packs),
    ],
    ["Goals", ...goalTable(goals)],
    ...(notes.length === 0 ? [] : [notes]),
  ];
  return sections.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

function commandTable(rows: readonly CommandRow[]): string[] {
  const lines = rows.map(({ name, milliseconds, ratio, processorMs, processorRatio }) => [
    name,
    milliseconds.toFixed(0),
    ratio.toFixed(2),
    processorMs?.toFixed(0) ?? "",
    processorRatio?.toFixed(2) ?? "",
  ]);
  return renderTable(
    [["", "ms", "× node -e 0", "CPU ms", "× node -e 0"], ...lines],
    ["left", "right", "right", "right", "right"],
  );
}

function packsTable(rows: readonly PacksRow[]): string[] {
  const lines = rows.map((row) => [
    row.adapters,
    ...[row.loadSeconds, row.renderSeconds, row.commandSeconds, row.againSeconds].map((each) => each.toFixed(2)),
    row.peakMegabytes.toFixed(0),
    row.megabytes.toFixed(1),
  ]);
  const header = ["adapters", "load", "render", "inject", "inject again", "peak MB", "rendered MB"];
  return renderTable([header, ...lines], ["left", ...header.slice(1).map(() => "right" as const)]);
}

function goalTable(goals: readonly Goal[]): string[] {
  const lines = goals.map(({ goal, measured, met }) => [met ? "met" : "MISSED", measured.toFixed(2), goal]);
  return renderTable(lines, ["left", "right", "left"]);
}
