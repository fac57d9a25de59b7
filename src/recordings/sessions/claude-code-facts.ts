/** The facts of Claude Code's sessions. Lines name their parent, so a rewind shows as a line whose parent is older than
 *  the last answer. Versions from 2.1.3 on record each request: what it keeps of the one before, and a hash of its tools
 *  and system text. */

import type { Fields } from "../../core/text/index.ts";
import { timeOf } from "./recorded-session.ts";
import type { UsageRecord } from "./recorded-usage.ts";
import { charsOf, type FactsDraft, type FactsReader, fileOfInput } from "./session-facts.ts";

export const claudeCodeFacts: FactsReader = {
  agent: "claude-code",
  isLine: isClaudeCodeLine,
  isSkipped: (line) => skippedLines.some((start) => line.startsWith(start)),
  readLine,
  shortenState,
};

export function isClaudeCodeLine(value: unknown): boolean {
  const { type, message, uuid, sessionId, leafUuid, messageId } = Object(value) as Fields;
  if (typeof type !== "string") return false;
  const isMessage = typeof message === "object" && (type === "user" || type === "assistant");
  return isMessage || [uuid, sessionId, leafUuid, messageId].some((id) => typeof id === "string");
}

/** Returns what a line of Claude Code reports. It has the usage of each answer, and sometimes a sum over the session. */
export function claudeCodeUsage(line: unknown): UsageRecord | undefined {
  const { type, message, requestId, timestamp, sessionId, modelUsage } = Object(line) as Fields;
  const session = typeof sessionId === "string" ? sessionId : undefined;
  if (type === "cost-state" && session !== undefined && typeof modelUsage === "object" && modelUsage !== null) {
    return { id: `cost-state ${session}`, session, usage: {}, sums: modelUsage as Record<string, object> };
  }
  const { id, usage, model } = Object(message) as Fields;
  // Servers that imitate the provider repeat the ids of messages, but not of requests.
  const ids = [id, requestId].filter((each) => typeof each === "string");
  if (type !== "assistant" || ids.length === 0 || typeof usage !== "object" || usage === null) return undefined;
  return { id: ids.join(" "), usage, model: answeringModel(model), time: timeOf(timestamp), session };
}

/** The program writes some answers itself. They have no model. */
export function answeringModel(model: unknown): string | undefined {
  return typeof model === "string" && model !== "<synthetic>" ? model : undefined;
}

const skippedLines: readonly string[] = [
  ...["api-request-blob", "api-request-shape", "file-history-snapshot", "file-history-delta", "queue-operation"],
  ...["last-prompt", "atis-latch", "tools-used", "mode", "summary", "ai-title", "custom-title", "permission-mode"],
].map((type) => `{"type":"${type}"`);

interface OwnState {
  /** The conversation of each line, and its last call. */
  nodes: Record<string, LineNode>;
  /** The requests that were recorded: how many messages each has, its shape, and its settings. */
  requests: Record<string, RequestNode>;
  /** The last request of each conversation that was answered. */
  answered: Record<string, string>;
  place?: string | undefined;
  sides: number;
}

type LineNode = readonly [chain: string, call: number];
interface RequestNode {
  readonly length: number;
  readonly shape: string;
  readonly settings: string;
  readonly base?: string | undefined;
  readonly keep: number;
  readonly time: string;
}

function readLine(value: Fields, draft: FactsDraft): void {
  const own = ownState(draft);
  const { type, uuid, parentUuid, sessionId } = value;
  if (typeof sessionId === "string") draft.facts.session ||= sessionId;
  if (typeof value.cwd === "string") draft.facts.project ||= value.cwd;
  if (type === "api-request") readRequest(value, own);
  if (type === "cost-state" && typeof value.modelUsage === "object")
    draft.facts.sums = value.modelUsage as Fields as never;
  // Programs that write such recordings leave ids of lines out. An answer has its own.
  const line = typeof uuid === "string" ? uuid : claudeCodeUsage(value)?.id;
  // A copy of a line is in the file already.
  if (line === undefined || own.nodes[line] !== undefined) return;
  const parent = typeof parentUuid === "string" ? own.nodes[parentUuid] : undefined;
  if (parent === undefined && typeof parentUuid === "string" && draft.isContinued) {
    draft.isLost = true;
    return;
  }
  const chain = chainOf(value, parent, own);
  const call = readConversation(value, { draft, own, chain, parent });
  own.nodes[line] = [chain, call];
}

function ownState({ state }: FactsDraft): OwnState {
  const own = state.own as Partial<OwnState>;
  own.nodes ??= {};
  own.requests ??= {};
  own.answered ??= {};
  own.sides ??= 0;
  return own as OwnState;
}

function shortenState({ state }: FactsDraft): void {
  const own = ownState({ state } as FactsDraft);
  own.nodes = Object.fromEntries(Object.entries(own.nodes).slice(-keptNodes));
  own.requests = Object.fromEntries(Object.entries(own.requests).slice(-keptRequests));
}

const keptNodes = 100;
const keptRequests = 10;

