/** Messages as people keep them in files: JSON (a list, or a request that has one) or JSON Lines with one message per
 *  line. Writes them back into the same text. */
import { relative, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { geminiSystemText, typeName } from "../../core/messages/index.ts";
import {
  applyEdits,
  isPlainObject,
  type JsonRange,
  memberOf,
  messageOf,
  readJson,
  valuesFrom,
} from "../../core/text/index.ts";
import { readTextFile } from "./read-text.ts";

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
  readonly source: {
    /** As it is shown. */
    readonly file: string;
    /** Without a byte order mark. */
    readonly text: string;
    /** Whether it is JSON Lines, perhaps with a first line about the transcript. */
    readonly isLines: boolean;
  };
}

export type MessagesKey = "messages" | "input" | "contents";

/** Parses a text without a byte order mark. A text whose first line is a JSON object may be JSON Lines. */
export function parseMessages(text: string, file: string): MessagesInput {
  try {
    return openInput(parseJson(text, { file }), { file, text });
  } catch (error) {
    if (!(error instanceof ContextError && error.cause instanceof SyntaxError)) throw error;
    const lines = text.split("\n");
    const first = lines.findIndex((line) => line.trim() !== "");
    if (readJson(lines[first], isPlainObject) === undefined) throw error;
    // Parses JSON Lines. A transcript may start with a line about itself.
    const values: object[] = [];
    for (const [index, line] of lines.entries()) {
      if (line.trim() === "") continue;
      const value = parseJson(line, { file, line: index + 1 });
      // Later code refuses values that are not objects, by index.
      if (index !== first || !isMeta(value)) values.push(value as object);
    }
    return { messages: values, source: { file, text, isLines: true } };
  }
}

function isMeta(value: unknown): boolean {
  return isPlainObject(value) && value.meta !== undefined && value.role === undefined && value.type === undefined;
}

