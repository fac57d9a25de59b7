/** Fields that differ between two runs of the same program, although nothing happened that matters: durations, times, ids
 *  and counters. Two lines that differ in nothing else are alike. Any other number counts as text: a line that says how
 *  many tests ran, or a port, is a new line if the number is another one. */
import { withoutColours } from "./result-lines.ts";

export type FieldKind = "times" | "durations" | "ids" | "counters" | "colours";

const clock = String.raw`\d{1,2}:[0-5]\d(?::[0-5]\d)?(?:[.,]\d{1,9})?`;
const month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const value = String.raw`\d+(?:[.,]\d+)?`;
const hex = "[\\da-fA-F]";

/** A date alone is no time: it may be what the line is about. The same holds for a hash of 40 or 64 digits, and for a
 *  position such as 12:40. */
const patterns: Readonly<Record<Exclude<FieldKind, "colours">, readonly string[]>> = {
  times: [
    String.raw`(?<![\w:.])\d{4}[-/]\d\d[-/]\d\d[T ]${clock}(?: ?Z\b| ?[+-]\d\d:?\d\d\b)?`,
    String.raw`\d\d/${month}/\d{4}:${clock}(?: [+-]\d{4}\b)?`,
    String.raw`(?<=\b${month}  ?)\d{1,2} ${clock}`,
    String.raw`(?<![\w:.])\d{1,2}:(?:[0-5]\d:[0-5]\d(?:[.,]\d{1,9})?|[0-5]\d[.,]\d{1,9})(?![\w:])`,
    // Seconds and milliseconds since 1970.
    String.raw`(?<![\w.-])1[6-9]\d{8}(?:\d{3}|\.\d{1,9})?(?![\w.-])`,
  ],
  durations: [
    String.raw`(?<![\w.])(?:\d+h ?)?(?:\d+m ?)?${value} ?(?:[nµμu]s|ms|s|secs?|seconds?|mins?|minutes?)(?!\w)`,
    String.raw`(?<=\b(?:duration|elapsed|took|latency)(?:_?(?:ms|s|secs|seconds))?["']?[ :=]{1,3})${value}(?![\w.])`,
  ],
  ids: [
    `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}\\b`,
    `0x${hex}{4,16}\\b`,
    `(?!${hex}{40}\\b|${hex}{64}\\b)${hex}{16,}\\b`,
    String.raw`(?<=(?:\b|_)(?:id|ID|trace|span|pid)["']?[=:] ?["']?)[\w-]{2,40}(?![\w-])`,
  ],
  counters: [
    String.raw`(?<=^\s*ok )\d+\b`,
    String.raw`(?<=[\w\])] ?#)\d+\b`,
    String.raw`(?<=\[ ?)\d+(?: ?/ ?\d+)?(?= ?\])`,
    String.raw`(?<=\b(?:seq|req|request|conn|connection|thread|worker|job|task|tick)[ =:#-])\d+\b`,
  ],
};

const [field, ...fieldsByKind] = [Object.values(patterns).flat(), ...Object.values(patterns)].map(
  (all) => new RegExp(all.map((pattern) => `(?:${pattern})`).join("|"), "y"),
);
const kinds: readonly FieldKind[] = ["times", "durations", "ids", "counters", "colours"];
/** Longer lines are data. */
const maxLine = 1_000;

/** Returns the line without its changing fields and colours. Lines that are alike have the same shape. `note` is called
 *  with the place of each field. */
export function readShape(line: string, note?: (plain: string, at: number) => void): string {
  if (line.length > maxLine) return line;
  const plain = withoutColours(line);
  let shape = "";
  let done = 0;
  // Trying the pattern at every character would take as long as the rest of an intake.
  for (let at = 0; at < plain.length; at++) {
    if (!isDigit(plain.charCodeAt(at))) continue;
    let start = at;
    while (start > done && isWord(plain.charCodeAt(start - 1))) start--;
    field!.lastIndex = start;
    if (field!.test(plain)) {
      note?.(plain, start);
      shape += plain.slice(done, start);
      done = field!.lastIndex;
      at = done - 1;
    } else at = endOfNumber(plain, at);
  }
  return done === 0 ? plain : trimShape(shape, plain.slice(done));
}

/** Test runners leave out the shortest durations at the end of a line, with their brackets. */
function trimShape(shape: string, rest: string): string {
  const isBracket = rest === ")" && shape.endsWith("(");
  return (isBracket ? shape.slice(0, -1) : shape + rest).trimEnd();
}

/** Returns the kinds of fields in which lines like these may differ. */
export function listFieldKinds(lines: readonly string[]): FieldKind[] {
  const found = new Set<FieldKind>();
  for (const line of lines) {
    if (withoutColours(line) !== line) found.add("colours");
    readShape(line, (plain, at) => {
      const index = fieldsByKind.findIndex((pattern) => {
        pattern.lastIndex = at;
        return pattern.test(plain);
      });
      found.add(kinds[index] ?? "counters");
    });
  }
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
