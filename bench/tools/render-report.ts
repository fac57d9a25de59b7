/** The measurements as one table, and the goals that they are held against. */

import { formatNumber } from "../../src/core/text/index.ts";
import { renderTable } from "../../src/host/print/table.ts";
import type { TextReport } from "./measure-text.ts";
import type { Measurement } from "./measurement.ts";

export interface Report {
  readonly node: string;
  readonly rounds: number;
  readonly repository: { readonly files: number; readonly bytes: number };
  readonly measurements: readonly Measurement[];
  readonly goals: readonly Goal[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

export interface Goal {
  readonly goal: string;
  readonly measured: number;
  readonly met: boolean;
}

/** What was not measured has no goal. */
export function goalsOf(measurements: readonly Measurement[]): Goal[] {
  const named = (start: string, end: string): Measurement[] =>
    measurements.filter(({ name }) => name.startsWith(start) && name.endsWith(end));
  const firstPages = named("search_content", "first page");
  return [
    ...named("project_files", "first page").map(({ name, milliseconds }) => most(`${name}, ms`, milliseconds, 300)),
    ...firstPages.map(({ name, ratio }) => most(`${name} ÷ rg`, ratio, 2)),
    ...named("read 100 MB", "first page").flatMap(({ name, milliseconds, peakMegabytes }) => [
      most(`${name}, ms`, milliseconds, 10_000),
      ...(peakMegabytes === undefined ? [] : [most(`${name}, peak MB`, peakMegabytes, 1_000)]),
    ]),
    ...measurements.filter(({ name }) => name.endsWith("all pages")).flatMap((all) => flatness(all, named)),
  ];
}

/** That memory does not grow with what was paged. */
function flatness(all: Measurement, named: (start: string, end: string) => Measurement[]): Goal[] {
  const [first] = named(all.name.replace(/all pages$/, ""), "first page");
  if (first?.peakMegabytes === undefined || all.peakMegabytes === undefined) return [];
  return [most(`${all.name} ÷ first page, memory`, all.peakMegabytes / first.peakMegabytes, 1.5)];
}

function most(what: string, measured: number | undefined, bound: number): Goal {
  const value = measured ?? Number.NaN;
  return { goal: `${what}, at most ${bound}`, measured: value, met: value <= bound };
}

/** What a result may cost of the plain command's tokens, and all definitions together. */
const MOST_RATIO = 1.05;
const MOST_DEFINITIONS = 1_500;

/** The costs in tokens as a table. A line that misses its goal says so. */
export function renderText({ files, counter, definitions, instructions, tasks }: TextReport): string {
  const header = ["", "plain command", "plain", "tokens", "÷ plain", "pages", "missing", "added", ""];
  const cells = tasks.map(({ name, plain, plainTokens, tokens, pages, missing, added }) => {
    const ratio = tokens / plainTokens;
    const isMet = ratio <= MOST_RATIO && missing === 0;
    const numbers = [plainTokens, tokens].map(formatNumber);
    return [
      name,
      plain,
      ...numbers,
      ratio.toFixed(3),
      ...[pages, missing, added].map(formatNumber),
      isMet ? "met" : "MISSED",
    ];
  });
  const align = header.map((_, index) => (index < 2 || index === 8 ? ("left" as const) : ("right" as const)));
  const verdict = definitions <= MOST_DEFINITIONS ? "met" : "MISSED";
  return [
    `Results as text in a repository of ${formatNumber(files)} files, tokens by ${counter}, all pages together`,
    `Goals: at most ${MOST_RATIO} × the plain command with no fact missing; definitions of at most ${formatNumber(MOST_DEFINITIONS)} tokens`,
    ...renderTable([header, ...cells], align),
    `all definitions: ${formatNumber(definitions)} (${verdict}), instructions: ${formatNumber(instructions)}`,
    "",
  ].join("\n");
}

export function renderReport({ node, rounds, repository, measurements, goals, notes }: Report): string {
  const size = `${formatNumber(repository.files)} files of ${formatNumber(Math.round(repository.bytes / 1e6))} MB`;
  const header = ["", "ms", "× plain", "+ ms", "pages", "ms a page", "items", "peak MB"];
  const sections = [
    [
      `A repository of ${size}, Node ${node}, median of ${rounds} interleaved rounds, all pages once`,
      "Servers are asked over stdio by the official client; memory is that of the server's process, or of the program",
      ...renderTable([header, ...measurements.map(cellsOf)], ["left", ...header.slice(1).map(() => "right" as const)]),
    ],
    ["Goals", ...renderTable(goals.map(goalCells), ["left", "right", "left"])],
    ...(notes.length === 0 ? [] : [notes]),
  ];
  return sections.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

function cellsOf(row: Measurement): string[] {
  const { name, milliseconds, ratio, addedMs, pages, items, peakMegabytes } = row;
  return [
    name,
    duration(milliseconds),
    ratio?.toFixed(2) ?? "",
    addedMs === undefined ? "" : duration(addedMs),
    pages === undefined ? "" : formatNumber(pages),
    pages === undefined ? "" : duration(milliseconds / pages),
    items === undefined ? "" : formatNumber(items),
    peakMegabytes?.toFixed(0) ?? "",
  ];
}

function duration(milliseconds: number): string {
  return Math.abs(milliseconds) < 10 ? milliseconds.toFixed(2) : formatNumber(Math.round(milliseconds));
}

function goalCells({ goal, measured, met }: Goal): string[] {
  return [met ? "met" : "MISSED", measured.toFixed(2), goal];
}
