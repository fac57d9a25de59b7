/** Reads messages from a file or standard input: JSON (a list, or a request that has one) or JSON Lines with one
 *  message per line. Writes them back into the same text. */

import { relative, resolve } from "node:path";
import type { Call } from "../../cli/command.ts";
import { messagesLimit, readTextFile, readTextStream, type TextLimit } from "../../host/index.ts";
import { ContextError, usageError } from "../errors.ts";
import { countNoun, isPlainObject, type JsonRange, memberOf, messageOf, valuesFrom } from "../text/index.ts";
import { isRequestList } from "./index.ts";

export interface MessagesInput {
  /** Undefined if the request has something else instead. */
  readonly messages: readonly object[] | undefined;
  /** The request around the messages; undefined for a bare list. */
  readonly request?: Readonly<Record<string, unknown>> | undefined;
  /** The key of the messages in the request. */
  readonly key?: MessagesKey | undefined;
  /** Several requests, in the order in which they were sent, if the caller reads those. */
  readonly requests?: readonly object[] | undefined;
  /** The source text. */
  readonly source: MessagesSource;
}

export interface MessagesSource {
  /** As it is shown. */
  readonly file: string;
  /** Without a byte order mark. */
  readonly text: string;
  /** Whether it is JSON Lines, perhaps with a first line about the transcript. */
  readonly isLines: boolean;
}

export type MessagesKey = "messages" | "input" | "contents";

/** Reads messages from a file, or from a pipe without a name. Throws with file and line if they cannot be read. */
export async function readMessagesInput(
  name: string | undefined,
  call: InputCall,
  { takesRequests = false }: { readonly takesRequests?: boolean } = {},
): Promise<MessagesInput> {
  if (name === undefined && call.stdinKind !== "piped") {
    throw usageError("FILE is missing", 'Name a file, or pipe messages in ("-").');
  }
  const { file, text } = await readTextInput(name ?? "-", call, messagesLimit);
  if (text.trim() === "") {
    throw new ContextError("unreadable_input", "is empty", {
      file,
      hint: "It should hold messages as JSON.",
    });
  }
  const input = parseMessages(text, file);
  if (takesRequests && isRequestList(input.messages)) return { ...input, requests: input.messages };
  if (input.request === undefined) await refuseOthers(input);
  return input;
}

/** A text whose first line is a JSON object may be JSON Lines. */
function parseMessages(text: string, file: string): MessagesInput {
  try {
    return openInput(parseJson(text, { file }), { file, text });
  } catch (error) {
    if (!(error instanceof ContextError && error.cause instanceof SyntaxError)) throw error;
    const lines = text.split("\n");
    const first = lines.findIndex((line) => line.trim() !== "");
    if (!isObjectLine(lines[first]!)) throw error;
    return { messages: parseLines(lines, { first, file }), source: { file, text, isLines: true } };
  }
}

function isObjectLine(line: string): boolean {
  try {
    return isPlainObject(JSON.parse(line));
  } catch {
    return false;
  }
}

/** Parses JSON Lines. A transcript may start with a line about itself. */
function parseLines(lines: readonly string[], { first, file }: { first: number; file: string }): object[] {
  const values: object[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const value = parseJson(line, { file, line: index + 1 });
    // Later code refuses values that are not objects, by index.
    if (index !== first || !isMeta(value)) values.push(value as object);
  }
  return values;
}

function isMeta(value: unknown): boolean {
  return isPlainObject(value) && value.meta !== undefined && value.role === undefined && value.type === undefined;
}

