import { relative, resolve } from "node:path";
import { ContextError, usageError } from "../errors.ts";
import {
  createTrimmer,
  isRfc,
  type Overflow,
  type PolicyName,
  policyNames,
  type Reduction,
  type Trimmer,
  type TrimmerOptions,
  type TrimRequest,
} from "../history/index.ts";
import { type FormatName, formatOfRequest, geminiSystemText } from "../messages/index.ts";
import {
  countNoun,
  type Fields,
  formatNumber,
  type JsonRange,
  memberOf,
  printable,
  valuesFrom,
} from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import { type Config, loadConfig, readTextFile } from "../workspace/index.ts";
import { chooseCounter, modelForCounter } from "./choose-counters.ts";
import type { Call, CommandResult } from "./command.ts";
import { type MessagesInput, type MessagesKey, parseJson, readMessagesInput } from "./messages-input.ts";
import type { Output } from "./output.ts";
import { type SavedDecisions, withDecisions, withFile } from "./saved-decisions.ts";
import { renderTable } from "./table.ts";
import { problemWithWindow, wholeNumber } from "./whole-number.ts";

/** Runs `trim`. Saves the decisions before it prints anything, so that a failure leaves stdout empty. */
export async function runTrim(call: Call<TrimFlags>): Promise<CommandResult> {
  const { values: config } = await loadConfig(call);
  const settings = readSettings(call, config);
  return withDecisions(call, (saved) => trimInput(call, { config, settings, saved }));
}

interface TrimPlan {
  readonly config: Config;
  readonly settings: TrimSettings;
  readonly saved: SavedDecisions | undefined;
}

async function trimInput(call: Call<TrimFlags>, { config, settings, saved }: TrimPlan): Promise<CommandResult> {
  const { options, output } = call;
  const input = await readMessagesInput(call.arguments[0], call);
  const request = await readRequestParts(input, call);
  const format = chooseFormat(call, input);
  const model = chooseModel(call, input);
  const counter = await counterFor(call, { config, model });
  const trimmer = await openTrimmer({ ...settings, format, model, counter }, saved);
  const reduction = reduce(trimmer, { request, input, call });
  const { key = "messages", source } = input;
  const report: TrimReport = {
    ...{ reduction, settings, counter: counter.name, format, key },
    ...{ messages: request.messages.length, file: source.file },
  };
  tellOverflow(report, output);
  await saved?.save(trimmer);
  // The user asked for these numbers, so --quiet does not hide them.
  if (options.stats) output.problem(renderStats(report));
  return {
    json: reportJson(report),
    get text() {
      return rewriteMessages({ ...input, messages: request.messages }, reduction.messages);
    },
  };
}

/** The options are checked already, so an error here is about the saved decisions. */
async function openTrimmer(options: TrimmerOptions, saved: SavedDecisions | undefined): Promise<Trimmer> {
  try {
    return await createTrimmer({ ...options, ...saved?.options });
  } catch (error) {
    throw saved === undefined ? error : withFile(error, saved.place);
  }
}

interface ReduceContext {
  readonly request: TrimRequest;
  readonly input: MessagesInput;
  readonly call: Pick<Call<TrimFlags>, "options" | "cwd">;
}

