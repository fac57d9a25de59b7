/** The lines of a tool result: what each one says without the number that a tool wrote before it, and which lines must
 *  not be left out. */

/** One line of a result. */
export interface ResultLine {
  /** The whole line, without its line feed. */
  readonly text: string;
  /** The line without the number that the tool wrote before it. */
  readonly body: string;
  /** The number that a reader sees: the one that the tool wrote, else the place in the result, counted from 1. */
  readonly number: number;
  /** In a diff, the sign before a line that the file now has. */
  readonly sign?: "+" | " " | undefined;
}

/** As `cat -n`, `grep -n`, Claude Code, opencode, gemini-cli and our own `read_file` write them. A position such as `6:1`
 *  is not a number. Spaces after the sign may be the line's own. */
const numbered = /^ {0,7}(?:([1-9]\d{0,6})(?:[\t→|]|:(?!\d))|(0\d{4})\|)/;

/** opencode writes a space after the colon, and says that the lines are those of a file. */
const numberedInFrame = /^([1-9]\d{0,6}): /;
const fileFrame = /^<path>.*<\/path>\n<type>file<\/type>\n<content>\n/;

/** Splits a line into the number that a tool wrote before it, with its sign, and the rest. */
export function splitNumber(line: string): [number: string, body: string] {
  const [number = ""] = numbered.exec(line) ?? [];
  return [number, line.slice(number.length)];
}

/** Lines before and after the numbered ones are counted by themselves, from this number on. */
export const unnumbered = -1_000_000_000;

/** Splits a result into lines. Numbers count if most lines have one, and if each is larger than the one before. Others are
 *  text of a file or a program, and then lines count from `first`. */
export function readResultLines(text: string, first = 1): ResultLine[] {
  const lines = text.split("\n");
  // A plain search is several times faster than the pattern.
  if (text.includes("@@ -") && /^@@ -\d/m.test(text))
    return lines.map((line, index) => {
      const sign = line.startsWith("+") ? "+" : line.startsWith(" ") ? " " : undefined;
      return { ...plainLine(line, index), sign };
    });
  const pattern = fileFrame.test(text) ? numberedInFrame : numbered;
  const found = lines.map((line) => pattern.exec(line));
  const numbers = found.flatMap((match) => (match === null ? [] : [Number(match[1] ?? match[2])]));
  const isRising = numbers.every((number, index) => index === 0 || number > (numbers[index - 1] as number));
  if (numbers.length <= lines.length / 2 || !isRising)
    return lines.map((line, index) => plainLine(line, index + first - 1));
  let others = 0;
  return lines.map((line, index) => {
    const match = found[index];
    if (match === null || match === undefined) return plainLine(line, unnumbered + others++);
    return { text: line, body: line.slice(match[0].length), number: Number(match[1] ?? match[2]) };
  });
}

