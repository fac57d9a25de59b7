/** Where things stand in a text of JSON, so that it can be edited without being printed anew. Only the objects on one way through
 *  it are kept: such files can hold megabytes of other things. */
import { type JsonToken, malformed, nextToken } from "./json-tokens.ts";

export interface JsonValue {
  readonly start: number;
  readonly end: number;
  /** Only of an object on the way. */
  readonly object?: JsonObject | undefined;
}

export interface JsonObject {
  readonly start: number;
  readonly end: number;
  readonly members: readonly JsonMember[];
  /** Where the last thing inside ends: a value, a comma or a comment; the brace itself where there is nothing. */
  readonly lastEnd: number;
  /** The last thing is a comment that goes to the end of its line. */
  readonly endsInLineComment: boolean;
}

export interface JsonMember {
  readonly key: string;
  /** Where what stands before it ends: a brace, a comma or a comment. */
  readonly gap: number;
  readonly start: number;
  readonly value: JsonValue;
  /** Where its comma ends, if it has one. */
  readonly commaEnd: number | undefined;
}

export interface JsonDocument {
  /** Absent where the text is empty or only comments. */
  readonly root: JsonValue | undefined;
  /** After the byte order mark. */
  readonly start: number;
  /** The text ends in a comment that no line break closes. */
  readonly endsInLineComment: boolean;
}

/** Reads the whole text, and keeps the objects on the way that `keys` name. Throws for what is no JSON, with the line. */
export function scanJson(text: string, keys: readonly string[]): JsonDocument {
  const start = text.startsWith("\xef\xbb\xbf") ? 3 : 0;
  const first = nextToken(text, start);
  const root = first.kind === "end" ? undefined : scanValue(first, { text, keys, depth: 0 });
  const last = nextToken(text, root?.end ?? start);
  if (last.kind !== "end") throw unexpected(text, last);
  const endsInLineComment = last.comment === "line" && last.gap === text.length;
  return { root, start, endsInLineComment };
}

interface Walk {
  readonly text: string;
  /** Absent: off the way. */
  readonly keys: readonly string[] | undefined;
  readonly depth: number;
}

/** No one writes this by hand, and the stack has an end. */
const maxDepth = 1_000;

function scanValue(first: JsonToken, walk: Walk): JsonValue {
  const { text, depth } = walk;
  if (depth > maxDepth) throw malformed(`nested deeper than ${maxDepth} levels`, { text, at: first.start });
  if (first.kind === "{") return scanObject(first, walk);
  if (first.kind === "[") return scanArray(first, walk);
  if (first.kind !== "string" && first.kind !== "scalar") throw unexpected(text, first);
  return { start: first.start, end: first.end };
}

function scanObject(open: JsonToken, walk: Walk): JsonValue {
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

function scanMember(name: JsonToken, { text, keys, depth }: Walk): JsonMember {
  const key = keyOf(text, name);
  const colon = nextToken(text, name.end);
  if (colon.kind !== ":") throw unexpected(text, colon);
  const below = keys !== undefined && keys[0] === key ? keys.slice(1) : undefined;
  const value = scanValue(nextToken(text, colon.end), { text, keys: below, depth: depth + 1 });
  const next = nextToken(text, value.end);
  if (next.kind !== "," && next.kind !== "}") throw unexpected(text, next);
  const commaEnd = next.kind === "," ? next.end : undefined;
  return { key, gap: name.gap, start: name.start, value, commaEnd };
}

function scanArray(open: JsonToken, { text, depth }: Walk): JsonValue {
  let token = nextToken(text, open.end);
  while (token.kind !== "]") {
    const value = scanValue(token, { text, keys: undefined, depth: depth + 1 });
    token = nextToken(text, value.end);
    if (token.kind === ",") token = nextToken(text, token.end);
    else if (token.kind !== "]") throw unexpected(text, token);
  }
  return { start: open.start, end: token.end };
}

function keyOf(text: string, token: JsonToken): string {
  if (token.kind !== "string") throw unexpected(text, token);
  try {
    return JSON.parse(text.slice(token.start, token.end));
  } catch {
    throw malformed("a name is no valid string", { text, at: token.start });
  }
}

function unexpected(text: string, { kind, start, end }: JsonToken): Error {
  if (kind === "end") return malformed("the text ends too early", { text, at: start });
  return malformed(`unexpected ${text.slice(start, Math.min(end, start + 40))}`, { text, at: start });
}
