/** How a value is written, and read back, in the middle of somebody's file. */
import { nextToken } from "./json-tokens.ts";
import type { JsonValue } from "./scan-json.ts";

export interface JsonStyle {
  readonly newline: string;
  /** One step of indentation. */
  readonly unit: string;
}

/** As the file itself is written. */
export function styleOf(text: string): JsonStyle {
  return {
    newline: text.includes("\r\n") ? "\r\n" : "\n",
    unit: /[\r\n]([ \t]+)["/]/.exec(text)?.[1] ?? "  ",
  };
}

/** All in one line: `{ "a": ["b"] }`. */
export function renderLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${membersOf(value).join(", ")} }`;
}

/** An object over several lines, its members on one line each. */
export function renderSpread(value: object, indent: string, { newline, unit }: JsonStyle): string {
  const members = membersOf(value).join(`,${newline}${indent}${unit}`);
  return `{${newline}${indent}${unit}${members}${newline}${indent}}`;
}

function membersOf(value: object): string[] {
  return Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${renderLine(each)}`);
}

/** What the line begins with on which `at` stands. */
export function indentAt(text: string, at: number): string {
  const lineStart = Math.max(text.lastIndexOf("\n", at - 1), text.lastIndexOf("\r", at - 1)) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, at))![0];
}

export function hasLineBreak(text: string, { start, end }: Pick<JsonValue, "start" | "end">): boolean {
  return /[\r\n]/.test(text.slice(start, end));
}

/** The value as data, and whether comments stand in it. */
export function readValue(
  text: string,
  { start, end }: Pick<JsonValue, "start" | "end">,
): { readonly data: unknown; readonly hasComments: boolean } {
  const words: string[] = [];
  let hasComments = false;
  for (let token = nextToken(text, start); token.start < end; token = nextToken(text, token.end)) {
    if (token.comment !== "none") hasComments = true;
    const isClosing = token.kind === "}" || token.kind === "]";
    if (isClosing && words.at(-1) === ",") words.pop();
    words.push(text.slice(token.start, token.end));
  }
  return { data: parse(words.join("")), hasComments };
}

/** A string with a wrong escape stands for itself: it is nothing that we wrote. */
function parse(words: string): unknown {
  try {
    return JSON.parse(words);
  } catch {
    return words;
  }
}
