/** Who speaks when: the order of roles, and which blocks belong to which role. */
import {
  type BlockRule,
  blockPath,
  blocksOf,
  type CheckedRequest,
  type Problem,
  problem,
  type Turn,
} from "../rule-set.ts";
import { rejects } from "./model-limits.ts";

const mostMessages = 100_000; // the SDK's comment on `messages`

export function* checkMessageCount({ turns }: CheckedRequest): Generator<Problem> {
  const beyond = turns[mostMessages];
  if (beyond === undefined) return;
  yield problem("too-many-messages", beyond.path, `is beyond the ${mostMessages} messages of a request`);
}

export function* checkFirstMessage({ turns }: CheckedRequest): Generator<Problem> {
  const first = turns.find(({ role }) => role !== "system");
  if (first?.role !== "assistant") return;
  // A signed summary comes back first, in the place of what it summarises.
  if (blocksOf(first)[0]?.type === "compaction") return;
  yield problem("first-message", `${first.path}.role`, 'is "assistant"; the first message is the user\'s');
}

/** Rules `system-role` and `system-position`. A bare list may start with the system prompt: a request has a field for it. */
export function* checkSystemMessages({ turns, fields, model }: CheckedRequest): Generator<Problem> {
  const isUnsupported = rejects(model, "system-role");
  const start = fields === undefined ? turns.findIndex(({ role }) => role !== "system") : 0;
  for (const [index, turn] of turns.entries()) {
    if (turn.role !== "system" || index < start || start < 0) continue;
    if (isUnsupported) yield problem("system-role", `${turn.path}.role`, `${model} takes no system messages`);
    else yield* checkSystemMessage(turn, { before: turns[index - 1], after: turns[index + 1] });
  }
}

function* checkSystemMessage(
  turn: Turn,
  { before, after }: { before: Turn | undefined; after: Turn | undefined },
): Generator<Problem> {
  const path = `${turn.path}.role`;
  if (before === undefined) {
    yield problem("system-position", path, 'is "system" in the first message; use the field system');
  } else if (!before.isMalformed && !mayPrecedeSystem(before)) {
    yield problem("system-position", path, "is system, but the message before is not the user's");
  } else if (after !== undefined && !after.isMalformed && after.role !== "assistant") {
    yield problem("system-position", path, "is system, but the message after is not the assistant's");
  }
  for (const [index, { type }] of blocksOf(turn).entries()) {
    if (systemTypes.has(type)) continue;
    yield problem(
      "block-role",
      `${turn.path}.content[${index}].type`,
      `${type} has no place in a system message`,
    );
  }
}

const systemTypes: ReadonlySet<unknown> = new Set(["text", "tool_addition", "tool_removal"]);

function mayPrecedeSystem(turn: Turn): boolean {
  if (turn.role !== "assistant") return turn.role === "user";
  const last = blocksOf(turn).at(-1)?.type;
  if (typeof last !== "string") return false;
  return last === "server_tool_use" || (last.endsWith("_tool_result") && last !== "mcp_tool_result");
}

export const blockRole: BlockRule = ({ type }, place) => {
  const { role } = place.turn;
  const owner = owners.get(type);
  if (owner === undefined || owner === role || role === "system") return undefined;
  return problem(
    "block-role",
    `${blockPath(place)}.type`,
    `${type} has no place in a message of the ${role}`,
  );
};

const owners: ReadonlyMap<unknown, "user" | "assistant"> = new Map<unknown, "user" | "assistant">([
  ["tool_result", "user"],
  ["tool_use", "assistant"],
  ["server_tool_use", "assistant"],
  ["mcp_tool_use", "assistant"],
  ["thinking", "assistant"],
  ["redacted_thinking", "assistant"],
]);

/** The SDK's comments say that neighbours of one role are combined, the API's list of errors that they are refused. */
export function* checkAlternation({ turns }: CheckedRequest): Generator<Problem> {
  let previous: Turn | undefined;
  for (const turn of turns) {
    if (turn.role === "system") continue;
    if (turn.role !== undefined && turn.role === previous?.role) {
      yield problem("alternation", `${turn.path}.role`, `is "${turn.role}" like that of ${previous.path}`);
    }
    previous = turn;
  }
}

export function* checkLastMessage({ turns, fields }: CheckedRequest): Generator<Problem> {
  const last = turns.at(-1);
  if (fields === undefined || last?.role !== "assistant" || isPaused(last)) return;
  yield problem("last-message", `${last.path}.role`, 'is "assistant"; a request ends with the user');
}

/** A turn that the API itself paused is continued by sending it back as it is. */
export function isPaused(turn: Turn): boolean {
  return blocksOf(turn).some(({ type }) => type === "server_tool_use");
}
