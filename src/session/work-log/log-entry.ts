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

/** A copy in which texts that look like secrets are redacted: the log is kept, and read by others than whoever asked. Lists of texts are
 *  read as lines of one: a key has many. */
export function withoutSecrets(value: unknown): unknown {
  if (typeof value === "string") return redactSecrets(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    if (!value.every((each) => typeof each === "string" && !each.includes("\n")))
      return value.map(withoutSecrets);
    return value.length === 0 ? value : redactSecrets(value.join("\n")).split("\n");
  }
  const entries = Object.entries(value).map(([name, each]) => [name, withoutNamed(name, each)] as const);
  return Object.fromEntries(entries);
}

/** The name of a field may be what tells that its value is one. */
function withoutNamed(name: string, value: unknown): unknown {
  if (typeof value !== "string") return withoutSecrets(value);
  const prefix = `${name}: "`;
  const hidden = redactSecrets(`${prefix}${value}`);
  return hidden.startsWith(prefix) ? hidden.slice(prefix.length) : redactSecrets(value);
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
