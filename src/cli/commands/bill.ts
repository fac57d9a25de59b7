import { ContextError, usageError } from "../../core/errors.ts";
import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import { loadConfig, noteLeftOut, shownPath } from "../../host/index.ts";
import {
  agentNames,
  type BillReport,
  type BillSettings,
  billJson,
  billText,
  createBillReport,
  createRecordingsReader,
  type Grouping,
  groupings,
  iso,
  type Loss,
  projectName,
  type RecordingsReader,
  recordingPlaces,
  stamp,
  usdText,
  whatIfOfFiles,
} from "../../recordings/index.ts";
import { checkPageTarget, renderBillPage, writePage } from "../../web/index.ts";
import { type Call, type Command, defineCommand, type OptionSpecs, type OptionValues } from "../command.ts";
import { trustOption } from "../shared-options.ts";

const billOptions = {
  by: { value: "GROUP", choices: groupings, summary: "what a row is (default: day)" },
  since: { value: "DATE", summary: "only calls from this day on: 2026-11-01, or 7d for the last seven days" },
  until: { value: "DATE", summary: "only calls up to the end of this day" },
  project: { value: "TEXT", summary: "only projects whose path contains this text" },
  html: { value: "FILE", summary: "write a page with spend over time, causes, and a timeline of every session" },
  "what-if": { summary: "also compute what a 1-hour cache, trimming and shorter results would have saved" },
  watch: { summary: "print each new call as agents make it, until Ctrl-C" },
  csv: { summary: "print the sums as CSV" },
  "no-index": { summary: "read all files again, and keep nothing of them" },
  ...trustOption,
} as const satisfies OptionSpecs;

export const billCommand: Command = defineCommand({
  arguments: [
    {
      name: "PATH",
      optional: true,
      repeated: true,
      summary: "a recorded session, or a directory with sessions (default: where the programs keep them)",
    },
  ],
  options: billOptions,
  details: `Sums what agents spent, from the usage that they recorded: sessions of Claude Code, Codex, opencode, gemini-cli
and pi. Each request counts once, also if a fork or a resumed session repeats it. Dollars use the prices of each
model; a model without a price of its own is listed with its tokens and is in no sum of dollars.
A cache loss is a call that read less from the prompt cache than the previous call left there. Its dollars are
what the call cost more than a call that reads everything from the cache.
--by agent separates sub-agents. --by tool gives each call to the tool whose results it sent first.
--what-if simulates each session at its recorded times, fitted to its recorded usage, and leaves out sessions whose
simulated bill is more than 5 % off. "references kept" is how much of what the next turns used was still in the
requests. If it is lower than as sent, the row saves money by forgetting.
Only reads. An index in the state folder keeps what was found, so that the next run reads only what is new; it can be
deleted at any time. Nothing leaves the machine.`,
  examples: [
    { line: "plimsoll bill", meaning: "what was spent by day, what cache losses cost, and why" },
    { line: "plimsoll bill --by project --since 30d", meaning: "the last thirty days by project" },
    { line: "plimsoll bill --by model --json | jq .rows", meaning: "JSON for programs" },
    { line: "plimsoll bill --since 7d --html bill.html", meaning: "a page to look at" },
    { line: "plimsoll bill --since 7d --what-if", meaning: "what would have been cheaper" },
    { line: "plimsoll bill --watch", meaning: "follow the running session" },
    { line: "plimsoll bill ~/.codex/sessions --by session --csv", meaning: "only Codex, as CSV" },
  ],
  async run(call) {
    const { options, output, env } = call;
    const settings = await readSettings(call);
    const paths = call.arguments.length > 0 ? call.arguments : recordingPlaces(env);
    if (options.html !== undefined) await checkPageTarget(options.html, { call, inputs: paths });
    const reader = createRecordingsReader({ call, hasIndex: options["no-index"] !== true });
    if (options.watch === true) return watchBill({ reader, settings, call });
    const recordings = await reader.read(paths);
    for (const { path, reason } of recordings.unreadable) {
      output.problem(`${printable(shownPath(path, call.cwd, env))}: ${reason}`);
    }
    const report = createBillReport(recordings, settings);
    if (recordings.sessions.every(({ calls }) => calls.length === 0)) throw nothingRecorded(paths, call);
    if (options.html !== undefined) {
      const what = countNoun(report.sessions.length, "session");
      await writePage(options.html, { html: renderBillPage(report), what }, call);
    }
    const whatIf = options["what-if"] === true ? await whatIfOfFiles(report, call) : undefined;
    const json = { ...billJson(report), ...(whatIf && { whatIf: whatIf.json }) };
    const isFailed = recordings.unreadable.length > 0;
    if (options.csv === true) return { json, text: billCsv(report), exact: true, failed: isFailed };
    return {
      json,
      get text() {
        const text = billText(report, { style: output.style, env });
        return whatIf === undefined ? text : `${text}\n\n${whatIf.lines(output.style).join("\n")}`;
      },
      failed: isFailed,
    };
  },
});

function nothingRecorded(paths: readonly string[], call: Call): ContextError {
  if (call.arguments.length > 0) {
    return new ContextError("unreadable_input", "none of these files has the usage of a call", {
      hint: "Name sessions of Claude Code, Codex, opencode, gemini-cli or pi, or directories with them.",
    });
  }
  const where =
    paths.length === 0 ? "no agent has recorded sessions here yet" : "the recorded sessions have no calls yet";
  return new ContextError("unreadable_input", where, {
    hint: "Looked for Claude Code (~/.claude/projects), Codex (~/.codex/sessions), opencode, gemini-cli and pi. Name the files or directories if they are elsewhere: plimsoll bill PATH.",
  });
}