function readRequest(value: Fields, own: OwnState): void {
  const { id, base, keep, tail, shapeHash, params, timestamp } = value;
  if (typeof id !== "string" || !Array.isArray(tail)) return;
  const { model: _, metadata: __, ...settings } = Object(params) as Fields;
  own.requests[id] = {
    length: Number(keep) + tail.length,
    ...{ shape: String(shapeHash), settings: JSON.stringify(settings), keep: Number(keep), time: String(timestamp) },
    ...(typeof base === "string" && { base }),
  };
}

/** Before sub-agents had files of their own, their lines were between those of the session. */
function chainOf({ isSidechain, agentId }: Fields, parent: LineNode | undefined, own: OwnState): string {
  if (isSidechain !== true) return "main";
  if (typeof agentId === "string") return agentId;
  return parent !== undefined && parent[0] !== "main" ? parent[0] : `side ${++own.sides}`;
}

interface LinePlace {
  readonly draft: FactsDraft;
  readonly own: OwnState;
  readonly chain: string;
  readonly parent: LineNode | undefined;
}

/** Returns the last call of the line's own branch. */
function readConversation(value: Fields, place: LinePlace): number {
  const { draft, own, chain, parent } = place;
  const { type, subtype, timestamp, isCompactSummary } = value;
  const before = parent === undefined || parent[0] !== chain ? draft.last(chain) : parent[1];
  if (subtype === "compact_boundary" || isCompactSummary === true) {
    draft.mark(chain, "compaction", -1);
    if (type === "system") return compacted;
  }
  if (subtype === "microcompact_boundary") draft.mark(chain, "edited");
  const time = Date.parse(String(timestamp)) || undefined;
  if (type === "assistant") return readAnswer(value, { ...place, before, time });
  if (type === "user") {
    noticePlace(value, { draft, own, chain });
    readUser(Object(value.message) as Fields, { draft, chain, time });
  }
  if (type === "attachment") draft.input(chain, { chars: charsOf(value.rendered), time });
  return isCompactSummary === true ? compacted : before;
}

/** The branch starts with a summary. */
const compacted = -2;

function readAnswer(
  value: Fields,
  { draft, own, chain, before, time }: LinePlace & { readonly before: number; readonly time: number | undefined },
): number {
  const { content } = Object(value.message) as Fields;
  const blocks = Array.isArray(content) ? (content as readonly Fields[]) : [];
  for (const { type, id, name, input } of blocks) {
    if (type === "tool_use") draft.state.tools[String(id)] = { name: String(name), file: fileOfInput(input) };
  }
  const usage = value.isApiErrorMessage === true ? undefined : claudeCodeUsage(value);
  if (usage === undefined) return before;
  const last = draft.last(chain);
  const isNew = last < 0 || draft.facts.calls[last]?.id !== usage.id;
  if (isNew) noticeBranch({ draft, chain, before, last });
  if (isNew && typeof value.requestRef === "string") noticeRequest(value.requestRef, { draft, own, chain });
  const call = draft.answer(chain, { id: usage.id, model: usage.model, time, usage: usage.usage });
  draft.input(chain, { chars: charsOf(blocks) });
  return call;
}

function noticeBranch(branch: { draft: FactsDraft; chain: string; before: number; last: number }): void {
  const { draft, chain, before, last } = branch;
  if (before === compacted || before === last) return;
  draft.mark(chain, "rewound", before);
}

/** Compares a recorded request with the one that was answered before it. */
function noticeRequest(ref: string, { draft, own, chain }: Pick<LinePlace, "draft" | "own" | "chain">): void {
  const request = own.requests[ref];
  const before = own.requests[own.answered[chain] ?? ""];
  own.answered[chain] = ref;
  if (request === undefined) return;
  draft.input(chain, { chars: 0, time: Date.parse(request.time) || undefined });
  if (before === undefined) return;
  if (request.shape !== before.shape || request.settings !== before.settings) draft.mark(chain, "shape");
  if (request.base === undefined) draft.mark(chain, "resumed");
  else if (request.keep < (own.requests[request.base]?.length ?? 0)) draft.mark(chain, "edited");
}

/** A session that is continued with another version of the program, or under another id. */
function noticePlace({ version, sessionId }: Fields, { draft, own, chain }: Omit<LinePlace, "parent">): void {
  if (chain !== "main") return;
  const place = [version, sessionId].join(" ");
  if (own.place !== undefined && own.place !== place) draft.mark(chain, "resumed");
  own.place = place;
}

function readUser({ content }: Fields, where: { draft: FactsDraft; chain: string; time: number | undefined }): void {
  const { draft, chain, time } = where;
  if (!Array.isArray(content)) {
    draft.input(chain, { chars: charsOf(content), time });
    return;
  }
  for (const block of content as readonly Fields[]) {
    const id = String(block.tool_use_id);
    const use = block.type === "tool_result" ? draft.state.tools[id] : undefined;
    delete draft.state.tools[id];
    draft.input(chain, { chars: charsOf(block), time, tool: use?.name, file: use?.file });
  }
}
