/** What Anthropic's Messages API refuses. Sources: the SDK's comments (1.8.0), the platform's pages, and errors quoted
 *  in issues (2026-11). */

import type { Fields } from "../../text/index.ts";
import { typeName } from "../fields.ts";
import type { Role } from "../message-format.ts";
import { anthropicRequestRules } from "./anthropic-settings.ts";
import { checkPairing, type Pairing, referencesIn } from "./pairing.ts";
import {
  allowRoles,
  type BlockRule,
  blockPath,
  type CheckedMessage,
  type CheckedRequest,
  eachBlock,
  getBlocks,
  hasText,
  type Problem,
  problem,
  quoteValue,
  type RuleSet,
} from "./rule-set.ts";

// Tool calls: their fields, their results, their order.

/** Neighbours of the same role count as one turn: the API merges them. `alternation` reports them in strict mode. */
const pairing: Pairing = {
  findCalls: (turn) => (turn.role === "assistant" ? referencesIn(turn, "tool_use", "id") : []),
  findResults: (turn) => (turn.role === "user" ? referencesIn(turn, "tool_result", "tool_use_id") : []),
  keepsCallsOpen: (turn, previous) => turn.role !== "assistant" || previous?.role === "assistant",
  areIdsUnique: true,
  lack: "no tool_result in the next message",
};

/** In the user's turn, the API does not find a result that comes after text. */
function* checkResultsFirst({ turns }: CheckedRequest): Generator<Problem> {
  // The path of the first content in neighbouring user messages that is not a result.
  let other: string | undefined;
  for (const turn of turns) {
    if (turn.role === "system") continue;
    if (turn.role !== "user") {
      other = undefined;
      continue;
    }
    if (typeof turn.message.content === "string") other ??= `${turn.path}.content`;
    for (const [index, { type }] of getBlocks(turn).entries()) {
      if (type !== "tool_result") other ??= blockPath({ turn, index });
      else if (other !== undefined) {
        const message = `is a tool_result after ${other}; results must come first`;
        yield problem("results-first", blockPath({ turn, index }), message);
      }
    }
  }
}

const idKeys: ReadonlyMap<unknown, "id" | "tool_use_id"> = new Map<unknown, "id" | "tool_use_id">([
  ["tool_use", "id"],
  ["server_tool_use", "id"],
  ["mcp_tool_use", "id"],
  ["tool_result", "tool_use_id"],
]);

/** Tools that the provider runs: call and result are in the assistant's message. Rules `unanswered-server-call` and
 *  `orphan-server-result`. */
function* checkServerTools({ turns }: CheckedRequest): Generator<Problem> {
  const known = new Set<unknown>();
  const last = turns.findLast(({ role }) => role === "assistant");
  for (const turn of turns) {
    const blocks = getBlocks(turn);
    if (turn.role !== "assistant" || !blocks.some(({ type }) => isServerCall(type) || isServerResult(type))) continue;
    yield* orphanServerResults(turn, known);
    // The API may have paused the last message. Code that calls tools of the client waits for their results.
    if (turn !== last && !blocks.some(({ type }) => type === "tool_use")) yield* unansweredServerCalls(turn);
  }
}

function* orphanServerResults(turn: CheckedMessage, known: Set<unknown>): Generator<Problem> {
  for (const [index, { type, id, tool_use_id }] of getBlocks(turn).entries()) {
    if (isServerCall(type)) known.add(id);
    if (!isServerResult(type) || known.has(tool_use_id)) continue;
    const path = `${blockPath({ turn, index })}.tool_use_id`;
    yield problem("orphan-server-result", path, `${type} has no call before it`);
  }
}

function* unansweredServerCalls(turn: CheckedMessage): Generator<Problem> {
  const blocks = getBlocks(turn);
  const answered = new Set(blocks.filter(({ type }) => isServerResult(type)).map((block) => block.tool_use_id));
  for (const [index, { type, id }] of blocks.entries()) {
    if (!isServerCall(type) || answered.has(id)) continue;
    const path = `${blockPath({ turn, index })}.id`;
    yield problem("unanswered-server-call", path, `${type} has no result in the same message`);
  }
}

