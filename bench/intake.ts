/** Measures an intake: `npm run bench:intake [-- --transcripts DIR] [--outputs DIR] [--json]`. Replays recorded
 *  sessions, or generated ones, and reports input cost and how much of what turns used was missing from their requests.
 *  Pages are compared with blunt ones, which cut the middle out. With outputs of test runners, it counts the lines about
 *  failures that each page has. Then it measures the time of `admit`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createIntake, createMessageIntake, type Intake } from "../src/conversation/intake/index.ts";
import { createMessageLens } from "../src/core/messages/index.ts";
import { type Counter, createCounter } from "../src/core/tokens/index.ts";
import type { PreparedSession } from "../src/recordings/replay/prepare-session.ts";
import type { Tally } from "../src/recordings/replay/references.ts";
import {
  addTotals,
  type ReplayPolicy,
  type ReplayTotals,
  replayReducer,
  replaySession,
} from "../src/recordings/replay/replay-session.ts";
import {
  type BenchSession,
  generateSessions,
  PREFIX_TOKENS,
  PRICES,
  RESERVE,
  readSessions,
} from "./history/bench-session.ts";

const pageSizes = [
  [12_000, 8_000],
  [8_000, 6_000],
] as const;
const fixed = { reserve: RESERVE, prefixTokens: PREFIX_TOKENS, prices: PRICES } as const;
const { values } = parseArgs({
  options: { transcripts: { type: "string" }, outputs: { type: "string" }, json: { type: "boolean", default: false } },
});
const counter = await createCounter("exact:o200k");
const { sessions, notes } =
  values.transcripts === undefined
    ? generateSessions(counter, { isQuick: true })
    : await readSessions(values.transcripts, counter);
const report = {
  rows: await measureRows(sessions),
  outputs: await measureOutputs(values.outputs),
  admits: await measureAdmits(),
  notes,
};
process.stdout.write(values.json ? `${JSON.stringify(report, null, 2)}\n` : render(report));

interface Row {
  readonly window: number | undefined;
  readonly name: string;
  /** As a share of the cost of sending everything. */
  readonly cost: number;
  /** Shares of what the turns used that was not in their requests. */
  readonly quotesLost: number;
  readonly farNamesLost: number;
  readonly refetchesPer100: number;
}

async function measureRows(all: readonly BenchSession[]): Promise<Row[]> {
  const none = await replayAll(all, undefined, byPolicy("none", 10 ** 9));
  const row = (window: number | undefined, name: string, totals: ReplayTotals): Row => ({
    ...{ window, name, cost: totals.cost / none.cost },
    quotesLost: lost(totals.references.quotes),
    farNamesLost: lost(totals.references.names.far),
    refetchesPer100: (100 * totals.references.refetches) / totals.calls,
  });
  const rows: Row[] = [row(undefined, "none", none)];
  for (const mode of ["delta", "page", "all"] as const)
    rows.push(row(undefined, mode, await replayAll(all, mode, byPolicy(`none+${mode}`, 10 ** 9))));
  for (const [maxResultTokens, pageTokens] of pageSizes) {
    const size = `${maxResultTokens / 1_000}k to ${pageTokens / 1_000}k`;
    const pages = createIntakes({ maxResultTokens, pageTokens });
    rows.push(row(undefined, `page, ${size}`, await replayAll(all, size, byIntake(pages.structured))));
    rows.push(row(undefined, `blunt page, ${size}`, await replayAll(all, size, byIntake(pages.blunt))));
  }
  for (const window of [64_000, 128_000]) {
    for (const policy of ["economic", "economic+delta", "economic+all"] as const)
      rows.push(row(window, policy, await replayAll(all, `${window}`, byPolicy(policy, window))));
  }
  return rows;
}

function lost({ found, total }: Tally): number {
  return total === 0 ? 0 : 1 - found / total;
}

type Replay = (session: PreparedSession) => Promise<ReplayTotals>;

async function replayAll(all: readonly BenchSession[], about: string | undefined, replay: Replay) {
  process.stderr.write(`${about ?? "none"}\n`);
  const totals: ReplayTotals[] = [];
  for (const { prepared } of all) totals.push(await replay(prepared));
  return addTotals(totals);
}

function byPolicy(policy: ReplayPolicy, window: number): Replay {
  return async (session) => (await replaySession(session, { ...fixed, policy, window })).totals;
}

function byIntake(create: () => Promise<Intake>): Replay {
  return async (session) => {
    const { messages, format } = session;
    const lens = createMessageLens(messages, { counter, format, sealed: "readable" });
    const intake = createMessageIntake(lens, await create());
    const reduce = async (history: readonly object[]) => {
      return { messages: await intake.admit(history), isEpoch: false, keptShare: 1, breakpoints: [] };
    };
    return (await replayReducer(session, reduce, { ...fixed, window: 10 ** 9 })).totals;
  };
}

interface PageSize {
  readonly maxResultTokens: number;
  readonly pageTokens: number;
}

function createIntakes(size: PageSize): Readonly<Record<"structured" | "blunt", () => Promise<Intake>>> {
  return {
    structured: () => createIntake({ counter, sessionId: "bench", deltas: false, ...size }),
    blunt: async () => createBluntIntake(counter, size),
  };
}

