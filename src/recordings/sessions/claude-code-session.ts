/** Makes the requests of Claude Code's sessions from their lines. The file has one line for each block of an answer and for
 *  each result, in the order of writing, between lines that are for the program only. Versions from 2.1.3 on also record
 *  each request: `claude-code-requests.ts`. */

import { ContextError } from "../../core/errors.ts";
import type { Fields } from "../../core/text/index.ts";
import { claudeCodeReader, readModel, syntheticModel } from "./claude-code.ts";
import {
  createRequestIndex,
  isResults,
  type JoinedMessage,
  joinRequestLines,
  type LineContent,
  type RecordedRequest,
  type RequestIndex,
} from "./claude-code-requests.ts";
import { type JsonLine, type LeftOut, nameLine, readTime, type SessionDraft } from "./recorded-session.ts";
import type { ClientReader } from "./session-scan.ts";

/** The reader of Claude Code's lines, with the requests. If the file does not have them, they are made from its lines: a
 *  compaction starts a new stretch, and so does a rewind. */
export const claudeCodeSessions: ClientReader = {
  ...claudeCodeReader,
  open(draft, requests) {
    const facts = claudeCodeReader.open(draft, requests);
    if (requests === undefined) return facts;
    const lines: JsonLine[] = [];
    let file = "";
    return {
      read(value, place) {
        facts.read(value);
        lines.push({ value, line: place?.line ?? 0 });
        file = place?.file ?? file;
      },
      finish() {
        const index = createRequestIndex(lines);
        const requestLines = readLines(lines, file, requests);
        for (const branch of splitBranches(requestLines, requests)) addBranch(branch, index, requests);
        const model = requestLines.find((line) => line.model !== undefined)?.model;
        return model === undefined ? {} : { model };
      },
    };
  },
};

/** Lines that the program writes for itself. None of them was sent as it is. */
const ownTypes: ReadonlySet<unknown> = new Set([
  "api-request",
  "api-request-blob",
  "api-request-shape",
  "attachment",
  "system",
  "progress",
  "summary",
  "queue-operation",
  "atis-latch",
  "last-prompt",
  "tools-used",
  "cost-state",
  "mode",
  "file-history-snapshot",
  "file-history-delta",
  "attribution-snapshot",
  "custom-title",
  "ai-title",
  "tag",
  "agent-name",
  "agent-color",
  "agent-setting",
  "permission-mode",
  "pr-link",
  "worktree-state",
  "content-replacement",
  "fork-context-ref",
]);

function readLines(lines: readonly JsonLine[], file: string, draft: SessionDraft): RequestLine[] {
  const seen = new Set<unknown>();
  // A sub-agent's own file has only side lines. They are its conversation.
  const isOwn = lines.every(({ value }) => {
    const { type, isSidechain } = Object(value) as Fields;
    return (type !== "user" && type !== "assistant") || isSidechain === true;
  });
  const found: RequestLine[] = [];
  for (const { value, line } of lines) {
    const fields = Object(value) as Fields;
    const { uuid, type } = fields;
    if (seen.has(uuid)) {
      draft.leaveOut("repeated line");
      continue;
    }
    if (uuid !== undefined) seen.add(uuid);
    const what = chooseLeftOut(fields, isOwn);
    if (what === undefined) found.push(readLine(fields, { file, line }));
    // A line that is left out may be the parent of others.
    else found.push({ ...readPosition(fields), role: "none" });
    if (what !== undefined && !ownTypes.has(type)) draft.leaveOut(...what);
  }
  return found;
}

function chooseLeftOut(fields: Fields, isOwnFile: boolean): LeftOut | undefined {
  const { type } = fields;
  const isRendered = type === "attachment" && Array.isArray(fields.rendered);
  if (type !== "user" && type !== "assistant" && !isRendered) return nameLine(type);
  if (fields.isSidechain === true && !isOwnFile) return ["line", "of sub-agents"];
  // Written instead of an answer. The program removes them before the next request.
  if (fields.isApiErrorMessage === true) return ["API error"];
  const { model } = Object(fields.message) as Fields;
  return model === syntheticModel ? ["answer", "of the program itself"] : undefined;
}

