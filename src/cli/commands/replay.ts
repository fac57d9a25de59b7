import { type Prices, priceOf, providerOfModel, type Ttl } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { countNoun, formatNumber, printable, problemWithWindow, wholeNumber } from "../../core/text/index.ts";
import type { Style } from "../../host/index.ts";
import { chooseCounter, loadConfig, modelForCounter, noteLeftOut, renderTable } from "../../host/index.ts";
import {
  describeInvalid,
  describeRecorded,
  describeRun,
  findSessionFiles,
  intakeModes,
  type ReplayPolicy,
  type ReplayReport,
  type ReplaySettings,
  replayFiles,
  replayJson,
  replayPolicies,
  resultRows,
  shareOf,
} from "../../recordings/index.ts";
import { checkPageTarget, renderPage, writePage } from "../../web/index.ts";
import { type Call, type Command, defineCommand, type OptionSpecs, type OptionValues } from "../command.ts";
import { counterOptions, historyOptions, trustOption } from "../shared-options.ts";

const replayOptions = {
  window: { value: "N[,N...]", list: true, summary: "the model's limit in tokens (default: 200000)" },
  policy: {
    value: "NAME[,NAME...]",
    list: true,
    choices: replayPolicies,
    summary: "how histories are trimmed (default: none,rfc,economic)",
  },
  intake: {
    value: "MODE",
    choices: intakeModes,
    summary: "also shorten tool results before they are first sent: repeated text, long results, or both",
  },
  reserve: historyOptions.reserve,
  "prefix-tokens": {
    value: "N",
    summary: "tokens of tools and system text that are not in the file (default: 20000, or 0 if the file has them)",
  },
  keep: historyOptions.keep,
  counter: counterOptions.counter,
  model: {
    ...counterOptions.model,
    summary: "use the counter, prices and cache rules of this model",
  },
  ttl: {
    value: "TIME",
    choices: ["5m", "1h"],
    summary: "how long entries of the prompt cache live (default: as recorded, or 5m)",
  },
  html: { value: "FILE", summary: "write a page with the timeline of every session" },
  ...trustOption,
} as const satisfies OptionSpecs;

