/** The words of a text of JSON, with comments and trailing commas as editors allow them. Texts are byte strings. */
import { ContextError } from "../../../errors.ts";

export interface JsonToken {
  readonly kind: "{" | "}" | "[" | "]" | ":" | "," | "string" | "scalar" | "end";
  readonly start: number;
  readonly end: number;
  /** Where what stands before it ends: the last comment, else the place from which on it was looked for. */
  readonly gap: number;
  /** The last comment in between. */
  readonly comment: "none" | "block" | "line";
}

/** The first token from `at` on. */
export function nextToken(text: string, at: number): JsonToken {
  const { start, gap, comment } = skipFiller(text, at);
  const first = text[start];
  if (first === undefined) return { kind: "end", start, end: start, gap, comment };
  if (isPunctuation(first)) return { kind: first, start, end: start + 1, gap, comment };
  if (first === '"') return { kind: "string", start, end: stringEnd(text, start), gap, comment };
  return { kind: "scalar", start, end: scalarEnd(text, start), gap, comment };
}

/** What is wrong and on which line; the file is told by whoever reads it. */
export function malformed(what: string, { text, at }: { text: string; at: number }): ContextError {
  return new ContextError("unreadable_input", `is no JSON: ${what}`, {
    line: lineAt(text, at),
    hint: "Mend the file, and run the command again.",
  });
}

export function lineAt(text: string, at: number): number {
  return text.slice(0, at).split(/\r\n|\r|\n/).length;
}

interface Filler {
  readonly start: number;
  readonly gap: number;
  readonly comment: JsonToken["comment"];
}

function skipFiller(text: string, at: number): Filler {
  let gap = at;
  let comment: JsonToken["comment"] = "none";
  for (let start = endOf(spaces, text, at); ; start = endOf(spaces, text, gap)) {
    if (text[start] !== "/") return { start, gap, comment };
    const second = text[start + 1];
    if (second === "/") gap = endOf(restOfLine, text, start);
    else if (second === "*") gap = blockEnd(text, start);
    else throw malformed('unexpected "/"', { text, at: start });
    comment = second === "/" ? "line" : "block";
  }
}

const spaces = /[ \t\r\n]*/y;
const restOfLine = /[^\r\n]*/y;

function blockEnd(text: string, start: number): number {
  const end = text.indexOf("*/", start + 2);
  if (end === -1) throw malformed("a comment does not end", { text, at: start });
  return end + 2;
}

function isPunctuation(character: string): character is "{" | "}" | "[" | "]" | ":" | "," {
  return "{}[]:,".includes(character);
}

const stringBreak = /["\\\r\n]/g;

function stringEnd(text: string, start: number): number {
  stringBreak.lastIndex = start + 1;
  for (let found = stringBreak.exec(text); found !== null; found = stringBreak.exec(text)) {
    if (found[0] === '"') return found.index + 1;
    if (found[0] !== "\\") break;
    stringBreak.lastIndex = found.index + 2;
  }
  throw malformed("a string does not end", { text, at: start });
}

const scalar = /[^\s,:[\]{}"/]*/y;
const validScalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

function scalarEnd(text: string, start: number): number {
  const end = endOf(scalar, text, start);
  const word = text.slice(start, Math.min(end, start + 40)) || text[start]!;
  if (end > start && validScalar.test(text.slice(start, end))) return end;
  throw malformed(`unexpected ${JSON.stringify(word)}`, { text, at: start });
}

function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.test(text);
  return pattern.lastIndex;
}
