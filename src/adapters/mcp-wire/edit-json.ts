/**
 * Adds an entry to a JSON file and removes it again. It only inserts and cuts text, so removing gives the old bytes back. The layout
 * records how much around the entry is ours, so no other record is needed: the outermost thing that we wrote is spread over lines,
 * and everything inside it is on one line. jsonc-parser cannot do this: its edits reformat neighbours, move comments and change the
 * first of two members with the same name.
 */
import { isDeepStrictEqual } from "node:util";
import { ContextError } from "../../errors.ts";
import { type JsonToken, jsonLineAt, malformedJson, nextJsonToken } from "../../text/index.ts";
import { type ConfigFormat, foreignEntry, type LocatedEntry, type WiredServer } from "./wired-server.ts";

export const jsonFormat: ConfigFormat = {
  ...{ add, remove, locate },
  renderPair: (key, value) => `${JSON.stringify(key)}: ${renderLine(value)}`,
  separator: ", ",
};

function add(current: string | undefined, server: WiredServer): string {
  const path = [...server.keys, server.name];
  const whole = nested(path, server);
  if (current === undefined) return `${renderSpread(whole, "", styleOf(""))}\n`;
  const { root, start, endsInLineComment } = scanJson(current, path);
  if (root === undefined) {
    const text = renderSpread(whole, "", styleOf(current));
    // After a comment without a line break, the entry would be part of the comment.
    return endsInLineComment ? `${current.slice(0, start)}${text}${current.slice(start)}` : `${current}${text}`;
  }
  const steps = stepsTo(root, { path, text: current });
  const { object, member } = steps.at(-1)!;
  if (member === undefined) {
    const [key, ...below] = path.slice(steps.length - 1);
    return insertMember(current, object, { key: key!, value: nested(below, server) });
  }
  if (!isDeepStrictEqual(readValue(current, member.value).data, server.entry))
    throw foreignEntry(server, jsonLineAt(current, member.start));
  return current;
}

function remove(current: string, server: WiredServer): string | undefined {
  const path = [...server.keys, server.name];
  const document = scanJson(current, path);
  if (document.root === undefined) return current;
  const steps = stepsTo(document.root, { path, text: current });
  const { member } = steps.at(-1)!;
  if (member === undefined) return current;
  const { data, hasComments } = readValue(current, member.value);
  if (hasComments || !isDeepStrictEqual(data, server.entry))
    throw foreignEntry(server, jsonLineAt(current, member.start));
  for (const { object, member: each } of steps.toReversed()) {
    const isOutermost = hasLineBreak(current, each!.value) || !isAlone(current, object);
    if (isOutermost) return cutMember(current, object, each!);
  }
  return withoutRoot(current, document, steps[0]!);
}

function locate(current: string, { keys, name }: Pick<WiredServer, "keys" | "name">): LocatedEntry | undefined {
  const path = [...keys, name, "command"];
  const { root } = scanJson(current, path);
  const steps = root === undefined ? [] : stepsTo(root, { path, text: current });
  const entry = steps.length === path.length ? steps.at(-1)?.object : undefined;
  if (entry === undefined) return undefined;
  const { data } = readValue(current, entry);
  return {
    ...{ start: entry.start, end: entry.end, data: data as Record<string, unknown> },
    pair(key) {
      const member = entry.members.findLast((each) => each.key === key);
      return member && { start: member.start, end: member.value.end };
    },
  };
}

/** Returns the data of JSON with comments and trailing commas. Throws an error with the line if it is malformed. */
export function readJsonc(text: string): unknown {
  const { root } = scanJson(text, []);
  return root === undefined ? undefined : readValue(text, root).data;
}

/** Wraps the entry in one object for each key. */
function nested(keys: readonly string[], { entry }: WiredServer): object {
  return keys.reduceRight<object>((value, key) => ({ [key]: value }), entry);
}

interface Step {
  readonly object: JsonObject;
  /** Undefined if the object has no member of that name. If it has several, the last one, as in JSON.parse. */
  readonly member: JsonMember | undefined;
}

function stepsTo(root: JsonValue, { path, text }: { path: readonly string[]; text: string }): Step[] {
  const steps: Step[] = [];
  let value: JsonValue = root;
  for (const [index, key] of path.entries()) {
    const { object } = value;
    if (object === undefined) throw noObject(path.slice(0, index), jsonLineAt(text, value.start));
    const member = object.members.findLast((each) => each.key === key);
    steps.push({ object, member });
    if (member === undefined) break;
    value = member.value;
  }
  return steps;
}

function noObject(path: readonly string[], line: number): ContextError {
  const what = path.length === 0 ? "does not hold an object" : `${path.join(".")} is not an object`;
  return new ContextError("unreadable_input", what, {
    line,
    hint: "Repair the file and run the command again.",
  });
}

/** True if the object has no other member and no comment. */
function isAlone(text: string, object: JsonObject): boolean {
  return object.members.length === 1 && !readValue(text, object).hasComments;
}

