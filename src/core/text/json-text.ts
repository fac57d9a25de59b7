/** Finds values in a text of JSON and edits them in place. JSON.parse and JSON.stringify would round long numbers and change the rest
 *  of the text as well. The functions expect a text that JSON.parse has accepted and do not check it. */
import { matchEnd } from "./wording.ts";

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
  for (let at = skipFiller(text, text.indexOf("{", start) + 1); text[at] === '"'; ) {
    const nameEnd = jsonStringEnd(text, at);
    const valueStart = skipFiller(text, nameEnd);
    const end = valueEnd(text, valueStart);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    members.push({ name, start: at, end, value: { start: valueStart, end } });
    at = skipFiller(text, end);
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
  for (let at = skipFiller(text, start); ; ) {
    const end = valueEnd(text, at);
    if (end === at) return values;
    values.push({ start: at, end });
    at = skipFiller(text, end);
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
    if (code === quote) at = jsonStringEnd(text, at);
    else if (code >= 0x30 && code <= 0x39) {
      const end = matchEnd(scalar, text, at);
      // JSON.parse keeps shorter numbers as they are.
      const number = end - at > 15 ? text.slice(at, end) : "";
      // Ignores decimal fractions: their last digits seldom matter.
      if (/^\d+$/.test(number) && String(BigInt(number)) !== String(BigInt(Number(number)))) return true;
      at = end;
    } else at += 1;
  }
  return false;
}

const [quote, openList, closeList, openObject, closeObject] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

const filler = /[\s,:]*/y;
const scalar = /[^\s,:[\]{}"/]*/y;

function skipFiller(text: string, start: number): number {
  return matchEnd(filler, text, start);
}

/** Returns `start` itself if no value begins there. */
function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === quote) return jsonStringEnd(text, start);
  return first === openObject || first === openList ? nestedEnd(text, start) : matchEnd(scalar, text, start);
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const code = text.charCodeAt(at);
    if (code === openList || code === openObject) depth++;
    else if (code === closeList || code === closeObject) depth--;
    at = code === quote ? jsonStringEnd(text, at) : at + 1;
  } while (depth > 0);
  return at;
}

/** Returns the end of the string whose first quote is at `start`, or 0 if the string does not end. */
export function jsonStringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
}
