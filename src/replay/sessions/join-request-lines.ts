/** Lines to messages: the blocks of one answer belong together, and so do the results that answer one turn. */
import type { SessionDraft } from "./recorded-session.ts";

type Block = Readonly<Record<string, unknown>>;

/** One line that was part of a request. */
export interface RequestLine {
  readonly role: "user" | "assistant";
  readonly content: string | readonly Block[];
  /** The provider's id of the answer, the same in all its lines. */
  readonly messageId: string | undefined;
  readonly model: string | undefined;
  readonly time: number | undefined;
}

export interface JoinedMessage {
  readonly role: "user" | "assistant";
  content: string | readonly Block[];
  readonly messageId: string | undefined;
  /** An answer's first line, the last one of results: the request that follows starts then. */
  time: number | undefined;
}

export function joinRequestLines(
  lines: readonly RequestLine[],
  draft: SessionDraft,
): readonly JoinedMessage[] {
  const messages: JoinedMessage[] = [];
  const answered = new Map<unknown, string | undefined>();
  for (const line of lines) {
    const fresh = withoutRepeatedResults(line, answered, draft);
    if (fresh === undefined) continue;
    const target = fresh.role === "assistant" ? sameAnswer(messages, fresh) : openResults(messages, fresh);
    if (target === undefined) messages.push({ ...fresh });
    else join(target, fresh, draft);
  }
  return messages;
}

/** The same result twice is a copy that the program kept; a second, different one is the recording's own affair. */
function withoutRepeatedResults(
  line: RequestLine,
  answered: Map<unknown, string | undefined>,
  draft: SessionDraft,
): RequestLine | undefined {
  if (!isResults(line)) return line;
  const content = (line.content as readonly Block[]).filter((block) => {
    const text = JSON.stringify(block.content);
    const isCopy = answered.get(block.tool_use_id) === text;
    answered.set(block.tool_use_id, text);
    if (isCopy) draft.leaveOut("repeated result");
    return !isCopy;
  });
  if (content.length === line.content.length) return line;
  return content.length === 0 ? undefined : { ...line, content };
}

/** A tool may answer while the rest of the turn is still being written, so results can stand between the lines of one answer. */
function sameAnswer(messages: readonly JoinedMessage[], line: RequestLine): JoinedMessage | undefined {
  const last = messages.findLast((message) => !isResults(message));
  const isSame =
    last?.role === "assistant" && line.messageId !== undefined && last.messageId === line.messageId;
  return isSame ? last : undefined;
}

function openResults(messages: readonly JoinedMessage[], line: RequestLine): JoinedMessage | undefined {
  const last = messages.at(-1);
  return last !== undefined && isResults(last) && isResults(line) ? last : undefined;
}

function join(target: JoinedMessage, line: RequestLine, draft: SessionDraft): void {
  const blocks = blocksOf(target.content);
  const ids = new Set<unknown>(blocks.filter(isCall).map((block) => block.id));
  const added = blocksOf(line.content).filter((block) => {
    const isCopy = isCall(block) && ids.has(block.id);
    if (isCopy) draft.leaveOut("repeated call");
    return !isCopy;
  });
  target.content = [...blocks, ...added];
  if (target.role === "user") target.time = line.time ?? target.time;
}

function isCall(block: Block): boolean {
  return block.type === "tool_use";
}

function blocksOf(content: string | readonly Block[]): readonly Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function isResults({ role, content }: Pick<RequestLine, "role" | "content">): boolean {
  if (role !== "user" || typeof content === "string") return false;
  return content.length > 0 && content.every((block) => block.type === "tool_result");
}
