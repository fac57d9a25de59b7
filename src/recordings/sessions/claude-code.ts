/** Reads the lines of Claude Code's sessions (`~/.claude/projects/…/*.jsonl`, versions 1 and 2) for facts. Lines name
 *  their parent, so a rewind shows as a line whose parent is older than the last answer. Versions from 2.1.3 on record
 *  each request: what it keeps of the one before, and a hash of its tools and system text. */

import type { Fields } from "../../core/text/index.ts";
import { readFirstPrompt, readOffer, readUse } from "./claude-code-offer.ts";
import { readTime } from "./recorded-session.ts";
import type { UsageRecord } from "./recorded-usage.ts";
import { type CallFact, countChars, type FactsDraft, findFile, mainChain } from "./session-facts.ts";
import type { ClientReader } from "./session-scan.ts";

/** Finds facts only, so that a status line loads no more. `claudeCodeSessions` adds the requests. */
export const claudeCodeReader: ClientReader = {
  agent: "claude-code",
  isLine(value) {
    const { type, message, uuid, sessionId, leafUuid, messageId } = Object(value) as Fields;
    if (typeof type !== "string") return false;
    const isMessage = typeof message === "object" && (type === "user" || type === "assistant");
    return isMessage || [uuid, sessionId, leafUuid, messageId].some((id) => typeof id === "string");
  },
  isSkipped: (line) => skippedLines.some((start) => line.startsWith(start)),
  open(draft, requests) {
    const own: OwnState = { nodes: {}, requests: {}, answered: {}, steps: {}, sides: 0, ...draft.state.own };
    draft.state.own = own as unknown as Fields;
    return {
      read(value) {
        const line = Object(value) as Fields;
        const fields = ownLine(line);
        const usage = readUsage(fields);
        requests?.report(usage);
        if (draft.isIgnored === true) return;
        // Later lines may name it as their parent.
        if (fields !== line) readLine(line, undefined, { draft, own });
        readLine(fields, usage, { draft, own });
      },
      shortenState() {
        own.nodes = Object.fromEntries(Object.entries(own.nodes).slice(-keptNodes));
        own.requests = Object.fromEntries(Object.entries(own.requests).slice(-keptRequests));
      },
    };
  },
};

const keptNodes = 100;
const keptRequests = 10;

const skippedLines: readonly string[] = [
  "api-request-blob",
  "api-request-shape",
  "file-history-snapshot",
  "file-history-delta",
  "queue-operation",
  "atis-latch",
  "tools-used",
  "mode",
  "summary",
  "ai-title",
  "custom-title",
  "permission-mode",
].map((type) => `{"type":"${type}"`);

/** Older versions repeat each line of a sub-agent in a `progress` line of the session. Newer ones write it to a file of the
 *  sub-agent; a session may have both. */
function ownLine(line: Fields): Fields {
  const { type, data, parentToolUseID, sessionId } = line;
  if (type !== "progress") return line;
  const { type: kind, agentId, message } = Object(data) as Fields;
  if (kind !== "agent_progress" || typeof message !== "object" || message === null) return line;
  return { sessionId, ...message, parentUuid: null, isSidechain: true, agentId: agentId ?? parentToolUseID };
}

/** Returns what a line reports: the usage of an answer, or a sum over the session. */
function readUsage(line: Fields): UsageRecord | undefined {
  const { type, message, requestId, timestamp, sessionId, modelUsage } = line;
  const session = typeof sessionId === "string" ? sessionId : undefined;
  if (type === "cost-state" && session !== undefined && typeof modelUsage === "object" && modelUsage !== null) {
    return { id: `cost-state ${session}`, session, usage: {}, sums: modelUsage as Record<string, object> };
  }
  const { id, usage, model } = Object(message) as Fields;
  // Lines that the program writes itself, such as "No response requested.", are not answers of a model.
  if (type !== "assistant" || model === syntheticModel) return undefined;
  // Servers that imitate the provider repeat the ids of messages, but not of requests.
  const ids = [id, requestId].filter((each) => typeof each === "string");
  if (ids.length === 0 || typeof usage !== "object" || usage === null) return undefined;
  return { id: ids.join(" "), usage, model: readModel(model), time: readTime(timestamp), session };
}