function openInput(value: unknown, { file, text }: { file: string; text: string }): MessagesInput {
  const source = { file, text, isLines: false };
  if (Array.isArray(value)) return { messages: value, source };
  if (!isPlainObject(value)) {
    const what = value === null ? "null" : `a ${typeof value}`;
    throw new ContextError("unreadable_input", `holds ${what}, not messages`, { file, hint: messagesHint });
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
  throw new ContextError("unreadable_input", "holds an object without messages", { file, hint: messagesHint });
}

/** What a file of messages may hold. */
export const messagesHint =
  "It should be a list of messages, a request with messages, input or contents, or JSON Lines of messages.";

interface RewriteInput extends Pick<MessagesInput, "source" | "key"> {
  readonly messages: readonly object[];
}

/** Rewrites the source text with the trimmed messages, and with other values for some fields of the request. Copies
 *  unchanged messages and everything around them as written. */
export function rewriteMessages(
  input: RewriteInput,
  sent: readonly object[],
  fields: Readonly<Record<string, unknown>> = {},
): string {
  const { source } = input;
  const edits = Object.entries(fields).map(([name, value]) => ({
    ...memberOf(source.text, 0, name)!.value,
    text: JSON.stringify(value),
  }));
  return rewriteList({ ...input, source: { ...source, text: applyEdits(source.text, edits) } }, sent);
}

function rewriteList(input: RewriteInput, sent: readonly object[]): string {
  const { source, messages, key } = input;
  const { text } = source;
  const isSame = sent.length === messages.length && sent.every((message, index) => message === messages[index]);
  if (isSame) return text;
  if (source.isLines) return rewriteLines(input, sent);
  const list = key === undefined ? { start: text.indexOf("["), end: text.length } : memberOf(text, 0, key)!.value;
  // The messages were one plain text.
  if (text[list.start] !== "[") return applyEdits(text, [{ ...list, text: JSON.stringify(sent) }]);
  const ranges = valuesFrom(text, list.start + 1);
  const [first, last] = [ranges[0], ranges.at(-1)];
  if (first === undefined || last === undefined) return text;
  const style = chooseStyle(text, { ranges, list, depth: key === undefined ? 1 : 2 });
  const sources = new Map(messages.map((message, index) => [message, index]));
  const elements = sent.map((message, position) => {
    const index = sources.get(message);
    const written = index === undefined ? style.write(message) : sliceRange(text, ranges[index]!);
    if (position === 0) return written;
    return `${index === undefined || index === 0 ? style.separator : between(text, ranges, index)}${written}`;
  });
  return applyEdits(text, [{ start: first.start, end: last.end, text: elements.join("") }]);
}

/** Rewrites JSON Lines. Keeps a first line about the transcript. */
function rewriteLines({ source: { text }, messages }: RewriteInput, sent: readonly object[]): string {
  const ranges = valuesFrom(text, 0);
  const about = ranges.slice(0, ranges.length - messages.length);
  const sources = new Map(messages.map((message, index) => [message, ranges[about.length + index]!]));
  const lines = sent.map((message) => {
    const range = sources.get(message);
    return range === undefined ? JSON.stringify(message) : sliceRange(text, range);
  });
  return [...about.map((range) => sliceRange(text, range)), ...lines].join("\n");
}

/** How to write a new message: over several lines only if others are. */
function chooseStyle(
  text: string,
  { ranges, list, depth }: { ranges: readonly JsonRange[]; list: JsonRange; depth: number },
): { readonly separator: string; write(message: object): string } {
  const lead = text.slice(list.start + 1, ranges[0]!.start);
  const separator = ranges.length > 1 ? between(text, ranges, 1) : `,${lead}`;
  if (!lead.includes("\n") || !ranges.some((range) => sliceRange(text, range).includes("\n"))) {
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

function sliceRange(text: string, { start, end }: JsonRange): string {
  return text.slice(start, end);
}

/** Parses JSON. Throws an expected error with the file, as it is shown, and its line, if V8 reports one. Pass `line` for
 *  a text that is one line of the file. */
export function parseJson(
  text: string,
  { file, line }: { readonly file: string; readonly line?: number | undefined },
): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8 reports the position of most mistakes, and quotes the text around the others, which may be long.
    const told = messageOf(error);
    const [what = ""] = told.split(/ in JSON at position|, (?:\.{3})?"/);
    const position = told.includes("end of JSON") ? text.length : /at position (\d+)/.exec(told)?.[1];
    const before = position === undefined ? undefined : text.trimEnd().slice(0, Number(position));
    throw new ContextError("unreadable_input", `is not JSON: ${what.charAt(0).toLowerCase()}${what.slice(1)}`, {
      file,
      line: line ?? before?.split("\n").length,
      cause: error,
    });
  }
}

/** Returns the system text of a request, in whichever field its provider keeps it. */
export function readSystem({ request = {}, key }: MessagesInput): unknown {
  if (key === "contents") return geminiSystemText(request.systemInstruction);
  return key === "input" ? request.instructions : request.system;
}

/** Returns the messages. In OpenAI's responses, a plain text is one message. */
export function readInputMessages({ messages, request, key, source: { file } }: MessagesInput): readonly object[] {
  if (messages !== undefined) return messages;
  const value = request?.[key!];
  if (key === "input" && typeof value === "string") return [{ role: "user", content: value }];
  throw new ContextError("invalid_message", `${key} must be an array, not ${typeName(value)}`, { file });
}

/** Reads a list of tools, or a request with one. The trimmer checks its content. */
export async function readToolsFile(name: string, cwd: string): Promise<unknown> {
  const path = resolve(cwd, name);
  const file = relative(cwd, path) || ".";
  const read = await readTextFile(path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  const value = parseJson(read.text.replace(/^\uFEFF/, ""), { file });
  const tools = Array.isArray(value) ? value : Object(value).tools;
  if (Array.isArray(tools)) return tools;
  throw new ContextError("unreadable_input", "holds no list of tools", {
    file,
    hint: "It should be a list of tool definitions, or a request with tools.",
  });
}
