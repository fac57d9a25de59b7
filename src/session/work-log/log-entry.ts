import { shorten } from "../../text/index.ts";
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
    args: shorten(plainItem(step.args).json, mostArgsCharacters),
    time: step.time.toISOString(),
    result: "",
    tokens: 0,
  };
  const room = mostCharacters - renderEntry(entry).length;
  const full = { ...entry, result: shorten(step.compress(room), room) };
  return { ...full, tokens: counter.count(renderEntry(full)) };
}

/** The entry as a model reads it. */
export function renderEntry({ id, tool, args, time, result }: LogEntry): string {
  return `${id} ${time} ${tool} ${args}: ${result}`;
}
