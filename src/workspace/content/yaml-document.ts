/** One YAML file held against a schema: its value and all that is wrong with it, each with its line. Loads yaml. */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
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
  const lineCounter = new LineCounter();
  const { document, input, problems } = readYaml(text, lineCounter);
  const lineOf = (path: readonly PropertyKey[]) =>
    lineCounter.linePos(offsetOf(document?.contents, path)).line || 1;
  if (problems.length > 0) return { value: undefined, problems, lineOf };
  const repaired = repairValue(input, schema, (path) => sourceAt(document?.contents, path));
  const explained = repaired.issues
    .flatMap((issue) => explainIssue(issue, schema))
    .map(({ path, rule, message }) => ({ path, line: lineOf(path), rule, message }));
  return { value: repaired.value, problems: explained.sort((a, b) => a.line - b.line), lineOf };
}

/** Whether the text is YAML at all. */
export function checkYaml(text: string): readonly YamlProblem[] {
  return readYaml(text, new LineCounter()).problems;
}

interface ReadYaml {
  readonly document?: Document | undefined;
  readonly input?: unknown;
  readonly problems: readonly YamlProblem[];
}

function readYaml(text: string, lineCounter: LineCounter): ReadYaml {
  if (isTooDeep(text)) return { problems: [malformed("nested too deeply", 1)] };
  try {
    const document = parseDocument(text, { lineCounter, prettyErrors: false, merge: true });
    const problems = document.errors.map(({ pos, message }) =>
      malformed(message, lineCounter.linePos(pos[0]).line || 1),
    );
    return problems.length > 0 ? { document, problems } : { document, input: document.toJS(), problems };
  } catch (error) {
    // An alias that leads nowhere, or that grows without end.
    return { problems: [malformed((error as Error).message, 1)] };
  }
}

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
