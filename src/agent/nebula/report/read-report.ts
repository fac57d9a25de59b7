/** One fabric block, read as generously as it can be: nobody asks an agent again. Loads yaml and zod. */
import type { z } from "zod";
import type { FabricReport } from "../../../compose/index.ts";
import { loadYaml } from "../../../workspace/index.ts";
import { mainFields, reportSchema } from "./fabric-report-schema.ts";
import { type ReadEntries, readEntries } from "./read-entries.ts";

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
  const check = ({ input, problems, lineOf, isUnread }: ReadEntries): ReadReport => {
    const expanded = expand(input ?? {});
    const { data, error } = reportSchema.safeParse(expanded, { reportInput: true });
    if (error === undefined) return { report: data, problems };
    const issues = error.issues.filter(({ path }) => !isUnread(path));
    const explained = explainIssues(issues, reportSchema, lineOf).map(({ path, line, message }) => ({
      line,
      message: path.length === 0 ? `the block ${message}` : message,
    }));
    const report = reportSchema.safeParse(withoutWrong(expanded, error.issues)).data;
    return { report, problems: [...problems, ...explained] };
  };
  return (block) => {
    const yaml = readYaml(block);
    if (yaml.problems.length === 0) return check({ ...yaml, isUnread: () => false });
    const read = check(readEntries(block, readYaml));
    const isEmpty = Object.values(read.report ?? {}).every(({ length }) => length === 0);
    return isEmpty ? { report: undefined, problems: yaml.problems } : read;
  };
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
