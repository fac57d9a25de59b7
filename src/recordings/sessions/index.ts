/** Reads a recorded session. Its content shows which program wrote it, not its name. */
import { ContextError } from "../../core/errors.ts";
import { formatOfRequest } from "../../core/messages/index.ts";
import { type Fields, messageOf } from "../../core/text/index.ts";
import { claudeCodeFacts } from "./claude-code-facts.ts";
import { claudeCodeReader } from "./claude-code-session.ts";
import { codexFacts, codexReader } from "./codex-session.ts";
import { geminiFacts, geminiReader } from "./gemini-session.ts";
import { isOpencodeExport, type OpencodeExport, readOpencodeFacts, readOpencodeSession } from "./opencode-session.ts";
import { piFacts, piReader } from "./pi-session.ts";
import { createSessionDraft, type JsonLine, type RecordedSession, type SessionReader } from "./recorded-session.ts";
import type { FactsReader, SessionFacts } from "./session-facts.ts";
import { createSessionScan, parseFields } from "./session-scan.ts";

export interface ReadSessionOptions {
  /** The name for errors and reports. The caller reads the file. */
  readonly file: string;
}

/** The readers of facts, in the order in which they are tried. */
export const factsReaders: readonly FactsReader[] = [geminiFacts, claudeCodeFacts, codexFacts, piFacts];

/** Returns the facts of a whole file, or undefined if no known program wrote it. */
export function readFacts(text: string): SessionFacts | undefined {
  const whole = parseFields(text);
  if (isOpencodeExport(whole)) return readOpencodeFacts(whole as unknown as OpencodeExport);
  const scan = createSessionScan(factsReaders);
  for (const line of whole === undefined ? text.split("\n") : [JSON.stringify(whole)]) scan.line(line);
  return scan.finish().facts;
}

const messagesReader: SessionReader = { kind: "messages", isLine: isMessageLine, read: readTranscriptSession };

/** The readers of JSON Lines, in the order in which they are tried. To add a program: a file in this folder and a line
 *  here. */
const readers: readonly SessionReader[] = [geminiReader, claudeCodeReader, codexReader, piReader, messagesReader];

/** Reads a recorded session of any supported program: transcript JSON Lines, Claude Code, Codex, opencode, gemini-cli,
 *  pi, a request, or a list of messages. `notes` report what was left out. Throws with the line of what cannot be read. */
export function readRecording(text: string, { file }: ReadSessionOptions): RecordedSession {
  const content = withoutByteOrderMark(text);
  if (content.trim() === "") throw unreadable("the file is empty", file);
  const whole = parseWhole(content, file);
  if (whole !== undefined) return readWhole(whole.value, file);
  const { lines, notes } = parseJsonLines(content, file);
  const session = chooseReader(lines, file).read(lines, file);
  return notes.length === 0 ? session : { ...session, notes: [...notes, ...session.notes] };
}

function readWhole(value: unknown, file: string): RecordedSession {
  if (isOpencodeExport(value)) return readOpencodeSession(value, file);
  if (isGeminiChat(value)) return geminiReader.read(linesOfChat(value), file);
  return readRequestSession(value, file);
}

/** Before JSON Lines, gemini-cli wrote its head with the messages in it. */
function isGeminiChat(value: unknown): value is Fields & { readonly messages: readonly unknown[] } {
  return geminiReader.isLine(value) && Array.isArray((value as Fields).messages);
}

function linesOfChat({ messages, ...head }: Fields & { readonly messages: readonly unknown[] }): JsonLine[] {
  return [head, ...messages].map((value) => ({ value, line: 1 }));
}

/** Recognises the program by lines that only it writes. Returns undefined if no line is of a known kind. */
export function kindOfLines(values: readonly unknown[]): SessionReader["kind"] | "requests" | undefined {
  return readerOf(values)?.kind ?? (values.some(isRequest) ? "requests" : undefined);
}

function readerOf(values: readonly unknown[]): SessionReader | undefined {
  const first = values.find((value) => readers.some(({ isLine }) => isLine(value)));
  return readers.find(({ isLine, mayStartLater }) => isLine(first) || (mayStartLater === true && values.some(isLine)));
}

/** Parses the file as one JSON value. Returns undefined if its first line is a value by itself: then it is JSON
 *  Lines. */
function parseWhole(content: string, file: string): { value: unknown } | undefined {
  const first = firstLine(content);
  const head = parsed(first);
  if (head === undefined) return { value: parseOrThrow(content, file) };
  const isOnlyLine = first.length === content.trim().length;
  return isOnlyLine && !isLine(head.value) ? head : undefined;
}

/** A file of one line can be a session that has just begun. */
function isLine(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRequest(value);
}

function chooseReader(lines: readonly JsonLine[], file: string): SessionReader {
  if (isTranscriptHead(lines[0]?.value)) return messagesReader;
  const values = lines.map(({ value }) => value);
  const reader = readerOf(values);
  if (reader !== undefined) return reader;
  throw values.some(isRequest)
    ? severalRequests(file)
    : unreadable("this is not a known kind of recorded session", file);
}