/** Removes the root object. Returns undefined if the whole file is ours; such a file ends in a line break. */
function withoutRoot(text: string, { root, start }: JsonDocument, step: Step): string | undefined {
  const [before, after] = [text.slice(0, root!.start), text.slice(root!.end)];
  if (hasLineBreak(text, root!)) {
    if (after === "") return before;
    if (before === "" && after === "\n") return undefined;
    if (root!.start === start && scanJson(after, []).endsInLineComment) return `${before}${after}`;
  }
  return cutMember(text, step.object, step.member!);
}

interface NewMember {
  readonly key: string;
  readonly value: object;
}

/** Adds a member at the end of the object. `cutMember` undoes it byte for byte. */
function insertMember(text: string, object: JsonObject, { key, value }: NewMember): string {
  const { lastEnd, members } = object;
  const last = members.at(-1);
  const { separator, indent, isSpread } = layoutOf(text, object);
  const rendered = isSpread ? renderSpread(value, indent, styleOf(text)) : renderLine(value);
  const member = `${separator}${JSON.stringify(key)}: ${rendered}`;
  if (last === undefined) {
    // Opens an empty object. What was between its braces stays before the closing brace.
    const closing = lastEnd === object.start + 1 ? `${newlineOf(text)}${indentAt(text, object.start)}` : "";
    return splice(text, { at: lastEnd, inserted: `${member}${closing}` });
  }
  // Keeps a trailing comma, which also shows on removal that there was one.
  if (last.commaEnd !== undefined) return splice(text, { at: lastEnd, inserted: `${member},` });
  const added = splice(text, { at: lastEnd, inserted: member });
  return splice(added, { at: last.value.end, inserted: "," });
}

/** Removes a member. */
function cutMember(text: string, { start, members }: JsonObject, member: JsonMember): string {
  const { gap, value, commaEnd } = member;
  const index = members.indexOf(member);
  const before = members[index - 1];
  if (commaEnd === undefined && before?.commaEnd !== undefined) {
    const rest = text.slice(0, gap) + text.slice(value.end);
    return rest.slice(0, before.commaEnd - 1) + rest.slice(before.commaEnd);
  }
  const isOpened = members.length === 1 && commaEnd === undefined && gap === start + 1;
  const end = isOpened ? value.end + openingLength(text, { at: value.end, start }) : (commaEnd ?? value.end);
  return text.slice(0, gap) + text.slice(end);
}

interface Layout {
  readonly separator: string;
  readonly indent: string;
  readonly isSpread: boolean;
}

/** Follows the members before it: one on each line, or all on one line. */
function layoutOf(text: string, { start, members, endsInLineComment }: JsonObject): Layout {
  const last = members.at(-1);
  const isOnOwnLine =
    last !== undefined && hasLineBreak(text, { start: members.at(-2)?.commaEnd ?? start, end: last.start });
  const indent = isOnOwnLine ? indentAt(text, last.start) : indentAt(text, start) + styleOf(text).unit;
  const isSpread = isOnOwnLine || last === undefined;
  const separator = isSpread || endsInLineComment ? `${newlineOf(text)}${indent}` : " ";
  return { separator, indent, isSpread };
}

function newlineOf(text: string): string {
  return styleOf(text).newline;
}

/** Returns the length of the line break that was added to open an empty object. */
function openingLength(text: string, { at, start }: { readonly at: number; readonly start: number }): number {
  const newline = text.startsWith("\r\n", at) ? "\r\n" : "\n";
  const opening = `${newline}${indentAt(text, start)}`;
  return text.startsWith(opening, at) ? opening.length : 0;
}

function splice(text: string, { at, inserted }: { at: number; inserted: string }): string {
  return text.slice(0, at) + inserted + text.slice(at);
}

interface JsonStyle {
  readonly newline: string;
  /** One step of indentation. */
  readonly unit: string;
}

/** Reads the style from the file itself. */
function styleOf(text: string): JsonStyle {
  return {
    newline: text.includes("\r\n") ? "\r\n" : "\n",
    unit: /[\r\n]([ \t]+)["/]/.exec(text)?.[1] ?? "  ",
  };
}

/** Writes a value on one line: `{ "a": ["b"] }`. */
function renderLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${membersOf(value).join(", ")} }`;
}

/** Writes an object over several lines, with one member on each line. */
function renderSpread(value: object, indent: string, { newline, unit }: JsonStyle): string {
  const members = membersOf(value).join(`,${newline}${indent}${unit}`);
  return `{${newline}${indent}${unit}${members}${newline}${indent}}`;
}

function membersOf(value: object): string[] {
  return Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${renderLine(each)}`);
}

/** Returns the indentation of the line that holds `at`. */
function indentAt(text: string, at: number): string {
  const lineStart = Math.max(text.lastIndexOf("\n", at - 1), text.lastIndexOf("\r", at - 1)) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, at))![0];
}

function hasLineBreak(text: string, { start, end }: Pick<JsonValue, "start" | "end">): boolean {
  return /[\r\n]/.test(text.slice(start, end));
}

