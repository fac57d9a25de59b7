/** Fields that differ between two runs of the same program, although nothing happened that matters: durations, times, ids
 *  and counters. Two lines that differ in nothing else are alike. Any other number counts as text, such as the
 *  number of tests or a port. A number is a changing field only if its line says so: otherwise it may be a setting, a
 *  measurement, or the name of a content. */
import { passing, withoutColours } from "./result-lines.ts";

export type FieldKind = "times" | "durations" | "ids" | "counters" | "colours";

const clock = String.raw`\d{1,2}:[0-5]\d(?::[0-5]\d)?(?:[.,]\d{1,9})?`;
const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const time = String.raw`(?:\d{4}[-/]\d\d[-/]\d\d[T ]${clock}|\d{1,2}:[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?)(?: ?Z\b| ?[+-]\d\d:?\d\d\b)?`;
/** At the beginning of a line, after the name of a service or a level, or in brackets. */
const beforeTime = String.raw`(?<=^(?:[\w.-]{1,40} +\| )?\[?(?:[A-Z]{3,8}[\]:]? +)?[[(]?|\[)`;
const timeKey = String.raw`(?<=\b(?:time|ts|timestamp)["']?[:=] ?["']?)`;
const value = String.raw`\d+(?:[.,]\d+)?`;
const duration = String.raw`(?:\d+h ?)?(?:\d+m ?)?${value} ?(?:[nµμu]s|ms|s|secs?|seconds?|mins?|minutes?)(?!\w)`;
const hex = "[\\da-fA-F]";
const uuid = `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}\\b`;
/** Things that each run has its own of. A user or a role is no such thing. */
const runs = "(?:request|req|trace|span|session|correlation|connection|conn|invocation|event|run|job)";

/** A date alone is no time: it may be what the line is about. The same holds for a hash, a status such as 0x80070005, and
 *  a position such as 12:40. */
const patterns: Readonly<Record<Exclude<FieldKind, "colours">, readonly string[]>> = {
  times: [
    `${beforeTime}${time}`,
    `${timeKey}${time}`,
    String.raw`(?<=\[)\d\d/${month}/\d{4}:${clock}(?: [+-]\d{4}\b)?`,
    String.raw`(?<=^(?:[A-Z][a-z]{2} )?${month}  ?)\d{1,2} ${clock}`,
    // Seconds and milliseconds since 1970.
    String.raw`${timeKey}1[6-9]\d{8}(?:\d{3}|\.\d{1,9})?(?![\w.-])`,
  ],
  durations: [
    String.raw`(?<=[([] {0,6})${duration}(?= ?[)\]])`,
    String.raw`(?<=\b(?:[Tt]ook|[Ee]lapsed|[Ii]n|[Dd]uration)["']?[ :=]{1,3})${duration}`,
    String.raw`(?<=\b(?:Passed|DONE) {1,8})${duration}$`,
    String.raw`(?<=\b(?:duration|elapsed)_?(?:ms|s|secs|seconds)["']?[ :=]{1,3})${value}(?![\w.])`,
  ],
  ids: [
    String.raw`(?<=\b${runs}(?:[_-]?[iI][dD])?["']?[ =:#/-] ?["']?)(?:${uuid}|${hex}{16,32}\b)`,
    String.raw`(?<=(?:(?:\b|_)${runs}(?:[_-]?id|[_-]?ID|Id)|\bpid|\bPID)["']?[=:] ?["']?)[\da-fA-F-]{2,40}(?![\w-])`,
    `(?<=(?:\\bat |@))0x${hex}{6,16}\\b`,
  ],
  counters: [
    String.raw`(?<=^\s*ok )\d+(?= - )`,
    String.raw`(?<=\b(?:[Tt]est|[Ww]orker|[Tt]hread) ?#)\d+\b`,
    // The process in a line of a system's log.
    String.raw`(?<=^.{0,24}:[0-5]\d:[0-5]\d\S* \S{1,60} [\w./()-]{1,40}\[)\d+(?=\]:)`,
    String.raw`(?<=^\[ ?)\d+ ?/ ?\d+(?= ?\](?! *(?:\w+ ){0,2}(?:tests?|suites?|checks?|pass|fail)))`,
    String.raw`(?<=\b(?:seq|connection|conn|thread|worker|job|tick)[ #-])\d+\b`,
  ],
};