function firstLine(content: string): string {
  const trimmed = content.trimStart();
  const stop = trimmed.indexOf("\n");
  return (stop < 0 ? trimmed : trimmed.slice(0, stop)).trimEnd();
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function parseOrThrow(content: string, file: string): unknown {
  try {
    return JSON.parse(content);
  } catch (cause) {
    const problem = messageOf(cause);
    const position = /position (\d+)/.exec(problem)?.[1];
    const line = position === undefined ? undefined : content.slice(0, Number(position)).split("\n").length;
    throw new ContextError("unreadable_input", `this is not valid JSON: ${problem}`, { file, line, cause });
  }
}

function severalRequests(file: string): ContextError {
  return new ContextError("unreadable_input", "the file has several requests, one per line", {
    file,
    hint: "Save the last request of the session in its own file. It holds the whole history.",
  });
}

function unreadable(problem: string, file: string): ContextError {
  return new ContextError("unreadable_input", problem, {
    file,
    hint: "Use messages one per line, a session of a known client, a request, or a list of messages.",
  });
}

/** Returns the messages as they are. With a meta line they are in Anthropic's format. */
function readTranscriptSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const draft = createSessionDraft();
  const head = lines[0]?.value;
  const hasMeta = isTranscriptHead(head);
  for (const { value, line } of hasMeta ? lines.slice(1) : lines) {
    if (!isMessageLine(value)) {
      const problem = "this is not a message: expected an object with a role, or an item of OpenAI's responses";
      throw new ContextError("invalid_message", problem, { file, line });
    }
    draft.add(value);
  }
  if (!hasMeta) return draft.finish({ file, source: "messages" });
  return draft.finish({ file, source: "transcript", format: "anthropic", model: modelOf(head) });
}

function isTranscriptHead(value: unknown): value is { readonly meta: Fields } {
  const { meta, role } = Object(value) as Fields;
  return typeof meta === "object" && meta !== null && role === undefined;
}

/** In OpenAI's responses, calls, results and reasoning are items without a role. */
function isMessageLine(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as Fields).role === "string" || formatOfRequest([value]) === "responses";
}

/** A session that changed its model names several, in the order of use. */
function modelOf({ meta }: { readonly meta: Fields }): string | undefined {
  return typeof meta.model === "string" ? meta.model.split(",")[0]?.trim() : undefined;
}

/** Parses every line that is not blank. Programs may leave a byte order mark, blank lines, and a last line that was cut
 *  off when they were killed. Only the last line may be broken; a note then says so. */
function parseJsonLines(text: string, file: string): JsonLines {
  const lines: JsonLine[] = [];
  const notes: string[] = [];
  const end = text.trimEnd().length;
  for (let start = 0, line = 1; start < end; line++) {
    const stop = lineEnd(text, start);
    const raw = text.slice(start, stop);
    const isLast = stop >= end;
    start = stop + 1;
    if (raw.trim() === "") continue;
    try {
      lines.push({ value: JSON.parse(raw), line });
    } catch (cause) {
      if (!isLast || lines.length === 0) throw notJson(raw, { file, line, cause });
      notes.push(`line ${line} is cut off and was left out`);
    }
  }
  return { lines, notes };
}

interface JsonLines {
  readonly lines: readonly JsonLine[];
  readonly notes: readonly string[];
}

function withoutByteOrderMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

function lineEnd(text: string, start: number): number {
  const stop = text.indexOf("\n", start);
  return stop < 0 ? text.length : stop;
}

function notJson(raw: string, details: { file: string; line: number; cause: unknown }): ContextError {
  const shown = raw.trim().slice(0, 40);
  return new ContextError("unreadable_input", `this is not valid JSON: ${JSON.stringify(shown)}`, {
    ...details,
    hint: "A session file has one JSON object per line; a request is one JSON value.",
  });
}

/** Reads a request as it was sent, or the bare list of its messages. The last request of a session holds the whole
 *  history. */
function readRequestSession(value: unknown, file: string): RecordedSession {
  if (Array.isArray(value)) return { file, source: "messages", messages: checkList(value, file), notes: [] };
  const request = Object(value) as Fields;
  const key = listKeyOf(request);
  if (key === undefined) throw noRequest(file);
  const { model, tools } = request;
  return {
    file,
    source: "request",
    ...(key !== "messages" && { format: "responses" }),
    messages: checkList(listOf(request[key]), file),
    ...definite({ system: request.system ?? request.instructions }),
    ...(Array.isArray(tools) && { tools }),
    ...(typeof model === "string" && { model }),
    notes: [],
  };
}

function isRequest(value: unknown): boolean {
  return listKeyOf(Object(value) as Fields) !== undefined;
}

/** `messages`: Anthropic, OpenAI chat, AI SDK. `input`: OpenAI responses, which may be plain text. `items`: Codex
 *  before rollouts were JSON Lines. */
const listKeys = ["messages", "input", "items"] as const;

function listKeyOf(request: Fields): (typeof listKeys)[number] | undefined {
  return listKeys.find((key) => Array.isArray(request[key]) || (key === "input" && typeof request.input === "string"));
}

function listOf(value: unknown): readonly unknown[] {
  return typeof value === "string" ? [{ role: "user", content: value }] : (value as readonly unknown[]);
}

function checkList(list: readonly unknown[], file: string): readonly object[] {
  const index = list.findIndex((each) => typeof each !== "object" || each === null || Array.isArray(each));
  if (index < 0) return list as readonly object[];
  throw new ContextError("invalid_message", `messages[${index}] must be an object`, { file });
}

function noRequest(file: string): ContextError {
  return new ContextError("unreadable_input", "this JSON has no messages", {
    file,
    hint: "Pass a request with messages or input, or a list of messages.",
  });
}

function definite(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}
