import type { LogEntry } from "../../session/index.ts";
import { printable } from "../../text/index.ts";

/** An entry of the work log for people: what was called, and below it what came out. Both hold text of the model and of files. */
export function entryLines({ id, tool, args, time, result }: Omit<LogEntry, "tokens">): string[] {
  const indent = " ".repeat(id.length + 4);
  return [
    `  ${id}  ${shownTime(time)}  ${printable(`${tool} ${args}`)}`,
    ...(result === "" ? [] : [`${indent}${printable(result)}`]),
  ];
}

/** ISO 8601, to the second. */
export function shownTime(time: string): string {
  return printable(time.replace(/\.\d+Z$/, "Z"));
}