/** Returns the lines by which results are compared: those of a text, or those in the strings of a JSON text. */
export function readComparedLines(text: string, first = 1): ResultLine[] {
  const parts = splitStrings(text);
  if (parts === undefined) return readResultLines(text, first);
  const lines = parts.map((part) => {
    const line = /^(?:[^"\\]|\\.)*$/.test(part) ? readString(part) : undefined;
    // Parts that contain a JSON quotation mark or an unusual escape get a prefix, so they never equal a line of a
    // string.
    return line !== undefined && writeString(line) === part ? line : `\0${part}`;
  });
  return readResultLines(lines.join("\n"), first).map((line, index) => ({ ...line, text: parts[index] as string }));
}

/** Whether the lines are those in the strings of a JSON text. */
export function areInStrings(lines: readonly ResultLine[]): boolean {
  return lines.some(({ body }) => body.startsWith("\0"));
}

const minStringLines = 10;

/** Splits a JSON text into lines, also after each line feed in its strings. No string has a real one, so a reader knows
 *  which is which. */
function splitStrings(text: string): string[] | undefined {
  if (!/^\s*[[{]/.test(text) || !text.includes("\\n") || text.includes("\0")) return undefined;
  const parts: string[] = [];
  let inStrings = 0;
  for (const line of text.split("\n")) {
    let start = 0;
    for (let at = line.indexOf("\\"); at >= 0; at = line.indexOf("\\", at + 2)) {
      if (line[at + 1] !== "n") continue;
      parts.push(line.slice(start, at));
      start = at + 2;
      inStrings++;
    }
    parts.push(line.slice(start));
  }
  if (inStrings < minStringLines) return undefined;
  try {
    JSON.parse(text);
    return parts;
  } catch {
    return undefined;
  }
}

function readString(part: string): string | undefined {
  try {
    return JSON.parse(`"${part}"`) as string;
  } catch {
    return undefined;
  }
}

function writeString(line: string): string {
  return JSON.stringify(line).slice(1, -1);
}

export function plainLine(line: string, index: number): ResultLine {
  return { text: line, body: line, number: index + 1 };
}

/** How much a line matters in the output of a program, from 0 (as good as any other) to 3 (a failure or a summary). */
export type Weight = 0 | 1 | 2 | 3;

/** Lines that say that something went well. Their words ("handles an error") prove nothing. */
export const passing: RegExp =
  /^\s*(?:✓|✔|√|ok \d+\b|PASS\b|--- PASS|=== (?:RUN|PAUSE|CONT)\b|#? ?pass \d)|\.\.\. ok$|\bPASSED\b|^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)/;

/** What systems, linkers, package managers and networks write about a failure, often without any other word of it. No
 *  pattern crosses a line, because large texts are searched as a whole. */
export const decisive: readonly RegExp[] = [
  /^(?:Killed$|Caused by: |npm (?:ERR!|error) |E {3,}\S)/,
  /\b(?:OOMKilled|[Oo]ut of memory|heap out of memory|[Nn]o space left|[Ss]egmentation fault|core dumped|[Tt]imed out)\b/,
  /\b(?:undefined reference|undefined symbol|unresolved external|error TS\d+|panicked at|Traceback \(most recent)\b/,
  /\bE(?:CONN(?:REFUSED|RESET|ABORTED)|TIMEDOUT|NOTFOUND|ADDRINUSE|ACCES|PERM|NOSPC|NOENT|MFILE|HOSTUNREACH|AI_AGAIN)\b/,
  /^ +\d+:\d+ +error |^CONFLICT \(|\bDATA RACE\b/,
  /\bx509: |\bcertificate (?:verify failed|has expired|is not trusted)|\bself[- ]signed certificate\b/,
  /^(?:\w+[.:])*\w*(?:Error|Exception): /,
];

/** What test runners, compilers and linters print about a failure, and their summary lines (vitest 4, jest 30, pytest
 *  9, cargo 1.9x, go 1.2x, tsc 6, eslint 10; 2026-11). */
const failing: readonly RegExp[] = [
  ...decisive,
  // Sums.
  /^\s*(?:Test Files|Tests|Test Suites|Snapshots|Errors|Duration|Time|Type Errors):? {1,8}.*\d/,
  /^=+ .*\b(?:passed|failed|errors?|skipped|no tests ran)\b.* =+$/,
  /^(?:\d+ (?:passed|failed)|test result: |Found \d+ errors?|✖ \d+ problems?|Ran \d+ tests?|FAILED \(|# (?:fail|tests) \d)/,
  /^(?:\[?exit code|exited with|Command (?:failed|exited)|Process exited)/i,
  /^ℹ (?:tests|pass|fail|cancelled) \d/,
  // Names of what failed.
  /^\s*(?:FAIL|FAILED|ERROR|✕|✖|×|✗|✘|●|not ok)(?:\s|:|$)/,
  /^\s*--- FAIL|\.\.\. (?:FAILED|ERROR|FAIL)$|\bFAILED\b/,
  /^(?:failures:|---- \S+ stdout ----|_{3,} .+ _{3,})/,
  // What was wrong.
  /^\s*(?:\w*(?:Error|Exception|Failure)|panic|fatal|error)(?:\[\w+\])?(?:: |$)/,
  /^\S+:\d+(?::\d+)?: (?:\w*Error|error|fatal error|FAILED|assertion)/,
  /^\s*(?:Expected|Received|expected|received|left|right|got|want|actual)\b.{0,12}[:=]/,
];

/** A word in a path or in a name, as in src/errors/failed.ts, says nothing. */
const troubled =
  /(?<![\w./-])(?:errors?|fail(?:s|ed|ure)?|exception|panic|fatal|denied|cannot|refused|timeout|not found|unable to)(?![\w/-])/i;
const warning = /\bwarn(?:ing)?s?\b/i;
/** A file's name on a line of its own, as eslint writes it before the problems of the file. */
const fileName = /^(?:\/|\w:\\|\.?\.?\/?[\w@.-]+\/)[^\s:]*\.\w{1,5}$/;

/** Weighs the lines of a program's output. What follows a failure matters more than what passed. */
export function weighLines(lines: readonly ResultLine[]): Weight[] {
  const weights = lines.map((line): Weight => {
    const body = withoutColours(line.body);
    // Longer lines are data, and trying each pattern on them takes long.
    if (body.length > maxLine || passing.test(body)) return 0;
    if (failing.some((pattern) => pattern.test(body))) return 3;
    if (troubled.test(body)) return 2;
    return warning.test(body) ? 1 : 0;
  });
  for (const index of findLoneLines(lines.map(({ body }) => body))) raise(weights, index, 1);
  for (const [index, weight] of [...weights].entries()) {
    if (weight !== 3) continue;
    for (const after of findDetails(lines, index)) raise(weights, after, 2);
    for (let before = index - 1; before >= index - 3; before--) raise(weights, before, 1);
    const heading = lines.slice(Math.max(0, index - 40), index).findLastIndex(({ body }) => fileName.test(body));
    if (heading >= 0) raise(weights, Math.max(0, index - 40) + heading, 3);
  }
  return weights;
}

/** Finds the few lines that are like no other in an output that repeats itself, such as one error among a thousand lines of
 *  progress. No word tells them from the rest. */
export function findLoneLines(lines: readonly string[]): number[] {
  if (lines.length < 200) return [];
  /** The first line of each shape, or -1 if it has several. */
  const firsts = new Map<number, number>();
  for (const [index, line] of lines.entries()) {
    const shape = hashShape(line);
    firsts.set(shape, firsts.has(shape) ? -1 : index);
  }
  firsts.delete(hashShape(""));
  const lone = [...firsts.values()].filter((index) => index >= 0);
  return lone.length <= lines.length / 50 ? lone : [];
}

/** Lines that differ in numbers only have the same shape. Two others may share one by accident, and are then not found. */
function hashShape(line: string): number {
  let hash = 0;
  let isNumber = false;
  for (let at = 0; at < line.length && at < 80; at++) {
    const code = line.charCodeAt(at);
    const isDigit = code >= 48 && code <= 57;
    // After a digit, the letters a to f count as part of the number.
    const continues: boolean = isNumber && (isDigit || ((code | 32) >= 97 && (code | 32) <= 102));
    if (!continues && code !== 32) hash = (Math.imul(hash, 31) + (isDigit ? 48 : code)) | 0;
    isNumber = isDigit || continues;
  }
  return hash;
}

/** The lines after a failure that belong to it, up to one that says that something passed, or two blank ones. A blank
 *  one may come before and inside of a message. */
function findDetails(lines: readonly ResultLine[], failure: number): number[] {
  const after = lines.slice(failure + 1, failure + 1 + maxDetails).map(({ body }) => withoutColours(body).trim());
  const end = after.findIndex((body, at) => passing.test(body) || (body === "" && after[at + 1] === ""));
  return (end < 0 ? after : after.slice(0, end)).map((_, index) => failure + 1 + index);
}

const maxDetails = 12;

/** Removes the codes with which programs colour their output. */
export function withoutColours(text: string): string {
  // A plain search is ten times faster than the pattern.
  if (!text.includes("\u001b")) return text;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these codes start with a control character
  return text.replace(/\u001b\[[\d;]*m/g, "");
}

const maxLine = 400;
function raise(weights: Weight[], index: number, least: Weight): void {
  const weight = weights[index];
  if (weight !== undefined && weight < least) weights[index] = least;
}
