/** Reads JSON with comments and trailing commas, as people write it in configuration files, and finds where its values
 *  are. */
import { ContextError } from "../../core/errors.ts";
import { jsonStringEnd, matchEnd } from "../../core/text/index.ts";

export interface JsonDocument {
  /** Undefined if the text is empty or has only comments. */
  readonly root: JsonValue | undefined;
  /** The place after the byte order mark. */
  readonly start: number;
  /** The text ends in a `//` comment without a line break. */
  readonly endsInLineComment: boolean;
  /** Returns a value as data, and whether it contains comments. */
  read(value: Pick<JsonValue, "start" | "end">): { readonly data: unknown; readonly hasComments: boolean };
  /** Returns the line of a place, counted from 1. */
  lineAt(at: number): number;
}

export interface JsonValue {
  readonly start: number;
  readonly end: number;
  /** Only set for objects on the path to the entry: such files can hold megabytes of other things. */
  readonly object?: JsonObject | undefined;
}

export interface JsonObject {
  readonly start: number;
  readonly end: number;
  readonly members: readonly JsonMember[];
  /** The end of the last value, comma or comment inside. In an empty object, the end of the opening brace. */
  readonly lastEnd: number;
  /** The object ends in a `//` comment. */
  readonly endsInLineComment: boolean;
}

interface JsonMember {
  readonly key: string;
  /** The end of the brace, comma or comment before the member. */
  readonly gap: number;
  readonly start: number;
  readonly value: JsonValue;
  /** The end of the comma after the member, if there is one. */
  readonly commaEnd: number | undefined;
}

/** Checks the whole text and keeps the objects on the path `keys`. Throws an error with the line if the text is not
 *  valid JSON. */
export function scanJson(text: string, keys: readonly string[]): JsonDocument {
  const start = text.startsWith("\xef\xbb\xbf") ? 3 : 0;
  const first = nextToken(text, start);
  const root = first.kind === "end" ? undefined : scanValue(first, { text, keys, depth: 0 });
  const last = nextToken(text, root?.end ?? start);
  if (last.kind !== "end") throw unexpected(text, last);
  const endsInLineComment = last.comment === "line" && last.gap === text.length;
  return {
    root,
    start,
    endsInLineComment,
    read: (value) => readValue(text, value),
    lineAt: (at) => countLines(text, at),
  };
}

function readValue(text: string, { start, end }: Pick<JsonValue, "start" | "end">): ReturnType<JsonDocument["read"]> {
  const words: string[] = [];
  let hasComments = false;
  for (let token = nextToken(text, start); token.start < end; token = nextToken(text, token.end)) {
    if (token.comment !== "none") hasComments = true;
    const isClosing = token.kind === "}" || token.kind === "]";
    if (isClosing && words.at(-1) === ",") words.pop();
    words.push(text.slice(token.start, token.end));
  }
  try {
    return { data: JSON.parse(words.join("")), hasComments };
  } catch {
    // The text itself, if it has a wrong escape: then we did not write it.
    return { data: words.join(""), hasComments };
  }
}

interface Walk {
  readonly text: string;
  /** Undefined outside of the path. */
  readonly keys: readonly string[] | undefined;
  readonly depth: number;
}

/** Nobody nests deeper by hand, and deeper recursion would overflow the stack. */
const maxDepth = 1_000;

function scanValue(first: Token, walk: Walk): JsonValue {
  const { text, depth } = walk;
  if (depth > maxDepth) throw malformed(`nested deeper than ${maxDepth} levels`, { text, at: first.start });
  if (first.kind === "{") return scanObject(first, walk);
  if (first.kind === "[") return scanArray(first, walk);
  if (first.kind !== "string" && first.kind !== "scalar") throw unexpected(text, first);
  return { start: first.start, end: first.end };
}

function scanObject(open: Token, walk: Walk): JsonValue {
  const { text, keys } = walk;
  const members: JsonMember[] = [];
  let token = nextToken(text, open.end);
  while (token.kind !== "}") {
    const member = scanMember(token, walk);
    if (keys !== undefined) members.push(member);
    token = nextToken(text, member.commaEnd ?? member.value.end);
  }
  const [{ start }, { end, gap: lastEnd }] = [open, token];
  const endsInLineComment = token.comment === "line";
  return { start, end, object: keys && { start, end, members, lastEnd, endsInLineComment } };
}