/** The name that the program has for itself. */
export const syntheticModel = "<synthetic>";

/** The program writes some answers itself. They have no model. */
export function readModel(model: unknown): string | undefined {
  return typeof model === "string" && model !== syntheticModel ? model : undefined;
}

/** What the facts of the next lines depend on. */
interface OwnState {
  /** The conversation of each line, and its last call. */
  nodes: Record<string, LineNode>;
  /** The requests that were recorded: how many messages each has, its shape, and its settings. */
  requests: Record<
    string,
    {
      readonly length: number;
      readonly shape: string;
      readonly settings: string;
      readonly base?: string | undefined;
      readonly keep: number;
      readonly time: string;
    }
  >;
  /** The last request of each conversation that was answered. */
  readonly answered: Record<string, string>;
  /** What happened in each conversation since its last call. */
  readonly steps: Record<string, Step>;
  /** The version of the program and the id of the session. */
  place?: string | undefined;
  sides: number;
}

type LineNode = readonly [chain: string, call: number];

/** What may lose the cache, between two calls of a conversation. */
interface Step {
  blocks: number;
  /** The characters of the last answer so far. */
  visible: number;
  /** Whether the last prompt asked for thinking, and which version says so. */
  prompt?: ThinkingPrompt | undefined;
  /** The prompt of the last call. */
  answered?: ThinkingPrompt | undefined;
  effort?: string | undefined;
  /** Whether the program ended: it writes the last prompt when it does, and a summary of hooks when a turn ends. */
  hasLastPrompt: boolean;
  hasEnded: boolean;
}

interface ThinkingPrompt {
  readonly thinks: boolean;
  readonly version: unknown;
}

interface Reading {
  readonly draft: FactsDraft;
  readonly own: OwnState;
}

function readLine(value: Fields, usage: UsageRecord | undefined, reading: Reading): void {
  const { draft, own } = reading;
  const { type, uuid, parentUuid, sessionId, cwd } = value;
  if (typeof sessionId === "string") draft.facts.session ||= sessionId;
  if (typeof cwd === "string") draft.facts.project ||= cwd;
  if (type === "api-request") readRequest(value, own);
  if (type === "last-prompt") openStep(own, mainChain).hasLastPrompt = true;
  if (type === "cost-state" && typeof value.modelUsage === "object")
    draft.facts.sums = value.modelUsage as Record<string, object>;
  // Programs that write such recordings leave ids of lines out. An answer has its own.
  const line = typeof uuid === "string" ? uuid : usage?.id;
  // A copy of a line is in the file already.
  if (line === undefined || own.nodes[line] !== undefined) return;
  const parent = typeof parentUuid === "string" ? own.nodes[parentUuid] : undefined;
  if (parent === undefined && typeof parentUuid === "string" && draft.isContinued) {
    draft.isLost = true;
    return;
  }
  const chain = chooseChain(value, parent, own);
  const before = parent === undefined || parent[0] !== chain ? draft.last(chain) : parent[1];
  own.nodes[line] = [chain, readConversation(value, { ...reading, usage, chain, before })];
}

function openStep(own: OwnState, chain: string): Step {
  own.steps[chain] ??= { blocks: 0, visible: 0, hasLastPrompt: false, hasEnded: false };
  return own.steps[chain];
}

function readRequest({ id, base, keep, tail, shapeHash, params, timestamp }: Fields, own: OwnState): void {
  if (typeof id !== "string" || !Array.isArray(tail)) return;
  const { model: _, metadata: __, ...settings } = Object(params) as Fields;
  own.requests[id] = {
    length: Number(keep) + tail.length,
    shape: String(shapeHash),
    settings: JSON.stringify(settings),
    keep: Number(keep),
    time: String(timestamp),
    ...(typeof base === "string" && { base }),
  };
}