function readLine(fields: Fields, place: { file: string; line: number }): RequestLine {
  const { id, content, model } = Object(fields.message) as Fields;
  const shared = {
    ...readPosition(fields),
    messageId: typeof id === "string" ? id : undefined,
    model: readModel(model),
  };
  if (fields.type === "attachment") {
    return { ...shared, role: "user", content: readRendered(fields), isAttachment: true };
  }
  if (typeof content !== "string" && !isBlockList(content)) {
    const problem = "message.content must be a string or a list of blocks";
    throw new ContextError("invalid_message", problem, place);
  }
  return { ...shared, role: fields.type as "user" | "assistant", content, isAttachment: false };
}

function readPosition(fields: Fields): LinePosition {
  const { uuid, parentUuid, requestRef, subtype, isCompactSummary, compactMetadata } = fields;
  const { preservedMessages } = Object(compactMetadata) as Fields;
  const { uuids } = Object(preservedMessages) as Fields;
  return {
    uuid: typeof uuid === "string" ? uuid : undefined,
    parentUuid: typeof parentUuid === "string" ? parentUuid : undefined,
    requestRef: typeof requestRef === "string" ? requestRef : undefined,
    compaction: subtype === "compact_boundary" ? "boundary" : isCompactSummary === true ? "summary" : undefined,
    preserved: new Set(Array.isArray(uuids) ? uuids : []),
    time: readTime(fields.timestamp),
  };
}

/** What the program added to the request for an attachment, such as a reminder. */
function readRendered({ rendered }: Fields): readonly Fields[] {
  const texts = (rendered as readonly unknown[]).map((each) => (Object(each) as Fields).content);
  return texts.flatMap((content) => {
    if (typeof content === "string") return { type: "text", text: content };
    return isBlockList(content) ? content : [];
  });
}

function isBlockList(content: unknown): content is readonly Fields[] {
  return Array.isArray(content) && content.every((block) => typeof block === "object" && block !== null);
}

interface LinePosition {
  readonly uuid: string | undefined;
  readonly parentUuid: string | undefined;
  /** The recorded request that an answer belongs to. */
  readonly requestRef: string | undefined;
  readonly compaction: "boundary" | "summary" | undefined;
  /** The lines that a compaction kept. */
  readonly preserved: ReadonlySet<unknown>;
  readonly time: number | undefined;
}

/** One line of the conversation. A line of role `none` only connects others. */
type RequestLine = LinePosition & {
  /** Kept by a compaction, from before it. */
  readonly isPreserved?: boolean;
  readonly messageId?: string | undefined;
  readonly model?: string | undefined;
} & (LineContent | { readonly role: "none" });

/** The lines of one branch of the conversation, from its start. The first `kept` are in an earlier branch too. */
interface Branch {
  readonly lines: RequestLine[];
  /** The index of each line by its id. */
  readonly places: Map<string | undefined, number>;
  kept: number;
}

/** Follows the lines from parent to child. A compaction and a rewind start a new branch. Each branch is returned before the
 *  next one starts: thousands of rewinds are refused before they fill the memory. */
function* splitBranches(lines: readonly RequestLine[], draft: SessionDraft): Generator<Branch> {
  let current = startBranch([]);
  const homes = new Map<string | undefined, Branch>();
  let preserved: readonly RequestLine[] = [];
  for (const line of lines) {
    if (startsCompaction(line, current)) {
      preserved = current.lines.filter(({ uuid }) => line.preserved.has(uuid));
      yield current;
      current = startBranch([]);
      draft.count("compaction");
    } else {
      // A person may return to a branch that was left.
      const home = current.places.has(line.parentUuid) ? current : (homes.get(line.parentUuid) ?? current);
      const kept = countKept(line, home);
      if (home !== current || kept < current.lines.length) {
        yield current;
        current = startBranch(home.lines.slice(0, kept));
        draft.count("rewind");
      }
    }
    addLine(current, line);
    if (line.uuid !== undefined) homes.set(line.uuid, current);
    if (line.compaction !== "summary") continue;
    // What a compaction keeps follows its summary.
    for (const each of preserved) addLine(current, { ...each, isPreserved: true });
    current.kept = current.lines.length;
    preserved = [];
  }
  yield current;
}

