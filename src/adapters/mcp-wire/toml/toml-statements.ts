/** Where the statements of a TOML file stand. The text must have been parsed before: mistakes are not looked for. */
import { tomlStringEnd } from "../../../text/index.ts";
import { parseConfigKey } from "../config-key.ts";

export interface TomlStatement {
  readonly kind: "table" | "pair" | "comment";
  readonly start: number;
  readonly end: number;
  /** Of a table: what stands between its brackets. */
  readonly keys?: readonly string[] | undefined;
}

export function tomlStatements(text: string): TomlStatement[] {
  const statements: TomlStatement[] = [];
  for (let start = skipSpace(text, 0); start < text.length; start = skipSpace(text, statements.at(-1)!.end)) {
    statements.push(statementAt(text, start));
  }
  return statements;
}

/** A byte order mark counts as space. */
const space = /(?:\xef\xbb\xbf|\s)*/y;
const restOfLine = /[^\r\n]*/y;

function skipSpace(text: string, at: number): number {
  return endOf(space, text, at);
}

function statementAt(text: string, start: number): TomlStatement {
  if (text[start] === "#") return { kind: "comment", start, end: endOf(restOfLine, text, start) };
  const end = statementEnd(text, start);
  if (text[start] !== "[") return { kind: "pair", start, end };
  return { kind: "table", start, end, keys: parseConfigKey(text.slice(start + 1, end - 1)) };
}

/** The end of the line on which all brackets and strings are closed; without comment and space. */
function statementEnd(text: string, start: number): number {
  let depth = 0;
  let end = start;
  for (let at = start; at < text.length; ) {
    const first = text[at]!;
    if (depth === 0 && "#\r\n".includes(first)) break;
    depth += depthOf(first);
    at = wordEnd(text, at);
    if (first !== " " && first !== "\t") end = at;
  }
  return end;
}

function depthOf(character: string): number {
  if (character === "[" || character === "{") return 1;
  return character === "]" || character === "}" ? -1 : 0;
}

function wordEnd(text: string, at: number): number {
  const first = text[at]!;
  if (first === "#") return endOf(restOfLine, text, at);
  return first === '"' || first === "'" ? tomlStringEnd(text, at) : at + 1;
}

function endOf(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.test(text);
  return pattern.lastIndex;
}
