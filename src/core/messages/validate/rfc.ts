/** The rules of the RFC's own messages. */

import { checkIds, checkPairing, findReusedIds, type Pairing, referencesIn } from "./pairing.ts";
import { allowRoles, eachBlock, type RuleSet } from "./rule-set.ts";

/** The context-engineering RFC's format. Roles may repeat, because its reduction merges neighbours. */
const pairing: Pairing = {
  findCalls: (turn) =>
    turn.role === "assistant"
      ? [...referencesIn(turn, "tool_use", "id"), ...referencesIn(turn, "tool_call", "id")]
      : [],
  findResults: (turn) => (turn.role === "assistant" ? [] : referencesIn(turn, "tool_result", "tool_use_id")),
  keepsCallsOpen: (turn, previous) => turn.role === "assistant" && previous?.role === "assistant",
  lack: "no tool_result directly after its message",
};

export const rfcRules: RuleSet = {
  always: [
    (request) => checkPairing(request, pairing),
    eachBlock([
      allowRoles(
        new Map([
          ["tool_use", ["assistant"]],
          ["tool_call", ["assistant"]],
          ["tool_result", ["tool"]],
        ]),
      ),
    ]),
    (request) => checkIds(request, pairing),
  ],
  strict: [(request) => findReusedIds(request, pairing)],
};