function startBranch(lines: readonly RequestLine[]): Branch {
  const branch: Branch = { lines: [], places: new Map(), kept: lines.length };
  for (const line of lines) addLine(branch, line);
  return branch;
}

function addLine({ lines, places }: Branch, line: RequestLine): void {
  places.set(line.uuid, lines.length);
  lines.push(line);
}

/** Older versions write a summary without a boundary. */
function startsCompaction({ compaction }: RequestLine, { lines }: Branch): boolean {
  return compaction === "boundary" || (compaction === "summary" && lines.at(-1)?.compaction !== "boundary");
}

/** Returns how many lines of the branch a line continues. It continues all of them if it leaves out only lines of the
 *  same answer and their results: those have one parent and are written side by side. */
function countKept(line: RequestLine, { lines, places }: Branch): number {
  const parent = line.parentUuid === undefined ? undefined : places.get(line.parentUuid);
  if (parent === undefined) return lines.length;
  const ids = new Set([line.messageId, lines[parent]?.messageId]);
  const isOther = (each: RequestLine): boolean => {
    if (each.isPreserved) return false;
    if (each.role === "assistant") return !ids.has(each.messageId) || each.messageId === undefined;
    return each.role === "user" && !each.isAttachment && !isResults(each);
  };
  for (let index = parent + 1; index < lines.length; index++)
    if (isOther(lines[index] as RequestLine)) return parent + 1;
  return lines.length;
}

/** Adds a branch to the draft: as its requests were recorded, and where they were not, as its lines are. */
function addBranch({ lines, kept }: Branch, requests: RequestIndex, draft: SessionDraft): void {
  const isKnown = (line: RequestLine): boolean => requests.get(line.requestRef) !== undefined;
  const first = lines.findIndex((line, index) => index >= kept && isKnown(line));
  const unknown = first < 0 ? lines : lines.slice(0, first);
  if (unknown.slice(kept).some(({ role }) => role === "assistant") || first < 0) addLines(unknown, kept, draft);
  if (first >= 0) addAnswers(lines.slice(first), requests, draft);
}

function addLines(lines: readonly RequestLine[], kept: number, draft: SessionDraft): void {
  draft.branch(0);
  const before = joinRequestLines(lines.slice(0, kept).filter(hasContent), { leaveOut() {} }).length;
  for (const [index, message] of joinRequestLines(lines.filter(hasContent), draft).entries()) {
    if (index === before) draft.skipAnswers();
    addMessage(message, draft);
  }
}

function addMessage({ role, content, time, messageId }: JoinedMessage, draft: SessionDraft): void {
  draft.add({ role, content }, { time, answerId: role === "assistant" ? messageId : undefined });
}

/** Adds the recorded request before each answer. */
function addAnswers(lines: readonly RequestLine[], requests: RequestIndex, draft: SessionDraft): void {
  const answered = new Map<string | undefined, RecordedRequest>();
  for (const { messageId, requestRef } of lines) {
    const request = requests.get(requestRef);
    if (request !== undefined) answered.set(messageId, request);
  }
  let unknown: JoinedMessage[] = [];
  for (const message of joinRequestLines(lines.filter(hasContent), draft)) {
    const { role, content, time, messageId } = message;
    const request = role === "assistant" ? answered.get(messageId) : undefined;
    if (request !== undefined) {
      draft.request(request.messages, request);
      draft.add(requests.known({ role, content }), { time, answerId: messageId });
      unknown = [];
    } else if (role === "assistant") {
      for (const each of [...unknown, message]) addMessage(each, draft);
      unknown = [];
    } else unknown.push(message);
  }
}

function hasContent(line: RequestLine): line is RequestLine & LineContent {
  return line.role !== "none";
}
