/** Thinking blocks go back as they came: signed, not at the end of a message, and at the start of a turn with tools in progress. */
import {
  type BlockRule,
  blockPath,
  blocksOf,
  type CheckedRequest,
  type Problem,
  problem,
  type Turn,
} from "../rule-set.ts";

export const thinkingSignature: BlockRule = ({ type, signature }, place) => {
  if (type !== "thinking" || (typeof signature === "string" && signature !== "")) return undefined;
  const message = "is missing; thinking goes back with its signature or not at all";
  return problem("thinking-signature", `${blockPath(place)}.signature`, message);
};

/** Rule `thinking-last`. Neighbours of one role are combined: then the block is not the last one. */
export function* checkThinkingLast({ turns }: CheckedRequest): Generator<Problem> {
  for (const [index, turn] of turns.entries()) {
    const blocks = blocksOf(turn);
    if (turn.role !== "assistant" || turns[index + 1]?.role === "assistant") continue;
    if (!isThinking(blocks.at(-1)?.type)) continue;
    const path = blockPath({ turn, index: blocks.length - 1 });
    yield problem("thinking-last", path, "is thinking at the end of a message, which is refused");
  }
}

/** Rule `thinking-missing`. With adaptive thinking a turn may start without; with a budget it may not. */
export function* checkThinkingOfTurn({ turns, fields }: CheckedRequest): Generator<Problem> {
  const settings = Object(fields?.thinking) as { readonly type?: unknown };
  if (settings.type !== "enabled") return;
  const start = turns.findLastIndex((turn) => turn.role === "user" && !isAllResults(turn)) + 1;
  const first = turns[start];
  // Only what answers a call makes the turn one in progress.
  if (first?.role !== "assistant" || turns.at(-1)?.role !== "user") return;
  if (isThinking(blocksOf(first)[0]?.type)) return;
  const message =
    "must begin with thinking: thinking is enabled and the turn, with its tools, is in progress";
  yield problem("thinking-missing", `${first.path}.content`, message);
}

function isAllResults(turn: Turn): boolean {
  const blocks = blocksOf(turn);
  return blocks.length > 0 && blocks.every(({ type }) => type === "tool_result");
}

function isThinking(type: unknown): boolean {
  return type === "thinking" || type === "redacted_thinking";
}
