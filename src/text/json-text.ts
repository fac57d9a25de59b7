/** Finds values in a text of JSON and edits them in place. JSON.parse and JSON.stringify would round long numbers and change the rest
 *  of the text as well. Most functions expect a text that JSON.parse has accepted and do not check it. `nextJsonToken` is for files
 *  that people write: it accepts comments and checks every word. */
import { ContextError } from "../errors.ts";

export interface JsonRange {
  readonly start: number;
  readonly end: number;
}

export interface JsonMember extends JsonRange {
  readonly name: string;
  readonly value: JsonRange;
}

export interface JsonEdit extends JsonRange {
  readonly text: string;
}

/** Returns the members of the first object at or after `start`. */
export function membersOf(text: string, start: number): JsonMember[] {
  const members: JsonMember[] = [];
  for (let at = skip(text, text.indexOf("{", start) + 1); text[at] === '"'; ) {
    const nameEnd = stringEnd(text, at);
    const valueStart = skip(text, nameEnd);
    const end = valueEnd(text, valueStart);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    members.push({ name, start: at, end, value: { start: valueStart, end } });
    at = skip(text, end);
  }
  return members;
}

/** Returns the last member of that name: JSON.parse takes the last one too. */
export function memberOf(text: string, start: number, name: string): JsonMember | undefined {
  return membersOf(text, start).findLast((member) => member.name === name);
}

/** Returns the elements of the first list at or after `start`. */
export function elementsOf(text: string, start: number): JsonRange[] {
  return valuesFrom(text, text.indexOf("[", start) + 1);
}

/** Returns the values from `start` on: the elements of a list whose bracket is just before `start`, or the values of JSON Lines. */
export function valuesFrom(text: string, start: number): JsonRange[] {
  const values: JsonRange[] = [];
  for (let at = skip(text, start); ; ) {
    const end = valueEnd(text, at);
    if (end === at) return values;
    values.push({ start: at, end });
    at = skip(text, end);
  }
}

/** Applies edits that do not overlap. */
export function applyEdits(text: string, edits: readonly JsonEdit[]): string {
  const parts: string[] = [];
  let at = 0;
  for (const edit of [...edits].sort((left, right) => left.start - right.start)) {
    parts.push(text.slice(at, edit.start), edit.text);
    at = edit.end;
  }
  return parts.join("") + text.slice(at);
}

/** True if JSON.parse would round a whole number of the text, such as an id of 64 bits. */
export function hasLongNumbers(text: string): boolean {
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === quote) at = stringEnd(text, at);
    else if (isDigit(code)) {
      const end = endOf(scalar, text, at);
      if (end - at > 15 && isRounded(text.slice(at, end))) return true;
      at = end;
    } else at += 1;
  }
  return false;
}

const [quote, openList, closeList, openObject, closeObject] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Ignores decimal fractions: their last digits seldom matter. */
function isRounded(number: string): boolean {
  return /^\d+$/.test(number) && String(BigInt(number)) !== String(BigInt(Number(number)));
}

const filler = /[\s,:]*/y;

function skip(text: string, start: number): number {
  return endOf(filler, text, start);
}

/** Returns `start` itself if no value begins there. */
function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === quote) return stringEnd(text, start);
  return first === openObject || first === openList ? nestedEnd(text, start) : endOf(scalar, text, start);
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const code = text.charCodeAt(at);
    if (code === openList || code === openObject) depth++;
    else if (code === closeList || code === closeObject) depth--;
    at = code === quote ? stringEnd(text, at) : at + 1;
  } while (depth > 0);
  return at;
}

/** A word of JSON. Comments are allowed before it, as editors allow them. */
export interface JsonToken {
  readonly kind: "{" | "}" | "[" | "]" | ":" | "," | "string" | "scalar" | "end";
  readonly start: number;
  readonly end: number;
  /** The end of the last comment before the token; without a comment, the place where the search began. */
  readonly gap: number;
  /** The kind of that comment. */
  readonly comment: "none" | "block" | "line";
}

/** Returns the first token at or after `at`. Throws if the text is not JSON there. */
export function nextJsonToken(text: string, at: number): JsonToken {
  const { start, gap, comment } = skipComments(text, at);
  const first = text[start];
  if (first === undefined) return { kind: "end", start, end: start, gap, comment };
  if (isPunctuation(first)) return { kind: first, start, end: start + 1, gap, comment };
  if (first === '"') return { kind: "string", start, end: lineStringEnd(text, start), gap, comment };
  return { kind: "scalar", start, end: validScalarEnd(text, start), gap, comment };
}

/** Says what is wrong and on which line. The caller adds the file. */
export function malformedJson(what: string, { text, at }: { text: string; at: number }): ContextError {
  return new ContextError("unreadable_input", `is not valid JSON: ${what}`, {
    line: jsonLineAt(text, at),
    hint: "Repair the file and run the command again.",
  });
}

export function jsonLineAt(text: string, at: number): number {
  return text.slice(0, at).split(/\r\n|\r|\n/).length;
}

const spaces = /[ \t\r\n]*/y;
const restOfLine = /[^\r\n]*/y;

function skipComments(text: string, at: number): Pick<JsonToken, "start" | "gap" | "comment"> {
  let gap = at;
  let comment: JsonToken["comment"] = "none";
  for (let start = endOf(spaces, text, at); ; start = endOf(spaces, text, gap)) {
    if (text[start] !== "/") return { start, gap, comment };
    const second = text[start + 1];
    if (second === "/") gap = endOf(restOfLine, text, start);
    else if (second === "*") gap = blockCommentEnd(text, start);
    else throw malformedJson('unexpected "/"', { text, at: start });
    comment = second === "/" ? "line" : "block";
  }
}

function blockCommentEnd(text: string, start: number): number {
  const end = text.indexOf("*/", start + 2);
  if (end === -1) throw malformedJson("a comment does not end", { text, at: start });
  return end + 2;
}

function isPunctuation(character: string): character is "{" | "}" | "[" | "]" | ":" | "," {
  return "{}[]:,".includes(character);
}

function lineStringEnd(text: string, start: number): number {
  const end = stringEnd(text, start);
  if (end > start && !/[\r\n]/.test(text.slice(start, end))) return end;
  throw malformedJson("a string does not end", { text, at: start });
}

const scalar = /[^\s,:[\]{}"/]*/y;
const validScalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

function validScalarEnd(text: string, start: number): number {
  const end = endOf(scalar, text, start);
  const word = text.slice(start, Math.min(end, start + 40)) || text[start]!;
  if (end > start && validScalar.test(text.slice(start, end))) return end;
  throw malformedJson(`unexpected ${JSON.stringify(word)}`, { text, at: start });
}

/** Returns 0 if the string does not end. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
}

function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.test(text);
  return pattern.lastIndex;
}
