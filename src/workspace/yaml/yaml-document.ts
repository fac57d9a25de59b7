/** One YAML file held against a schema: its value and all that is wrong with it, each with its line. Loads yaml. */
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
} from "yaml";
import type { z } from "zod";
import { explainIssue } from "./explain-issue.ts";
import { repairValue } from "./repair-value.ts";

export interface YamlDocument<Value> {
  /** Undefined when something keeps it from being used. */
  readonly value: Value | undefined;
  readonly problems: readonly YamlProblem[];
  /** The line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
}

export interface YamlProblem {
  /** The key that it is about; empty for the file as a whole. */
  readonly path: readonly PropertyKey[];
  readonly line: number;
  readonly rule: "malformed-yaml" | "unknown-key" | "missing-key" | "invalid-value";
  readonly message: string;
}

/** Unknown keys are reported and left out: the caller decides how bad that is. An empty file is an empty list or mapping. */
export function parseYamlDocument<Value>(text: string, schema: z.ZodType<Value>): YamlDocument<Value> {
  const { document, input, problems, lineOf } = readYaml(text);
  if (problems.length > 0) return { value: undefined, problems, lineOf };
  const repaired = repairValue(input, schema, (path) => sourceAt(document?.contents, path));
  return { value: repaired.value, problems: explainIssues(repaired.issues, schema, lineOf), lineOf };
}

/** Whether the text is YAML at all. */
export function checkYaml(text: string): readonly YamlProblem[] {
  return readYaml(text).problems;
}

/** Nobody reads more of one file, and a list of any length is slow to make. */
const mostProblems = 100;

/** What a schema finds wrong, in the order of the lines. Where there are too many, unknown keys are left out first: they may be no errors. */
export function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  schema: z.ZodType,
  lineOf: (path: readonly PropertyKey[]) => number,
): YamlProblem[] {
  const single = issues.flatMap(oneKeyEach);
  const ordered =
    single.length <= mostProblems
      ? single
      : [...single.filter((issue) => !isUnknownKey(issue)), ...single.filter(isUnknownKey)];
  const explained = ordered.slice(0, mostProblems).flatMap((issue) => explainIssue(issue, schema));
  const problems = explained
    .map((each) => ({ ...each, line: lineOf(each.path) }))
    .sort((a, b) => a.line - b.line);
  const left = ordered.slice(mostProblems);
  return withRest(problems, left.length, left.every(isUnknownKey) ? "unknown-key" : "invalid-value");
}

function oneKeyEach(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  return issue.code === "unrecognized_keys" ? issue.keys.map((key) => ({ ...issue, keys: [key] })) : [issue];
}

function isUnknownKey({ code }: z.core.$ZodIssue): boolean {
  return code === "unrecognized_keys";
}

function withRest(problems: YamlProblem[], count: number, rule: YamlProblem["rule"]): YamlProblem[] {
  if (count === 0) return problems;
  return [...problems, { path: [], line: problems.at(-1)!.line, rule, message: `… and ${count} more` }];
}

export interface ReadYaml {
  /** Undefined when it cannot even be parsed. */
  readonly document: Document | undefined;
  /** Plain data; undefined when there are problems. */
  readonly input: unknown;
  readonly problems: readonly YamlProblem[];
  lineOf(path: readonly PropertyKey[]): number;
}

/** Reads YAML without asking what it says. */
export function readYaml(text: string): ReadYaml {
  const lineCounter = new LineCounter();
  if (isTooDeep(text)) return unreadable("nested too deeply");
  try {
    const document = parseDocument(text, {
      lineCounter,
      prettyErrors: false,
      merge: true,
      // The library compares every key with every other one.
      uniqueKeys: false,
      logLevel: "error",
    });
    const { contents } = document;
    const lineOf = (path: readonly PropertyKey[]) => lineCounter.linePos(offsetOf(contents, path)).line || 1;
    const errors = [...document.errors, ...repeatedKeys(document)].sort(
      (one, two) => one.pos[0] - two.pos[0],
    );
    const told = errors
      .slice(0, mostProblems)
      .map(({ pos, code, message }) =>
        malformed(ownWords[code] ?? message, lineCounter.linePos(pos[0]).line || 1),
      );
    const problems = withRest(told, errors.length - told.length, "malformed-yaml");
    return { document, input: problems.length > 0 ? undefined : document.toJS(), problems, lineOf };
  } catch (error) {
    // An alias that leads nowhere, or that grows without end.
    return unreadable((error as Error).message);
  }
}

function repeatedKeys(document: Document): Pick<YAMLError, "pos" | "code" | "message">[] {
  const repeated: Pick<YAMLError, "pos" | "code" | "message">[] = [];
  visit(document, {
    Map(_, { items }) {
      const known = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const pos: [number, number] = [key.range?.[0] ?? 0, key.range?.[1] ?? 0];
        if (known.has(key.value)) {
          repeated.push({ pos, code: "DUPLICATE_KEY", message: "Map keys must be unique" });
        }
        known.add(key.value);
      }
    },
  });
  return repeated;
}

function unreadable(message: string): ReadYaml {
  return { document: undefined, input: undefined, problems: [malformed(message, 1)], lineOf: () => 1 };
}

/** Where the library speaks to programmers. */
const ownWords: Partial<Record<ErrorCode, string>> = {
  MULTIPLE_DOCS: 'a second document begins with "---": keep one document in a file',
};

const deepestBrackets = 400;

/** The parser goes as deep as its input, and when the stack ends within a regular expression V8 ends the process: nothing to catch. */
function isTooDeep(text: string): boolean {
  if (/^ {200}/m.test(text) || /^ *(?:[-?] +){100}/m.test(text)) return true;
  let depth = 0;
  for (const bracket of text.match(/[[\]{}]/g) ?? []) {
    if (bracket === "]" || bracket === "}") depth = Math.max(0, depth - 1);
    else if (++depth > deepestBrackets) return true;
  }
  return false;
}

function malformed(message: string, line: number): YamlProblem {
  return { path: [], line, rule: "malformed-yaml", message: `malformed YAML: ${message}` };
}

/** Where the key of the path starts; as far down as the file goes. */
function offsetOf(contents: unknown, path: readonly PropertyKey[]): number {
  let node = contents;
  let offset = (contents as Node | null | undefined)?.range?.[0] ?? 0;
  for (const part of path) {
    const [keyNode, valueNode] = childOf(node, part);
    if (keyNode === undefined) break;
    offset = (keyNode as Node).range?.[0] ?? offset;
    node = valueNode;
  }
  return offset;
}

/** A scalar as it is written: 1.10 is not 1.1. */
function sourceAt(contents: unknown, path: readonly PropertyKey[]): string | undefined {
  let node = contents;
  for (const part of path) node = childOf(node, part)[1];
  return isScalar(node) && !isAlias(node) ? node.source : undefined;
}

function childOf(node: unknown, part: PropertyKey): [unknown, unknown] | [] {
  if (isSeq(node)) return [node.items[Number(part)], node.items[Number(part)]];
  if (!isMap(node)) return [];
  const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === part);
  return pair === undefined ? [] : [pair.key, pair.value];
}