function openInput(value: unknown, { file, text }: { file: string; text: string }): MessagesInput {
  const source = { file, text, isLines: false };
  if (Array.isArray(value)) return { messages: value, source };
  if (!isPlainObject(value)) {
    const what = value === null ? "null" : `a ${typeof value}`;
    throw new ContextError("unreadable_input", `holds ${what}, not messages`, { file, hint: expected });
  }
  const key = (["messages", "input", "contents"] as const).find((each) => value[each] !== undefined);
  if (key !== undefined) {
    const messages = value[key];
    return { messages: Array.isArray(messages) ? messages : undefined, request: value, key, source };
  }
  const isMessage = typeof value.role === "string" || typeof value.type === "string";
  if (isMeta(value) || isMessage) {
    return { messages: isMessage ? [value] : [], source: { ...source, isLines: true } };
  }
  throw new ContextError("unreadable_input", "holds an object without messages", { file, hint: expected });
}

const expected =
  "It should be a list of messages, a request with messages, input or contents, or JSON Lines of messages.";

/** Refuses recordings and lists of requests with one error, instead of one problem per line. */
async function refuseOthers({ messages = [], source }: MessagesInput): Promise<void> {
  if (messages.length === 0 || arePlain(messages)) return;
  const { kindOfLines } = await import("../../recordings/sessions/index.ts");
  const kind = kindOfLines(messages);
  // Later code refuses entries of a list that are not messages.
  if (kind === "messages" || (kind === undefined && !source.isLines)) return;
  const { length } = messages;
  const { file } = source;
  if (kind === "requests") {
    throw new ContextError("unreadable_input", `holds ${countNoun(length, "request")}, but only one can be read`, {
      file,
      hint: "Write one of them to a separate file.",
    });
  }
  if (kind === undefined) {
    const message = `holds ${countNoun(length, "line")} but no message`;
    throw new ContextError("unreadable_input", message, { file, hint: expected });
  }
  throw new ContextError("unreadable_input", `this is a ${programs[kind]} session, not a list of messages`, {
    file,
    hint: "Use plimsoll replay, which reads those.",
  });
}

const programs = { "claude-code": "Claude Code", codex: "Codex", "gemini-cli": "gemini-cli", pi: "pi" } as const;

/** Whether these are surely messages: roles, and items of OpenAI's responses between them. */
function arePlain(messages: readonly object[]): boolean {
  const has = (message: object, key: "role" | "type"): boolean => typeof Object(message)[key] === "string";
  const hasRole = messages.some((message) => has(message, "role"));
  return hasRole && messages.every((message) => has(message, "role") || has(message, "type"));
}

interface RewriteInput extends Pick<MessagesInput, "source" | "key"> {
  readonly messages: readonly object[];
}

/** Rewrites the source text with the trimmed messages. Copies unchanged messages and everything around them as
 *  written. */
export function rewriteMessages(input: RewriteInput, sent: readonly object[]): string {
  const { source, messages, key } = input;
  const { text } = source;
  const isSame = sent.length === messages.length && sent.every((message, index) => message === messages[index]);
  if (isSame) return text;
  if (source.isLines) return rewriteLines(input, sent);
  const list = key === undefined ? { start: text.indexOf("["), end: text.length } : memberOf(text, 0, key)!.value;
  // The messages were one plain text.
  if (text[list.start] !== "[") return replaceRange(text, list, JSON.stringify(sent));
  const ranges = valuesFrom(text, list.start + 1);
  const [first, last] = [ranges[0], ranges.at(-1)];
  if (first === undefined || last === undefined) return text;
  const style = styleOf(text, { ranges, list, depth: key === undefined ? 1 : 2 });
  const sources = new Map(messages.map((message, index) => [message, index]));
  const elements = sent.map((message, position) => {
    const index = sources.get(message);
    const written = index === undefined ? style.write(message) : textAt(text, ranges[index]!);
    if (position === 0) return written;
    return `${index === undefined || index === 0 ? style.separator : between(text, ranges, index)}${written}`;
  });
  return replaceRange(text, { start: first.start, end: last.end }, elements.join(""));
}

