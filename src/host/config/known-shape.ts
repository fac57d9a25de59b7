/** Reads YAML files that are valid by the JSON Schemas of schemas/, without zod and mostly without yaml. Loading them
 *  takes longer than most commands run, so they are loaded to explain what is wrong. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isPlainObject } from "../../core/text/index.ts";

/** The schemas that say all that zod checks. A schema with defaults of its own would not. */
export type ShapeName = "config" | "company" | "pack" | "samples" | "known-errors" | "learning" | "profile";

/** Returns `undefined` if the file is not valid as it is: the caller then reads it with zod. */
export async function readKnownShape<Value>(
  text: string,
  name: ShapeName,
): Promise<{ readonly value: Value; readonly lineOf: PlainYaml["lineOf"] } | undefined> {
  const { input, lineOf } = readPlainYaml(text) ?? (await import("./read-yaml.ts")).readYaml(text);
  const value = acceptShape<Value>(input, name);
  return value === undefined ? undefined : { value, lineOf };
}

/** Returns a copy of the value, its keys in the order of the schema, as zod does. Returns `undefined` if the value is
 *  not valid, or if its schema has a keyword that is not known here. */
export function acceptShape<Value>(input: unknown, name: ShapeName): Value | undefined {
  // Reads a schema once. The files belong to the package and never change.
  if (!schemas.has(name)) schemas.set(name, readSchema(name));
  const schema = schemas.get(name);
  if (schema === undefined) return undefined;
  const value = accept(input, schema);
  return value === notAccepted ? undefined : (value as Value);
}

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly minLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | false;
  readonly propertyNames?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}

/** The keywords above, and those that only describe. */
const keywords: ReadonlySet<string> = new Set(
  (
    "type enum minLength pattern minimum maximum exclusiveMinimum items properties required additionalProperties " +
    "propertyNames anyOf $schema title description default"
  ).split(" "),
);

const notAccepted: unique symbol = Symbol("not accepted");

function accept(value: unknown, schema: JsonSchema): unknown {
  if (Object.keys(schema).some((keyword) => !keywords.has(keyword))) return notAccepted;
  if (schema.anyOf !== undefined) return firstAccepted(value, schema.anyOf);
  if (schema.enum !== undefined && !schema.enum.includes(value)) return notAccepted;
  if (schema.type === "array") {
    const { items } = schema;
    if (!Array.isArray(value) || items === undefined) return notAccepted;
    const accepted = value.map((item) => accept(item, items));
    return accepted.includes(notAccepted) ? notAccepted : accepted;
  }
  if (schema.type === "object") return acceptMembers(value, schema);
  return scalarChecks.get(schema.type)?.(value, schema) === true ? value : notAccepted;
}

const scalarChecks: ReadonlyMap<string | undefined, (value: unknown, schema: JsonSchema) => boolean> = new Map([
  ["string", isText],
  ["boolean", (value) => typeof value === "boolean"],
  ["integer", (value, schema) => Number.isSafeInteger(value) && isInRange(value as number, schema)],
  ["number", (value, schema) => Number.isFinite(value) && isInRange(value as number, schema)],
]);

function firstAccepted(value: unknown, schemas: readonly JsonSchema[]): unknown {
  for (const schema of schemas) {
    const accepted = accept(value, schema);
    if (accepted !== notAccepted) return accepted;
  }
  return notAccepted;
}

function isText(value: unknown, { minLength = 0, pattern }: JsonSchema): boolean {
  if (typeof value !== "string" || value.length < minLength) return false;
  return pattern === undefined || new RegExp(pattern, "u").test(value);
}

function isInRange(value: number, { minimum, maximum, exclusiveMinimum }: JsonSchema): boolean {
  return value >= (minimum ?? value) && value <= (maximum ?? value) && !(value <= (exclusiveMinimum ?? -Infinity));
}

function acceptMembers(value: unknown, schema: JsonSchema): unknown {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema;
  if (!isPlainObject(value) || required.some((key) => !Object.hasOwn(value, key))) return notAccepted;
  const known = Object.keys(properties).filter((key) => Object.hasOwn(value, key));
  const others = Object.keys(value).filter((key) => !Object.hasOwn(properties, key));
  const entries: [string, unknown][] = known.map((key) => [key, accept(value[key], properties[key]!)]);
  for (const key of others) {
    const isNamed = propertyNames === undefined || accept(key, propertyNames) !== notAccepted;
    // zod drops this name, so it is reported.
    if (!additionalProperties || !isNamed || key === "__proto__") return notAccepted;
    entries.push([key, accept(value[key], additionalProperties)]);
  }
  return entries.some(([, member]) => member === notAccepted) ? notAccepted : Object.fromEntries(entries);
}

