/** Tool calls: their fields, their results, their order. */
import { type Fields, typeName } from "../../fields.ts";
import { type CallReference, checkPairing, type Pairing } from "../pairing.ts";
import {
  type BlockRule,
  blockPath,
  blocksOf,
  type CheckedRequest,
  type Problem,
  problem,
  type Turn,
} from "../rule-set.ts";

/** Neighbours of one role count as one turn: the API combines them, and `alternation` tells where that is in doubt. */
const pairing: Pairing = {
  callsOf: (turn) => (turn.role === "assistant" ? references(turn, "tool_use", "id") : []),
  resultsOf: (turn) => (turn.role === "user" ? references(turn, "tool_result", "tool_use_id") : []),
  keepsCallsOpen: (turn, previous) => turn.role !== "assistant" || previous?.role === "assistant",
  areIdsUnique: true,
  lack: "no tool_result in the next message",
};

export function checkCalls(request: CheckedRequest): Generator<Problem> {
  return checkPairing(request, pairing);
}

function references(turn: Turn, type: string, key: string): CallReference[] {
  const found: CallReference[] = [];
  const blocks = blocksOf(turn);
  for (let index = 0; index < blocks.length; index++) {
    const block = blocks[index]!;
    if (block.type === type) found.push({ id: block[key], path: `${turn.path}.content[${index}].${key}` });
  }
  return found;
}

/** Within the user's turn, text that comes before a result makes the API miss the result. */
export function* checkResultsFirst({ turns }: CheckedRequest): Generator<Problem> {
  const run: UserRun = { other: undefined };
  for (const turn of turns) {
    if (turn.role === "user") yield* lateResults(turn, run);
    else if (turn.role !== "system") run.other = undefined;
  }
}

/** The path of the first content that is no result, in messages of the user that are neighbours. */
interface UserRun {
  other: string | undefined;
}

function* lateResults(turn: Turn, run: UserRun): Generator<Problem> {
  if (typeof turn.message.content === "string") run.other ??= `${turn.path}.content`;
  for (const [index, { type }] of blocksOf(turn).entries()) {
    if (type !== "tool_result") run.other ??= blockPath({ turn, index });
    else if (run.other !== undefined) {
      yield problem("results-first", blockPath({ turn, index }), `is a tool_result behind ${run.other}`);
    }
  }
}

/** The pattern stands in the API's own error. */
export const toolId: BlockRule = (block, place) => {
  const key = idKeys.get(block.type);
  const id = key && block[key];
  if (key === undefined || (typeof id === "string" && /^[a-zA-Z0-9_-]+$/.test(id))) return undefined;
  const shown = JSON.stringify(id) ?? "undefined";
  return problem("tool-id", `${blockPath(place)}.${key}`, `must be letters, digits, _ and -, not ${shown}`);
};

export const callInput: BlockRule = ({ type, input }, place) => {
  if (idKeys.get(type) !== "id") return undefined;
  if (typeof input === "object" && input !== null && !Array.isArray(input)) return undefined;
  return problem("call-input", `${blockPath(place)}.input`, `must be an object, not ${typeName(input)}`);
};

const idKeys: ReadonlyMap<unknown, "id" | "tool_use_id"> = new Map<unknown, "id" | "tool_use_id">([
  ["tool_use", "id"],
  ["server_tool_use", "id"],
  ["mcp_tool_use", "id"],
  ["tool_result", "tool_use_id"],
]);

/** Tools that the provider runs: call and result stand in the assistant's message.
 *  Rules `unanswered-server-call` and `orphan-server-result`. */
export function* checkServerTools({ turns }: CheckedRequest): Generator<Problem> {
  const known = new Set<unknown>();
  const last = turns.findLast(({ role }) => role === "assistant");
  for (const turn of turns) {
    const blocks = blocksOf(turn);
    if (turn.role !== "assistant" || !blocks.some(isOfServer)) continue;
    yield* orphanServerResults(turn, known);
    // The last one may have been paused; code that calls tools of the client waits for their results.
    if (turn !== last && !blocks.some(({ type }) => type === "tool_use")) yield* unansweredServerCalls(turn);
  }
}

function* orphanServerResults(turn: Turn, known: Set<unknown>): Generator<Problem> {
  for (const [index, { type, id, tool_use_id }] of blocksOf(turn).entries()) {
    if (isServerCall(type)) known.add(id);
    if (!isServerResult(type) || known.has(tool_use_id)) continue;
    const path = `${blockPath({ turn, index })}.tool_use_id`;
    yield problem("orphan-server-result", path, `${type} has no call before it`);
  }
}

function* unansweredServerCalls(turn: Turn): Generator<Problem> {
  const blocks = blocksOf(turn);
  const answered = new Set(
    blocks.filter(({ type }) => isServerResult(type)).map((block) => block.tool_use_id),
  );
  for (const [index, { type, id }] of blocks.entries()) {
    if (!isServerCall(type) || answered.has(id)) continue;
    const path = `${blockPath({ turn, index })}.id`;
    yield problem("unanswered-server-call", path, `${type} has no result in the same message`);
  }
}

function isOfServer({ type }: Fields): boolean {
  return isServerCall(type) || isServerResult(type);
}

function isServerCall(type: unknown): boolean {
  return type === "server_tool_use" || type === "mcp_tool_use";
}

function isServerResult(type: unknown): boolean {
  return typeof type === "string" && type.endsWith("_tool_result");
}
