/** Reads YAML without a schema: its value, the line of each key, and all mistakes in the syntax. Loads yaml. */
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
import { firstWarnings, formatNumber, messageOf } from "../../core/text/index.ts";

// For a file that is edited, not only read.
export { isScalar, isSeq, YAMLSeq } from "yaml";

export interface ReadYaml {
  /** Undefined if the text cannot be parsed. */
  readonly document: Document | undefined;
  /** Plain data. Undefined if there are problems. */
  readonly input: unknown;
  readonly problems: readonly YamlProblem[];
  /** Returns the line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
  /** Returns a scalar as written: 1.10 is not 1.1. */
  sourceOf(path: readonly PropertyKey[]): string | undefined;
}

export interface YamlProblem {
  /** The key with the mistake. Empty for the whole file. */
  readonly path: readonly PropertyKey[];
  readonly line: number;
  readonly rule: "malformed-yaml" | "unknown-key" | "missing-key" | "invalid-value";
  readonly message: string;
}

/** Reads YAML without a schema. Anybody may have written it, so size, depth and the growth of aliases are bounded, and
 *  values are those of the core schema. Never throws. */
export function readYaml(text: string): ReadYaml {
  // More than people write by hand. The slowest input of this size is read in two seconds.
  const maxBytes = 256 * 1024;
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) return unreadable(1, `${formatNumber(bytes)} bytes. More than 256 KB are not read`);
  const lineCounter = new LineCounter();
  const lineAt = (offset: number) => lineCounter.linePos(offset).line || 1;
  const composed = compose(text, lineCounter);
  if ("message" in composed) return unreadable(lineAt(composed.offset), composed.message);
  const { document, faults } = composed;
  const { contents } = document;
  const lineOf = (path: readonly PropertyKey[]) => lineAt(findOffset(contents, path));
  // Finds faults that the library accepts: keys that are not texts, aliases without an anchor or of too many
  // values, a key twice in one mapping.
  const inspection: Inspection = { faults: [], anchors: new Map(), aliases: 0, aliasValues: 0 };
  inspectNode(contents, inspection);
  const found = [...faults, ...inspection.faults].sort((one, two) => one.offset - two.offset);
  const problems = firstWarnings(found.map(({ message, offset }) => malformed(message, lineAt(offset))));
  const sourceOf = (path: readonly PropertyKey[]) => {
    let node: unknown = contents;
    for (const part of path) node = findChild(node, part)[1];
    return isScalar(node) && !isAlias(node) ? node.source : undefined;
  };
  if (problems.length > 0) return { document, input: undefined, problems, lineOf, sourceOf };
  try {
    // Aliases were counted already.
    return { document, input: document.toJS({ maxAliasCount: -1 }), problems, lineOf, sourceOf };
  } catch (error) {
    // A merge key (`<<:`) without a mapping is found only here. The library does not report which one is wrong, so
    // this names the first.
    return unreadable(lineAt(Math.max(0, text.search(/<<\s*:/))), messageOf(error));
  }
}

/** Nested mappings and lists. The library recurses as deep as its input. If the stack overflows inside a regular
 *  expression, V8 ends the process, which cannot be caught. */
const maxLevels = 64;

interface Fault {
  readonly offset: number;
  readonly message: string;
}

/** Returns the document with the library's errors, or a single fault if it must not continue. */
function compose(
  text: string,
  lineCounter: LineCounter,
): { readonly document: Document; readonly faults: readonly Fault[] } | Fault {
  const secondDocument = 'a second document starts with "---": keep one document per file';
  const composer = new Composer({
    merge: true,
    schema: "core",
    // Otherwise the library turns !!binary, !!set and !!omap into values that are not plain data.
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
    // The library's own words are meant for programmers.
    message: isTag({ code }) ? "a value has a tag that is not supported: remove the word that starts with !" : message,
  }));
  if (second !== undefined) faults.push({ offset: second.range[0], message: secondDocument });
  return { document: document!, faults };
}

