import { isSecretName, redactSecrets, shorten } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { plainItem } from "../plain-item.ts";
import type { ToolArguments } from "../tool/budgeted-tool.ts";

/** One step of a session, compressed. Its text, with all that stands in it, is at most `mostCharacters` long. */
export interface LogEntry {
  readonly id: string;
  readonly tool: string;
  /** JSON, shortened. */
  readonly args: string;
  /** ISO 8601. */
  readonly time: string;
  readonly result: string;
  /** Of the entry's text. */
  readonly tokens: number;
}

export interface Step {
  readonly id: string;
  readonly tool: string;
  readonly args: ToolArguments;
  readonly time: Date;
  /** What came out, in at most that many characters. */
  compress(maxCharacters: number): string;
}

const mostCharacters = 500;
const mostToolCharacters = 64;
const mostArgsCharacters = 120;

export function createLogEntry(step: Step, counter: Counter): LogEntry {
  const entry = {
    id: step.id,
    tool: shorten(step.tool, mostToolCharacters),
    args: shorten(JSON.stringify(withoutSecrets(JSON.parse(plainItem(step.args).json))), mostArgsCharacters),
    time: step.time.toISOString(),
    result: "",
    tokens: 0,
  };
  const room = mostCharacters - renderEntry(entry).length;
  const full = { ...entry, result: shorten(step.compress(room), room) };
  return { ...full, tokens: counter.count(renderEntry(full)) };
}

/** The same value, or a copy in which texts that look like secrets are redacted: the log is kept, and others than whoever asked read it.
 *  `value` is plain data. */
export function withoutSecrets(value: unknown): unknown {
  const texts: string[] = [];
  gatherTexts(value, texts);
  // Nearly always there are none, and one long text is looked through much faster than many short ones.
  const text = texts.join("\n");
  return redactSecrets(text) === text ? value : redactTexts(value);
}

/** No tool nests its data deeper; what lies below is not logged. */
const mostDepth = 50;

function gatherTexts(value: unknown, texts: string[], depth = 0): void {
  if (typeof value === "string") texts.push(value);
  if (typeof value !== "object" || value === null) return;
  // Makes the texts differ, so that what is this deep is cut.
  if (depth > mostDepth) texts.push("PASSWORD=too-deep");
  else {
    const isList = Array.isArray(value);
    for (const [name, each] of Object.entries(value)) {
      if (typeof each === "string") texts.push(isList ? each : named(name, each));
      else gatherTexts(each, texts, depth + 1);
    }
  }
}

/** The name of a field may be what tells that its value is a secret. */
function named(name: string, text: string): string {
  return `${name}: "${text}`;
}

/** Lists of texts are read as lines of one text: a key has many. */
function redactTexts(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return redactSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > mostDepth) return "[redacted]";
  if (Array.isArray(value)) {
    const areLines =
      value.length > 0 && value.every((each) => typeof each === "string" && !each.includes("\n"));
    return areLines
      ? redactSecrets(value.join("\n")).split("\n")
      : value.map((each) => redactTexts(each, depth + 1));
  }
  const entries = Object.entries(value).map(([name, each]) => {
    if (typeof each !== "string") return [name, redactTexts(each, depth + 1)] as const;
    const hidden = redactSecrets(named(name, each));
    const start = named(name, "");
    return [name, hidden.startsWith(start) ? hidden.slice(start.length) : redactSecrets(each)] as const;
  });
  return Object.fromEntries(entries);
}

/** Whether a call names a file that usually holds secrets: then nothing of what came out is logged. */
export function namesSecret(args: ToolArguments): boolean {
  return Object.entries(args).some(
    ([name, value]) => /path|file|uri|source|destination/i.test(name) && [value].flat().some(isNamedSecret),
  );
}

function isNamedSecret(value: unknown): boolean {
  return typeof value === "string" && isSecretName(value);
}

/** The entry as a model reads it. */
export function renderEntry({ id, tool, args, time, result }: LogEntry): string {
  return `${id} ${time} ${tool} ${args}: ${result}`;
}
