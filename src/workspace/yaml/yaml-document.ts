/** One YAML file held against a schema: its value and all that is wrong with it, each with its line. Loads yaml. */
import {
  Composer,
  type CST,
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
} from "yaml";
import type { z } from "zod";
import { formatNumber, messageOf } from "../../text/index.ts";
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

/** Reads YAML without asking what it says. Anybody may have written it, so that size, depth and what aliases grow to are bounded, and
 *  values are those of the core schema. Never throws. */
export function readYaml(text: string): ReadYaml {
  const bytes = Buffer.byteLength(text);
  if (bytes > mostBytes) return unreadable(1, `${formatNumber(bytes)} bytes, more than 256 KB are not read`);
  const lineCounter = new LineCounter();
  const lineAt = (offset: number) => lineCounter.linePos(offset).line || 1;
  const composed = compose(text, lineCounter);
  if ("message" in composed) return unreadable(lineAt(composed.offset), composed.message);
  const { document, faults } = composed;
  const { contents } = document;
  const lineOf = (path: readonly PropertyKey[]) => lineAt(offsetOf(contents, path));
  const found = [...faults, ...inspect(contents)].sort((one, two) => one.offset - two.offset);
  const told = found.slice(0, mostProblems).map(({ message, offset }) => malformed(message, lineAt(offset)));
  const problems = withRest(told, found.length - told.length, "malformed-yaml");
  if (problems.length > 0) return { document, input: undefined, problems, lineOf };
  try {
    // Aliases were counted already.
    return { document, input: document.toJS({ maxAliasCount: -1 }), problems, lineOf };
  } catch (error) {
    // A merge key (`<<:`) without a mapping is found only here.
    return unreadable(lineAt(mergeOffset(text)), messageOf(error));
  }
}

/** Where the first merge key stands: the library does not say which one is wrong. */
function mergeOffset(text: string): number {
  return Math.max(0, text.search(/<<\s*:/));
}

/** More than people write by hand: what takes the library longest is still read in two seconds. */
const mostBytes = 256 * 1024;
/** Mappings and lists within each other. The library goes as deep as its input, and where the stack ends within a regular expression V8
 *  ends the process: nothing to catch. */
const mostLevels = 64;
/** The library looks through all anchors for each of them. */
const mostAliases = 1_000;
/** Values that all aliases of a file stand for, with all that is in them. */
const mostAliasValues = 100_000;

interface Fault {
  readonly offset: number;
  readonly message: string;
}

interface Composed {
  readonly document: Document;
  readonly faults: readonly Fault[];
}

/** The document of a text, with the faults that the library finds; a fault alone where it must not go on. */
function compose(text: string, lineCounter: LineCounter): Composed | Fault {
  const composer = new Composer({
    merge: true,
    schema: "core",
    // Else it knows !!binary, !!set and !!omap by their names, and makes values of them that are no plain data.
    resolveKnownTags: false,
    // The library compares every key with every other one.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "error",
  });
  const read = readTokens(text, lineCounter);
  if ("message" in read) return read;
  const [document, second] = composer.compose(read.tokens, true, text.length);
  const isTag = ({ code }: { code: ErrorCode }) => code === "TAG_RESOLVE_FAILED";
  const errors = [...document!.errors, ...document!.warnings.filter(isTag)];
  const faults = errors.map(({ pos: [offset], code, message }) => ({
    offset,
    message: ownWords[code] ?? message,
  }));
  if (second !== undefined) faults.push({ offset: second.range[0], message: secondDocument });
  return { document: document!, faults };
}

/** As the library's own loop from text to tokens, but it stops where that would go too deep, and after very many errors. */
function readTokens(text: string, lineCounter: LineCounter): { readonly tokens: CST.Token[] } | Fault {
  const parser = new Parser(lineCounter.addNewLine);
  lineCounter.addNewLine(0);
  const tokens: CST.Token[] = [];
  let errors = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) {
      tokens.push(token);
      if (token.type === "error" && ++errors > mostProblems) return { tokens };
    }
    // The first one is the document.
    if (parser.stack.length - 1 > mostLevels && isCollection(parser.stack.at(-1)))
      return {
        offset: parser.offset,
        message: `nested too deeply: more than ${mostLevels} levels are not read`,
      };
  }
  tokens.push(...parser.end());
  return { tokens };
}

function isCollection(token: CST.Token | undefined): boolean {
  return token !== undefined && ["block-map", "block-seq", "flow-collection"].includes(token.type);
}

/** Where the library speaks to programmers. */
const ownWords: Partial<Record<ErrorCode, string>> = {
  TAG_RESOLVE_FAILED: "a value has a tag that is not read: leave out what begins with !",
};
const secondDocument = 'a second document begins with "---": keep one document in a file';

interface Anchored {
  /** How many values it stands for. */
  readonly size: number;
  readonly isList: boolean;
}

interface Inspection {
  readonly faults: Fault[];
  readonly anchors: Map<string, Anchored>;
  aliases: number;
  aliasValues: number;
}

/** What the library reads and we do not: keys that are no texts, aliases that lead nowhere or grow, a key twice in one mapping. */
function inspect(contents: unknown): readonly Fault[] {
  const inspection: Inspection = { faults: [], anchors: new Map(), aliases: 0, aliasValues: 0 };
  inspectNode(contents, inspection);
  return inspection.faults;
}

/** Gives how many values the node stands for. Goes as deep as the text, which is bounded. */
function inspectNode(node: unknown, inspection: Inspection): number {
  if (!isNode(node)) return 1;
  if (isAlias(node)) return inspectAlias(node, inspection);
  let size = 1;
  if (isMap(node)) {
    const known = new Set<unknown>();
    for (const { key, value } of node.items) {
      inspectKey(key, known, inspection);
      size += inspectNode(key, inspection) + inspectNode(value, inspection);
    }
  } else if (isSeq(node)) for (const item of node.items) size += inspectNode(item, inspection);
  if (node.anchor !== undefined) inspection.anchors.set(node.anchor, { size, isList: !isScalar(node) });
  return size;
}

function inspectAlias(node: Node & { readonly source: string }, inspection: Inspection): number {
  const { faults, anchors } = inspection;
  const anchored = anchors.get(node.source);
  // One within the value that it names is not known yet either.
  if (anchored === undefined) faults.push(faultAt(node, `the alias *${node.source} has no anchor before it`));
  const size = anchored?.size ?? 1;
  const wasWithin = isWithin(inspection);
  inspection.aliases++;
  inspection.aliasValues += size;
  if (wasWithin && !isWithin(inspection)) faults.push(faultAt(node, "aliases stand for too many values"));
  return size;
}

function isWithin({ aliases, aliasValues }: Inspection): boolean {
  return aliases <= mostAliases && aliasValues <= mostAliasValues;
}

/** The library would make a text of a list or a mapping, and texts of the keys in it: each level doubles it. */
function inspectKey(key: unknown, known: Set<unknown>, { faults, anchors }: Inspection): void {
  const isList = isAlias(key) ? anchors.get(key.source)?.isList : isMap(key) || isSeq(key);
  if (isList) faults.push(faultAt(key, "a key is a list or a mapping: write a text"));
  if (!isScalar(key)) return;
  if (known.has(key.value)) faults.push(faultAt(key, "Map keys must be unique"));
  known.add(key.value);
}

function faultAt(node: unknown, message: string): Fault {
  return { offset: (node as Node).range?.[0] ?? 0, message };
}

function unreadable(line: number, message: string): ReadYaml {
  return { document: undefined, input: undefined, problems: [malformed(message, line)], lineOf: () => 1 };
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
