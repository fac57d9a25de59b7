/** Entries of the work log: one step of a session in one line, without secrets. */
import { isSecretName, messageOf, shorten } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { ToolArguments } from "./budgeted-tool.ts";
import { type Envelope, frameNames, type PageData, plainItem } from "./envelope.ts";
import { redactSecrets } from "./redact-secrets.ts";

/** One compressed step of a session. Its rendered text has at most 500 characters. */
export interface LogEntry {
  readonly id: string;
  readonly tool: string;
  /** Shortened JSON. */
  readonly args: string;
  /** ISO 8601. */
  readonly time: string;
  readonly result: string;
  /** What the caller added, such as the state of a task list. */
  readonly note?: string | undefined;
  /** The tokens of the entry's text. */
  readonly tokens: number;
}

interface LoggedStep {
  readonly id: string;
  readonly tool: string;
  readonly args: ToolArguments;
  readonly time: Date;
  readonly envelope: Envelope;
  readonly note?: string | undefined;
  /** The call that returned the result. It differs from `tool` and `args` for a later page. */
  readonly origin: { readonly tool: string; readonly args: ToolArguments };
  readonly compressor: Compressor | undefined;
}

export function createLogEntry(step: LoggedStep, counter: Counter): LogEntry {
  const entry = {
    id: step.id,
    tool: shorten(step.tool, 64),
    args: shorten(JSON.stringify(hideSecrets(JSON.parse(plainItem(step.args).json))), 120),
    time: step.time.toISOString(),
    result: "",
    tokens: 0,
    ...(step.note === undefined ? {} : { note: shorten(redactSecrets(step.note), 160) }),
  };
  const maxCharacters = 500;
  const room = maxCharacters - renderEntry(entry).length;
  const full = { ...entry, result: shorten(summarize(step, room), room) };
  return { ...full, tokens: counter.count(renderEntry(full)) };
}

function summarize({ envelope, origin, compressor }: LoggedStep, maxCharacters: number): string {
  if (envelope.status === "error") {
    return `Failed (${envelope.error.code}): ${redactSecrets(envelope.error.message)}`;
  }
  // A call that names a file that usually has secrets. Its result is not logged.
  const namesSecret = Object.entries(origin.args).some(
    ([name, value]) =>
      /path|file|uri|source|destination/i.test(name) &&
      [value].flat().some((each) => typeof each === "string" && isSecretName(each)),
  );
  if (namesSecret) return "[redacted]";
  const data = hideSecrets(envelope.data) as PageData;
  // A tool's own compressor cannot summarize a part of an item.
  const own = data.cut !== undefined && (data.cut.from > 0 || data.cut.at === undefined) ? undefined : compressor;
  return compressResult(own ?? genericCompressor, { ...origin, data }, maxCharacters);
}

/** Summarizes results of tools without their own compressor: the number of items, then the beginning of their text. */
export const genericCompressor: Compressor = ({ data }) => {
  const lists = Object.entries(data).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  // The last list whose length is `returned`. A field can be a list too.
  const isItems = ([name, list]: [string, unknown[]]) => !frameNames.has(name) && list.length === data.returned;
  const [name, items] = lists.findLast(isItems) ?? ["items", []];
  if (items.length === 0) {
    const own = Object.entries(data).filter(([field]) => !frameNames.has(field));
    // Without the names of the fields that were left out, a result with large fields would look empty.
    const { fields } = Object(data.left_out) as { readonly fields?: unknown };
    const omitted = Array.isArray(fields) ? `, left out: ${fields.join(", ")}` : "";
    return JSON.stringify(Object.fromEntries(own)) + omitted;
  }
  const { total, returned, truncated } = data;
  const count = truncated === true ? `${returned} of ${total ?? "more"} ${name}: ` : "";
  let text = "";
  for (const item of items) {
    // More characters than an entry can hold. Longer texts are not joined, because they would be cut anyway.
    if (text.length > 1_000) break;
    text += `${typeof item === "string" ? item : JSON.stringify(item)}\n`;
  }
  return count + text;
};

/** Summarizes a delivered result for the work log in one line, ideally of 200 to 300 characters. A longer line is cut.
 *  If the compressor throws, a generic summary is used. */
export type Compressor = (input: CompressInput) => string;

/** A delivered result and the call that returned it. */
export interface CompressInput {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The `data` of the delivered envelope: fields, items, `total`, `returned`, `offset`, `truncated`. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Returns one line of at most `maxCharacters`. If the compressor fails, the line says so and has the generic
 *  summary. */
export function compressResult(compressor: Compressor, input: CompressInput, maxCharacters: number): string {
  let reason: string;
  try {
    const text: unknown = compressor(input);
    if (typeof text === "string" && text.trim() !== "") return shorten(text, maxCharacters);
    reason = typeof text === "string" ? "it returned nothing" : `it returned ${typeof text}`;
  } catch (error) {
    reason = messageOf(error);
  }
  let summary: string;
  try {
    summary = genericCompressor(input);
  } catch {
    summary = "The result cannot be shown.";
  }
  return shorten(`[no summary by ${shorten(input.tool, 40)}: ${shorten(reason, 80)}] ${summary}`, maxCharacters);
}

/** Returns the value, or a copy in which texts that look like secrets are redacted. The log is kept, and other people
 *  may read it. `value` must be plain data. */
function hideSecrets(value: unknown): unknown {
  const texts: string[] = [];
  gatherTexts(value, texts);
  // There are hardly ever any, and searching one long text is much faster than searching many short ones.
  const text = texts.join("\n");
  return redactSecrets(text) === text ? value : redactTexts(value);
}

/** Tools return nothing deeper. What is deeper is not logged. */
const maxDepth = 50;

function gatherTexts(value: unknown, texts: string[], depth = 0): void {
  if (typeof value === "string") texts.push(value);
  if (typeof value !== "object" || value === null) return;
  // Triggers the redaction below, which cuts what is this deep.
  if (depth > maxDepth) texts.push("PASSWORD=too-deep");
  else {
    const isList = Array.isArray(value);
    for (const [name, each] of Object.entries(value)) {
      if (typeof each === "string") texts.push(isList ? each : renderField(name, each));
      else gatherTexts(each, texts, depth + 1);
    }
  }
}

/** A field's name can show that its value is a secret. */
function renderField(name: string, text: string): string {
  return `${name}: "${text}`;
}

/** Redacts a list of texts as the lines of one text, because a private key has many lines. */
function redactTexts(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) return "[redacted]";
  if (Array.isArray(value)) {
    const areLines = value.length > 0 && value.every((each) => typeof each === "string" && !each.includes("\n"));
    return areLines ? redactSecrets(value.join("\n")).split("\n") : value.map((each) => redactTexts(each, depth + 1));
  }
  const entries = Object.entries(value).map(([name, each]) => {
    if (typeof each !== "string") return [name, redactTexts(each, depth + 1)] as const;
    const hidden = redactSecrets(renderField(name, each));
    const start = renderField(name, "");
    return [name, hidden.startsWith(start) ? hidden.slice(start.length) : redactSecrets(each)] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns the entry as a model reads it. */
export function renderEntry({ id, tool, args, time, result, note }: LogEntry): string {
  return `${id} ${time} ${tool} ${args}: ${result}${note === undefined ? "" : ` Note: ${note}`}`;
}