export const replayCommand: Command = defineCommand({
  arguments: [
    {
      name: "PATH",
      repeated: true,
      summary: "a recorded session, or a directory with *.jsonl, *.json or opencode.db files",
    },
  ],
  options: replayOptions,
  details: `Replays every assistant turn of recorded sessions with each policy and reports the input cost, as
full-price tokens and as a multiple of the cost without trimming (policy none, always computed). breaks counts
calls that read less from the prompt cache than the previous call left there. kept is the mean share of the history
that the model can still read. over counts calls larger than the window minus the reserve.
quotes, names far and edits show how much of what the next turn used was still in the request: lines of earlier
results, names last seen 10 turns ago or earlier, texts to be replaced. re-fetch/100 counts the results that a model
would have had to read again, in a hundred calls.
Reads messages or items of OpenAI's responses (one per line), Anthropic and OpenAI requests, and sessions of Claude
Code, Codex, opencode, gemini-cli, pi, Copilot CLI, cline and qwen-code. Repairs what a provider would refuse, such as a call without a result.
Where a client compacted or rewound its history, so does every policy: none sends what was sent. recorded shows the
usage that the client recorded.
A session with recorded usage is replayed as its provider billed it: with the model that answered, at the recorded
times, with counts that are fitted to the usage. none then costs what was recorded, and each policy costs what
bill --what-if says. If its bill cannot be simulated to within 5 %, it is left out. --prefix-tokens, or another --model, replays counted tokens without times instead.
Skips and names sessions without an assistant turn, and windows without room. Skips
files that cannot be read, and then exits with 1.
--model chooses the counter, prices and cache rules; the default is exact:o200k with Anthropic's prices and rules for
sessions without usage.
The page needs no network. It contains numbers, file names and the first words of each session.`,
  examples: [
    { line: "plimsoll replay ~/.claude/projects/my-project", meaning: "what trimming would have saved" },
    {
      line: "plimsoll replay run.jsonl --window 64000,128000 --html replay.html",
      meaning: "two windows, and a page to look at",
    },
    {
      line: "plimsoll replay runs --policy none,economic,gentle,frugal",
      meaning: "how much of a history each keeps",
    },
    {
      line: "plimsoll replay runs --policy none,economic --intake all",
      meaning: "what shortening results before they are first sent would have saved",
    },
    { line: "plimsoll replay runs --json | jq '.results[]'", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { arguments: paths, options, cwd, output } = call;
    const settings = await readSettings(call);
    const found = findSessionFiles(paths, cwd);
    const target = options.html;
    if (target !== undefined) await checkPageTarget(target, { call, inputs: found.files.map(({ path }) => path) });
    const report = await replayFiles(found, { settings, call, isPage: options.html !== undefined });
    if (report.sessions.length === 0 && report.recorded === undefined) {
      const message = report.idle > 0 ? "no session has an assistant turn" : "no session could be read";
      throw new ContextError("unreadable_input", message, {
        hint: "Name session files, or directories that hold *.jsonl or *.json files.",
      });
    }
    if (target !== undefined) {
      const what = countNoun(report.sessions.length, "session");
      await writePage(target, { html: renderPage(report), what }, call);
    }
    return {
      json: replayJson(report),
      get text() {
        return reportText(report, output.style);
      },
      failed: report.skipped > 0,
    };
  },
});

function reportText(report: ReplayReport, style: Style): string {
  const header = [
    "window",
    "policy",
    "cost",
    "x none",
    "breaks",
    "over",
    "invalid",
    "kept",
    "quotes",
    "names far",
    "edits",
    "re-fetch/100",
    "ms/turn",
  ];
  const rows = resultRows(report).map((row) => [
    formatNumber(row.window),
    row.policy,
    formatNumber(Math.round(row.cost)),
    row.ratioToNone.toFixed(3),
    formatNumber(row.breaks),
    formatNumber(row.overWindow),
    formatNumber(row.invalid),
    percent(row.visibleShare),
    percent(shareOf(row.references.quotes)),
    percent(shareOf(row.references.names.far)),
    percent(shareOf(row.references.edits)),
    (row.calls === 0 ? 0 : (100 * row.references.refetches) / row.calls).toFixed(1),
    row.msPerTurn.toFixed(3),
  ]);
  const right = "right" as const;
  const alignment = [right, "left" as const, ...header.slice(2).map(() => right)];
  const lines = renderTable([header, ...rows], alignment, style);
  const details = [...describeInvalid(resultRows(report)), ...describeRecorded(report), describeRun(report)];
  return [...lines, "", ...details.map((line) => style.dim(line))].join("\n");
}

function percent(share: number | null): string {
  return share === null ? "-" : `${(100 * share).toFixed(1)} %`;
}

async function readSettings(call: Call<ReplayFlags>): Promise<ReplaySettings> {
  const { options, cwd, env } = call;
  const { values: config, leftOut } = await loadConfig({ cwd, env });
  noteLeftOut(leftOut, call, "prices");
  const { history } = config;
  const readWhole = (name: "reserve" | "prefix-tokens" | "keep") => wholeNumber(options[name], name, 0);
  // The model also chooses prices.
  const counting = { counter: options.counter, model: modelForCounter(options) };
  const asked = readWhole("reserve");
  const prefixTokens = readWhole("prefix-tokens");
  const chooseReserve = (window: number): number => asked ?? Math.min(history.reserve, Math.floor(window / 2));
  const windows = windowsWithRoom(call, { chooseReserve, prefixTokens: prefixTokens ?? 0 });
  const policies = [...new Set(options.policy ?? ["none", "rfc", "economic"])] as ReplayPolicy[];
  return {
    windows,
    // parseArguments has checked the choices.
    policies: policies.flatMap((policy) =>
      // Each policy also runs with the intake, to compare both.
      options.intake === undefined ? policy : [policy, `${policy}+${options.intake}` as ReplayPolicy],
    ),
    reserves: Object.fromEntries(windows.map((window) => [window, chooseReserve(window)])),
    prefixTokens,
    keep: readWhole("keep") ?? history.keep,
    threshold: history.threshold,
    counter: await chooseCounter({ ...call, options: counting }, "exact:o200k"),
    hasCounter: options.counter !== undefined,
    model: options.model,
    ttl: options.ttl as Ttl | undefined,
    ...whoBills(call, config.prices),
    prices: config.prices,
  };
}

/** Returns the windows that leave room for messages. Notes the others, and throws if there is none. */
function windowsWithRoom(
  { options, output }: Call<ReplayFlags>,
  { chooseReserve, prefixTokens }: { chooseReserve(window: number): number; readonly prefixTokens: number },
): number[] {
  const all = [...new Set((options.window ?? ["200000"]).map((value) => wholeNumber(value, "window", 1)))];
  const findProblem = (window: number) => problemWithWindow(window, { reserve: chooseReserve(window), prefixTokens });
  const windows = all.filter((window) => findProblem(window) === undefined);
  const problems = all.flatMap((window) => findProblem(window) ?? []);
  if (windows.length === 0 && problems[0] !== undefined) throw problems[0];
  for (const { message } of problems) output.note(`${message}, so this window is left out`);
  return windows;
}

type ReplayFlags = OptionValues<typeof replayOptions>;

/** Says whose prices apply. A model without prices is billed as its provider's default. */
function whoBills(
  { options: { model }, output }: Call<ReplayFlags>,
  prices: Prices,
): Pick<ReplaySettings, "billedAs" | "pricing"> {
  const provider = (model === undefined ? undefined : providerOfModel(model)) ?? "anthropic";
  const { isDefault, input, asOf } = priceOf({ provider, model, prices });
  const price = `$${input} per million input tokens, as of ${asOf}`;
  if (model !== undefined && !isDefault) return { billedAs: model, pricing: `${model}: ${price}` };
  const billedAs = `${provider}'s default`;
  if (model === undefined) return { billedAs, pricing: `${billedAs}: ${price}; --model chooses another` };
  output.note(`no prices are known for "${printable(model)}": billed as ${billedAs}`);
  return { billedAs, pricing: `no prices are known for "${model}", so ${billedAs}: ${price}` };
}