function scanMember(name: Token, { text, keys, depth }: Walk): JsonMember {
  const key = parseKey(text, name);
  const colon = nextToken(text, name.end);
  if (colon.kind !== ":") throw unexpected(text, colon);
  const below = keys !== undefined && keys[0] === key ? keys.slice(1) : undefined;
  const value = scanValue(nextToken(text, colon.end), { text, keys: below, depth: depth + 1 });
  const next = nextToken(text, value.end);
  if (next.kind !== "," && next.kind !== "}") throw unexpected(text, next);
  const commaEnd = next.kind === "," ? next.end : undefined;
  return { key, gap: name.gap, start: name.start, value, commaEnd };
}

function scanArray(open: Token, { text, depth }: Walk): JsonValue {
  let token = nextToken(text, open.end);
  while (token.kind !== "]") {
    const value = scanValue(token, { text, keys: undefined, depth: depth + 1 });
    token = nextToken(text, value.end);
    if (token.kind === ",") token = nextToken(text, token.end);
    else if (token.kind !== "]") throw unexpected(text, token);
  }
  return { start: open.start, end: token.end };
}

function parseKey(text: string, token: Token): string {
  if (token.kind !== "string") throw unexpected(text, token);
  try {
    return JSON.parse(text.slice(token.start, token.end));
  } catch {
    throw malformed("a name is not a valid string", { text, at: token.start });
  }
}

function unexpected(text: string, { kind, start, end }: Token): ContextError {
  if (kind === "end") return malformed("the text ends too early", { text, at: start });
  return malformed(`unexpected ${text.slice(start, Math.min(end, start + 40))}`, { text, at: start });
}

/** A word of JSON. Comments are allowed before it, as editors allow them. */
interface Token {
  readonly kind: "{" | "}" | "[" | "]" | ":" | "," | "string" | "scalar" | "end";
  readonly start: number;
  readonly end: number;
  /** The end of the last comment before the token; without a comment, the place where the search began. */
  readonly gap: number;
  /** The kind of that comment. */
  readonly comment: "none" | "block" | "line";
}

/** Returns the first token at or after `at`. Throws if the text is not JSON there. */
function nextToken(text: string, at: number): Token {
  const { start, gap, comment } = skipComments(text, at);
  const first = text[start];
  if (first === undefined) return { kind: "end", start, end: start, gap, comment };
  if (isPunctuation(first)) return { kind: first, start, end: start + 1, gap, comment };
  if (first === '"') return { kind: "string", start, end: lineStringEnd(text, start), gap, comment };
  return { kind: "scalar", start, end: validScalarEnd(text, start), gap, comment };
}

/** Says what is wrong and on which line. The caller adds the file. */
function malformed(what: string, { text, at }: { text: string; at: number }): ContextError {
  return new ContextError("unreadable_input", `is not valid JSON: ${what}`, {
    line: countLines(text, at),
    hint: "Repair the file and run the command again.",
  });
}

function countLines(text: string, at: number): number {
  return text.slice(0, at).split(/\r\n|\r|\n/).length;
}

const spaces = /[ \t\r\n]*/y;

function skipComments(text: string, at: number): Pick<Token, "start" | "gap" | "comment"> {
  let gap = at;
  let comment: Token["comment"] = "none";
  for (let start = matchEnd(spaces, text, at); ; start = matchEnd(spaces, text, gap)) {
    if (text[start] !== "/") return { start, gap, comment };
    const second = text[start + 1];
    if (second === "/") gap = matchEnd(/[^\r\n]*/y, text, start);
    else if (second === "*") gap = text.indexOf("*/", start + 2) + 2;
    else throw malformed('unexpected "/"', { text, at: start });
    if (gap === 1) throw malformed("a comment does not end", { text, at: start });
    comment = second === "/" ? "line" : "block";
  }
}

function isPunctuation(character: string): character is "{" | "}" | "[" | "]" | ":" | "," {
  return "{}[]:,".includes(character);
}

function lineStringEnd(text: string, start: number): number {
  const end = jsonStringEnd(text, start);
  if (end > start && !/[\r\n]/.test(text.slice(start, end))) return end;
  throw malformed("a string does not end", { text, at: start });
}

const scalar = /[^\s,:[\]{}"/]*/y;
const validScalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

function validScalarEnd(text: string, start: number): number {
  const end = matchEnd(scalar, text, start);
  const word = text.slice(start, Math.min(end, start + 40)) || text[start]!;
  if (end > start && validScalar.test(text.slice(start, end))) return end;
  throw malformed(`unexpected ${JSON.stringify(word)}`, { text, at: start });
}
