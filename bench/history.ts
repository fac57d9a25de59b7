/** Measures how histories are trimmed, beside the peers: `npm run bench:history [-- --transcripts DIR] [--window N,N] [--json] [--quick]`.
 *  Without recorded sessions it replays generated ones. LangChain is installed into a temporary folder; without a registry it is left
 *  out. Results go to stdout, progress to stderr. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createCounter } from "../src/core/tokens/index.ts";
import { type BenchSessions, generateSessions, readSessions } from "./history/bench-session.ts";
import { goalsOf, readPriceGoals } from "./history/goals.ts";
import { measureReadPrices, type ReadPriceRow } from "./history/measure-read-prices.ts";
import { measureTurns } from "./history/measure-turns.ts";
import { measureWindow, type WindowReport } from "./history/measure-window.ts";
import { loadPeers } from "./history/peers/load-peers.ts";
import { type Report, renderReport } from "./history/render-report.ts";

interface Arguments {
  readonly transcripts?: string | undefined;
  readonly windows: readonly number[];
  readonly isQuick: boolean;
  readonly json: boolean;
}

/** Exact, so that no policy gains by what a counter gets wrong. */
const COUNTER = "exact:o200k";
const options = readArguments();
const opened = await openSessions(options);
const folder = mkdtempSync(join(tmpdir(), "plimsoll-bench-"));
try {
  const report = await measure(opened, options);
  process.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function readArguments(): Arguments {
  try {
    const { values } = parseArgs({
      options: {
        transcripts: { type: "string" },
        window: { type: "string" },
        quick: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
      },
    });
    const { transcripts, quick: isQuick, json } = values;
    const windows = (values.window ?? (isQuick ? "64000" : "64000,128000,200000")).split(",").map(Number);
    if (windows.some((window) => !Number.isInteger(window) || window <= 30_000))
      throw new Error("--window takes whole numbers above 30000, with commas between them");
    return { transcripts, windows, isQuick, json };
  } catch (error) {
    const usage = "usage: npm run bench:history [-- --transcripts DIR] [--window N,N] [--json] [--quick]";
    console.error(`${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
}

async function measure({ source, sessions, notes }: BenchSessions, { windows, isQuick }: Arguments): Promise<Report> {
  progress("installing peers");
  const { peers, notes: missing } = await loadPeers(isQuick ? undefined : join(folder, "peers"));
  const reports: WindowReport[] = [];
  const readPrices: ReadPriceRow[] = [];
  for (const window of windows) {
    const tell = (step: string): void => progress(`${window}: ${step}`);
    reports.push(await measureWindow(sessions, { window, peers, isQuick, progress: tell }));
    tell("prices of reading");
    readPrices.push(...(await measureReadPrices(sessions, { window, isQuick })));
  }
  progress("time per turn");
  const turns = await measureTurns(peers, { isQuick });
  return {
    node: process.versions.node,
    counter: COUNTER,
    sessions: {
      source,
      count: sessions.length,
      calls: sessions.reduce((sum, { prepared }) => sum + prepared.calls.length, 0),
      tokens: sessions.reduce((sum, { sizes }) => sum + (sizes.at(-1) ?? 0), 0),
    },
    windows: reports,
    readPrices,
    turns,
    goals: [...goalsOf(reports, turns), ...readPriceGoals(readPrices)],
    notes: [...notes, ...missing],
  };
}

async function openSessions({ transcripts: directory, isQuick }: Arguments): Promise<BenchSessions> {
  progress(directory === undefined ? "generating sessions" : "reading sessions");
  const counter = await createCounter(COUNTER);
  if (directory === undefined) return generateSessions(counter, { isQuick });
  const found = await readSessions(directory, counter);
  if (found.sessions.length > 0) return found;
  console.error(`no session in ${directory} that can be measured`);
  for (const note of found.notes) console.error(note);
  return process.exit(1);
}

function progress(step: string): void {
  process.stderr.write(`${step} …\n`);
}
