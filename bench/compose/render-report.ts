/** All measurements as one table, and the goals that they are held against. */

import { formatNumber } from "../../src/core/text/index.ts";
import { renderTable } from "../../src/host/print/table.ts";
import { mostComposeMs } from "../compose-layers.ts";
import { mostSnapshotMs } from "../snapshot-scan.ts";
import type { Measurement } from "../tools/measurement.ts";
import { mostManyPhaseMs, mostPhaseMs } from "./measure-apply.ts";

export interface Measured {
  /** Processor time; the first row is of layers of half the size. */
  readonly layers: readonly Measurement[];
  /** The first two rows are git's. */
  readonly snapshot: readonly Measurement[];
  /** The first row is plain spawning, the last what each phase costs beside it. */
  readonly apply: readonly Measurement[];
  /** The second row is the whole run, beside the agents alone in the first one. */
  readonly many: readonly Measurement[];
}

export interface Report extends Measured {
  readonly node: string;
  readonly rounds: number;
  /** How many processes waited for a processor at the end, over a minute. */
  readonly load: number;
  readonly goals: readonly Goal[];
}

export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
}

/** Twice the input takes twice the time: no more than a shaky clock allows beyond. */
const mostGrowth = 2.6;

export function goalsOf({ layers, snapshot, apply, many }: Measured): Goal[] {
  return [
    ...layers.slice(1).map(({ name, milliseconds }) => most(`${name}, ms`, milliseconds, mostComposeMs)),
    ...layers.slice(1, 2).map(({ name, ratio }) => most(`${name} ÷ half of it`, ratio, mostGrowth)),
    ...snapshot.slice(2).map(({ name, milliseconds }) => most(`${name}, ms`, milliseconds, mostSnapshotMs)),
    ...apply.slice(-1).map(({ name, addedMs }) => most(`${name}, ms beyond spawning it`, addedMs, mostPhaseMs)),
    ...many
      .slice(1, 2)
      .map(({ name, addedMs, items = 0 }) => most(`${name}, ms beyond its agents`, addedMs, items * mostManyPhaseMs)),
  ];
}

function most(what: string, measured: number | undefined, bound: number): Goal {
  const value = measured ?? Number.NaN;
  return { goal: `${what}, at most ${formatNumber(bound)}`, measured: value, met: value <= bound };
}

export function renderReport({ node, rounds, load, layers, snapshot, apply, many, goals }: Report): string {
  const rows = [...layers, ...snapshot, ...apply, ...many].map(cellsOf);
  const table = renderTable([["", "ms", "× plain", "+ ms", "items"], ...rows], alignment);
  const sections = [
    [
      `Node ${node}, median of ${rounds} interleaved rounds (many phases: one round), load ${load.toFixed(1)} at the end`,
      "Composing in processor time, the rest in time; × plain is beside half the input, git, or the agent alone",
      ...table,
    ],
    ["Goals", ...renderTable(goals.map(goalCells), ["left", "right", "left"])],
  ];
  return sections.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

const alignment = ["left", "right", "right", "right", "right"] as const;

function cellsOf({ name, milliseconds, ratio, addedMs, items }: Measurement): string[] {
  return [
    name,
    shown(milliseconds),
    ratio?.toFixed(2) ?? "",
    addedMs === undefined ? "" : shown(addedMs),
    items === undefined ? "" : formatNumber(items),
  ];
}

function shown(milliseconds: number): string {
  return Math.abs(milliseconds) < 100 ? milliseconds.toFixed(2) : formatNumber(Math.round(milliseconds));
}

function goalCells({ goal, measured, met }: Goal): string[] {
  return [met ? "met" : "MISSED", measured.toFixed(2), goal];
}