/** Rewrites JSON Lines. Keeps a first line about the transcript. */
function rewriteLines({ source: { text }, messages }: RewriteInput, sent: readonly object[]): string {
  const ranges = valuesFrom(text, 0);
  const about = ranges.slice(0, ranges.length - messages.length);
  const sources = new Map(messages.map((message, index) => [message, ranges[about.length + index]!]));
  const lines = sent.map((message) => {
    const range = sources.get(message);
    return range === undefined ? JSON.stringify(message) : textAt(text, range);
  });
  return [...about.map((range) => textAt(text, range)), ...lines].join("\n");
}

interface Style {
  readonly separator: string;
  write(message: object): string;
}

/** How to write a new message: over several lines only if others are. */
function styleOf(
  text: string,
  { ranges, list, depth }: { ranges: readonly JsonRange[]; list: JsonRange; depth: number },
): Style {
  const lead = text.slice(list.start + 1, ranges[0]!.start);
  const separator = ranges.length > 1 ? between(text, ranges, 1) : `,${lead}`;
  if (!lead.includes("\n") || !ranges.some((range) => textAt(text, range).includes("\n"))) {
    return { separator, write: (message) => JSON.stringify(message) };
  }
  const indentation = lead.slice(lead.lastIndexOf("\n") + 1);
  const unit = indentation.slice(0, indentation.length / depth) || "  ";
  return {
    separator,
    write: (message) => JSON.stringify(message, null, unit).replaceAll("\n", `\n${indentation}`),
  };
}

function between(text: string, ranges: readonly JsonRange[], index: number): string {
  return text.slice(ranges[index - 1]!.end, ranges[index]!.start);
}

function textAt(text: string, { start, end }: JsonRange): string {
  return text.slice(start, end);
}

function replaceRange(text: string, { start, end }: JsonRange, replacement: string): string {
  return `${text.slice(0, start)}${replacement}${text.slice(end)}`;
}

interface JsonPlace {
  /** As it is shown. */
  readonly file: string;
  /** The line if the text is one line of the file. */
  readonly line?: number | undefined;
}

/** Parses JSON. Throws an expected error with the file and, if V8 reports it, the line. */
export function parseJson(text: string, place: JsonPlace): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw noJson(error, text, place);
  }
}

/** V8 reports the position of most mistakes, and quotes the text around the others, which may be long. */
function noJson(error: unknown, text: string, { file, line }: JsonPlace): ContextError {
  const told = messageOf(error);
  const [what = ""] = told.split(/ in JSON at position|, (?:\.{3})?"/);
  const position = told.includes("end of JSON") ? text.length : /at position (\d+)/.exec(told)?.[1];
  const before = position === undefined ? undefined : text.trimEnd().slice(0, Number(position));
  const message = `is not JSON: ${what.charAt(0).toLowerCase()}${what.slice(1)}`;
  return new ContextError("unreadable_input", message, {
    file,
    line: line ?? before?.split("\n").length,
    cause: error,
  });
}

interface TextInput {
  /** As it is shown. */
  readonly file: string;
  readonly text: string;
}

type InputCall = Pick<Call, "cwd" | "stdin" | "stdinKind">;

/** Reads a file, or standard input ("-"), without its byte order mark. Throws with the file if it cannot be read. */
export async function readTextInput(
  name: string,
  { cwd, stdin, stdinKind }: InputCall,
  limit?: TextLimit,
): Promise<TextInput> {
  const path = resolve(cwd, name);
  const file = name === "-" ? "-" : relative(cwd, path) || ".";
  if (name === "-" && stdinKind === "directory") throw new ContextError("unreadable_input", "is a directory", { file });
  const read = await (name === "-" ? readTextStream(stdin, limit) : readTextFile(path, limit));
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  return { file, text: read.text.replace(/^\uFEFF/, "") };
}

/** Throws if more than one argument or option is "-". */
export function refuseSharedStdin(names: readonly (string | undefined)[], what: string): void {
  if (names.filter((name) => name === "-").length < 2) return;
  throw usageError(`standard input ("-") is named for more than one ${what}`, "Write the others to files.");
}
