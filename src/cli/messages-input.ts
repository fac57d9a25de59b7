/** Messages from a file or standard input: JSON (a list, or a request that holds one) or JSON Lines with one message a line. */
import { ContextError } from "../errors.ts";
import { countNoun } from "../text/index.ts";
import type { TextLimit } from "../workspace/index.ts";
import { parseJson } from "./parse-json.ts";
import { type InputCall, readTextInput } from "./text-input.ts";

export interface MessagesInput {
  /** Undefined where the request has something else in their place. */
  readonly messages: readonly object[] | undefined;
  /** What was around the messages; undefined for a bare list. */
  readonly request?: Readonly<Record<string, unknown>> | undefined;
  /** Where the request holds its messages. */
  readonly key?: MessagesKey | undefined;
  /** What all of that was read from. */
  readonly source: MessagesSource;
}

export interface MessagesSource {
  /** As it is shown. */
  readonly file: string;
  /** Without a byte order mark. */
  readonly text: string;
  /** One message a line, perhaps behind a line about the transcript, instead of one value. */
  readonly isLines: boolean;
}

export type MessagesKey = "messages" | "input";

/** No context window comes near this size. */
export const messagesLimit: TextLimit = {
  maxBytes: 100 * 1024 * 1024,
  reason: "a history above 100 MB is not read: take its oldest messages out first",
};

/** Without a name: what is piped in. What cannot be read, or is no JSON, is an error that names file and line. */
export async function readMessagesInput(name: string | undefined, call: InputCall): Promise<MessagesInput> {
  if (name === undefined && call.stdinKind !== "piped") {
    throw new ContextError("usage", "FILE is missing", { hint: 'Name a file, or pipe messages in ("-").' });
  }
  const { file, text } = await readTextInput(name ?? "-", call, messagesLimit);
  if (text.trim() === "") {
    throw new ContextError("unreadable_input", "is empty", {
      file,
      hint: "It should hold messages as JSON.",
    });
  }
  const input = parseMessages(text, file);
  if (input.request === undefined) await refuseOthers(input);
  return input;
}

/** A text of several values is known by its first line, which is one. */
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
    return isRecord(JSON.parse(line));
  } catch {
    return false;
  }
}

/** A transcript starts with a line about itself. */
function parseLines(lines: readonly string[], { first, file }: { first: number; file: string }): object[] {
  const values: object[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const value = parseJson(line, { file, line: index + 1 });
    // What is no object either is the reader's to refuse, by its index.
    if (index !== first || !isMeta(value)) values.push(value as object);
  }
  return values;
}

function isMeta(value: unknown): boolean {
  return isRecord(value) && value.meta !== undefined && value.role === undefined && value.type === undefined;
}

function openInput(value: unknown, { file, text }: { file: string; text: string }): MessagesInput {
  const source = { file, text, isLines: false };
  if (Array.isArray(value)) return { messages: value, source };
  if (!isRecord(value)) {
    const what = value === null ? "null" : `a ${typeof value}`;
    throw new ContextError("unreadable_input", `holds ${what}, not messages`, { file, hint: expected });
  }
  const key = (["messages", "input"] as const).find((each) => value[each] !== undefined);
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
  "It should be a list of messages, a request with messages or input, or JSON Lines of messages.";

/** Recordings and lists of requests are told as a whole, not by a problem for each of their lines. */
async function refuseOthers({ messages = [], source }: MessagesInput): Promise<void> {
  if (messages.length === 0 || arePlain(messages)) return;
  const { kindOfLines } = await import("../replay/index.ts");
  const kind = kindOfLines(messages);
  // In a list, too, what is no message is the reader's to refuse.
  if (kind === "messages" || (kind === undefined && !source.isLines)) return;
  const { length } = messages;
  const { file } = source;
  if (kind === "requests") {
    throw new ContextError(
      "unreadable_input",
      `holds ${countNoun(length, "request")}, and one is read at a time`,
      {
        file,
        hint: "Write the one that is meant to a file of its own.",
      },
    );
  }
  if (kind === undefined) {
    const message = `holds ${countNoun(length, "line")} and no message`;
    throw new ContextError("unreadable_input", message, { file, hint: expected });
  }
  const program = kind === "codex" ? "Codex" : "Claude Code";
  throw new ContextError("unreadable_input", `this is a ${program} session, not a list of messages`, {
    file,
    hint: "Use plimsoll replay, which reads those.",
  });
}

/** Sure without a look at what programs record: roles, and items of OpenAI's responses between them. */
function arePlain(messages: readonly object[]): boolean {
  const has = (message: object, key: "role" | "type"): boolean => typeof Object(message)[key] === "string";
  const hasRole = messages.some((message) => has(message, "role"));
  return hasRole && messages.every((message) => has(message, "role") || has(message, "type"));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
