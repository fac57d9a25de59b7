/** The report of `bill` as text for a terminal. */

import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import type { Style } from "../../host/index.ts";
import { type Environment, homeDirectory, renderTable } from "../../host/index.ts";
import { megabytes } from "../recording-index.ts";
import type { BillReport, WeightRow } from "./bill-report.ts";
import { inferredFrom } from "./find-losses.ts";
import { offerKinds, unrecordedPart } from "./fixed-prefix.ts";
import { periodOf } from "./sum-calls.ts";

/** A table as it is shown. */
export interface ReportTable {
  readonly title: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notes: readonly string[];
}

export interface TextOptions {
  readonly style: Style;
  readonly env: Environment;
}

export function billText(report: BillReport, options: TextOptions): string {
  const sections = [
    sumLines(report, options),
    causeLines(report, options),
    lossLines(report, options),
    prefixLines(report, options),
    weightLines(report, options),
    noteLines(report).map((line) => options.style.dim(line)),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

export function usdText(usd: number): string {
  return usd > 0 && usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2).replace(/\B(?=(\d{3})+(?!\d))/g, ",")}`;
}

/** The first `left` columns are aligned to the left. */
function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  { style, left = 1 }: { readonly style: Style; readonly left?: number },
): string[] {
  const alignment = header.map((_, column) => (column < left ? ("left" as const) : ("right" as const)));
  const [head = "", ...lines] = renderTable([header, ...rows], alignment);
  return [style.dim(head), ...lines];
}

function sumLines({ rows, total, settings }: BillReport, { style, env }: TextOptions): string[] {
  const header = [settings.by, "calls", "input fresh", "write 5m", "write 1h", "read", "output", "dollars"];
  const all = rows.length > 1 ? [...rows, { key: "total", ...total }] : rows;
  return table(
    header,
    all.map((row) => [
      tildify(row.key, settings.by === "project" ? env : undefined),
      ...[row.calls, row.uncached, row.write5m, row.write1h, row.read, row.output].map((each) => formatNumber(each)),
      row.unpriced === row.calls && row.calls > 0 ? "-" : `${usdText(row.usd)}${row.unpriced > 0 ? " +" : ""}`,
    ]),
    { style },
  );
}

function tildify(name: string, env: Environment | undefined): string {
  const home = env && homeDirectory(env);
  return home !== undefined && name.startsWith(`${home}/`) ? `~${name.slice(home.length)}` : name;
}

function causeLines({ causes, losses, inputUsd }: BillReport, { style }: TextOptions): string[] {
  if (losses.length === 0) return ["No call read less from the cache than the previous call left there."];
  const usd = causes.reduce((sum, row) => sum + row.usd, 0);
  const share = inputUsd === 0 ? "" : `, ${percent(usd / inputUsd)} of what input cost`;
  return [
    style.bold(`Cache losses: ${countNoun(losses.length, "call")}, ${usdText(usd)} beyond a hit${share}`),
    ...table(
      ["cause", "known from", "events", "written again", "dollars", "of input"],
      causes.map((row) => [
        row.cause,
        describeKnown(row),
        formatNumber(row.events),
        formatNumber(row.rewritten),
        usdText(row.usd),
        percent(row.share),
      ]),
      { style, left: 2 },
    ),
  ];
}

/** Says how the losses of a cause are known. Adds how many losses, unless it is all. */
export function describeKnown({ cause, events, known }: BillReport["causes"][number]): string {
  const record = inferredFrom[cause];
  const kinds = Object.entries(known).map(([kind, count]) => {
    const how = kind === "inferred" && record ? `inferred (${record.lost} of ${record.seen})` : kind;
    return count === events ? how : `${how} ${formatNumber(count)}`;
  });
  return kinds.join(", ") || "-";
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

const maxLosses = 10;

function lossLines({ losses }: BillReport, { style, env }: TextOptions): string[] {
  if (losses.length === 0) return [];
  const rows = losses
    .slice(0, maxLosses)
    .map(({ time, usd, rewritten, cause, confidence = "-", facts, detail }) => [
      stamp(time),
      facts.session.slice(0, 8),
      projectName(facts.project, env),
      cause,
      confidence,
      detail.length > 60 ? `${detail.slice(0, 59)}…` : detail,
      formatNumber(rewritten),
      usd === undefined ? "-" : usdText(usd),
    ]);
  const header = ["time", "session", "project", "cause", "known from", "what happened", "written again", "dollars"];
  return [style.bold("The most expensive losses"), ...table(header, rows, { style, left: 6 })];
}

function prefixLines(report: BillReport, { style }: TextOptions): string[] {
  const found = prefixTable(report);
  if (found === undefined) return [];
  const { title, header, rows, notes } = found;
  return [style.bold(title), ...table(header, rows, { style }), ...notes.map((note) => style.dim(note))];
}

/** Shows what each request starts with, as a part of all dollars. Returns undefined without dollars. */
export function prefixTable({ prefix, parts, total }: BillReport): ReportTable | undefined {
  if (prefix.conversations === 0 || total.usd === 0) return undefined;
  const spent = parts.map(({ key, usd }) => `${key} ${usdText(usd)}`).join(", ");
  const held = `${countNoun(prefix.conversations, "conversation")}, ${formatNumber(prefix.tokens)} tokens on average`;
  return {
    title: `What every request starts with: ${usdText(prefix.usd)}, ${percent(prefix.usd / total.usd)} of all dollars`,
    header: ["held by the first call", "sessions", "tokens", "dollars over all calls"],
    rows: prefix.parts.map(({ name, tokens, sessions, usd }) => [
      name === unrecordedPart ? `${name} (not in the recording)` : name,
      formatNumber(sessions),
      formatNumber(tokens),
      usdText(usd),
    ]),
    notes: [`of all dollars: ${spent} · ${held}`, ...describeOffers(prefix)],
  };
}

const shownNames = 8;

/** Says what was offered and never used. */
function describeOffers({ offered, silent }: BillReport["prefix"]): string[] {
  const kinds = { tools: "deferred tool", skills: "skill", agents: "agent", servers: "MCP server" } as const;
  const lines = offerKinds.flatMap((kind) => {
    const { offered: count, used, unused } = offered[kind];
    if (count === 0) return [];
    const names = unused.slice(0, shownNames).map(({ name }) => printable(name));
    const more = unused.length > shownNames ? ` and ${formatNumber(unused.length - shownNames)} more` : "";
    const never = names.length === 0 ? "" : `; never used: ${names.join(", ")}${more}`;
    return [`${countNoun(count, kinds[kind])} offered, ${formatNumber(used)} used${never}`];
  });
  const missing =
    silent > 0 ? [`tools, skills and servers of ${countNoun(silent, "session")}: not in the recording`] : [];
  return [...lines, ...missing];
}

export function stamp(time: number): string {
  if (!(time > 0)) return "(unknown)";
  const date = new Date(time);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${periodOf(time, "day")} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function projectName(project: string, env: Environment): string {
  return shortenPath(project, env, 30) || "(unknown)";
}

function shortenPath(path: string, env: Environment, maxLength: number): string {
  const name = tildify(path, env);
  return name.length > maxLength ? `…${name.slice(1 - maxLength)}` : name;
}

function weightLines({ weights }: BillReport, options: TextOptions): string[] {
  const { tools, files, servers } = weights;
  const { env } = options;
  const groups = [
    { title: "tool results", rows: tools, most: 8 },
    { title: "file", rows: files.map((row) => ({ ...row, name: shortenPath(row.name, env, 50) })), most: 8 },
    { title: "MCP server", rows: servers, most: 5 },
  ].filter(({ rows }) => rows.length > 0);
  if (groups.length === 0) return [];
  return [
    options.style.bold("What weighs most in the context"),
    ...groups.flatMap(({ title, rows, most }, index) => [
      ...(index > 0 ? [""] : []),
      ...weightTable(title, rows.slice(0, most), options),
    ]),
  ];
}

function weightTable(title: string, rows: readonly WeightRow[], { style }: TextOptions): string[] {
  return table(
    [title, "results", "tokens first sent", "times carried", "dollars over their life"],
    rows.map(({ name, results, tokens, carried, usd }) => [
      name,
      formatNumber(results),
      formatNumber(tokens),
      results === 0 ? "-" : (carried / results).toFixed(1),
      usdText(usd),
    ]),
    { style },
  );
}

function noteLines({ unpriced, unreported, recordings, sessions, priceMonths }: BillReport): string[] {
  const { files, bytesRead, damaged } = recordings;
  const without = unpriced.map(({ key, calls, uncached, write5m, write1h, read, output }) => {
    const input = formatNumber(uncached + write5m + write1h + read);
    return `no price of its own: ${printable(key)}, ${countNoun(calls, "call")}, ${input} input and ${formatNumber(output)} output tokens, not in the dollars`;
  });
  const [first = "", last = first] = [priceMonths[0], priceMonths.at(-1)];
  const prices = first === "" ? [] : [`prices as of ${first === last ? first : `${first} to ${last}`}`];
  const read = bytesRead > 0 ? [`${megabytes(bytesRead)} read`] : ["nothing new to read"];
  const skipped = damaged > 0 ? [`${countNoun(damaged, "damaged line")} skipped`] : [];
  const facts = [countNoun(sessions.length, "session"), countNoun(files, "file"), ...read, ...skipped, ...prices];
  return [...without, ...describeUnreported(unreported), facts.join(" · ")];
}

/** Says what the recorded output leaves out. */
export function describeUnreported({ calls, tokens, usd }: BillReport["unreported"]): string[] {
  if (calls === 0) return [];
  const least = `at least ${formatNumber(tokens)} tokens and ${usdText(usd)} more`;
  return [
    `output of ${countNoun(calls, "call")} was recorded before it was written: their text alone is ${least}, not in the sums`,
  ];
}

/** The table of sums as CSV, which people read in a terminal too. A cell that a spreadsheet would run as a formula starts
 *  with an apostrophe. */
export function billCsv({ rows, settings }: BillReport): string {
  const header = [settings.by, "calls", "input_fresh", "write_5m", "write_1h", "read", "output", "usd"];
  const lines = rows.map(({ key, calls, uncached, write5m, write1h, read, output, usd, unpriced }) => [
    csvCell(key),
    ...[calls, uncached, write5m, write1h, read, output].map(String),
    unpriced === calls ? "" : usd.toFixed(6),
  ]);
  return [header, ...lines].map((line) => `${line.join(",")}\n`).join("");
}

function csvCell(text: string): string {
  // Control characters become visible: the CSV may be shown in a terminal.
  const shown = printable(text);
  const safe = /^[=+\-@]/.test(shown) ? `'${shown}` : shown;
  return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