/** Does the same as the library's loop from text to tokens, but stops at too many levels or errors. */
function readTokens(text: string, lineCounter: LineCounter): { readonly tokens: CST.Token[] } | Fault {
  // Nobody reads more mistakes of one file.
  const maxErrors = 100;
  const parser = new Parser(lineCounter.addNewLine);
  lineCounter.addNewLine(0);
  const tokens: CST.Token[] = [];
  let errors = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) {
      tokens.push(token);
      if (token.type === "error" && ++errors > maxErrors) return { tokens };
    }
    // The first one is the document.
    const isDeep = parser.stack.length - 1 > maxLevels;
    if (isDeep && ["block-map", "block-seq", "flow-collection"].includes(parser.stack.at(-1)!.type))
      return { offset: parser.offset, message: `nested too deeply: more than ${maxLevels} levels are not read` };
  }
  tokens.push(...parser.end());
  return { tokens };
}

interface Inspection {
  readonly faults: Fault[];
  readonly anchors: Map<
    string,
    {
      /** The number of values that it expands to. */
      readonly size: number;
      readonly isList: boolean;
    }
  >;
  aliases: number;
  aliasValues: number;
}

/** Returns the number of values that the node expands to. Recurses as deep as the text, which is bounded. */
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
  // An alias inside the value that it names is unknown here too.
  if (anchored === undefined) faults.push(faultAt(node, `the alias *${node.source} has no anchor before it`));
  const size = anchored?.size ?? 1;
  const wasWithin = isWithin(inspection);
  inspection.aliases++;
  inspection.aliasValues += size;
  if (wasWithin && !isWithin(inspection)) faults.push(faultAt(node, "aliases expand to too many values"));
  return size;
}

function isWithin({ aliases, aliasValues }: Inspection): boolean {
  // The library searches all anchors for each alias.
  const maxAliases = 1_000;
  // The number of values that all aliases of a file expand to.
  const maxAliasValues = 100_000;
  return aliases <= maxAliases && aliasValues <= maxAliasValues;
}

/** The library turns such a key into text, nested keys included, so each level doubles its length. */
function inspectKey(key: unknown, known: Set<unknown>, { faults, anchors }: Inspection): void {
  const isList = isAlias(key) ? anchors.get(key.source)?.isList : isMap(key) || isSeq(key);
  if (isList) faults.push(faultAt(key, "a key is a list or a mapping: write a text"));
  if (!isScalar(key)) return;
  if (known.has(key.value)) faults.push(faultAt(key, `the key "${key.value}" is already there: keep one of the two`));
  known.add(key.value);
}

function faultAt(node: unknown, message: string): Fault {
  return { offset: (node as Node).range?.[0] ?? 0, message };
}

function unreadable(line: number, message: string): ReadYaml {
  return {
    document: undefined,
    input: undefined,
    problems: [malformed(message, line)],
    lineOf: () => 1,
    sourceOf: () => undefined,
  };
}

function malformed(message: string, line: number): YamlProblem {
  return { path: [], line, rule: "malformed-yaml", message: `malformed YAML: ${message}` };
}

/** Returns the offset of the key, or of the deepest part of the path that exists. */
function findOffset(contents: unknown, path: readonly PropertyKey[]): number {
  let node = contents;
  let offset = (contents as Node | null | undefined)?.range?.[0] ?? 0;
  for (const part of path) {
    const [keyNode, valueNode] = findChild(node, part);
    if (keyNode === undefined) break;
    offset = (keyNode as Node).range?.[0] ?? offset;
    node = valueNode;
  }
  return offset;
}

function findChild(node: unknown, part: PropertyKey): [unknown, unknown] | [] {
  if (isSeq(node)) return [node.items[Number(part)], node.items[Number(part)]];
  if (!isMap(node)) return [];
  const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === part);
  return pair === undefined ? [] : [pair.key, pair.value];
}