/** Before sub-agents had files of their own, their lines were between those of the session. */
function chooseChain({ isSidechain, agentId }: Fields, parent: LineNode | undefined, own: OwnState): string {
  if (isSidechain !== true) return mainChain;
  if (typeof agentId === "string") return agentId;
  return parent !== undefined && parent[0] !== mainChain ? parent[0] : `side ${++own.sides}`;
}

interface LinePlace extends Reading {
  readonly usage: UsageRecord | undefined;
  readonly chain: string;
  /** The last call of the line's own branch. */
  readonly before: number;
}

/** Returns the last call of the branch after the line. */
function readConversation(value: Fields, place: LinePlace): number {
  const { draft, own, chain, before } = place;
  const { type, subtype, isCompactSummary, version, sessionId } = value;
  if (subtype === "compact_boundary" || isCompactSummary === true) {
    draft.mark(chain, "compaction", -1);
    if (type === "system") return compacted;
  }
  if (subtype === "microcompact_boundary") draft.mark(chain, "edited");
  if (subtype === "stop_hook_summary") openStep(own, chain).hasEnded = true;
  const time = readTime(value.timestamp);
  if (type === "assistant") return readAnswer(value, place, time);
  if (type === "user") {
    const started = [version, sessionId].join(" ");
    // The session is continued with another version of the program, or under another id.
    if (chain === mainChain && own.place !== undefined && own.place !== started) draft.mark(chain, "resumed");
    if (chain === mainChain) own.place = started;
    readPrompt(value, place, time);
  }
  if (type === "attachment") readAttachment(value, place, time);
  return isCompactSummary === true ? compacted : before;
}

function readAttachment({ attachment, rendered }: Fields, { draft, own, chain }: LinePlace, time?: number): void {
  openStep(own, chain).blocks++;
  if (chain === mainChain) readOffer(attachment, draft.facts);
  draft.input(chain, { chars: countChars(rendered), time });
}

/** The branch starts with a summary. */
const compacted = -2;

function readAnswer(value: Fields, place: LinePlace, time: number | undefined): number {
  const { draft, own, usage, chain, before } = place;
  const { content, stop_reason: stop } = Object(value.message) as Fields;
  const blocks = Array.isArray(content) ? (content as readonly Fields[]) : [];
  for (const block of blocks) {
    const { type, id, name, input } = block;
    if (type !== "tool_use") continue;
    readUse(block, draft.facts);
    draft.state.tools[String(id)] = { name: String(name), file: findFile(input) };
  }
  if (usage === undefined || value.isApiErrorMessage === true) return before;
  const last = draft.last(chain);
  if (last < 0 || draft.facts.calls[last]?.id !== usage.id) {
    if (before !== compacted && before !== last) draft.mark(chain, "rewound", before);
    if (typeof value.requestRef === "string") compareRequests(value.requestRef, place);
    markStep(value, place);
  }
  const call = draft.answer(chain, { ...usage, time, diagnosis: readDiagnosis(value.message) });
  openStep(own, chain).blocks += blocks.length;
  if (draft.facts.calls[call]?.id === usage.id)
    checkOutput(call, { blocks, isStopped: typeof stop === "string", place });
  draft.input(chain, { chars: countChars(blocks) });
  return call;
}

/** Versions up to 2.1.42 keep the report that came first, when hardly any output was written. */
function checkOutput(
  call: number,
  { blocks, isStopped, place }: { blocks: readonly Fields[]; isStopped: boolean; place: LinePlace },
): void {
  const { draft, own, chain } = place;
  const fact = draft.facts.calls[call] as CallFact;
  const step = openStep(own, chain);
  step.visible += blocks.reduce((sum, block) => sum + countVisible(block), 0);
  const isReported = isStopped || step.visible <= fact.output * mostCharsPerToken;
  const unreported = isReported ? undefined : step.visible;
  if (fact.unreported !== unreported) draft.facts.calls[call] = { ...fact, unreported };
}

