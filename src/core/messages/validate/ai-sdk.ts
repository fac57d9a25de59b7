/** What the AI SDK refuses before it calls a model (its own checks and message schema, 6.0, 2026-11). */
import type { Role } from "../message-format.ts";
import { type CallReference, checkIds, checkPairing, findReusedIds, type Pairing } from "./pairing.ts";
import {
  allowRoles,
  type CheckedMessage,
  type CheckedRequest,
  eachBlock,
  getBlocks,
  type Problem,
  problem,
  type RuleSet,
} from "./rule-set.ts";

const pairing: Pairing = {
  findCalls: (turn) => (turn.role === "assistant" ? references(turn, "tool-call") : []),
  findResults: (turn) => (turn.role === "tool" ? references(turn, "tool-result") : []),
  // A message with approvals only.
  keepsCallsOpen: ({ role }) => role === "tool",
  lack: "no tool-result before the next message",
};

export const aiSdkRules: RuleSet = {
  always: [
    (request) => checkIds(request, pairing),
    checkCalls,
    checkApprovals,
    eachBlock([
      allowRoles(
        new Map<string, readonly Role[]>([
          ["text", ["user", "assistant"]],
          ["image", ["user"]],
          ["file", ["user", "assistant"]],
          ["reasoning", ["assistant"]],
          ["tool-call", ["assistant"]],
          ["tool-result", ["assistant", "tool"]],
          ["tool-approval-request", ["assistant"]],
          ["tool-approval-response", ["tool"]],
        ]),
      ),
    ]),
  ],
  strict: [(request) => findReusedIds(request, pairing)],
};

/** Leaves out what the provider runs itself: it is answered in the assistant's own message, if at all. */
function references(turn: CheckedMessage, type: string): CallReference[] {
  const found: CallReference[] = [];
  for (const [index, part] of getBlocks(turn).entries()) {
    if (part.type !== type || part.providerExecuted === true) continue;
    found.push({ id: part.toolCallId, path: `${turn.path}.content[${index}].toolCallId` });
  }
  return found;
}

/** If approval was asked for a call, the SDK itself runs the call or answers it with the denial. */
function* checkCalls(request: CheckedRequest): Generator<Problem> {
  const asked = new Set(findParts(request, "tool-approval-request").map(({ part }) => part.toolCallId));
  const callIds = new Map(request.turns.flatMap(pairing.findCalls).map(({ id, path }) => [path, id] as const));
  for (const found of checkPairing(request, pairing)) {
    if (found.rule === "unanswered-call" && asked.has(callIds.get(found.path))) continue;
    yield found;
  }
}

/** Rule `orphan-approval`. */
function* checkApprovals(request: CheckedRequest): Generator<Problem> {
  const calls = new Set(findParts(request, "tool-call").map(({ part }) => part.toolCallId));
  const asked = new Set<unknown>();
  for (const { part, path } of findParts(request, "tool-approval-request")) {
    asked.add(part.approvalId);
    if (calls.has(part.toolCallId)) continue;
    yield problem("orphan-approval", `${path}.toolCallId`, "asks for approval of a call that does not exist");
  }
  for (const { part, path } of findParts(request, "tool-approval-response")) {
    if (asked.has(part.approvalId)) continue;
    yield problem("orphan-approval", `${path}.approvalId`, "answers an approval request that does not exist");
  }
}

function findParts({ turns }: CheckedRequest, type: string) {
  return turns.flatMap((turn) =>
    getBlocks(turn).flatMap((part, index) =>
      part.type === type ? [{ part, path: `${turn.path}.content[${index}]` }] : [],
    ),
  );
}
