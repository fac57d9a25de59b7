/** Pairing in the shape of the context-engineering RFC. Roles may repeat: merging neighbours is a step of its reduction. */

import type { Role } from "../message-format.ts";
import { type CallReference, checkIds, checkPairing, findReusedIds, type Pairing } from "./pairing.ts";
import {
  type BlockRule,
  blockPath,
  blocksOf,
  eachBlock,
  problem,
  type RuleSet,
  type Turn,
} from "./rule-set.ts";

const pairing: Pairing = {
  callsOf: (turn) =>
    turn.role === "assistant"
      ? [...references(turn, "tool_use", "id"), ...references(turn, "tool_call", "id")]
      : [],
  resultsOf: (turn) => (turn.role === "assistant" ? [] : references(turn, "tool_result", "tool_use_id")),
  keepsCallsOpen: (turn, previous) => turn.role === "assistant" && previous?.role === "assistant",
  lack: "no tool_result right behind its message",
};

const partRole: BlockRule = ({ type }, place) => {
  const { role } = place.turn;
  const owner = owners.get(type);
  if (owner === undefined || owner === role) return undefined;
  return problem(
    "block-role",
    `${blockPath(place)}.type`,
    `${type} has no place in a message of role ${role}`,
  );
};

const owners: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  ["tool_use", "assistant"],
  ["tool_call", "assistant"],
  ["tool_result", "tool"],
]);

export const rfcRules: RuleSet = {
  always: [
    (request) => checkPairing(request, pairing),
    eachBlock([partRole]),
    (request) => checkIds(request, pairing),
  ],
  strict: [(request) => findReusedIds(request, pairing)],
};

function references(turn: Turn, type: string, key: string): CallReference[] {
  const found: CallReference[] = [];
  for (const [index, part] of blocksOf(turn).entries()) {
    if (part.type === type) found.push({ id: part[key], path: `${turn.path}.content[${index}].${key}` });
  }
  return found;
}
