/** What OpenAI's responses API refuses in its items, from API errors (quoted in issues) and the SDK's types (6.49,
 *  2026-11). A result may come any time after its call. */
import { type CallReference, checkArguments, checkIdLength } from "./pairing.ts";
import {
  type CheckedMessage,
  type CheckedRequest,
  type Problem,
  problem,
  quoteValue,
  type RuleSet,
} from "./rule-set.ts";

export const responsesRules: RuleSet = {
  always: [checkCalls, (request) => checkReasoning(request, true), checkItemIds, checkFunctionCalls, checkApprovals],
  strict: [(request) => checkReasoning(request, false)],
};

/** Returns the call of an item, such as `function_call`, which `function_call_output` answers. */
function findCall({ message, path }: CheckedMessage): CallReference | undefined {
  return callTypes.has(message.type) ? { id: message.call_id, path: `${path}.call_id` } : undefined;
}

function findResult({ message, path }: CheckedMessage): CallReference | undefined {
  const { type } = message;
  if (typeof type !== "string" || !type.endsWith("_output") || !callTypes.has(type.slice(0, -7))) return undefined;
  // The output of a local shell has the id of its call in `id`.
  const key = type === "local_shell_call_output" && message.call_id === undefined ? "id" : "call_id";
  return { id: message[key], path: `${path}.${key}` };
}

/** A tool's output is not the model's, even if the format reads it as `assistant` because it cannot be edited. */
function isOfModel(turn: CheckedMessage): boolean {
  return turn.role === "assistant" && findResult(turn) === undefined && turn.message.type !== "mcp_approval_response";
}

const callTypes: ReadonlySet<unknown> = new Set([
  "function_call",
  "custom_tool_call",
  "computer_call",
  "local_shell_call",
  "shell_call",
  "apply_patch_call",
]);

/** Rules `orphan-result`, `duplicate-result`, `duplicate-call-id` and `unanswered-call`. */
function* checkCalls({ turns, fields }: CheckedRequest): Generator<Problem> {
  const calls = new Map<unknown, { readonly path: string; readonly index: number; isAnswered: boolean }>();
  // The call may be in what the provider holds of the conversation, or in an item that could not be read.
  let isBlind = hasStoredItems(fields);
  for (const [index, turn] of turns.entries()) {
    isBlind ||= turn.isMalformed || turn.message.type === "item_reference";
    const [call, result] = [findCall(turn), findResult(turn)];
    if (call !== undefined) {
      const known = calls.get(call.id);
      if (known?.isAnswered === false) {
        yield problem("duplicate-call-id", call.path, `${quoteValue(call.id)} is already used in ${known.path}`);
      }
      calls.set(call.id, { path: call.path, index, isAnswered: false });
    }
    if (result === undefined || (isBlind && !calls.has(result.id))) continue;
    yield* answerCall(result, calls.get(result.id));
  }
  if (turns.some(({ isMalformed }) => isMalformed)) return;
  // In a bare list, the model's last items may still wait for their results.
  const end = fields === undefined ? turns.findLastIndex((turn) => !isOfModel(turn)) : turns.length;
  const unanswered = [...calls].filter(([, { index, isAnswered }]) => !isAnswered && index <= end);
  for (const [id, { path }] of unanswered) {
    yield problem("unanswered-call", path, `${quoteValue(id)} has no output after it`);
  }
}

function* answerCall({ id, path }: CallReference, call: { isAnswered: boolean } | undefined): Generator<Problem> {
  if (call === undefined)
    yield problem("orphan-result", path, `answers no call: ${quoteValue(id)} is not the id of an earlier call`);
  else if (call.isAnswered) yield problem("duplicate-result", path, `is a second result for ${quoteValue(id)}`);
  else call.isAnswered = true;
}

function hasStoredItems(fields: CheckedRequest["fields"]): boolean {
  const { previous_response_id, conversation } = fields ?? {};
  return (previous_response_id ?? conversation ?? undefined) !== undefined;
}

/** Rule `reasoning-alone`: "reasoning was provided without its required following item". Without an id the API cannot
 *  look up the pair, so it may accept the item. */
function* checkReasoning({ turns }: CheckedRequest, isWithId: boolean): Generator<Problem> {
  let isFollowed = false;
  for (const turn of turns.toReversed()) {
    if (turn.message.type !== "reasoning") isFollowed = isOfModel(turn) || turn.isMalformed;
    else if (!isFollowed && (typeof turn.message.id === "string") === isWithId) {
      yield problem("reasoning-alone", turn.path, "is reasoning without the item that must follow it");
    }
  }
}

/** Rules `item-id` (the API distinguishes items by how their ids begin) and `duplicate-item-id`. */
function* checkItemIds({ turns }: CheckedRequest): Generator<Problem> {
  const seen = new Map<unknown, string>();
  for (const { message, path } of turns) {
    const { id, type } = message;
    if (typeof id !== "string" || type === "local_shell_call_output") continue;
    const known = seen.get(id);
    if (known !== undefined) yield problem("duplicate-item-id", `${path}.id`, `"${id}" is already used in ${known}`);
    else seen.set(id, path);
    const prefix = type === "function_call" ? "fc" : type === "reasoning" ? "rs" : undefined;
    if (prefix !== undefined && !id.startsWith(prefix)) {
      yield problem("item-id", `${path}.id`, `"${id}" must begin with "${prefix}"; you can also leave it out`);
    }
  }
}

/** Rules `tool-id` and `call-arguments`. */
function* checkFunctionCalls({ turns }: CheckedRequest): Generator<Problem> {
  for (const turn of turns) {
    const call = findCall(turn);
    // "string too long. Expected a string with maximum length 64", of call_id
    if (call !== undefined) yield* checkIdLength(call, 64);
    if (turn.message.type === "function_call") {
      yield* checkArguments(turn.message.arguments, `${turn.path}.arguments`);
    }
  }
}

/** Rule `orphan-approval`. */
function* checkApprovals({ turns, fields }: CheckedRequest): Generator<Problem> {
  if (hasStoredItems(fields)) return;
  const requests = new Set<unknown>();
  for (const { message, path } of turns) {
    if (message.type === "mcp_approval_request") requests.add(message.id);
    if (message.type !== "mcp_approval_response" || requests.has(message.approval_request_id)) continue;
    yield problem("orphan-approval", `${path}.approval_request_id`, "answers an approval request that does not exist");
  }
}
