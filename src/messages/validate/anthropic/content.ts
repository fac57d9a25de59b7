/** Messages and texts that say nothing. */
import { type Fields, typeName } from "../../fields.ts";
import {
  type BlockRule,
  blockPath,
  blocksOf,
  type CheckedRequest,
  hasText,
  type Problem,
  problem,
} from "../rule-set.ts";

/** The last message may be an empty one of the assistant. */
export function* checkEmptyMessages({ turns }: CheckedRequest): Generator<Problem> {
  for (const turn of turns) {
    const { content } = turn.message;
    const isEmpty = content === "" || (Array.isArray(content) && content.length === 0);
    if (!isEmpty || (turn === turns.at(-1) && turn.role === "assistant")) continue;
    yield problem("empty-message", `${turn.path}.content`, "is empty; a message needs content");
  }
}

/** White space alone is refused too. */
export const emptyText: BlockRule = ({ type, text }, place) => {
  if (type !== "text" || hasText(text)) return undefined;
  const what = text === "" ? "is empty" : "has only white space";
  return problem("empty-text", `${blockPath(place)}.text`, `${what}; leave the block out`);
};

/** Inside a result only the empty text is known to be refused. */
export const emptyTextOfResult: BlockRule = ({ type, content }, place) => {
  if (type !== "tool_result" || !Array.isArray(content)) return undefined;
  const index = content.findIndex((block) => block.type === "text" && block.text === "");
  if (index < 0) return undefined;
  const path = `${blockPath(place)}.content[${index}].text`;
  return problem("empty-text", path, "is empty; leave the block or the content out");
};

/** Rule `empty-text`, for a content that is no list. */
export function* checkPlainTexts({ turns }: CheckedRequest): Generator<Problem> {
  for (const { message, path } of turns) {
    if (message.content === "" || hasText(message.content)) continue;
    yield problem("empty-text", `${path}.content`, "has only white space");
  }
}

/** Rules `shape` and `empty-text`, for the system prompt of the request. */
export function* checkSystemPrompt({ fields }: CheckedRequest): Generator<Problem> {
  const system = fields?.system ?? "";
  if (typeof system === "string") return;
  if (!Array.isArray(system)) {
    yield problem("shape", "system", `must be a string or an array, not ${typeName(system)}`);
    return;
  }
  for (const [index, block] of system.entries()) {
    const { type, text } = Object(block) as Fields;
    if (type !== "text" || typeof text !== "string") {
      yield problem("shape", `system[${index}]`, "must be a block of text");
    } else if (!hasText(text))
      yield problem("empty-text", `system[${index}].text`, "is empty; leave the block out");
  }
}

export function* checkTrailingWhiteSpace({ turns }: CheckedRequest): Generator<Problem> {
  const last = turns.at(-1);
  if (last?.role !== "assistant") return;
  const blocks = blocksOf(last);
  const text = typeof last.message.content === "string" ? last.message.content : blocks.at(-1)?.text;
  if (typeof text !== "string" || !/\s$/.test(text)) return;
  const path =
    blocks.length === 0 ? `${last.path}.content` : `${last.path}.content[${blocks.length - 1}].text`;
  yield problem("trailing-white-space", path, "ends with white space, in the last message of the assistant");
}
