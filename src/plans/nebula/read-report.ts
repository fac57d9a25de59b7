/** Reads one fabric block as tolerantly as possible, because nobody asks an agent again. Loads yaml and zod. */
import { z } from "zod";
import { formatNumber, isPlainObject } from "../../core/text/index.ts";
import { loadYaml } from "../../host/index.ts";
import { type FabricKind, type FabricReport, maxEntryLength, noteKinds } from "../compose/index.ts";

export interface ReadReport {
  /** All correct entries, or undefined if the block cannot be read at all. */
  readonly report: FabricReport | undefined;
  readonly problems: readonly ReportProblem[];
}

export interface ReportProblem {
  /** Line in the block, from 1. */
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
    const lineAt = (path: readonly PropertyKey[]) => lineOf(asWritten(path, input));
    const explained = explainIssues(issues, reportSchema, lineAt).map(({ path, line, message }) => ({
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

/** Expands an entry that is only a text, and texts that YAML reads as numbers. Drops keys without a value. The case of
 *  keys does not matter. */
function expand(input: unknown): unknown {
  if (!isPlainObject(input)) return input;
  const lists = new Map<string, unknown>();
  for (const [name, list] of Object.entries(input)) {
    const kind = name.toLowerCase();
    if (list === null) continue;
    const entries = Array.isArray(list) ? list.map((entry) => expandEntry(entry, kind)) : list;
    const before = lists.get(kind);
    lists.set(kind, Array.isArray(before) && Array.isArray(entries) ? [...before, ...entries] : entries);
  }
  return Object.fromEntries(lists);
}

function expandEntry(entry: unknown, kind: string): unknown {
  if (kind === "resolved") {
    const id = isPlainObject(entry) ? (entry.id ?? entry) : entry;
    return isScalar(id) ? String(id).trim().toLowerCase() : id;
  }
  const main = mainFields.get(kind);
  if (main !== undefined && isScalar(entry)) return { [main]: String(entry) };
  if (!isPlainObject(entry)) return entry;
  const fields = Object.entries(entry)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => {
      const key = name.toLowerCase();
      if (key === "affects" && Array.isArray(value) && value.every(isScalar)) return [key, value.join(", ")];
      return [key, isScalar(value) ? String(value) : value];
    });
  return Object.fromEntries(fields);
}

/** Returns the path with the keys as the block spells them. */
function asWritten(path: readonly PropertyKey[], input: unknown): PropertyKey[] {
  let value = input;
  return path.map((key) => {
    const keys = isPlainObject(value) ? Object.keys(value) : [];
    const spelled = keys.find((each) => each.toLowerCase() === key) ?? key;
    value = isPlainObject(value) || Array.isArray(value) ? (value as Record<PropertyKey, unknown>)[spelled] : undefined;
    return spelled;
  });
}

/** Removes unknown keys, and entries with any other mistake. */
function withoutWrong(input: unknown, issues: readonly z.core.$ZodIssue[]): unknown {
  if (!isPlainObject(input)) return undefined;
  const places = issues.flatMap((issue) =>
    issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path.slice(0, 2)],
  );
  const wrong = new Set(places.map((path) => JSON.stringify(path)));
  const kept = (value: unknown, path: readonly PropertyKey[]): unknown => {
    const isRight = ([key]: readonly [PropertyKey, unknown]) => !wrong.has(JSON.stringify([...path, key]));
    if (Array.isArray(value))
      return [...value.entries()].filter(isRight).map(([key, each]) => kept(each, [...path, key]));
    if (!isPlainObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(isRight)
        .map(([key, each]) => [key, kept(each, [...path, key])]),
    );
  };
  return kept(input, []);
}

function isScalar(value: unknown): value is string | number | boolean | bigint {
  return ["string", "number", "boolean", "bigint"].includes(typeof value);
}

const text = z
  .string()
  .trim()
  .min(1)
  .refine((value) => value.length <= maxEntryLength, `a text of at most ${formatNumber(maxEntryLength)} characters`);

/** The schema of a fabric block. */
const reportSchema: z.ZodType<FabricReport> = z.strictObject({
  entanglements: listOf({ package: text, kind: text, signature: text, file: text.optional() }),
  claims: listOf({ path: text }),
  discoveries: listOf({ kind: text.optional(), detail: text, affects: text.optional() }),
  notes: listOf({ kind: z.enum(noteKinds).optional(), text }),
  resolved: z.array(text).optional(),
});

function listOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.array(z.strictObject(shape)).optional();
}

/** The field that a plain text stands for. */
const mainFields: ReadonlyMap<string, string> = new Map<FabricKind, string>([
  ["claims", "path"],
  ["discoveries", "detail"],
  ["notes", "text"],
]);

/** Quotes the texts of an entry, because `signature: parse(text: string): Ast` is common but not YAML. Quoted texts
 *  stay as they are. In flow style, only braces around one entry are supported. */
function quoteTexts(entry: string): string {
  const text = entry.trimEnd();
  // A longer entry is refused anyway.
  if (text.length > 5 * maxEntryLength) return entry;
  const start = /^[ \t]*- +\{/.exec(text)?.[0];
  if (start !== undefined && text.endsWith("}")) return `${start}${quoteInBraces(text.slice(start.length, -1))}}`;
  const quoted = text.replaceAll(fieldLine, (_, field: string, value: string) => field + quote(value));
  if (quoted !== text) return quoted;
  return text.replace(/^([ \t]*- +)([^"'|>\s].*)$/, (_, mark: string, value: string) => mark + quote(value));
}

const fields = "(?:package|kind|signature|file|path|detail|affects|text):";
const fieldLine = new RegExp(`^([ \\t]*(?:- +)?${fields} +)([^"'|>\\s].*)$`, "gim");
const fieldInBraces = new RegExp(`((?:^|,)\\s*${fields}\\s+)`, "i");

function quote(value: string): string {
  return `'${value.trimEnd().replaceAll("'", "''")}'`;
}

/** Quotes values in braces. A value ends at the next field. */
function quoteInBraces(inside: string): string {
  const [before = "", ...parts] = inside.replace(/,\s*$/, "").split(fieldInBraces);
  const pairs: { readonly field: string; value: string }[] = [];
  for (let index = 0; index < parts.length; index += 2) {
    const [field = "", value = ""] = parts.slice(index);
    const last = pairs.at(-1);
    if (last === undefined || isWhole(last.value)) pairs.push({ field, value });
    else last.value += field + value;
  }
  const quoted = pairs.map(({ field, value }) => field + (/^["']|^$/.test(value) ? value : quote(value)));
  return before + quoted.join("");
}

/** Whether a value is complete. In `find(code: string, kind: Kind)` the word `kind:` is not a field, and neither is
 *  quoted text. */
function isWhole(value: string): boolean {
  if (value.startsWith('"')) return /^"(?:[^"\\]|\\.)*"\s*$/s.test(value);
  if (value.startsWith("'")) return /^'(?:[^']|'')*'\s*$/.test(value);
  const brackets = value.match(/[([{}\])]/g) ?? [];
  return brackets.filter((each) => "([{".includes(each)).length * 2 === brackets.length;
}

/** Lines of a fabric block that are read together. */
interface ReportPiece {
  /** Number of the first line, from 1. */
  readonly line: number;
  readonly lines: string[];
}

interface ReportSection {
  readonly key: string;
  /** The line of the key, and all lines up to the first entry. */
  readonly head: ReportPiece;
  readonly entries: ReportPiece[];
}

/** Splits a text into keys and their entries. A line with the first line's indentation is a key. `strays` are the
 *  numbers of lines with text before the first key. */
function splitBlock(block: string): {
  readonly sections: readonly ReportSection[];
  readonly strays: readonly number[];
} {
  const lines = block.split(/\r?\n/);
  const hasText = (line: string) => /^[ \t]*[^ \t#]/.test(line);
  const base = measureIndent(lines.find(hasText) ?? "");
  const sections: ReportSection[] = [];
  const strays: number[] = [];
  for (const [index, text] of lines.entries()) {
    const line = index + 1;
    const key = measureIndent(text) === base ? /^[ \t]*([A-Za-z][\w-]*):(?:[ \t]|$)/.exec(text)?.[1] : undefined;
    const section = sections.at(-1);
    if (key !== undefined) sections.push({ key, head: { line, lines: [text] }, entries: [] });
    else if (section !== undefined) addLine(section, text, line);
    else if (hasText(text)) strays.push(line);
  }
  return { sections, strays };
}

function measureIndent(line: string): number {
  return line.search(/[^ \t]|$/);
}

/** A list mark that is indented more than the first one of its section is part of an entry. */
function addLine({ head, entries }: ReportSection, text: string, line: number): void {
  const depth = measureIndent(entries[0]?.lines[0] ?? text);
  if (/^[ \t]*-(?:[ \t]|$)/.test(text) && measureIndent(text) <= depth) entries.push({ line, lines: [text] });
  else (entries.at(-1) ?? head).lines.push(text);
}

// Reading of a block that is not YAML, entry by entry, so that one mistake does not lose the other entries.

type ReadYaml = Awaited<ReturnType<typeof loadYaml>>["readYaml"];
type ReadEntries = ReturnType<typeof readEntries>;

function readEntries(block: string, readYaml: ReadYaml) {
  const { sections, strays } = splitBlock(block);
  const problems = strays.map((line) => ({ line, message: "text before the first key is ignored" }));
  const lists = new Map<string, Slot[]>();
  const others = new Map<string, unknown>();
  for (const section of sections) {
    const list = lists.get(section.key) ?? [];
    lists.set(section.key, list);
    const head = readHead(section, readYaml);
    if (head.other !== undefined) others.set(section.key, head.other);
    for (const slot of [...head.slots, ...section.entries.map((entry) => readEntry(entry, readYaml))]) list.push(slot);
    problems.push(...head.problems);
  }
  problems.push(...[...lists.values()].flat().flatMap(({ problem }) => problem ?? []));
  const slotAt = ([key, index]: readonly PropertyKey[]) => lists.get(String(key))?.[Number(index)];
  const values = [...lists].map(([key, slots]) => [key, slots.map(({ value }) => value)]);
  return {
    input: Object.fromEntries([...values, ...others]),
    problems: problems as readonly ReportProblem[],
    lineOf: (path: readonly PropertyKey[]) =>
      slotAt(path)?.lineOf(path.slice(2)) ?? sections.find(({ key }) => key === path[0])?.head.line ?? 1,
    /** Whether the entry could not be read. It still keeps its index in its list. */
    isUnread: (path: readonly PropertyKey[]) => slotAt(path)?.problem !== undefined,
  };
}

/** An entry's place in its list. */
interface Slot {
  readonly value: unknown;
  readonly problem?: ReportProblem | undefined;
  /** Line in the block. `path` is relative to the entry. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads the text right after a key: a list in brackets, or a mistake. `other` is a value that is not a list. */
function readHead(
  { key, head }: ReportSection,
  readYaml: ReadYaml,
): { readonly slots: readonly Slot[]; readonly other?: unknown; readonly problems: readonly ReportProblem[] } {
  const { input, problems, lineOf } = readYaml(head.lines.join("\n"));
  const [problem] = problems;
  if (problem !== undefined) return { slots: [], problems: [inBlock(problem, head)] };
  const value = Object.values(input as object)[0] ?? [];
  if (!Array.isArray(value)) return { slots: [], other: value, problems: [] };
  const slots = value.map((each, index) => ({
    value: each,
    lineOf: (path: readonly PropertyKey[]) => head.line - 1 + lineOf([key, index, ...path]),
  }));
  return { slots, problems: [] };
}

/** Reads an entry as written, or else with quoted texts. */
function readEntry(entry: ReportPiece, readYaml: ReadYaml): Slot {
  const text = entry.lines.join("\n");
  const asWritten = readYaml(text);
  const [problem] = asWritten.problems;
  const read = problem === undefined ? asWritten : readYaml(quoteTexts(text));
  if (problem !== undefined && read.problems.length > 0)
    return { value: undefined, problem: inBlock(problem, entry), lineOf: () => entry.line };
  return {
    value: (read.input as readonly unknown[])[0],
    lineOf: (path) => entry.line - 1 + read.lineOf([0, ...path]),
  };
}

function inBlock({ line, message }: ReportProblem, piece: ReportPiece): ReportProblem {
  return { line: piece.line - 1 + line, message };
}
