/** Which program wrote a file is told by what is in it, never by its name. */
import { ContextError } from "../../errors.ts";
import { messageOf } from "../../text/index.ts";
import { isClaudeCodeLine, readClaudeCodeSession } from "./claude-code-session.ts";
import { isCodexLine, readCodexSession } from "./codex-session.ts";
import { type JsonLine, parseJsonLines, withoutByteOrderMark } from "./json-lines.ts";
import type { RecordedSession } from "./recorded-session.ts";
import { isRequest, readRequestSession } from "./request-session.ts";
import { isMessageLine, isTranscriptHead, readTranscriptSession } from "./transcript-session.ts";

export interface ReadSessionOptions {
  /** For errors and reports; the file itself is read by the caller. */
  readonly file: string;
}

/** What the lines of a file are. */
export type LineKind = "claude-code" | "codex" | "messages" | "requests";

/** A recorded session, of whichever program: transcript JSON Lines, Claude Code, Codex, a request, or a list of messages.
 *  What is left out is told in `notes`; what cannot be read throws with its line. */
export function readSession(text: string, { file }: ReadSessionOptions): RecordedSession {
  const content = withoutByteOrderMark(text);
  if (content.trim() === "") throw unreadable("the file is empty", file);
  const whole = parseWhole(content, file);
  if (whole !== undefined) return readRequestSession(whole.value, file);
  const { lines, notes } = parseJsonLines(content, file);
  const session = readerOf(lines, file)(lines, file);
  return notes.length === 0 ? session : { ...session, notes: [...notes, ...session.notes] };
}

/** Told by what only one program writes; undefined where no line is of a known kind. */
export function kindOfLines(values: readonly unknown[]): LineKind | undefined {
  const first = values.find((value) => isClaudeCodeLine(value) || isCodexLine(value) || isMessageLine(value));
  if (isClaudeCodeLine(first)) return "claude-code";
  if (values.some(isCodexLine)) return "codex";
  if (first !== undefined) return "messages";
  return values.some(isRequest) ? "requests" : undefined;
}

/** The file as one JSON value; undefined where its first line is a value of its own: then it is JSON Lines. */
function parseWhole(content: string, file: string): { value: unknown } | undefined {
  const first = firstLine(content);
  const head = parsed(first);
  if (head === undefined) return { value: parseOrThrow(content, file) };
  const isOnlyLine = first.length === content.trim().length;
  return isOnlyLine && !isLine(head.value) ? head : undefined;
}

/** A file of one line can still be a session that has just begun. */
function isLine(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRequest(value);
}

function readerOf(
  lines: readonly JsonLine[],
  file: string,
): (lines: readonly JsonLine[], file: string) => RecordedSession {
  if (isTranscriptHead(lines[0]?.value)) return readTranscriptSession;
  const kind = kindOfLines(lines.map(({ value }) => value));
  if (kind === "codex") return readCodexSession;
  if (kind === "claude-code") return readClaudeCodeSession;
  if (kind === "messages") return readTranscriptSession;
  throw kind === "requests" ? severalRequests(file) : unreadable("no known kind of recorded session", file);
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
    throw new ContextError("unreadable_input", `no JSON: ${problem}`, { file, line, cause });
  }
}

function severalRequests(file: string): ContextError {
  return new ContextError("unreadable_input", "holds requests, one a line", {
    file,
    hint: "Write the last one of a session, which holds all of it, to a file of its own.",
  });
}

function unreadable(problem: string, file: string): ContextError {
  return new ContextError("unreadable_input", problem, {
    file,
    hint: "Known are messages one a line, Claude Code and Codex sessions (JSON Lines), requests and lists of messages (JSON).",
  });
}