/** Keeps whole lines from the beginning and from the end, as many clients do. */
function createBluntIntake({ count }: Counter, { maxResultTokens, pageTokens }: PageSize): Intake {
  const startOf = (lines: readonly string[], most: number): number => {
    let left = most;
    const end = lines.findIndex((line) => {
      left -= count(`${line}\n`);
      return left < 0;
    });
    return end < 0 ? lines.length : end;
  };
  return {
    async admit({ text }) {
      const tokens = count(text);
      if (tokens <= maxResultTokens) return { text, tokens, edit: "none" };
      const lines = text.split("\n");
      const start = startOf(lines, pageTokens * 0.7);
      const end = startOf(lines.toReversed(), pageTokens * 0.3);
      const missing = lines.length - start - end;
      const parts = [...lines.slice(0, start), `[… ${missing} lines left out]`, ...lines.slice(start + missing)];
      const page = parts.join("\n");
      return { text: page, tokens: count(page), edit: "page", id: "blunt" };
    },
    async forget() {},
    recall: async () => undefined,
  };
}

interface OutputRow {
  readonly file: string;
  readonly tokens: number;
  /** Different lines about failures, and how many of them each page has. */
  readonly failures: number;
  readonly structured: number;
  readonly blunt: number;
}

async function measureOutputs(directory: string | undefined): Promise<OutputRow[]> {
  const rows: OutputRow[] = [];
  const { structured, blunt } = createIntakes({ maxResultTokens: 8_000, pageTokens: 6_000 });
  for (const file of directory === undefined ? [] : readdirSync(directory)) {
    const text = readFileSync(join(directory as string, file), "utf8");
    const failures = new Set(text.split("\n").filter((line) => /\b(?:FAILED|FAIL|ERROR)\b|Error: |^E {3}/.test(line)));
    const tokens = counter.count(text);
    if (failures.size === 0 || tokens <= 8_000) continue;
    const keptBy = async (intake: Intake): Promise<number> => {
      const page = await intake.admit({ tool: "Bash", input: { command: "npm test" }, text });
      return [...new Set(page.text.split("\n"))].filter((line) => failures.has(line)).length;
    };
    rows.push({
      file,
      tokens,
      failures: failures.size,
      structured: await keptBy(await structured()),
      blunt: await keptBy(await blunt()),
    });
  }
  return rows;
}

interface AdmitTime {
  readonly result: string;
  readonly megabytes: number;
  /** Of CPU time, in milliseconds. */
  readonly least: number;
  readonly median: number;
}

/** With the default counter and a store in memory, after a few results of the same kind. */
async function measureAdmits(): Promise<AdmitTime[]> {
  const times: AdmitTime[] = [];
  for (const [result, textOf] of Object.entries(resultsToAdmit())) {
    for (const megabytes of [0.01, 0.1, 1, 5, 20]) {
      const intake = await createIntake({ sessionId: "bench" });
      const samples: number[] = [];
      for (let round = 0; round < 12; round++) {
        const text = textOf(megabytes * 1_000_000, round);
        const before = process.cpuUsage();
        await intake.admit({ tool: "Bash", input: { command: `run ${round}` }, text });
        const { user, system } = process.cpuUsage(before);
        if (round > 1) samples.push((user + system) / 1_000);
      }
      samples.sort((one, other) => one - other);
      times.push({ result, megabytes, least: samples[0] ?? 0, median: samples[samples.length >> 1] ?? 0 });
    }
  }
  return times;
}

/** The texts that are admitted. */
function resultsToAdmit(): Readonly<Record<string, (size: number, round: number) => string>> {
  return {
    "a log": (size, round) => {
      const line = (index: number): string =>
        `2026-11-17T10:00:00 worker ${index % 7} run ${round} took item ${index} of a`;
      return linesUpTo(size, line).join("\n");
    },
    "a JSON list": (size, round) => {
      const element = (index: number): string =>
        JSON.stringify({ id: index, round, name: `item ${index}`, tags: ["a"] });
      return `[${linesUpTo(size, element).join(",")}]`;
    },
  };
}

function linesUpTo(size: number, line: (index: number) => string): string[] {
  return Array.from({ length: Math.ceil(size / line(1_000).length) }, (_, index) => line(index));
}

function render({ rows, outputs, admits, notes }: typeof report): string {
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  const table = rows.map(({ window, name, ...row }) => [
    ...[window === undefined ? "–" : window.toLocaleString("en"), name, row.cost.toFixed(3)],
    ...[percent(row.quotesLost), percent(row.farNamesLost), row.refetchesPer100.toFixed(1)],
  ]);
  const times = admits.map(({ result, megabytes, least, median }) => [
    ...[result, `${megabytes} MB`, least.toFixed(1), median.toFixed(1)],
  ]);
  return [
    `${sessions.length} sessions, exact:o200k, prefix ${PREFIX_TOKENS}, reserve ${RESERVE}`,
    columns([["window", "results", "cost", "quotes lost", "far names lost", "re-fetches/100"], ...table]),
    ...(outputs.length === 0
      ? []
      : [
          "Lines about failures in a page of 6,000 tokens",
          columns([
            ["output", "tokens", "in the output", "page", "blunt page"],
            ...outputs.map((row) => Object.values(row).map(String)),
          ]),
        ]),
    "CPU time of one admit, in milliseconds",
    columns([["result", "size", "least", "median"], ...times]),
    ...notes.map((note) => `${note}\n`),
  ].join("\n");
}

function columns(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return `${lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")}\n`;
}
