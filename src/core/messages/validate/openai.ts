/** What OpenAI's chat completions refuse, from API errors (quoted in issues) and the SDK's types (6.49, 2026-11). */
import type { Fields } from "../../text/index.ts";
import {
  type CallReference,
  checkArguments,
  checkIdLength,
  checkPairing,
  findReusedIds,
  type Pairing,
} from "./pairing.ts";
import {
  blockPath,
  type CheckedMessage,
  type CheckedRequest,
  eachBlock,
  type Problem,
  problem,
  type RuleSet,
} from "./rule-set.ts";

const longestId = 40; // "string too long. Expected a string with maximum length 40"

/** Roles may repeat, and an id may be used again in a later turn: calls are paired with the tool messages directly
 *  after them. */
const pairing: Pairing = {
  findCalls: (turn) => readToolCalls(turn).map(({ id, path }) => ({ id, path: `${path}.id` })),
  findResults: ({ role, message, path }) =>
    role === "tool" && message.role === "tool" ? [{ id: message.tool_call_id, path: `${path}.tool_call_id` }] : [],
  lack: "no tool message directly after its message",
};

export const openAiRules: RuleSet = {
  always: [
    (request) => checkPairing(request, pairing),
    checkToolCalls,
    checkEmptyMessages,
    eachBlock([
      ({ type }, place) => {
        const { role } = place.turn;
        if (role === "user" || (type !== "image_url" && type !== "input_audio" && type !== "file")) return undefined;
        const message = `${type} is allowed in user messages only, not in a message of role ${role}`;
        return problem("block-role", `${blockPath(place)}.type`, message);
      },
    ]),
  ],
  strict: [(request) => findReusedIds(request, pairing)],
};

function readToolCalls({ role, message, path }: CheckedMessage): (CallReference & { readonly call: Fields })[] {
  if (role !== "assistant" || !Array.isArray(message.tool_calls)) return [];
  return message.tool_calls.map((call, index) => ({
    id: call.id,
    call,
    path: `${path}.tool_calls[${index}]`,
  }));
}

/** Rules `empty-tool-calls`, `tool-id` and `call-arguments`. */
function* checkToolCalls({ turns }: CheckedRequest): Generator<Problem> {
  for (const turn of turns) {
    for (const result of pairing.findResults(turn)) yield* checkIdLength(result, longestId);
    const { tool_calls } = turn.message;
    if (Array.isArray(tool_calls) && tool_calls.length === 0) {
      yield problem("empty-tool-calls", `${turn.path}.tool_calls`, "is an empty list; leave it out");
    }
    for (const { id, path, call } of readToolCalls(turn)) {
      yield* checkIdLength({ id, path: `${path}.id` }, longestId);
      if (typeof call.function !== "object" || call.function === null) continue;
      const { arguments: text } = call.function as { readonly arguments?: unknown };
      yield* checkArguments(text, `${path}.function.arguments`);
    }
  }
}

/** An assistant message has content, unless it has a call, a refusal or audio. */
function* checkEmptyMessages({ turns }: CheckedRequest): Generator<Problem> {
  for (const { role, message, path } of turns) {
    if (Array.isArray(message.content) && message.content.length === 0) {
      yield problem("empty-message", `${path}.content`, "is an empty list; a message needs content");
    }
    if (role !== "assistant" || (message.content !== null && message.content !== undefined)) continue;
    const others = [message.tool_calls, message.function_call, message.refusal, message.audio];
    if (others.some((other) => other !== undefined && other !== null)) continue;
    yield problem("empty-message", `${path}.content`, "is missing, and there are no tool_calls");
  }
}