function isServerCall(type: unknown): boolean {
  return type === "server_tool_use" || type === "mcp_tool_use";
}

function isServerResult(type: unknown): boolean {
  return typeof type === "string" && type.endsWith("_tool_result");
}

/** Rule `thinking-last`. Neighbours of the same role are merged, so the block is not the last one then. */
function* checkThinkingLast({ turns }: CheckedRequest): Generator<Problem> {
  for (const [index, turn] of turns.entries()) {
    const blocks = getBlocks(turn);
    if (turn.role !== "assistant" || turns[index + 1]?.role === "assistant") continue;
    if (!isThinking(blocks.at(-1)?.type)) continue;
    const path = blockPath({ turn, index: blocks.length - 1 });
    yield problem("thinking-last", path, "is thinking at the end of a message, which the API refuses");
  }
}

/** Rule `thinking-missing`. With adaptive thinking a turn may start without thinking; with a budget it may not. */
function* checkThinkingOfTurn({ turns, fields }: CheckedRequest): Generator<Problem> {
  const settings = Object(fields?.thinking) as { readonly type?: unknown };
  if (settings.type !== "enabled") return;
  const start = turns.findLastIndex((turn) => turn.role === "user" && !isAllResults(turn)) + 1;
  const first = turns[start];
  // Only results that answer a call show that the turn is in progress.
  if (first?.role !== "assistant" || turns.at(-1)?.role !== "user") return;
  if (isThinking(getBlocks(first)[0]?.type)) return;
  const message = "must begin with thinking, because thinking is enabled and a tool call of the turn is in progress";
  yield problem("thinking-missing", `${first.path}.content`, message);
}

function isAllResults(turn: CheckedMessage): boolean {
  const blocks = getBlocks(turn);
  return blocks.length > 0 && blocks.every(({ type }) => type === "tool_result");
}

function isThinking(type: unknown): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

// Messages and texts without content.

/** The last message may be an empty assistant message. */
function* checkEmptyMessages({ turns }: CheckedRequest): Generator<Problem> {
  for (const turn of turns) {
    const { content } = turn.message;
    const isEmpty = content === "" || (Array.isArray(content) && content.length === 0);
    if (!isEmpty || (turn === turns.at(-1) && turn.role === "assistant")) continue;
    yield problem("empty-message", `${turn.path}.content`, "is empty; a message needs content");
  }
}

/** Rule `empty-text`, for content that is a string. */
function* checkPlainTexts({ turns }: CheckedRequest): Generator<Problem> {
  for (const { message, path } of turns) {
    if (message.content === "" || hasText(message.content)) continue;
    yield problem("empty-text", `${path}.content`, "has only white space");
  }
}

/** Rules `shape` and `empty-text`, for the request's system prompt. */
function* checkSystemPrompt({ fields }: CheckedRequest): Generator<Problem> {
  const system = fields?.system ?? "";
  if (typeof system === "string") return;
  if (!Array.isArray(system)) {
    yield problem("shape", "system", `must be a string or an array, not ${typeName(system)}`);
    return;
  }
  for (const [index, block] of system.entries()) {
    const { type, text } = Object(block) as Fields;
    if (type !== "text" || typeof text !== "string") {
      yield problem("shape", `system[${index}]`, "must be a text block");
    } else if (!hasText(text)) yield problem("empty-text", `system[${index}].text`, "is empty; leave the block out");
  }
}

// The messages of a request: their number and roles, and what each role may contain.

function* checkMessageCount({ turns }: CheckedRequest): Generator<Problem> {
  const maxMessages = 100_000; // the SDK's comment on `messages`
  const beyond = turns[maxMessages];
  if (beyond === undefined) return;
  yield problem("too-many-messages", beyond.path, `is beyond the ${maxMessages} messages of a request`);
}