/** No text of an answer has more. */
const mostCharsPerToken = 10;

function countVisible({ text, thinking, input }: Fields): number {
  const inputChars = input === undefined ? 0 : JSON.stringify(input).length;
  return inputChars + String(text ?? "").length + String(thinking ?? "").length;
}

/** Versions from 2.1.205 on ask the provider why it found no cache entry. */
function readDiagnosis(message: unknown): string | undefined {
  const { diagnostics } = Object(message) as Fields;
  const { type } = Object((Object(diagnostics) as Fields).cache_miss_reason) as Fields;
  return typeof type === "string" ? type.slice(0, maxName) : undefined;
}

const maxName = 100;

/** Notes what changed since the last call of the conversation, and starts the next step. */
function markStep({ effort }: Fields, { draft, own, chain }: LinePlace): void {
  const step = openStep(own, chain);
  const { prompt, answered } = step;
  if (step.blocks > lookbackBlocks) draft.mark(chain, "blocks");
  if (prompt?.thinks !== (answered ?? prompt)?.thinks && prompt?.version === answered?.version) {
    draft.mark(chain, "thinking");
  }
  if (typeof effort === "string") {
    if (step.effort !== undefined && step.effort !== effort) draft.mark(chain, "effort");
    step.effort = effort;
  }
  Object.assign(step, { blocks: 0, visible: 0, answered: prompt, hasLastPrompt: false, hasEnded: false });
}

/** How far a provider looks back for an entry
 *  (platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-10). */
const lookbackBlocks = 20;

/** Compares a recorded request with the one that was answered before it. */
function compareRequests(ref: string, { draft, own, chain }: LinePlace): void {
  const request = own.requests[ref];
  const before = own.requests[own.answered[chain] ?? ""];
  own.answered[chain] = ref;
  if (request === undefined) return;
  draft.input(chain, { chars: 0, time: readTime(request.time) });
  if (before === undefined) return;
  if (request.shape !== before.shape || request.settings !== before.settings) draft.mark(chain, "shape");
  if (request.base === undefined) draft.mark(chain, "resumed");
  else if (request.keep < (own.requests[request.base]?.length ?? 0)) draft.mark(chain, "edited");
}

function readPrompt(value: Fields, { draft, own, chain }: LinePlace, time: number | undefined): void {
  const { content } = Object(value.message) as Fields;
  const step = openStep(own, chain);
  step.blocks += Array.isArray(content) ? content.length : 1;
  if (!Array.isArray(content) || content.some((block) => (Object(block) as Fields).type !== "tool_result")) {
    if (chain === mainChain) readFirstPrompt(content, draft.facts);
    step.prompt = { thinks: asksThinking(value), version: value.version };
    if (step.hasLastPrompt && !step.hasEnded) draft.mark(chain, "restart");
  }
  if (!Array.isArray(content)) {
    draft.input(chain, { chars: countChars(content), time });
    return;
  }
  for (const block of content as readonly Fields[]) {
    const id = String(block.tool_use_id);
    const use = block.type === "tool_result" ? draft.state.tools[id] : undefined;
    delete draft.state.tools[id];
    if (use?.name === "ToolSearch") draft.mark(chain, "tool search");
    draft.input(chain, { chars: countChars(block), time, tool: use?.name, file: use?.file });
  }
}

/** Versions up to 2.1.42 record with a prompt whether the model is to think. What a skill or a command writes has no such
 *  field, and switches thinking off. */
function asksThinking({ thinkingMetadata }: Fields): boolean {
  if (typeof thinkingMetadata !== "object" || thinkingMetadata === null) return false;
  const { disabled, level, maxThinkingTokens } = thinkingMetadata as Fields;
  return disabled !== true && level !== "none" && maxThinkingTokens !== 0;
}
