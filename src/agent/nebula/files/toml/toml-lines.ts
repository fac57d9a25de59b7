/** Finds the lines of keys in TOML. The text must have been parsed before: mistakes are not looked for. */
import { parse } from "smol-toml";
import { tomlStringEnd } from "../../../../text/index.ts";

type Path = readonly PropertyKey[];

/** The line of a key or list item, else that of the nearest one around it, else 1. */
export function findTomlLines(text: string): (path: Path) => number {
  const lines = scan(text);
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const line = lines.get(nameOf(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  };
}

interface Scanner {
  readonly text: string;
  readonly lines: Map<string, number>;
  /** How many tables each `[[list]]` has by now. */
  readonly tables: Map<string, number>;
  at: number;
  line: number;
}

function scan(text: string): Map<string, number> {
  const scanner: Scanner = { text, lines: new Map(), tables: new Map(), at: 0, line: 1 };
  let table: Path = [];
  for (skipBlank(scanner); scanner.at < text.length; skipBlank(scanner)) {
    const { at } = scanner;
    if (text[at] === "[") table = readHeader(scanner);
    else readPair(scanner, table);
    // Whatever this does not understand must not keep it here for ever.
    if (scanner.at === at) scanner.at++;
  }
  return scanner.lines;
}

function readHeader(scanner: Scanner): Path {
  const isList = scanner.text.startsWith("[[", scanner.at);
  const { line } = scanner;
  scanner.at += isList ? 2 : 1;
  const keys = readKeys(scanner);
  scanner.at += isList ? 2 : 1;
  let path: Path = [];
  for (const [index, key] of keys.entries()) {
    path = [...path, key];
    note(scanner, path, line);
    const isLast = index === keys.length - 1;
    const count = scanner.tables.get(nameOf(path)) ?? 0;
    if (isList && isLast) scanner.tables.set(nameOf(path), count + 1);
    // A header below a list means the list's latest table.
    if (isList && isLast) path = [...path, count];
    else if (count > 0) path = [...path, count - 1];
  }
  note(scanner, path, line);
  return path;
}

function readPair(scanner: Scanner, table: Path): void {
  const { line } = scanner;
  const keys = readKeys(scanner);
  const path = [...table, ...keys];
  for (let length = table.length + 1; length <= path.length; length++) {
    note(scanner, path.slice(0, length), line);
  }
  scanner.at++;
  skipSpace(scanner);
  readValue(scanner, path);
}

function readValue(scanner: Scanner, path: Path): void {
  const first = scanner.text[scanner.at];
  if (first === "[") readItems(scanner, "]", (index) => readItem(scanner, [...path, index]));
  else if (first === "{") readItems(scanner, "}", () => readPair(scanner, path));
  else if (first === '"' || first === "'") skipString(scanner);
  else skip(scanner, bareValue);
}

function readItem(scanner: Scanner, path: Path): void {
  note(scanner, path, scanner.line);
  readValue(scanner, path);
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

const blank = /\s+/y;
const comment = /#[^\n]*/y;
const space = /[ \t]*/y;
const bareKey = /[^\s.='"\]]+/y;
/** Up to what ends a value: a date may have a space within, and what follows it is none of ours. */
const bareValue = /[^,\]}#\n]*/y;

function readKeys(scanner: Scanner): string[] {
  const keys: string[] = [];
  for (;;) {
    skipSpace(scanner);
    const start = scanner.at;
    const isQuoted = /["']/.test(scanner.text[start] ?? "");
    if (isQuoted) skipString(scanner);
    else skip(scanner, bareKey);
    const raw = scanner.text.slice(start, scanner.at);
    // The parser knows the escapes of quoted names.
    keys.push(isQuoted ? Object.keys(parse(`${raw} = 0`))[0]! : raw);
    skipSpace(scanner);
    if (scanner.text[scanner.at] !== ".") return keys;
    scanner.at++;
  }
}

/** The first place counts: a table that is reopened has its keys elsewhere. */
function note(scanner: Scanner, path: Path, line: number): void {
  const name = nameOf(path);
  if (!scanner.lines.has(name)) scanner.lines.set(name, line);
}

function nameOf(path: Path): string {
  return JSON.stringify(path.map(String));
}

function skipBlank(scanner: Scanner): void {
  // Not one pattern for both: its repetition runs out of stack in a file of many comments.
  do skip(scanner, blank);
  while (skip(scanner, comment));
}

function skipSpace(scanner: Scanner): void {
  skip(scanner, space);
}

function skipString(scanner: Scanner): void {
  moveTo(scanner, tomlStringEnd(scanner.text, scanner.at));
}

/** Goes past what matches here. Tells whether there was anything. */
function skip(scanner: Scanner, pattern: RegExp): boolean {
  pattern.lastIndex = scanner.at;
  if (!pattern.test(scanner.text) || pattern.lastIndex === scanner.at) return false;
  moveTo(scanner, pattern.lastIndex);
  return true;
}

/** Counts the lines in between, and looks no further: a long line is passed in many steps. */
function moveTo(scanner: Scanner, end: number): void {
  const passed = scanner.text.slice(scanner.at, end);
  for (let at = passed.indexOf("\n"); at !== -1; at = passed.indexOf("\n", at + 1)) scanner.line++;
  scanner.at = end;
}