async function readSettings(call: Call<BillFlags>): Promise<BillSettings> {
  const { options, cwd, env } = call;
  const { values: config, leftOut } = await loadConfig({ cwd, env });
  noteLeftOut(
    leftOut.filter(({ key }) => key === "prices"),
    call,
  );
  const until = options.until === undefined ? Number.POSITIVE_INFINITY : dayOf(options.until, "until") + dayMs;
  const since = options.since === undefined ? 0 : dayOf(options.since, "since");
  if (since >= until) {
    throw usageError(`--since ${options.since} is after --until ${options.until}`, "Exchange the two days.");
  }
  // parseArguments has checked the choices.
  const by = (options.by ?? "day") as Grouping;
  const { reserve, keep } = config.history;
  return { by, prices: config.prices, reserve, keep, since, until, project: options.project };
}

type BillFlags = OptionValues<typeof billOptions>;

const dayMs = 86_400_000;

/** Returns the start of a day in the zone of the machine. */
function dayOf(value: string, option: "since" | "until"): number {
  const ago = /^(\d{1,4})d$/.exec(value)?.[1];
  const day = ago === undefined ? new Date(`${value}T00:00:00`) : new Date(Date.now() - Number(ago) * dayMs);
  if (ago !== undefined) day.setHours(0, 0, 0, 0);
  const isDate = ago !== undefined || /^\d{4}-\d{2}-\d{2}$/.test(value);
  if (isDate && Number.isFinite(day.getTime())) return day.getTime();
  throw usageError(`--${option} is "${value}"`, "Use a day such as 2026-11-01, or 7d.");
}

interface WatchOptions {
  readonly reader: RecordingsReader;
  readonly settings: BillSettings;
  readonly call: Call<object>;
}

const pollMs = 1000;
/** Calls of the running session that are shown at the start. */
const firstCalls = 5;

/** Watches until the process ends. */
async function watchBill({ reader, settings, call }: WatchOptions): Promise<undefined> {
  const seen = new Set<string>();
  for (let isFirst = true; ; isFirst = false) {
    // A program may record its first session while we watch.
    const paths = call.arguments.length > 0 ? call.arguments : recordingPlaces(call.env);
    const recordings = await reader.read(paths);
    if (isFirst || recordings.bytesRead > 0) {
      const report = createBillReport(recordings, settings);
      for (const placed of newCalls(report, seen, isFirst)) print(placed, report, call);
    }
    if (isFirst) call.output.note("watching for new calls; stop with Ctrl-C");
    call.output.settle();
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** At the start, only the last calls of the session that made the last one. */
function newCalls({ calls }: BillReport, seen: Set<string>, isFirst: boolean): BillReport["calls"] {
  const fresh = calls.filter(({ call: { fact } }) => !seen.has(fact.id));
  for (const { call } of fresh) seen.add(call.fact.id);
  const running = calls.at(-1)?.facts;
  return isFirst ? fresh.filter(({ facts }) => facts === running).slice(-firstCalls) : fresh;
}

function print({ call, facts }: BillReport["calls"][number], report: BillReport, { output, env }: Call<object>): void {
  const { fact, usd } = call;
  const index = facts.calls.indexOf(fact);
  const loss = report.losses.find((each) => each.facts === facts && each.call === index);
  const isEarlier = (time: number): boolean => time <= fact.time;
  const own = report.calls.filter((each) => each.facts.session === facts.session && isEarlier(each.call.fact.time));
  const session = own.reduce((sum, placed) => sum + (placed.call.usd ?? 0), 0);
  if (output.json) {
    const { read, write5m, write1h, uncached, output: answer, model } = fact;
    const about = {
      time: iso(fact.time),
      agent: agentNames[facts.agent],
      session: facts.session,
      project: facts.project,
    };
    const tokens = { model, read, write5m, write1h, uncached, output: answer, usd: usd ?? null, sessionUsd: session };
    output.result(JSON.stringify({ ...about, ...tokens, ...(loss && { loss: lossFields(loss) }) }));
    return;
  }
  const cells = [
    stamp(fact.time),
    `${agentNames[facts.agent]} ${facts.session.slice(0, 8)}`,
    projectName(facts.project, env),
    `read ${formatNumber(fact.read)}`,
    `written ${formatNumber(fact.write5m + fact.write1h)}`,
    `fresh ${formatNumber(fact.uncached)}`,
    `output ${formatNumber(fact.output)}`,
    usd === undefined ? "no price" : usdText(usd),
    `session ${usdText(session)}`,
  ];
  output.result(printable(cells.join("  ")));
  if (loss !== undefined) output.result(output.style.bold(printable(`  cache lost: ${describeLoss(loss)}`)));
}

function lossFields({ cause, detail, rewritten, usd }: Loss): object {
  return { cause, detail, rewritten, usd: usd ?? null };
}

function describeLoss({ cause, detail, rewritten, usd }: Loss): string {
  const cost = usd === undefined ? "" : `, ${usdText(usd)} beyond a hit`;
  return `${cause} (${detail}), ${formatNumber(rewritten)} tokens written again${cost}`;
}

/** The table of sums as CSV, which people read in a terminal too. A cell that a spreadsheet would run as a formula starts
 *  with an apostrophe. */
function billCsv({ rows, settings }: BillReport): string {
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
