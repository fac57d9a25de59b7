import { relative, resolve } from "node:path";
import {
  createTrimmer,
  isRfc,
  type Overflow,
  type PolicyName,
  policyNames,
  type Reduction,
  type Trimmer,
  type TrimRequest,
} from "../../conversation/history/index.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import { type FormatName, formatOfRequest } from "../../core/messages/index.ts";
import { countNoun, formatNumber, printable, problemWithWindow, wholeNumber } from "../../core/text/index.ts";
import {
  type Config,
  chooseCounter,
  type DecisionsPlace,
  loadConfig,
  type MessagesInput,
  type MessagesKey,
  modelForCounter,
  renderTable,
  rewriteMessages,
  type SavedDecisions,
} from "../../host/index.ts";
import { type Call, type Command, type CommandResult, defineCommand, type OptionValues } from "../command.ts";
import { counterOptions, historyOptions, storeOptions } from "../shared-options.ts";
import { formatOption, readMessagesInput } from "../text-input.ts";

const trimOptions = {
  window: { value: "N", summary: "the model's limit in tokens" },
  reserve: historyOptions.reserve,
  "prefix-tokens": {
    value: "N",
    summary: "tokens of system text and tools that are not in the input (default: 0)",
  },
  ...formatOption,
  policy: {
    value: "NAME",
    choices: policyNames,
    summary: "how to trim (default: from the configuration, economic)",
  },
  keep: historyOptions.keep,
  threshold: {
    value: "SHARE",
    summary: "share of the budget at which rfc and rfc-headroom trim (default: from the configuration, 0.8)",
  },
  tools: { value: "FILE", summary: "JSON file with the tool definitions that you send" },
  ...counterOptions,
  checkpoint: { value: "FILE", summary: "file with the decisions so far; read if it exists, written afterwards" },
  session: { value: "ID", summary: "name of the conversation whose decisions so far are in the store" },
  ...storeOptions,
  markers: { summary: "mark Anthropic's messages for the prompt cache, as a wrapped client does" },
  stats: { summary: "print token numbers to stderr" },
} as const;

type TrimCall = Call<OptionValues<typeof trimOptions>>;

