import { ContextError } from "../../errors.ts";
import type { Overflow, Reduction } from "../../history/index.ts";
import { countNoun, formatNumber, printable } from "../../text/index.ts";
import type { MessagesKey } from "../messages-input.ts";
import { renderTable } from "../table.ts";
import { isRfc, type TrimSettings } from "./settings.ts";

export interface TrimReport {
  readonly reduction: Reduction;
  readonly settings: TrimSettings;
  readonly counter: string;
  readonly format: string;
  /** How many messages came in. */
  readonly messages: number;
  readonly key: MessagesKey;
  readonly file: string;
}

export function reportJson({ reduction, settings, counter }: TrimReport): object {
  const { messages, metadata, overflow = null } = reduction;
  const { before, after, threshold, boundary, trimmed, epochs } = reduction.stats;
  const stats = { before, after, threshold, boundary, trimmed, epochs, overflow };
  return { messages, metadata, stats, counter, policy: settings.policy };
}

/** A line about the input, then a number a line. */
export function renderStats({ reduction, settings, counter, format, messages }: TrimReport): string {
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

/** The RFC has an estimator of its own, whatever the counter says. */
const rfcCount = "by the RFC's own count";

/** Where the window is a promise, what breaks it is an error. */
export function overflowError({ tokens, limit, largest }: Overflow, report: TrimReport): ContextError {
  const { contextWindow, reserve } = report.settings;
  const parts = [
    `--window ${contextWindow}`,
    `${formatNumber(reserve)} for the answer`,
    ...besidesOf(limit, report),
  ];
  const allowed = `${formatNumber(limit)} may be sent (${parts.join(", ")})`;
  const message = `cannot be trimmed to fit: ${formatNumber(tokens)} tokens are left, ${allowed}${largestOf(largest, report)}`;
  const canLower = reserve > 0 && tokens <= limit + reserve;
  return new ContextError("context_overflow", message, {
    hint: `Shorten what is largest, ${canLower ? "lower --reserve, " : ""}or use a model with a larger window.`,
    file: report.file,
  });
}

/** What is sent beside the messages; where nothing is left for those it may be more. */
function besidesOf(limit: number, { settings }: TrimReport): string[] {
  const { contextWindow, reserve, prefixTokens } = settings;
  const tokens = contextWindow - reserve - limit;
  if (tokens <= 0) return [];
  const what = prefixTokens > 0 ? "the prefix, system text and tools" : "system text and tools";
  return [`${limit === 0 ? "at least " : ""}${formatNumber(tokens)} for ${what}`];
}

/** The rfc policies promise no window: they tell. */
export function overflowWarning({ tokens, limit, largest }: Overflow, report: TrimReport): string {
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

/** The path as the request has it. */
export function inRequest(path: string, key: MessagesKey): string {
  return key === "input" ? path.replace(/^messages\b/, "input").replace(/^system\b/, "instructions") : path;
}
