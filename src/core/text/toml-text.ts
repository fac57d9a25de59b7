/** Finds tables, keys and list items in a text of TOML. The text must have been parsed before, except for `tomlString`: nothing here
 *  looks for mistakes. */

import { matchEnd } from "./wording.ts";

/** Names and list indexes, from the root on. */
type TomlPath = readonly PropertyKey[];

export interface TomlPart {
  readonly kind: "table" | "pair" | "item" | "comment";
  /** Empty for a comment. */
  readonly path: TomlPath;
  readonly start: number;
  /** Without the spaces, comment and line break that follow. Of a table, the end of its header. */
  readonly end: number;
}

/** Returns all parts in the order in which they start. Works on byte strings too. */
export function scanToml(text: string): readonly TomlPart[] {
  const byteOrderMark = "\xef\xbb\xbf";
  const scanner: Scanner = { text, parts: [], lists: new Map(), at: text.startsWith(byteOrderMark) ? 3 : 0 };
  let table: TomlPath = [];
  for (skipBlank(scanner); scanner.at < text.length; skipBlank(scanner)) {
    const { at } = scanner;
    if (text[at] === "[") table = readHeader(scanner);
    else readPair(scanner, table);
    // Always moves on, also in a text that is not TOML.
    if (scanner.at === at) scanner.at++;
  }
  return scanner.parts;
}

/** Returns a function that gives the line of a key or list item, or of the nearest one around it, or 1. */
export function findTomlLines(text: string): (path: TomlPath) => number {
  const lines = new Map<string, number>();
  let [line, at] = [1, 0];
  for (const { path, start } of scanToml(text)) {
    line += text.slice(at, start).split("\n").length - 1;
    at = start;
    // The first place counts: a table can be opened again further down.
    for (let length = path.length; length > 0 && !lines.has(makeName(path, length)); length--) {
      lines.set(makeName(path, length), line);
    }
  }
  return (path) => {
    const lengths = path.map((_, index) => path.length - index);
    const found = lengths.find((length) => lines.has(makeName(path, length)));
    return found === undefined ? 1 : lines.get(makeName(path, found))!;
  };
}

/** Returns the names of a dotted key: `a.b` has two, `"a.b"` has one. Returns undefined if the text is not a key. */
export function parseTomlKey(text: string): string[] | undefined {
  const scanner: Scanner = { text, parts: [], lists: new Map(), at: 0 };
  const names = readKeys(scanner);
  return scanner.at === text.length && !names.includes("") ? names : undefined;
}

/** Returns the text of a key in a TOML table or an INI section. The text may have mistakes elsewhere. */
export function tomlString(text: string, table: string, key: string): string | undefined {
  let current = "";
  // No name is longer, and the patterns below would be slow on longer lines.
  const maxLineLength = 500;
  for (const line of text.split("\n")) {
    if (line.length > maxLineLength) continue;
    const header = /^\s*\[+\s*([^[\]]+?)\s*\]/.exec(line)?.[1];
    if (header !== undefined) current = header;
    else if (current === table) {
      const [, found, value] = /^\s*"?([\w-]+)"?\s*=\s*["']([^"']*)["']/.exec(line) ?? [];
      if (found === key) return value;
    }
  }
  return undefined;
}

interface Scanner {
  readonly text: string;
  readonly parts: TomlPart[];
  /** How many tables each `[[list]]` has so far. */
  readonly lists: Map<string, number>;
  at: number;
}

function makeName(path: TomlPath, length: number): string {
  return JSON.stringify(path.slice(0, length).map(String));
}

function readHeader(scanner: Scanner): TomlPath {
  const { text, parts, lists, at: start } = scanner;
  const brackets = text.startsWith("[[", start) ? 2 : 1;
  scanner.at += brackets;
  const keys = readKeys(scanner);
  scanner.at += brackets;
  let path: TomlPath = [];
  for (const [index, key] of keys.entries()) {
    path = [...path, key];
    const name = makeName(path, path.length);
    const count = lists.get(name) ?? 0;
    if (brackets === 2 && index === keys.length - 1) {
      lists.set(name, count + 1);
      path = [...path, count];
    } else if (count > 0) {
      // A header below a list means the list's latest table.
      path = [...path, count - 1];
    }
  }
  parts.push({ kind: "table", path, start, end: scanner.at });
  return path;
}