/** Adds the file and the path in it to errors about messages. */
function reduce(trimmer: Trimmer, { request, input, call: { options, cwd } }: ReduceContext): Reduction {
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

function tellOverflow(report: TrimReport, output: Output): void {
  const { reduction, settings } = report;
  if (reduction.overflow === undefined) return;
  if (!isRfc(settings.policy)) throw overflowError(reduction.overflow, report);
  output.problem(overflowWarning(reduction.overflow, report));
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

function reportJson({ reduction, settings, counter }: TrimReport): object {
  const { messages, metadata, overflow = null } = reduction;
  const { before, after, threshold, boundary, trimmed, epochs } = reduction.stats;
  const stats = { before, after, threshold, boundary, trimmed, epochs, overflow };
  return { messages, metadata, stats, counter, policy: settings.policy };
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
  const { contextWindow, reserve } = report.settings;
  const parts = [`--window ${contextWindow}`, `${formatNumber(reserve)} for the answer`, ...besidesOf(limit, report)];
  const allowed = `but at most ${formatNumber(limit)} fit (${parts.join(", ")})`;
  const message = `cannot be trimmed to fit: ${formatNumber(tokens)} tokens remain, ${allowed}${largestOf(largest, report)}`;
  const canLower = reserve > 0 && tokens <= limit + reserve;
  return new ContextError("context_overflow", message, {
    hint: `Shorten the largest messages, ${canLower ? "lower --reserve, " : ""}or use a model with a larger window.`,
    file: report.file,
  });
}

/** Describes what is sent besides the messages. If nothing is left for messages, it may be more. */
function besidesOf(limit: number, { settings }: TrimReport): string[] {
  const { contextWindow, reserve, prefixTokens } = settings;
  const tokens = contextWindow - reserve - limit;
  if (tokens <= 0) return [];
  const what = prefixTokens > 0 ? "the prefix, system text and tools" : "system text and tools";
  return [`${limit === 0 ? "at least " : ""}${formatNumber(tokens)} for ${what}`];
}

/** The warning of rfc policies, which do not promise to fit. */
function overflowWarning({ tokens, limit, largest }: Overflow, report: TrimReport): string {
  const sizes = `${formatNumber(tokens)} tokens ${rfcCount} are left, the threshold is ${formatNumber(limit)}`;
  return `${printable(report.file)}: still too large: ${sizes}${largestOf(largest, report)}`;
}

function largestOf(largest: Overflow["largest"], { key, counter, settings }: TrimReport): string {
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

// Parts of a request besides its messages.

/** Reads messages, system text and tools. Tools come from the request or from a file. */
async function readRequestParts(
  input: MessagesInput,
  { options, cwd }: Pick<Call<{ readonly tools?: string | undefined }>, "options" | "cwd">,
): Promise<TrimRequest> {
  const { request = {}, key } = input;
  const own = request.tools ?? undefined;
  if (options.tools !== undefined && own !== undefined) {
    throw usageError(
      "the request already has tools, and --tools names others",
      "Leave out --tools: the request's tools are counted.",
    );
  }
  const tools = options.tools === undefined ? own : await readTools(options.tools, cwd);
  return {
    messages: messagesOf(input),
    system: systemOf(request, key),
    tools: tools as TrimRequest["tools"],
    metadata: request.metadata as TrimRequest["metadata"],
  };
}

function systemOf(request: Fields, key: MessagesKey | undefined): unknown {
  if (key === "contents") return geminiSystemText(request.systemInstruction);
  return key === "input" ? request.instructions : request.system;
}

/** Returns the messages. In OpenAI's responses, a plain text is one message. */
function messagesOf({ messages, request, key, source: { file } }: MessagesInput): readonly object[] {
  if (messages !== undefined) return messages;
  const value = request?.[key!];
  if (key === "input" && typeof value === "string") return [{ role: "user", content: value }];
  throw new ContextError("invalid_message", `${key} must be an array, not ${nameOf(value)}`, { file });
}

function nameOf(value: unknown): string {
  if (value === null) return "null";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Reads a list of tools, or a request with one. The trimmer checks its content. */
async function readTools(name: string, cwd: string): Promise<unknown> {
  const path = resolve(cwd, name);
  const file = relative(cwd, path) || ".";
  const read = await readTextFile(path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  const value = parseJson(read.text.replace(/^\uFEFF/, ""), { file });
  const tools = Array.isArray(value) ? value : Object(value).tools;
  if (Array.isArray(tools)) return tools;
  throw new ContextError("unreadable_input", "holds no list of tools", {
    file,
    hint: "It should be a list of tool definitions, or a request with tools.",
  });
}

interface RewriteInput extends Pick<MessagesInput, "source" | "key"> {
  readonly messages: readonly object[];
}

/** Rewrites the source text with the trimmed messages. Copies unchanged messages and everything around them as
 *  written. */
export function rewriteMessages(input: RewriteInput, sent: readonly object[]): string {
  const { source, messages, key } = input;
  const { text } = source;
  const isSame = sent.length === messages.length && sent.every((message, index) => message === messages[index]);
  if (isSame) return text;
  if (source.isLines) return rewriteLines(input, sent);
  const list = key === undefined ? { start: text.indexOf("["), end: text.length } : memberOf(text, 0, key)!.value;
  // The messages were one plain text.
  if (text[list.start] !== "[") return replaceRange(text, list, JSON.stringify(sent));
  const ranges = valuesFrom(text, list.start + 1);
  const [first, last] = [ranges[0], ranges.at(-1)];
  if (first === undefined || last === undefined) return text;
  const style = styleOf(text, { ranges, list, depth: key === undefined ? 1 : 2 });
  const sources = new Map(messages.map((message, index) => [message, index]));
  const elements = sent.map((message, position) => {
    const index = sources.get(message);
    const written = index === undefined ? style.write(message) : textAt(text, ranges[index]!);
    if (position === 0) return written;
    return `${index === undefined || index === 0 ? style.separator : between(text, ranges, index)}${written}`;
  });
  return replaceRange(text, { start: first.start, end: last.end }, elements.join(""));
}

/** Rewrites JSON Lines. Keeps a first line about the transcript. */
function rewriteLines({ source: { text }, messages }: RewriteInput, sent: readonly object[]): string {
  const ranges = valuesFrom(text, 0);
  const about = ranges.slice(0, ranges.length - messages.length);
  const sources = new Map(messages.map((message, index) => [message, ranges[about.length + index]!]));
  const lines = sent.map((message) => {
    const range = sources.get(message);
    return range === undefined ? JSON.stringify(message) : textAt(text, range);
  });
  return [...about.map((range) => textAt(text, range)), ...lines].join("\n");
}

interface Style {
  readonly separator: string;
  write(message: object): string;
}

/** How to write a new message: over several lines only if others are. */
function styleOf(
  text: string,
  { ranges, list, depth }: { ranges: readonly JsonRange[]; list: JsonRange; depth: number },
): Style {
  const lead = text.slice(list.start + 1, ranges[0]!.start);
  const separator = ranges.length > 1 ? between(text, ranges, 1) : `,${lead}`;
  if (!lead.includes("\n") || !ranges.some((range) => textAt(text, range).includes("\n"))) {
    return { separator, write: (message) => JSON.stringify(message) };
  }
  const indentation = lead.slice(lead.lastIndexOf("\n") + 1);
  const unit = indentation.slice(0, indentation.length / depth) || "  ";
  return {
    separator,
    write: (message) => JSON.stringify(message, null, unit).replaceAll("\n", `\n${indentation}`),
  };
}

function between(text: string, ranges: readonly JsonRange[], index: number): string {
  return text.slice(ranges[index - 1]!.end, ranges[index]!.start);
}

function textAt(text: string, { start, end }: JsonRange): string {
  return text.slice(start, end);
}

function replaceRange(text: string, { start, end }: JsonRange, replacement: string): string {
  return `${text.slice(0, start)}${replacement}${text.slice(end)}`;
}

/** Settings of a trimmer, from the command line and the configuration. */
interface TrimSettings {
  readonly contextWindow: number;
  readonly policy: PolicyName;
  readonly reserve: number;
  readonly prefixTokens: number;
  readonly keep: number;
  /** Only for rfc policies. */
  readonly threshold: number | undefined;
}

interface TrimFlags {
  readonly window?: string | undefined;
  readonly reserve?: string | undefined;
  readonly "prefix-tokens"?: string | undefined;
  readonly format?: string | undefined;
  readonly policy?: string | undefined;
  readonly keep?: string | undefined;
  readonly threshold?: string | undefined;
  readonly tools?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
  readonly checkpoint?: string | undefined;
  readonly session?: string | undefined;
  readonly store?: string | undefined;
  readonly stats?: boolean | undefined;
}

type TrimCall = Call<TrimFlags>;

/** Reads settings. Throws on wrong usage before any file is read. */
function readSettings({ options }: Pick<TrimCall, "options">, { history }: Config): TrimSettings {
  if (options.window === undefined) {
    throw usageError("--window is missing", "Name the model's limit in tokens, such as --window 200000.");
  }
  const whole = (name: "reserve" | "prefix-tokens" | "keep"): number | undefined => {
    const value = options[name];
    return value === undefined ? undefined : wholeNumber(value, name, 0);
  };
  const policy = choosePolicy(options.policy, history.policy);
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

/** Chooses the policy. The configuration may say `none`, which other commands support. */
function choosePolicy(asked: string | undefined, configured: string): PolicyName {
  const policy = policyNames.find((name) => name === (asked ?? configured));
  if (policy !== undefined) return policy;
  throw usageError(
    `the configuration's history.policy is ${configured}, which trims nothing`,
    `Choose one with --policy: ${policyNames.join(", ")}.`,
  );
}

/** The configured threshold applies only to policies that have one. */
function chooseThreshold(value: string | undefined, policy: PolicyName, configured: number): number | undefined {
  if (value !== undefined) return readThreshold(value, policy);
  return isRfc(policy) ? configured : undefined;
}

function readThreshold(value: string, policy: PolicyName): number {
  if (!isRfc(policy)) {
    throw usageError(`--threshold has no meaning for the policy ${policy}`, "It belongs to rfc and rfc-headroom.");
  }
  const share = /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (share <= 1) return share;
  throw usageError(`--threshold is "${value}"`, "Use a share of the budget from 0 to 1, such as 0.8.");
}

/** Returns the format of --format, or the detected one. */
function chooseFormat({ options }: Pick<TrimCall, "options">, input: MessagesInput): FormatName {
  const { format } = options;
  if (format !== undefined && format !== "auto") return format as FormatName;
  return formatOfRequest(input.request ?? input.messages ?? []);
}

/** Returns the model of --model, or that of the request. */
function chooseModel({ options }: Pick<TrimCall, "options">, input: MessagesInput): string | undefined {
  const own = input.request?.model;
  return options.model ?? (typeof own === "string" && own !== "" ? own : undefined);
}

/** Chooses `--counter`, or else the counter of `--model`, or else of the configuration, or else of the request's
 *  model. */
function counterFor(
  call: TrimCall,
  { config, model }: { readonly config: Config; readonly model: string | undefined },
): Promise<Counter> {
  const named = call.options.counter ?? (call.options.model === undefined ? config.counter : undefined);
  const counter = named ?? "auto";
  const options = { counter, model: modelForCounter({ counter, model }) };
  return chooseCounter({ ...call, options }, "auto");
}