const [field, ...fieldsByKind] = [Object.values(patterns).flat(), ...Object.values(patterns)].map(
  (all) => new RegExp(all.map((pattern) => `(?:${pattern})`).join("|"), "y"),
);
const kinds: readonly FieldKind[] = ["times", "durations", "ids", "counters", "colours"];
/** A line with such words is about its durations. */
const measuring =
  /\b(?:expir\w*|time-?outs?|ttl|retr(?:y|ies)|limit\w*|interval|every|within|after|until|valid|deadline|budget|delay|lifetime|threshold|max\w*|min\w*|mean|median|avg|average|p\d\d|ops|bench\w*|latency|throughput|faster|slower|lock\w*|grace|schedul\w*|due|ago|older|age)\b|±|\/(?:op|sec|iter)\b/i;
/** The duration that test runners write after the name of a test. They leave out the shortest ones, with the brackets. */
const ending = new RegExp(String.raw`[ \t](?:\(${duration}\)|${duration})$`);
const ticked = /^\s*[✓✔√] /;
/** Longer lines are data, and are not searched for words of a failure either. */
const maxLine = 400;

/** Returns the line with the kind of each changing field in its place, and without colours. Lines that are alike have the
 *  same shape. `note` is called with each kind. */
export function readShape(line: string, note?: (kind: FieldKind) => void): string {
  if (line.length > maxLine) return line;
  const uncoloured = withoutColours(line);
  let shape = "";
  const add = (text: string, kind: FieldKind): void => {
    note?.(kind);
    // No line has a line feed, so no line can look like a shape.
    shape += `${text}\n${kind}\n`;
  };
  if (uncoloured !== line) add("", "colours");
  const isPassed = passing.test(uncoloured);
  const plain = isPassed ? uncoloured.replace(ending, "") : uncoloured;
  let done = 0;
  for (const { start, end, kind } of findFields(plain, isPassed)) {
    add(plain.slice(done, start), kind);
    done = end;
  }
  const rest = plain.slice(done);
  if (isPassed && (plain !== uncoloured || ticked.test(plain))) add(rest, "durations");
  else shape += rest;
  return shape;
}

interface Field {
  readonly start: number;
  readonly end: number;
  readonly kind: FieldKind;
}

function findFields(plain: string, isPassed: boolean): Field[] {
  const found: Field[] = [];
  let done = 0;
  // Trying the pattern at every character would take as long as the rest of an intake.
  for (let at = 0; at < plain.length; at++) {
    if (!isDigit(plain.charCodeAt(at))) continue;
    let start = at;
    while (start > done && isWord(plain.charCodeAt(start - 1))) start--;
    field!.lastIndex = start;
    const end = field!.test(plain) ? field!.lastIndex : 0;
    const kind = end === 0 ? "durations" : findKind(plain, start);
    if (end > 0 && (kind !== "durations" || isPassed || !measuring.test(plain))) {
      found.push({ start, end, kind });
      done = end;
      at = done - 1;
    } else at = endOfNumber(plain, at);
  }
  return found;
}

function findKind(plain: string, at: number): FieldKind {
  const index = fieldsByKind.findIndex((pattern) => {
    pattern.lastIndex = at;
    return pattern.test(plain);
  });
  return kinds[index] ?? "counters";
}

/** Returns the kinds of fields in which lines like these may differ. */
export function listFieldKinds(lines: readonly string[]): FieldKind[] {
  const found = new Set<FieldKind>();
  for (const line of lines) readShape(line, (kind) => found.add(kind));
  return kinds.filter((kind) => found.has(kind));
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isWord(code: number): boolean {
  return isDigit(code) || ((code | 32) >= 97 && (code | 32) <= 122) || code === 95;
}

/** The index of the last character of a number that is no field, such as a version or a position. */
function endOfNumber(text: string, at: number): number {
  let end = at;
  while (/[\w.:]/.test(text.charAt(end + 1))) end++;
  return end;
}