function readPair(scanner: Scanner, table: TomlPath): void {
  const start = scanner.at;
  const path = [...table, ...readKeys(scanner)];
  scanner.at++;
  skipMatch(scanner, space);
  readValue(scanner, { kind: "pair", path, start });
}

function readValue(scanner: Scanner, { kind, path, start }: Omit<TomlPart, "end">): void {
  const part = { kind, path, start, end: start };
  scanner.parts.push(part);
  const first = scanner.text[scanner.at];
  if (first === "[") {
    const readItem = (index: number) => readValue(scanner, { kind: "item", path: [...path, index], start: scanner.at });
    readItems(scanner, "]", readItem);
  } else if (first === "{") readItems(scanner, "}", () => readPair(scanner, path));
  else if (first === '"' || first === "'") scanner.at = findStringEnd(scanner.text, scanner.at);
  // A date may have a space inside.
  else skipMatch(scanner, /[^\s,\]}#]*(?:[ \t]+[^\s,\]}#]+)*/y);
  part.end = scanner.at;
}

function readItems(scanner: Scanner, closing: string, read: (index: number) => void): void {
  scanner.at++;
  for (let index = 0; ; index++) {
    skipBlank(scanner);
    if (scanner.at >= scanner.text.length || scanner.text[scanner.at] === closing) break;
    const { at } = scanner;
    read(index);
    skipBlank(scanner);
    if (scanner.text[scanner.at] === "," || scanner.at === at) scanner.at++;
  }
  scanner.at++;
}

const space = /[ \t]*/y;
const keyPart = /[ \t]*(?:"([^"\\]*(?:\\.[^"\\]*)*)"|'([^']*)'|([^\s.='"[\]]*))[ \t]*(\.?)/y;

function readKeys(scanner: Scanner): string[] {
  const keys: string[] = [];
  for (;;) {
    keyPart.lastIndex = scanner.at;
    const [all, quoted, literal, bare, dot] = keyPart.exec(scanner.text)!;
    scanner.at += all.length;
    keys.push(quoted === undefined ? (literal ?? bare!) : unquote(quoted));
    if (dot === "") return keys;
  }
}

function unquote(quoted: string): string {
  try {
    // JSON has all escapes of TOML but this one.
    const inJson = quoted.replace(/\\(?:U([\da-fA-F]{8})|.)/g, (written, code) =>
      code === undefined ? written : String.fromCodePoint(Number.parseInt(code, 16)),
    );
    return JSON.parse(`"${inJson}"`);
  } catch {
    return quoted;
  }
}

function skipBlank(scanner: Scanner): void {
  for (;;) {
    skipMatch(scanner, /\s*/y);
    const start = scanner.at;
    if (scanner.text[start] !== "#") return;
    skipMatch(scanner, /[^\r\n]*/y);
    scanner.parts.push({ kind: "comment", path: [], start, end: scanner.at });
  }
}

function skipMatch(scanner: Scanner, pattern: RegExp): void {
  scanner.at = matchEnd(pattern, scanner.text, scanner.at);
}

/** Returns the end of the string whose first quote is at `start`, or the end of the text if the string never ends. */
function findStringEnd(text: string, start: number): number {
  const quote = text[start]!;
  const isLong = text.startsWith(quote.repeat(3), start);
  const closing = isLong ? quote.repeat(3) : quote;
  for (let at = start + closing.length; at < text.length; at++) {
    if (text[at] === "\\" && quote === '"') at++;
    // A long string may end in one or two quotes of its own.
    else if (text.startsWith(closing, at)) {
      let end = at + closing.length;
      while (isLong && end < at + 5 && text[end] === quote) end++;
      return end;
    }
  }
  return text.length;
}
