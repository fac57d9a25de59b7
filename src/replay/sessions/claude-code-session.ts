/** Sessions of Claude Code (`~/.claude/projects/…/*.jsonl`, versions 1 and 2): a line for each block of an answer and for each
 *  result, in the order of writing, among lines of the program's own that no request ever held. */
import { ContextError } from "../../errors.ts";
import { joinRequestLines, type RequestLine } from "./join-request-lines.ts";
import type { JsonLine } from "./json-lines.ts";
import {
  createSessionDraft,
  type LeftOut,
  lineOfType,
  type RecordedSession,
  type SessionDraft,
  timeOf,
} from "./recorded-session.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The messages of the main conversation in file order. What a compaction summed up stays before its summary, and so does
 *  what a person rewound: the file holds more than any one request did. */
export function readClaudeCodeSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const draft = createSessionDraft();
  const requestLines = readLines(lines, file, draft);
  for (const { role, content, time } of joinRequestLines(requestLines, draft))
    draft.add({ role, content }, time);
  const model = requestLines.find((line) => line.model !== undefined)?.model;
  return draft.finish({ file, source: "claude-code", format: "anthropic", ...(model && { model }) });
}

export function isClaudeCodeLine(value: unknown): boolean {
  const { type, message, uuid, sessionId, leafUuid, messageId } = Object(value) as Fields;
  if (typeof type !== "string") return false;
  const isMessage = typeof message === "object" && (type === "user" || type === "assistant");
  return isMessage || [uuid, sessionId, leafUuid, messageId].some((id) => typeof id === "string");
}

function readLines(lines: readonly JsonLine[], file: string, draft: SessionDraft): RequestLine[] {
  const seen = new Set<unknown>();
  const isOwn = isSubAgentFile(lines);
  const found: RequestLine[] = [];
  let compactions = 0;
  for (const { value, line } of lines) {
    const fields = Object(value) as Fields;
    const what =
      whatToLeaveOut(fields, isOwn) ?? (seen.has(fields.uuid) ? (["repeated line"] as const) : undefined);
    if (what !== undefined) {
      draft.leaveOut(...what);
      continue;
    }
    if (fields.uuid !== undefined) seen.add(fields.uuid);
    if (fields.isCompactSummary === true) compactions++;
    found.push(readLine(fields, { file, line }));
  }
  if (compactions > 0)
    draft.note(`compactions: ${compactions}; what each one summed up stays before its summary`);
  return found;
}

/** A sub-agent's own file has nothing but side lines: there they are the conversation. */
function isSubAgentFile(lines: readonly JsonLine[]): boolean {
  return lines.every(({ value }) => {
    const { type, isSidechain } = Object(value) as Fields;
    return (type !== "user" && type !== "assistant") || isSidechain === true;
  });
}

function whatToLeaveOut(fields: Fields, isOwnFile: boolean): LeftOut | undefined {
  const { type } = fields;
  if (type !== "user" && type !== "assistant") return lineOfType(type);
  if (fields.isSidechain === true && !isOwnFile) return ["line", "of sub-agents"];
  // Written in the model's place; the program takes them out before it asks again.
  return fields.isApiErrorMessage === true ? ["API error"] : undefined;
}

function readLine(fields: Fields, place: { file: string; line: number }): RequestLine {
  const { id, content, model } = Object(fields.message) as Fields;
  if (typeof content !== "string" && !isBlockList(content)) {
    const problem = "message.content must be a string or a list of blocks";
    throw new ContextError("invalid_message", problem, place);
  }
  return {
    role: fields.type as RequestLine["role"],
    content,
    messageId: typeof id === "string" ? id : undefined,
    // Answers that the program made up are of no model.
    model: typeof model === "string" && model !== "<synthetic>" ? model : undefined,
    time: timeOf(fields.timestamp),
  };
}

function isBlockList(content: unknown): content is readonly Fields[] {
  return Array.isArray(content) && content.every((block) => typeof block === "object" && block !== null);
}
