import { ContextError, usageError } from "../../core/errors.ts";
import { countNoun, printable } from "../../core/text/index.ts";
import { loadConfig, noteLeftOut, shownPath, storeFile } from "../../host/index.ts";
import {
  type BillSettings,
  billCsv,
  billJson,
  billText,
  computeWhatIfs,
  createBillReport,
  createRecordingsReader,
  describeCall,
  type Grouping,
  groupings,
  newCalls,
  type RecordingsReader,
  readTrims,
  recordingPlaces,
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
  "what-if": {
    summary: "also compute what other cache lifetimes, pings, trimming and shorter results would have saved",
  },
  watch: { summary: "print each new call as agents make it, until Ctrl-C" },
  csv: { summary: "print the sums as CSV, or the table of --what-if" },
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
  details: `Sums what agents spent, from the usage that they recorded: sessions of Claude Code, Codex, opencode, gemini-cli,
pi, Copilot CLI, cline and qwen-code. Each request counts once, also if a fork or a resumed session repeats it.
Dollars use the prices of each model; a model without a price of its own is listed with its tokens and is in no sum of dollars.
A cache loss is a call that read less from the prompt cache than the previous call left there. Its dollars are
what the call cost more than a call that reads everything from the cache. "known from" says whether the provider
named the cause, recorded usage shows it, or it is inferred.
--by agent separates sub-agents. --by tool gives each call to the tool whose results it sent first. --by cause groups
calls by why they lost the cache, --by part splits dollars into what every request starts with, the conversation and
output.
--what-if simulates each session at its recorded times, fitted to its recorded usage, and leaves out sessions whose
simulated bill is more than 5 % off. A row also leaves out sessions for which its window has no room.
"references kept" is how much of what the next turns used was still in the
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
    if (options.watch === true) return watchBill(reader, { settings, call });
    const recordings = await reader.read(paths);
    for (const { path, reason } of recordings.unreadable) {
      output.problem(`${printable(shownPath(path, call.cwd, env))}: ${reason}`);
    }
    const report = createBillReport(recordings, settings);
    if (recordings.sessions.every(({ calls }) => calls.length === 0)) throw nothingRecorded(paths, call);
    const whatIf = options["what-if"] === true ? await computeWhatIfs(report, call) : undefined;
    if (options.html !== undefined) {
      const what = countNoun(report.sessions.length, "session");
      await writePage(options.html, { html: renderBillPage(report, whatIf?.table), what }, call);
    }
    const json = { ...billJson(report), ...(whatIf && { whatIf: whatIf.json }) };
    const isFailed = recordings.unreadable.length > 0;
    if (options.csv === true) return { json, text: whatIf?.csv ?? billCsv(report), exact: true, failed: isFailed };
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
      hint: "Name sessions of Claude Code, Codex, opencode, gemini-cli, pi, Copilot CLI, cline or qwen-code, or directories with them.",
    });
  }
  const where =
    paths.length === 0 ? "no agent has recorded sessions here yet" : "the recorded sessions have no calls yet";
  return new ContextError("unreadable_input", where, {
    hint: "Looked for Claude Code (~/.claude/projects), Codex (~/.codex/sessions), opencode, gemini-cli, pi, Copilot CLI, cline and qwen-code. Name the files or directories if they are elsewhere: plimsoll bill PATH.",
  });
}

async function readSettings(call: Call<OptionValues<typeof billOptions>>): Promise<BillSettings> {
  const { options, cwd, env } = call;
  const loaded = await loadConfig({ cwd, env });
  const { values: config, leftOut } = loaded;
  noteLeftOut(leftOut, call, "prices");
  const until = options.until === undefined ? Number.POSITIVE_INFINITY : readDay(options.until, "until") + dayMs;
  const since = options.since === undefined ? 0 : readDay(options.since, "since");
  if (since >= until) {
    throw usageError(`--since ${options.since} is after --until ${options.until}`, "Exchange the two days.");
  }
  // parseArguments has checked the choices.
  const by = (options.by ?? "day") as Grouping;
  const { reserve, keep } = config.history;
  const trims = await readTrims(storeFile(undefined, { cwd, env, config: loaded }));
  return { by, prices: config.prices, reserve, keep, since, until, project: options.project, trims };
}

const dayMs = 86_400_000;

/** Returns the start of a day in the zone of the machine. */
function readDay(value: string, option: "since" | "until"): number {
  const ago = /^(\d{1,4})d$/.exec(value)?.[1];
  const day = ago === undefined ? new Date(`${value}T00:00:00`) : new Date(Date.now() - Number(ago) * dayMs);
  if (ago !== undefined) day.setHours(0, 0, 0, 0);
  const isDate = ago !== undefined || /^\d{4}-\d{2}-\d{2}$/.test(value);
  if (isDate && Number.isFinite(day.getTime())) return day.getTime();
  throw usageError(`--${option} is "${value}"`, "Use a day such as 2026-11-01, or 7d.");
}

/** Watches until the process ends. */
async function watchBill(
  reader: RecordingsReader,
  { settings, call }: { readonly settings: BillSettings; readonly call: Call<object> },
): Promise<undefined> {
  const seen = new Set<string>();
  const pollMs = 1000;
  for (let isFirst = true; ; isFirst = false) {
    // A program may record its first session while we watch.
    const paths = call.arguments.length > 0 ? call.arguments : recordingPlaces(call.env);
    const recordings = await reader.read(paths);
    if (isFirst || recordings.bytesRead > 0) {
      const report = createBillReport(recordings, settings);
      for (const placed of newCalls(report, seen, isFirst)) {
        const { json, lines } = describeCall(placed, report, call.env);
        if (call.output.json) call.output.result(JSON.stringify(json));
        else
          lines.forEach((line, index) => {
            call.output.result(index === 0 ? line : call.output.style.bold(line));
          });
      }
    }
    if (isFirst) call.output.note("watching for new calls; stop with Ctrl-C");
    call.output.settle();
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
