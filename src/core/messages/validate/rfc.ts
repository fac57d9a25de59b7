/** The rules of the RFC's own messages. */

import type { Role } from "../message-format.ts";
import { checkIds, checkPairing, findReusedIds, type Pairing, referencesIn } from "./pairing.ts";
import { type BlockRule, blockPath, eachBlock, problem, type RuleSet } from "./rule-set.ts";

/** The context-engineering RFC's format. Roles may repeat, because its reduction merges neighbours. */
const pairing: Pairing = {
  callsOf: (turn) =>
    turn.role === "assistant"
      ? [...referencesIn(turn, "tool_use", "id"), ...referencesIn(turn, "tool_call", "id")]
      : [],
  resultsOf: (turn) => (turn.role === "assistant" ? [] : referencesIn(turn, "tool_result", "tool_use_id")),
  keepsCallsOpen: (turn, previous) => turn.role === "assistant" && previous?.role === "assistant",
  lack: "no tool_result directly after its message",
};

const partRole: BlockRule = ({ type }, place) => {
  const { role } = place.turn;
  const owner = owners.get(type);
  if (owner === undefined || owner === role) return undefined;
  return problem("block-role", `${blockPath(place)}.type`, `${type} is not allowed in a message of role ${role}`);
};

const owners: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  ["tool_use", "assistant"],
  ["tool_call", "assistant"],
  ["tool_result", "tool"],
]);

export const rfcRules: RuleSet = {
  always: [(request) => checkPairing(request, pairing), eachBlock([partRole]), (request) => checkIds(request, pairing)],
  strict: [(request) => findReusedIds(request, pairing)],
};