/** Returns the value as data, and whether it contains comments. */
function readValue(
  text: string,
  { start, end }: Pick<JsonValue, "start" | "end">,
): { readonly data: unknown; readonly hasComments: boolean } {
  const words: string[] = [];
  let hasComments = false;
  for (let token = nextJsonToken(text, start); token.start < end; token = nextJsonToken(text, token.end)) {
    if (token.comment !== "none") hasComments = true;
    const isClosing = token.kind === "}" || token.kind === "]";
    if (isClosing && words.at(-1) === ",") words.pop();
    words.push(text.slice(token.start, token.end));
  }
  return { data: parse(words.join("")), hasComments };
}

/** Returns the text itself if it has a wrong escape: then we did not write it. */
function parse(words: string): unknown {
  try {
    return JSON.parse(words);
  } catch {
    return words;
  }
}

interface JsonValue {
  readonly start: number;
  readonly end: number;
  /** Only set for objects on the path to the entry: such files can hold megabytes of other things. */
  readonly object?: JsonObject | undefined;
}

interface JsonObject {
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

interface JsonDocument {
  /** Undefined if the text is empty or has only comments. */
  readonly root: JsonValue | undefined;
  /** The place after the byte order mark. */
  readonly start: number;
  /** The text ends in a `//` comment without a line break. */
  readonly endsInLineComment: boolean;
}

/** Checks the whole text and keeps the objects on the path `keys`. Throws an error with the line if the text is not valid JSON. */
function scanJson(text: string, keys: readonly string[]): JsonDocument {
  const start = text.startsWith("\xef\xbb\xbf") ? 3 : 0;
  const first = nextJsonToken(text, start);
  const root = first.kind === "end" ? undefined : scanValue(first, { text, keys, depth: 0 });
  const last = nextJsonToken(text, root?.end ?? start);
  if (last.kind !== "end") throw unexpected(text, last);
  const endsInLineComment = last.comment === "line" && last.gap === text.length;
  return { root, start, endsInLineComment };
}

interface Walk {
  readonly text: string;
  /** Undefined outside of the path. */
  readonly keys: readonly string[] | undefined;
  readonly depth: number;
}

/** Nobody nests deeper by hand, and deeper recursion would overflow the stack. */
const maxDepth = 1_000;

function scanValue(first: JsonToken, walk: Walk): JsonValue {
  const { text, depth } = walk;
  if (depth > maxDepth) throw malformedJson(`nested deeper than ${maxDepth} levels`, { text, at: first.start });
  if (first.kind === "{") return scanObject(first, walk);
  if (first.kind === "[") return scanArray(first, walk);
  if (first.kind !== "string" && first.kind !== "scalar") throw unexpected(text, first);
  return { start: first.start, end: first.end };
}

function scanObject(open: JsonToken, walk: Walk): JsonValue {
  const { text, keys } = walk;
  const members: JsonMember[] = [];
  let token = nextJsonToken(text, open.end);
  while (token.kind !== "}") {
    const member = scanMember(token, walk);
    if (keys !== undefined) members.push(member);
    token = nextJsonToken(text, member.commaEnd ?? member.value.end);
  }
  const [{ start }, { end, gap: lastEnd }] = [open, token];
  const endsInLineComment = token.comment === "line";
  return { start, end, object: keys && { start, end, members, lastEnd, endsInLineComment } };
}

function scanMember(name: JsonToken, { text, keys, depth }: Walk): JsonMember {
  const key = keyOf(text, name);
  const colon = nextJsonToken(text, name.end);
  if (colon.kind !== ":") throw unexpected(text, colon);
  const below = keys !== undefined && keys[0] === key ? keys.slice(1) : undefined;
  const value = scanValue(nextJsonToken(text, colon.end), { text, keys: below, depth: depth + 1 });
  const next = nextJsonToken(text, value.end);
  if (next.kind !== "," && next.kind !== "}") throw unexpected(text, next);
  const commaEnd = next.kind === "," ? next.end : undefined;
  return { key, gap: name.gap, start: name.start, value, commaEnd };
}

function scanArray(open: JsonToken, { text, depth }: Walk): JsonValue {
  let token = nextJsonToken(text, open.end);
  while (token.kind !== "]") {
    const value = scanValue(token, { text, keys: undefined, depth: depth + 1 });
    token = nextJsonToken(text, value.end);
    if (token.kind === ",") token = nextJsonToken(text, token.end);
    else if (token.kind !== "]") throw unexpected(text, token);
  }
  return { start: open.start, end: token.end };
}

function keyOf(text: string, token: JsonToken): string {
  if (token.kind !== "string") throw unexpected(text, token);
  try {
    return JSON.parse(text.slice(token.start, token.end));
  } catch {
    throw malformedJson("a name is not a valid string", { text, at: token.start });
  }
}

function unexpected(text: string, { kind, start, end }: JsonToken): ContextError {
  if (kind === "end") return malformedJson("the text ends too early", { text, at: start });
  return malformedJson(`unexpected ${text.slice(start, Math.min(end, start + 40))}`, { text, at: start });
}
