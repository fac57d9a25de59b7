/** Checks a TOML text against a schema. Returns what can be used and every problem with its line. Loads smol-toml and zod. */
import { parse } from "smol-toml";
import type { z } from "zod";
import { findTomlLines, formatNumber } from "../../core/text/index.ts";
import { loadYaml } from "../../host/index.ts";

export interface TomlDocument<Value> {
  /** Leaves out wrong and unknown keys, so that the rest can still be checked. Complete only if there are no errors. */
  readonly value: PartOf<Value>;
  readonly problems: readonly TomlProblem[];
  /** Returns the line of a key, or of the nearest one around it. The first line is 1. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Sections may lack any of their keys. */
export type PartOf<Value> = {
  [Key in keyof Value]?: Value[Key] extends readonly unknown[] | undefined
    ? Value[Key]
    : Value[Key] extends object | undefined
      ? Partial<Value[Key]> | undefined
      : Value[Key];
};

export interface TomlProblem {
  readonly line: number;
  readonly severity: "error" | "warning";
  readonly rule: "malformed-toml" | "unknown-key" | "missing-key" | "invalid-value" | "not-enforced";
  readonly message: string;
}

type Table = Record<string, unknown>;

/** Parses a TOML text. `firstLine` is the line of the file where it begins, and `sections` are tables that are empty if
 *  the text does not have them. */
export async function parseTomlDocument<Value>(
  {
    toml,
    firstLine,
    sections = [],
  }: { readonly toml: string; readonly firstLine: number; readonly sections?: readonly string[] },
  schema: z.ZodType<Value>,
): Promise<TomlDocument<Value>> {
  const read = readToml(toml, firstLine);
  if ("problem" in read) return { value: {}, problems: [read.problem], lineOf: () => firstLine };
  const { table } = read;
  for (const section of sections) table[section] ??= {};
  leaveOutEmpty(table);
  const lines = findTomlLines(toml);
  const lineOf = (path: readonly PropertyKey[]) => firstLine - 1 + lines(path);
  const { error } = schema.safeParse(table, { reportInput: true });
  if (error === undefined) return { value: table as PartOf<Value>, problems: [], lineOf };
  const { explainIssues } = await loadYaml();
  const problems = explainIssues(error.issues, schema, lineOf).map(({ line, rule, message }) => ({
    line,
    severity: rule === "unknown-key" ? ("warning" as const) : ("error" as const),
    rule: rule as TomlProblem["rule"],
    message,
  }));
  for (const issue of error.issues) leaveOut(table, issue);
  return { value: table as PartOf<Value>, problems, lineOf };
}

/** The deepest nesting allowed. Recursive code would overflow the stack on more. */
const maxLevels = 64;

function readToml(toml: string, firstLine: number): { table: Table } | { problem: TomlProblem } {
  const malformed = (message: string, line = 1): { problem: TomlProblem } => ({
    problem: {
      line: firstLine - 1 + line,
      severity: "error",
      rule: "malformed-toml",
      message: `malformed TOML: ${message}`,
    },
  });
  const bytes = Buffer.byteLength(toml);
  // People write less by hand.
  if (bytes > 256 * 1024) return malformed(`${formatNumber(bytes)} bytes, more than 256 KB are not read`);
  try {
    const options = { integersAsBigInt: "asNeeded", maxDepth: maxLevels } as const;
    const table = parse(toml.replace(/^\uFEFF/, ""), options);
    // The parser does not limit dotted keys. Goes level by level, because recursion could overflow the stack.
    let level: unknown[] = [table];
    for (let depth = 0; level.length > 0; depth++) {
      if (depth > maxLevels) return malformed(`nested too deeply: more than ${maxLevels} levels`);
      level = level.flatMap((value) => (Array.isArray(value) || isTable(value) ? Object.values(value) : []));
    }
    return { table };
  } catch (error) {
    const { message, line = 1, column = 1 } = error as Error & { readonly line?: number; readonly column?: number };
    const [what = ""] = message.replace(/^Invalid TOML document: /, "").split("\n");
    const rest = (toml.split("\n")[line - 1] ?? "").slice(column - 1).trim();
    return malformed(`${what}${guessCause(what, rest)}`, line);
  }
}

/** Explains the usual mistakes of people who know YAML better. `rest` is the line, starting at the mistake. */
function guessCause(what: string, rest: string): string {
  if (what === "invalid value" && /^(#|$)/.test(rest)) return ": the value is missing. Write one, or leave the key out";
  if (what === "invalid value" && !/^[-+.]?\d/.test(rest)) return '. Texts need quotes: "…"';
  return rest.startsWith(":") ? '. Write key = "value"' : "";
}

/** Treats an empty text like a missing key. */
function leaveOutEmpty(table: Table): void {
  for (const [key, value] of Object.entries(table)) {
    if (typeof value === "string" && value.trim() === "") delete table[key];
    else if (isTable(value)) leaveOutEmpty(value);
  }
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function leaveOut(table: Table, issue: z.core.$ZodIssue): void {
  const paths = issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
  for (const path of paths) {
    // Leaves out the whole list if one item is wrong: without the item, the others would move.
    const list = path.findIndex((part) => typeof part === "number");
    const keys = list === -1 ? path : path.slice(0, list);
    const place = keys.slice(0, -1).reduce<unknown>((at, key) => (at as Table | undefined)?.[String(key)], table);
    if (isTable(place)) delete place[String(keys.at(-1))];
  }
}

/** Splits a phase file at its first two lines `+++`. Only white space may come before the first one. A delimiter is
 *  a whole line, so `+++` inside a text closes nothing. `tomlLine` is the line on which the TOML starts, from 1. Returns
 *  a problem if there is no front matter. */
export function splitFrontMatter(text: string):
  | { readonly toml: string; readonly tomlLine: number; readonly body: string }
  | {
      readonly line: number;
      readonly rule: "missing-front-matter" | "unclosed-front-matter";
      readonly message: string;
    } {
  // JavaScript's white space includes the byte order mark.
  const start = text.search(/\S/);
  const line = text.slice(0, Math.max(start, 0)).split("\n").length;
  const opening = findLineEnd(text, Math.max(start, 0));
  const first = start === -1 ? "" : text.slice(start, opening);
  const isDelimiter = (written: string) => /^\+\+\+[ \t]*\r?$/.test(written);
  if (!isDelimiter(first)) {
    const isYaml = first.trim() === "---";
    const message = isYaml
      ? 'the front matter must be TOML between two lines "+++", such as title = "…". This one starts with "---", so it is YAML'
      : 'no front matter. A phase file starts with a line "+++", then TOML with id and title';
    return { line, rule: "missing-front-matter", message };
  }
  for (let from = opening + 1; from <= text.length; ) {
    const end = findLineEnd(text, from);
    if (isDelimiter(text.slice(from, end))) {
      return { toml: text.slice(opening + 1, from), tomlLine: line + 1, body: text.slice(end).trim() };
    }
    from = end + 1;
  }
  return {
    line,
    rule: "unclosed-front-matter",
    message: 'the front matter that starts here is not closed. Close it with a line "+++"',
  };
}

/** Returns the offset of the next line break, or of the end of the text. */
function findLineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}