const schemas = new Map<ShapeName, JsonSchema | undefined>();

/** This module is in src/host/config/, in dist/host/config/ or, bundled, in dist/cli/bundle/. */
function readSchema(name: ShapeName): JsonSchema | undefined {
  const path = fileURLToPath(new URL(`../../../schemas/${name}.schema.json`, import.meta.url));
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

/** Reads the YAML that most people write, without the YAML library: keys, lists and texts of one line each. The library
 *  takes longer to load than the rest of a short command. */

export interface PlainYaml {
  /** Plain data, the same as the library's. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Returns the line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
}

/** Returns `undefined` for everything that needs the library: mistakes, texts of several lines, anchors, tags,
 *  escapes, lists of mappings, and every value whose type is not plain at first sight. */
export function readPlainYaml(text: string): PlainYaml | undefined {
  const maxLength = 64 * 1024;
  // Control characters, tabs and carriage returns, and characters that the library or a person may take for white
  // space.
  const unusual = /[^\n\x20-\x7e\u00a1-\u1fff\u2010-\u2027\u2030-\u205e\u2070-\u2fff\u3001-\ud7ff]/;
  if (text.length > maxLength || unusual.test(text)) return undefined;
  const lines: YamlLine[] = [];
  for (const [index, content] of text.split("\n").entries()) {
    const start = content.search(/[^ ]/);
    if (start >= 0 && content[start] !== "#")
      lines.push({ number: index + 1, indent: start, text: content.slice(start) });
  }
  try {
    const root = readMapping({ lines, at: 0 }, { indent: 0, depth: 0 });
    if (lines.length === 0) return undefined;
    return { input: root.value as PlainYaml["input"], lineOf: (path) => lineAt(root, path) };
  } catch (error) {
    if (error === notPlain) return undefined;
    throw error;
  }
}

const maxYamlDepth = 8;
const notPlain: unique symbol = Symbol("not plain YAML");

interface YamlLine {
  readonly number: number;
  readonly indent: number;
  readonly text: string;
}

interface Lines {
  readonly lines: readonly YamlLine[];
  at: number;
}

/** A value with its line, and the nodes inside it. */
interface PlainNode {
  readonly value: unknown;
  readonly line: number;
  readonly below?: ReadonlyMap<string, PlainNode> | undefined;
}

interface Level {
  readonly indent: number;
  readonly depth: number;
}

const itemLine = /^- +(.*)$/;

/** Reads the keys of one indentation. Only a line that closes the mapping may follow them. */
function readMapping(source: Lines, { indent, depth }: Level): PlainNode {
  const keyLine = /^(?:([A-Za-z][\w.-]*)|"([^"\\]+)"):(?: +(.*))?$/;
  const below = new Map<string, PlainNode>();
  const first = source.lines[source.at]?.number ?? 1;
  for (let line = source.lines[source.at]; line !== undefined; line = source.lines[source.at]) {
    if (line.indent < indent && depth > 0) break;
    const [, word, quoted, rest = ""] = (line.indent === indent && keyLine.exec(line.text)) || leaveToLibrary();
    const key = word ?? quoted ?? leaveToLibrary();
    if (below.has(key) || key === "__proto__" || isConstant(word)) leaveToLibrary();
    source.at++;
    const isOpen = rest === "" || rest.startsWith("#");
    const node = isOpen ? readBelow(source, { indent, depth: depth + 1 }) : readRest(rest, line.number, depth + 1);
    below.set(key, { ...node, line: line.number });
  }
  const entries = [...below].map(([key, { value }]) => [key, value] as const);
  return { value: Object.fromEntries(entries), line: first, below };
}

/** Reads the value of a key that has none on its own line. A list may start at the key's indentation. */
function readBelow(source: Lines, { indent, depth }: Level): PlainNode {
  const next = source.lines[source.at];
  if (next === undefined || next.indent < indent || depth > maxYamlDepth) leaveToLibrary();
  if (itemLine.test(next.text)) {
    const nodes: PlainNode[] = [];
    for (let line = source.lines[source.at]; line !== undefined; line = source.lines[source.at]) {
      const [, rest] = (line.indent === next.indent && itemLine.exec(line.text)) || [];
      if (rest === undefined && line.indent > next.indent) leaveToLibrary();
      if (rest === undefined) break;
      nodes.push(readRest(rest, line.number, 1));
      source.at++;
    }
    return createList(nodes, nodes[0]!.line);
  }
  return next.indent > indent ? readMapping(source, { indent: next.indent, depth }) : leaveToLibrary();
}

function createList(nodes: readonly PlainNode[], line: number): PlainNode {
  return { value: nodes.map(({ value }) => value), line, below: new Map(nodes.map((node, at) => [String(at), node])) };
}

/** Reads a value up to the end of its line. */
function readRest(rest: string, line: number, depth: number): PlainNode {
  if (/^["'[{]/.test(rest)) {
    const flow = { text: rest, at: 0, line };
    const node = readFlow(flow, depth);
    if (!/^ *(?: #.*)?$/.test(rest.slice(flow.at))) leaveToLibrary();
    return node;
  }
  const comment = rest.indexOf(" #");
  return { value: parseScalar((comment < 0 ? rest : rest.slice(0, comment)).replace(/ +$/, "")), line };
}

interface Flow {
  readonly text: string;
  at: number;
  readonly line: number;
}

function readFlow(flow: Flow, depth: number): PlainNode {
  if (depth > maxYamlDepth) leaveToLibrary();
  if (take(flow, /\[ */y) !== undefined) {
    const nodes: PlainNode[] = [];
    if (take(flow, /\]/y) !== undefined) return createList(nodes, flow.line);
    do nodes.push(readFlow(flow, depth + 1));
    while (take(flow, / *, +/y) !== undefined);
    return take(flow, / *\]/y) === undefined ? leaveToLibrary() : createList(nodes, flow.line);
  }
  if (take(flow, /\{ */y) !== undefined) return readFlowPairs(flow, depth);
  const [, double, single] = take(flow, /"([^"\\]*)"|'([^']*)'/y) ?? [];
  const value = double ?? single ?? parseScalar((take(flow, /\w[\w./@+-]*/y) ?? leaveToLibrary())[0]);
  return { value, line: flow.line };
}

function readFlowPairs(flow: Flow, depth: number): PlainNode {
  const below = new Map<string, PlainNode>();
  if (take(flow, /\}/y) === undefined) {
    do {
      const [, word, quoted] = take(flow, /(?:([A-Za-z][\w.-]*)|"([^"\\]+)"): +/y) ?? leaveToLibrary();
      const key = word ?? quoted ?? leaveToLibrary();
      if (below.has(key) || key === "__proto__" || isConstant(word)) leaveToLibrary();
      below.set(key, readFlow(flow, depth + 1));
    } while (take(flow, / *, +/y) !== undefined);
    if (take(flow, / *\}/y) === undefined) leaveToLibrary();
  }
  return { value: Object.fromEntries([...below].map(([key, { value }]) => [key, value])), line: flow.line, below };
}

function take(flow: Flow, pattern: RegExp): RegExpExecArray | undefined {
  pattern.lastIndex = flow.at;
  const found = pattern.exec(flow.text) ?? undefined;
  if (found !== undefined) flow.at += found[0].length;
  return found;
}

/** A word that YAML 1.2 takes for a constant, in any writing. */
function isConstant(word: string | undefined): boolean {
  return word !== undefined && /^(?:true|false|null)$/i.test(word);
}

function parseScalar(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  if (/^(?:0|[1-9]\d{0,14}|\d{1,9}\.\d{1,9})$/.test(text)) return Number(text);
  const isText = /^[A-Za-z]/.test(text) && !/:(?: |$)/.test(text) && !isConstant(text);
  return isText ? text : leaveToLibrary();
}

function leaveToLibrary(): never {
  throw notPlain;
}

function lineAt(root: PlainNode, path: readonly PropertyKey[]): number {
  let node = root;
  for (const part of path) {
    const next = node.below?.get(String(part));
    if (next === undefined) break;
    node = next;
  }
  return node.line;
}
