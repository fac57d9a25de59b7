/** One TOML text held against a schema: what of it can be used, and all that is wrong with it, each with its line. Loads smol-toml and zod. */
import { parse } from "smol-toml";
import type { z } from "zod";
import { formatNumber } from "../../../../text/index.ts";
import { loadYaml } from "../../../../workspace/index.ts";
import { findTomlLines } from "./toml-lines.ts";

export interface TomlDocument<Value> {
  /** What is wrong or unknown is left out, so that the rest can still be checked. Only without errors it is whole. */
  readonly value: PartOf<Value>;
  readonly problems: readonly TomlProblem[];
  /** The line of a key, or of the nearest one around it. 1-based. */
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
  readonly rule: "malformed-toml" | "unknown-key" | "missing-key" | "invalid-value";
  readonly message: string;
}

export interface TomlText {
  readonly toml: string;
  /** The line of the file that it begins on. */
  readonly firstLine: number;
  /** Tables that are there even if the text has none. */
  readonly sections?: readonly string[];
}

type Table = Record<string, unknown>;

export async function parseTomlDocument<Value>(
  { toml, firstLine, sections = [] }: TomlText,
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

/** More than people write by hand, in bytes. */
const mostBytes = 256 * 1024;
/** Tables and lists within each other: whoever walks through them goes as deep. */
const mostLevels = 64;

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
  if (bytes > mostBytes) return malformed(`${formatNumber(bytes)} bytes, more than 256 KB are not read`);
  try {
    const options = { integersAsBigInt: "asNeeded", maxDepth: mostLevels } as const;
    const table = parse(toml.replace(/^\uFEFF/, ""), options);
    return isTooDeep(table) ? malformed(`nested too deeply: more than ${mostLevels} levels`) : { table };
  } catch (error) {
    const { message, line = 1, column = 1 } = error as TomlFault;
    const [what = ""] = message.replace(/^Invalid TOML document: /, "").split("\n");
    const rest = (toml.split("\n")[line - 1] ?? "").slice(column - 1).trim();
    return malformed(`${what}${likelyCause(what, rest)}`, line);
  }
}

/** The parser has no limit for keys with dots. Looks level by level: the stack has an end. */
function isTooDeep(table: Table): boolean {
  let level: unknown[] = [table];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > mostLevels) return true;
    level = level.flatMap((value) => (Array.isArray(value) || isTable(value) ? Object.values(value) : []));
  }
  return false;
}

interface TomlFault {
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
}

/** What people write who know YAML better. `rest` is the line from the fault on. */
function likelyCause(what: string, rest: string): string {
  if (what === "invalid value" && /^(#|$)/.test(rest))
    return ": there is none. Without one, leave the key out";
  if (what === "invalid value" && !/^[-+.]?\d/.test(rest)) return '. Texts need quotes: "…"';
  return rest.startsWith(":") ? '. Keys and values stand as key = "value"' : "";
}

/** An empty text says no more than a key that is not there. */
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
  const paths =
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
  for (const path of paths) {
    // Of a list either all is right or nothing is used: leaving items out would move the others.
    const list = path.findIndex((part) => typeof part === "number");
    const keys = list === -1 ? path : path.slice(0, list);
    const place = keys
      .slice(0, -1)
      .reduce<unknown>((at, key) => (at as Table | undefined)?.[String(key)], table);
    if (isTable(place)) delete place[String(keys.at(-1))];
  }
}
