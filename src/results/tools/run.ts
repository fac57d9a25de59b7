/** Phrases for warnings and for summaries in the work log. */

import { type CutText, cutText, printable, type SecretTest, shorten } from "../../core/text/index.ts";
import type { Environment } from "../../host/index.ts";
import type { ToolCall, ToolFailure } from "../session/index.ts";

/** Puts a text on one line, without characters that control a terminal. */
export function shortenLine(text: string, maxCharacters: number): string {
  return printable(shorten(text, maxCharacters));
}

/** Counts how often each name occurs. Sorts by count, then by name. */
export function countNames(names: Iterable<string>): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1));
}

/** `store.ts (9), main.ts (5), +10 more`. */
export function listCounts(counts: readonly (readonly [string, number])[], most: number): string {
  return listNames(
    counts.map(([name, count]) => `${shortenLine(name, 40)} (${count})`),
    most,
  );
}

/** `a.ts, b.ts, +2 more`. `total` is given if more exist than are named. */
export function listNames(names: readonly string[], most: number, total: number = names.length): string {
  const first = names.slice(0, most);
  const rest = Math.max(total, names.length) - first.length;
  return [...first, ...(rest > 0 ? [`+${rest} more`] : [])].join(", ");
}

/** A cut text with the number of missing characters: `text… [12 more characters]`. */
export function addCutNote({ text, omitted }: CutText): string {
  return omitted === 0 ? text : `${text}… [${omitted} more characters]`;
}

/** `512B`, `14.6KB`, `45KB`, `1MB`. */
export function formatSize(bytes: number): string {
  const [divisor, unit] = bytes < 1024 ? [1, "B"] : bytes < 1024 ** 2 ? [1024, "KB"] : [1024 ** 2, "MB"];
  return `${Number((bytes / divisor).toFixed(1))}${unit}`;
}

/** Returns a path for a line of text. A path with a line break is quoted, so that it cannot look like other lines. */
export function linePath(path: string): string {
  return /[\n\r]/.test(path) ? JSON.stringify(path) : path;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Returns the complete items of a delivered page, which have these texts. A page can have a part of an item that is too
 *  large. */
export function readWholeItems<Item>(items: unknown, ...texts: readonly (keyof Item)[]): Item[] {
  if (!Array.isArray(items)) return [];
  return items.filter((item) => texts.every((name) => typeof Object(item)[name] === "string"));
}

/** `500 of 2847 files`, or `12 files` if that is all. */
export function describeCount(
  data: Readonly<Record<string, unknown>>,
  noun: readonly [one: string, many: string],
): string {
  const { returned = 0, total = returned } = data;
  const counted = formatCount(Number(total), noun);
  return total === returned ? counted : `${returned} of ${counted}`;
}

/** `1 file`, `2 files`. */
export function formatCount(count: number, [one, many]: readonly [one: string, many: string]): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Where a tool works: it reads below `root` only. */
export interface ToolPlace {
  readonly root: string;
  readonly env: Environment;
  /** Whether a file's contents are hidden. Default: files that usually have secrets. */
  readonly isSecret?: SecretTest | undefined;
}

/** One call of a tool. */
export interface Run extends ToolPlace {
  /** Aborts if the caller cancels and when time is up. Every process and walk of this call ends with it. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Whether time is up. What was found so far is still a result. */
  timedOut(): boolean;
  /** Ends the call and its timer. */
  finish(): void;
}

export function startRun(place: ToolPlace, call: ToolCall): Run {
  // Clients wait at least a minute for a tool. A model that waits longer learns nothing.
  const timeoutMs = call.timeoutMs ?? 10_000;
  const controller = new AbortController();
  const stop = () => controller.abort();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stop();
  }, timeoutMs);
  const finish = () => {
    clearTimeout(timer);
    call.signal.removeEventListener("abort", stop);
  };
  timer.unref();
  // Not AbortSignal.any: on Node 20 a long-lived signal keeps everything derived from it in memory.
  call.signal.addEventListener("abort", stop, { once: true });
  if (call.signal.aborted) stop();
  controller.signal.addEventListener("abort", finish, { once: true });
  return { ...place, signal: controller.signal, timeoutMs, timedOut: () => late, finish };
}

/** Says that time was up, if it was. `what` names the unfinished work, such as "the list of files". */
export function listLate({ timeoutMs, timedOut }: Run, what: string): string[] {
  if (!timedOut()) return [];
  return [`Stopped after ${timeoutMs / 1000} s: ${what} is incomplete. Name a smaller path or a narrower pattern.`];
}

/** Returns a failure as data. The model reads it and can ask again in another way. */
export function failure(code: FailureCode, message: string, hint?: string): ToolFailure {
  return hint === undefined ? { code, message } : { code, message, hint };
}

/** Codes that a model may have to distinguish. */
type FailureCode =
  | "invalid_argument"
  | "invalid_pattern"
  | "outside_root"
  | "refused_path"
  | "denied"
  | "not_found"
  | "unreadable"
  | "not_a_repository"
  | "refused_repository"
  | "unknown_revision"
  | "git_failed"
  | "search_failed"
  | "timed_out"
  | "cancelled";

/** Quotes what a model sent, shortened for a message. */
export function quoteArgument(given: string): string {
  const { text, omitted } = cutText(given, 200);
  return JSON.stringify(omitted > 0 ? `${text}…` : text);
}
