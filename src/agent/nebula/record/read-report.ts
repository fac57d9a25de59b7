/** One fabric block, read as generously as it can be: nobody asks an agent again. Loads yaml and zod. */
import type { z } from "zod";
import type { FabricReport } from "../../../compose/index.ts";
import { loadYaml } from "../../../workspace/index.ts";
import { mainFields, reportSchema } from "./fabric-report-schema.ts";

export interface ReadReport {
  /** Undefined where the block cannot be read at all. Else all entries that are right, whatever the others are. */
  readonly report: FabricReport | undefined;
  readonly problems: readonly ReportProblem[];
}

export interface ReportProblem {
  /** In the block, 1-based. */
  readonly line: number;
  readonly message: string;
}

export async function createReportReader(): Promise<(block: string) => ReadReport> {
  const { readYaml, explainIssues } = await loadYaml();
  return (block) => {
    const asWritten = readYaml(block);
    const yaml = asWritten.problems.length === 0 ? asWritten : readYaml(quoteTexts(block));
    if (yaml.problems.length > 0) return { report: undefined, problems: asWritten.problems };
    const input = expand(yaml.input ?? {});
    const { data, error } = reportSchema.safeParse(input, { reportInput: true });
    if (error === undefined) return { report: data, problems: [] };
    const problems = explainIssues(error.issues, reportSchema, yaml.lineOf).map(
      ({ path, line, message }) => ({ line, message: path.length === 0 ? `the block ${message}` : message }),
    );
    return { report: reportSchema.safeParse(withoutWrong(input, error.issues)).data, problems };
  };
}

/** `signature: parse(text: string): Ast` is no YAML, and what everybody writes: the rest of such a line is the text. Only tried
 *  where the block cannot be read as it is, so that YAML keeps its meaning. */
function quoteTexts(block: string): string {
  return block.replaceAll(
    /^([ \t]*(?:- +)?(?:package|kind|signature|file|path|detail|affects|text): +)([^"'|>\s].*)$/gm,
    (_, key: string, value: string) => `${key}'${value.trimEnd().replaceAll("'", "''")}'`,
  );
}

/** Short forms written out: an entry that is only a text, and texts that YAML takes for numbers. A key without a value is absent. */
function expand(input: unknown): unknown {
  if (!isMapping(input)) return input;
  const lists = Object.entries(input)
    .filter(([, list]) => list !== null)
    .map(([kind, list]) => [
      kind,
      Array.isArray(list) ? list.map((entry) => expandEntry(entry, kind)) : list,
    ]);
  return Object.fromEntries(lists);
}

function expandEntry(entry: unknown, kind: string): unknown {
  const main = mainFields.get(kind);
  if (main !== undefined && isScalar(entry)) return { [main]: String(entry) };
  if (!isMapping(entry)) return entry;
  const fields = Object.entries(entry)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => [name, isScalar(value) ? String(value) : value]);
  return Object.fromEntries(fields);
}

/** Without unknown keys, and without the entries in which something else is wrong. */
function withoutWrong(input: unknown, issues: readonly z.core.$ZodIssue[]): unknown {
  if (!isMapping(input)) return undefined;
  const wrong = new Set(issues.flatMap(wrongPlaces).map(nameOf));
  const kept = (value: unknown, path: readonly PropertyKey[]): unknown => {
    const isRight = ([key]: readonly [PropertyKey, unknown]) => !wrong.has(nameOf([...path, key]));
    if (Array.isArray(value))
      return [...value.entries()].filter(isRight).map(([key, each]) => kept(each, [...path, key]));
    if (!isMapping(value)) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(isRight)
        .map(([key, each]) => [key, kept(each, [...path, key])]),
    );
  };
  return kept(input, []);
}

function wrongPlaces(issue: z.core.$ZodIssue): PropertyKey[][] {
  const { path } = issue;
  return issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...path, key]) : [path.slice(0, 2)];
}

function nameOf(path: readonly PropertyKey[]): string {
  return JSON.stringify(path);
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value: unknown): value is string | number | boolean | bigint {
  return ["string", "number", "boolean", "bigint"].includes(typeof value);
}