export const trimCommand: Command = defineCommand({
  arguments: [{ name: "FILE", optional: true, summary: 'messages as JSON or JSON Lines, or "-" for standard input' }],
  options: trimOptions,
  details: `Prints messages that fit into window - reserve - prefix tokens. Replaces tool results, tool inputs and
thinking with placeholders, the oldest first. The output has the form of the input: a list, JSON Lines, or the same
request with new messages (its system text and tools are counted). Text that is not trimmed stays as written.
With --checkpoint, the next run on the longer history repeats the earlier decisions and appends what is new, so the
provider's prompt cache stays valid until more must be trimmed. Use one checkpoint for each conversation.
With --session, the decisions are in the store instead, and so is what was trimmed: plimsoll recall ID
prints it. Machines that share a store continue each other's conversations.
With --markers, the output has cache markers where a wrapped client would set them. Your own stay.
If the messages cannot fit because of text that people wrote, nothing is printed and the exit code is 1. The rfc
policies print their result with a warning. The counter is that of --counter, or else of --model, or else of the
configuration, or else of the request's model, or else auto.`,
  examples: [
    { line: "plimsoll trim request.json --window 200000", meaning: "trim a request so that it fits" },
    {
      line: "plimsoll trim h.json --window 128000 --checkpoint h.state --stats",
      meaning: "trim after each turn, and show the numbers",
    },
    {
      line: "plimsoll trim h.json --window 128000 --session build-7",
      meaning: "the same, with the decisions in the store",
    },
    {
      line: "plimsoll trim run.jsonl --window 64000 --policy frugal | plimsoll validate",
      meaning: "trim deeper, and check the result",
    },
    { line: "plimsoll trim request.json --window 200000 --markers", meaning: "trim, and mark what is worth caching" },
    { line: "plimsoll trim h.json --window 200000 --json | jq .stats", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { values: config } = await loadConfig(call);
    const settings = readSettings(call.options, config);
    const place = decisionsPlace(call.options);
    if (place === undefined) return trimInput(call, { config, settings });
    const { withDecisions } = await import("../../host/store/saved-decisions.ts");
    return withDecisions(place, call, (saved) => trimInput(call, { config, settings, saved }));
  },
});

/** Returns where the options say that earlier decisions are. */
function decisionsPlace({ checkpoint, session, store }: TrimCall["options"]): DecisionsPlace | undefined {
  if (session === undefined) {
    if (store !== undefined) throw usageError("--store has no meaning without --session", "Name the conversation too.");
    return checkpoint === undefined ? undefined : { checkpoint };
  }
  if (checkpoint !== undefined) throw usageError("--checkpoint and --session exclude each other", "Use one of them.");
  return { session, store };
}

async function trimInput(
  call: TrimCall,
  {
    config,
    settings,
    saved,
  }: { readonly config: Config; readonly settings: TrimSettings; readonly saved?: SavedDecisions },
): Promise<CommandResult> {
  const { options, output } = call;
  const input = await readMessagesInput(call.arguments[0], call);
  const request = await readRequestParts(input, call);
  const isKnown = options.format !== undefined && options.format !== "auto";
  const format = isKnown ? (options.format as FormatName) : formatOfRequest(input.request ?? input.messages ?? []);
  const own = input.request?.model;
  const model = options.model ?? (typeof own === "string" && own !== "" ? own : undefined);
  // --counter, or else the counter of --model, or else of the configuration, or else of the request's model.
  const named = options.counter ?? (options.model === undefined ? config.counter : undefined) ?? "auto";
  const counting = { counter: named, model: modelForCounter({ counter: named, model }) };
  const counter = await chooseCounter({ ...call, options: counting }, "auto");
  const trimmer = await (saved?.open ?? createTrimmer)({ ...settings, format, model, counter });
  const reduction = reduce(trimmer, request, { input, call });
  const { key = "messages", source } = input;
  const report: TrimReport = {
    reduction,
    settings,
    counter: counter.name,
    format,
    key,
    messages: request.messages.length,
    file: source.file,
  };
  const { metadata, overflow } = reduction;
  if (overflow !== undefined && !isRfc(settings.policy)) throw overflowError(overflow, report);
  if (overflow !== undefined) {
    // The rfc policies do not promise to fit.
    const sizes = `${formatNumber(overflow.tokens)} tokens ${rfcCount} are left, the threshold is ${formatNumber(overflow.limit)}`;
    output.problem(`${printable(source.file)}: still too large: ${sizes}${describeLargest(overflow.largest, report)}`);
  }
  await saved?.save(trimmer);
  // The user asked for these numbers, so --quiet does not hide them.
  if (options.stats) output.problem(renderStats(report));
  const { before, after, threshold, boundary, trimmed, epochs } = reduction.stats;
  const stats = { before, after, threshold, boundary, trimmed, epochs, overflow: overflow ?? null };
  const { messages: sent, ...marked } = await mark(request, report, { input, options });
  return {
    json: { messages: sent, ...marked, metadata, stats, counter: counter.name, policy: settings.policy },
    get text() {
      const text = rewriteMessages({ ...input, messages: request.messages }, sent, marked);
      return text.endsWith("\n") ? text : `${text}\n`;
    },
    exact: true,
  };
}

/** Returns the messages, with --markers marked for the cache, and then also the system text and tools if they got one. */
async function mark(
  request: TrimRequest,
  { reduction, format }: TrimReport,
  { input, options }: { readonly input: MessagesInput; readonly options: TrimCall["options"] },
): Promise<{ readonly messages: readonly object[]; readonly system?: unknown; readonly tools?: unknown }> {
  if (options.markers !== true) return { messages: reduction.messages };
  if (format !== "anthropic") {
    throw usageError(`--markers has no meaning for messages of ${format}`, "Only Anthropic's requests have markers.");
  }
  const { anthropicMarkers, placeMarkers, readMessageMarkers } = await import(
    "../../conversation/sdk/place-markers.ts"
  );
  const { system, tools, cache_control: automatic } = input.request ?? {};
  const { messages, ...fixed } = placeMarkers({
    mode: "auto",
    own: request.messages,
    ownMarkers: readMessageMarkers(request.messages, anthropicMarkers),
    automatic,
    tools,
    system,
    messages: reduction.messages,
    breakpoints: reduction.breakpoints,
  });
  return {
    messages,
    ...(fixed.system !== system && { system: fixed.system }),
    ...(fixed.tools !== tools && { tools: fixed.tools }),
  };
}

/** Adds the file and the path in it to errors about messages. */
function reduce(
  trimmer: Trimmer,
  request: TrimRequest,
  { input, call: { options, cwd } }: { readonly input: MessagesInput; readonly call: TrimCall },
): Reduction {
  try {
    return trimmer.reduce(request);
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const isOfTools = options.tools !== undefined && error.message.startsWith("tools");
    const file = isOfTools ? relative(cwd, resolve(cwd, options.tools)) : input.source.file;
    const message = inRequest(error.message, input.key ?? "messages");
    throw new ContextError(error.code, message, { hint: error.hint, file, cause: error });
  }
}

interface TrimReport {
  readonly reduction: Reduction;
  readonly settings: TrimSettings;
  readonly counter: string;
  readonly format: string;
  /** Number of messages in the input. */
  readonly messages: number;
  readonly key: MessagesKey;
  readonly file: string;
}

/** Renders a line about the input, then one number per line. */
function renderStats({ reduction, settings, counter, format, messages }: TrimReport): string {
  const { before, after, threshold, boundary, trimmed, epochs } = reduction.stats;
  const rows = [
    ["before", `${formatNumber(before)} tokens`],
    ["after", `${formatNumber(after)} tokens`],
    ["threshold", `${formatNumber(threshold)} tokens${isRfc(settings.policy) ? `, ${rfcCount}` : ""}`],
    ["boundary", formatNumber(boundary)],
    ["trimmed", countNoun(trimmed.length, "message")],
    ["epochs", formatNumber(epochs)],
    ["counter", counter],
    ["policy", settings.policy],
  ];
  return [`${countNoun(messages, "message")}, ${format}`, ...renderTable(rows, ["left", "left"])].join("\n");
}

/** The RFC has its own estimator, independent of the counter. */
const rfcCount = "by the RFC's own count";

/** The error if messages do not fit although the policy promises it. */
function overflowError({ tokens, limit, largest }: Overflow, report: TrimReport): ContextError {
  const { contextWindow, reserve, prefixTokens } = report.settings;
  const parts = [`--window ${contextWindow}`, `${formatNumber(reserve)} for the answer`];
  const besides = contextWindow - reserve - limit;
  if (besides > 0) {
    const what = prefixTokens > 0 ? "the prefix, system text and tools" : "system text and tools";
    // If nothing is left for messages, it may be more.
    parts.push(`${limit === 0 ? "at least " : ""}${formatNumber(besides)} for ${what}`);
  }
  const allowed = `but at most ${formatNumber(limit)} fit (${parts.join(", ")})`;
  const message = `cannot be trimmed to fit: ${formatNumber(tokens)} tokens remain, ${allowed}${describeLargest(largest, report)}`;
  const canLower = reserve > 0 && tokens <= limit + reserve;
  return new ContextError("context_overflow", message, {
    hint: `Shorten the largest messages, ${canLower ? "lower --reserve, " : ""}or use a model with a larger window.`,
    file: report.file,
  });
}

function describeLargest(largest: Overflow["largest"], { key, counter, settings }: TrimReport): string {
  const parts = largest.map(({ path, role, kind, tokens }) => {
    const what = kind === "text" ? `${role} text` : kind.replaceAll("_", " ");
    return `${inRequest(path, key)} (${what}, ${formatNumber(tokens)})`;
  });
  const by = isRfc(settings.policy) ? ` by ${counter}` : "";
  return parts.length === 0 ? "" : `; largest${by}: ${parts.join(", ")}`;
}

/** Renames a path to the keys of the request. */
function inRequest(path: string, key: MessagesKey): string {
  const system = { messages: "system", input: "instructions", contents: "systemInstruction" }[key];
  return path.replace(/^messages\b/, key).replace(/^system\b/, system);
}

/** Reads messages, system text and tools. Tools come from the request or from a file. */
async function readRequestParts(input: MessagesInput, { options, cwd }: TrimCall): Promise<TrimRequest> {
  const { readInputMessages, readSystem, readToolsFile } = await import("../../host/files/messages-file.ts");
  const { request = {} } = input;
  const own = request.tools ?? undefined;
  if (options.tools !== undefined && own !== undefined) {
    throw usageError(
      "the request already has tools, and --tools names others",
      "Leave out --tools: the request's tools are counted.",
    );
  }
  const tools = options.tools === undefined ? own : await readToolsFile(options.tools, cwd);
  return {
    messages: readInputMessages(input),
    system: readSystem(input),
    tools: tools as TrimRequest["tools"],
    metadata: request.metadata as TrimRequest["metadata"],
  };
}

/** Settings of a trimmer, from the command line and the configuration. */
type TrimSettings = ReturnType<typeof readSettings>;

/** Reads settings. Throws on wrong usage before any file is read. */
function readSettings(options: TrimCall["options"], { history }: Config) {
  if (options.window === undefined) {
    throw usageError("--window is missing", "Name the model's limit in tokens, such as --window 200000.");
  }
  const whole = (name: "reserve" | "prefix-tokens" | "keep") => wholeNumber(options[name], name, 0);
  // The configuration may say `none`, which other commands support.
  const policy = policyNames.find((name) => name === (options.policy ?? history.policy));
  if (policy === undefined) {
    throw usageError(
      `the configuration's history.policy is ${history.policy}, which trims nothing`,
      `Choose one with --policy: ${policyNames.join(", ")}.`,
    );
  }
  const contextWindow = wholeNumber(options.window, "window", 1);
  const settings = {
    contextWindow,
    policy,
    reserve: whole("reserve") ?? Math.min(history.reserve, Math.floor(contextWindow / 2)),
    prefixTokens: whole("prefix-tokens") ?? 0,
    keep: whole("keep") ?? history.keep,
    threshold: chooseThreshold(options.threshold, policy, history.threshold),
  };
  const problem = problemWithWindow(settings.contextWindow, settings);
  if (problem !== undefined) throw problem;
  return settings;
}

/** The configured threshold applies only to policies that have one. */
function chooseThreshold(value: string | undefined, policy: PolicyName, configured: number): number | undefined {
  if (value === undefined) return isRfc(policy) ? configured : undefined;
  if (!isRfc(policy)) {
    throw usageError(`--threshold has no meaning for the policy ${policy}`, "It belongs to rfc and rfc-headroom.");
  }
  const share = /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (share <= 1) return share;
  throw usageError(`--threshold is "${value}"`, "Use a share of the budget from 0 to 1, such as 0.8.");
}
