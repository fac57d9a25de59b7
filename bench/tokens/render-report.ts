/** The measurements as aligned tables, one a question. */

import { formatNumber } from "../../src/core/text/index.ts";
import { families } from "../../src/core/tokens/index.ts";
import { renderTable } from "../../src/host/print/table.ts";
import { REFERENCE } from "./counters.ts";
import type { AccuracyRow, MismatchRow } from "./measure-accuracy.ts";
import { RUN_ESTIMATOR, RUN_EXACT, type RunRow } from "./measure-runs.ts";
import { ALL_UNSEEN, type SpeedRow } from "./measure-speed.ts";
import type { TurnsResult } from "./measure-turns.ts";

export interface Report {
  readonly texts: {
    readonly source: "corpus" | "repository";
    readonly count: number;
    readonly bytes: number;
  };
  readonly accuracy: readonly AccuracyRow[];
  readonly mismatches: readonly MismatchRow[];
  readonly speed: readonly SpeedRow[];
  readonly runs: readonly RunRow[];
  readonly turns: TurnsResult;
}

const truthNotes: Readonly<Record<Report["texts"]["source"], string>> = {
  corpus:
    "On the corpus that the estimators were fitted to, their errors are kinder than on other text: fit:estimator prints held-out ones.",
  repository:
    "The truth is exact:o200k and exact:cl100k; for claude-3 and claude-5 there is none without a labelled corpus.",
};

const SPEED_ESTIMATOR = "estimate:claude-5";

export function renderReport({ texts, accuracy, mismatches, speed, runs, turns }: Report): string {
  const truths = families.filter((family) => accuracy.some(({ truth }) => truth === family));
  const sections = [
    [`${formatNumber(texts.count)} texts, ${formatNumber(texts.bytes)} bytes (${texts.source})`],
    ...truths.map((truth) => [
      `Error against ${truth} in %: signed mean, mean, p95`,
      ...errorTable(accuracy.filter((row) => row.truth === truth)),
    ]),
    [truthNotes[texts.source]],
    ["Texts that an exact counter counts differently", ...mismatchTable(mismatches)],
    ["Speed on unseen text, MB a second of processor time", ...speedTable(speed)],
    ["Speed by category, MB a second of processor time", ...categorySpeedTable(speed)],
    ["1 MB of one thing, ms of processor time", ...runTable(runs)],
    [
      `${turns.turns} turns up to ${turns.messages} messages, ${turns.counter}, ms of processor time`,
      ...turnTable(turns),
    ],
  ];
  return sections.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

/** A line a category, a column a counter. */
function errorTable(rows: readonly AccuracyRow[]): string[] {
  const counters = [...new Set(rows.map((row) => row.counter))];
  const lines = [...new Set(rows.map((row) => row.of))].map((name) => {
    const group = rows.filter((row) => row.of === name);
    const cells = counters.map((counter) => errorCell(group.find((row) => row.counter === counter)!));
    return [name, String(group[0]!.texts), ...cells];
  });
  return renderTable(
    [["", "texts", ...counters], ...lines],
    ["left", "right", ...counters.map(() => "right" as const)],
  );
}

function errorCell({ bias, mean, p95 }: AccuracyRow): string {
  const signed = `${bias < 0 ? "-" : "+"}${Math.abs(bias).toFixed(1)}`;
  return [signed, mean.toFixed(1), p95.toFixed(1)].map((figure) => figure.padStart(6)).join("");
}

function mismatchTable(rows: readonly MismatchRow[]): string[] {
  const lines = rows.map(({ counter, truth, texts, mismatches }) => [
    counter,
    truth,
    formatNumber(texts),
    formatNumber(mismatches),
  ]);
  return renderTable([["counter", "truth", "texts", "differ"], ...lines], ["left", "left", "right", "right"]);
}

function speedTable(rows: readonly SpeedRow[]): string[] {
  const lines = rows
    .filter(({ of }) => of === ALL_UNSEEN)
    .map(({ counter, megabytesPerSecond, slowest, fastest, ratio }) => [
      counter,
      ...[megabytesPerSecond, slowest, fastest, ratio].map(rounded),
    ]);
  const header = ["counter", "median", "slowest", "fastest", `× ${REFERENCE}`];
  return renderTable([header, ...lines], ["left", "right", "right", "right", "right"]);
}

/** The ratio depends on the text more than on anything else. */
function categorySpeedTable(rows: readonly SpeedRow[]): string[] {
  const shown = rows.filter(({ counter }) => counter === SPEED_ESTIMATOR);
  const lines = shown.map(({ of, megabytesPerSecond, ratio }) => {
    const peer = rows.find((row) => row.of === of && row.counter === REFERENCE)!;
    return [of, rounded(megabytesPerSecond), rounded(peer.megabytesPerSecond), rounded(ratio)];
  });
  return renderTable([["", SPEED_ESTIMATOR, REFERENCE, "×"], ...lines], ["left", "right", "right", "right"]);
}

function runTable(rows: readonly RunRow[]): string[] {
  const lines = rows.map(({ run, estimateMs, exactMs, gptTokenizer20KbMs }) => [
    run,
    rounded(estimateMs),
    rounded(exactMs),
    rounded(gptTokenizer20KbMs),
  ]);
  const header = ["", RUN_ESTIMATOR, RUN_EXACT, `${REFERENCE} (20 KB only)`];
  return renderTable([header, ...lines], ["left", "right", "right", "right"]);
}

function turnTable({ recountMs, incrementalMs, parseMs, reparsedMs }: TurnsResult): string[] {
  return renderTable(
    [
      ["recounting everything every turn", rounded(recountMs), ""],
      ["the same message objects", rounded(incrementalMs), `1/${rounded(recountMs / incrementalMs)} of recounting`],
      ["JSON.parse of all messages, once", rounded(parseMs), ""],
      ["counting what was parsed, once", rounded(reparsedMs), `${(reparsedMs / parseMs).toFixed(2)} of JSON.parse`],
    ],
    ["left", "right", "left"],
  );
}

/** Three digits are more than the noise allows. */
function rounded(value: number): string {
  return value >= 100 ? formatNumber(Math.round(value)) : value.toFixed(value >= 10 ? 0 : 1);
}