function* checkFirstMessage({ turns }: CheckedRequest): Generator<Problem> {
  const first = turns.find(({ role }) => role !== "system");
  if (first?.role !== "assistant") return;
  // A signed summary comes back first, in place of what it summarises.
  if (getBlocks(first)[0]?.type === "compaction") return;
  yield problem("first-message", `${first.path}.role`, 'is "assistant"; the first message must be the user\'s');
}

/** The SDK's comments say that neighbours of the same role are merged; the API's list of errors says that they are
 *  refused. */
function* checkAlternation({ turns }: CheckedRequest): Generator<Problem> {
  let previous: CheckedMessage | undefined;
  for (const turn of turns) {
    if (turn.role === "system") continue;
    if (turn.role !== undefined && turn.role === previous?.role) {
      const message = `is "${turn.role}", the same as in ${previous.path}; roles must alternate`;
      yield problem("alternation", `${turn.path}.role`, message);
    }
    previous = turn;
  }
}

/** All rules for one block. */
const blockRules: readonly BlockRule[] = [
  allowRoles(
    new Map<string, readonly Role[]>([
      ["tool_result", ["user", "system"]],
      ["tool_use", ["assistant", "system"]],
      ["server_tool_use", ["assistant", "system"]],
      ["mcp_tool_use", ["assistant", "system"]],
      ["thinking", ["assistant", "system"]],
      ["redacted_thinking", ["assistant", "system"]],
    ]),
  ),
  ({ type, content }, place) => {
    if (type !== "compaction" || content !== "") return undefined;
    const message = "is empty; use a text, or null for a compaction that failed";
    return problem("compaction-content", `${blockPath(place)}.content`, message);
  },
  // White space alone is refused too.
  ({ type, text }, place) => {
    if (type !== "text" || hasText(text)) return undefined;
    const what = text === "" ? "is empty" : "has only white space";
    return problem("empty-text", `${blockPath(place)}.text`, `${what}; leave the block out`);
  },
  // Inside a result, only an empty text is known to be refused.
  ({ type, content }, place) => {
    if (type !== "tool_result" || !Array.isArray(content)) return undefined;
    const index = content.findIndex((block) => block.type === "text" && block.text === "");
    if (index < 0) return undefined;
    const path = `${blockPath(place)}.content[${index}].text`;
    return problem("empty-text", path, "is empty; leave the block or the content out");
  },
  // The pattern is quoted from the API's error.
  (block, place) => {
    const key = idKeys.get(block.type);
    const id = key && block[key];
    if (key === undefined || (typeof id === "string" && /^[a-zA-Z0-9_-]+$/.test(id))) return undefined;
    const message = `must consist of letters, digits, _ and -, not ${quoteValue(id)}`;
    return problem("tool-id", `${blockPath(place)}.${key}`, message);
  },
  ({ type, input }, place) => {
    if (idKeys.get(type) !== "id") return undefined;
    if (typeof input === "object" && input !== null && !Array.isArray(input)) return undefined;
    return problem("call-input", `${blockPath(place)}.input`, `must be an object, not ${typeName(input)}`);
  },
  // Thinking blocks must be sent back unchanged: signed, not at the end of a message, and at the start of a turn
  // whose tools are in progress.
  ({ type, signature }, place) => {
    if (type !== "thinking" || (typeof signature === "string" && signature !== "")) return undefined;
    const message = "is missing; send thinking back with its signature, or leave it out";
    return problem("thinking-signature", `${blockPath(place)}.signature`, message);
  },
];

export const anthropicRules: RuleSet = {
  always: [
    checkMessageCount,
    checkFirstMessage,
    ...anthropicRequestRules.first,
    checkEmptyMessages,
    checkPlainTexts,
    checkSystemPrompt,
    eachBlock(blockRules),
    (request) => checkPairing(request, pairing),
    checkResultsFirst,
    checkServerTools,
    checkThinkingLast,
    checkThinkingOfTurn,
    ...anthropicRequestRules.last,
  ],
  strict: [checkAlternation, ...anthropicRequestRules.strict],
};
