/** What Gemini's `generateContent` refuses, from API errors (quoted in issues) and ai.google.dev/gemini-api/docs
 *  (function calling, thought signatures), 2026-11. */
import type { Fields } from "../../text/index.ts";
import { type CheckedMessage, type CheckedRequest, type Problem, problem, type RuleSet } from "./rule-set.ts";

export const geminiRules: RuleSet = {
  always: [checkPairs, checkParts, checkSignatures],
  strict: [checkOrder],
};

/** Rules `unanswered-call` and `orphan-result`: "Please ensure that the number of function response parts is equal to the
 *  number of function call parts of the function call turn." */
function* checkPairs({ turns, fields }: CheckedRequest): Generator<Problem> {
  let open: FunctionPart[] = [];
  let isBlind = false;
  for (const turn of turns) {
    if (turn.isMalformed) {
      open = [];
      isBlind = true;
      continue;
    }
    const responses = findFunctionParts(turn, "functionResponse");
    if (responses.length > 0) yield* checkResponses(open, responses, isBlind);
    else if (turn.role !== "assistant") yield* unanswered(open.splice(0));
    if (turn.role !== "assistant") continue;
    yield* unanswered(open);
    open = findFunctionParts(turn, "functionCall");
    isBlind = false;
  }
  // A history may end with calls that are still running. A request must not.
  if (fields !== undefined || turns.at(-1)?.role !== "assistant") yield* unanswered(open);
}

/** A call or a response, and where it is. */
interface FunctionPart {
  readonly path: string;
  readonly value: Fields;
}

function findFunctionParts({ message, path }: CheckedMessage, key: string): FunctionPart[] {
  return getParts(message).flatMap((part, index) =>
    part[key] === undefined ? [] : [{ path: `${path}.parts[${index}].${key}`, value: Object(part[key]) as Fields }],
  );
}

function getParts({ parts }: Fields): readonly Fields[] {
  return Array.isArray(parts) ? parts.map((part) => Object(part) as Fields) : [];
}

/** Removes each answered call from `open`. Calls with ids are answered by id, others by name. */
function* checkResponses(
  open: FunctionPart[],
  responses: readonly FunctionPart[],
  isBlind: boolean,
): Generator<Problem> {
  for (const { path, value } of responses) {
    const index = open.findIndex(({ value: call }) =>
      value.id !== undefined && call.id !== undefined ? call.id === value.id : call.name === value.name,
    );
    if (index >= 0) open.splice(index, 1);
    else if (!isBlind)
      yield problem("orphan-result", path, `answers no call of the turn before it: ${nameCall(value)}`);
  }
}

function* unanswered(open: readonly FunctionPart[]): Generator<Problem> {
  for (const { path, value } of open) {
    yield problem("unanswered-call", path, `has no functionResponse in the next content: ${nameCall(value)}`);
  }
}

function nameCall({ name, id }: Fields): string {
  return id === undefined ? String(name) : `${String(name)}, id ${JSON.stringify(id)}`;
}

/** Rules `empty-message` and `block-role`. */
function* checkParts({ turns }: CheckedRequest): Generator<Problem> {
  for (const turn of turns) {
    if (turn.isMalformed) continue;
    if (getParts(turn.message).length === 0) {
      yield problem("empty-message", `${turn.path}.parts`, "is an empty list; a content needs a part");
    }
    const foreign = turn.role === "assistant" ? "functionResponse" : "functionCall";
    for (const { path } of findFunctionParts(turn, foreign)) {
      yield problem("block-role", path, `is not allowed in a content of role ${turn.message.role ?? "user"}`);
    }
  }
}

/** Rule `thought-signature`: Gemini 3 refuses the first call of each step since the user last spoke if it has lost its
 *  signature. Other steps and models accept it. */
function* checkSignatures({ turns, model }: CheckedRequest): Generator<Problem> {
  if (model === undefined || !/gemini-(?:[3-9]|\d\d)/.test(model)) return;
  const speaks = ({ role, message }: CheckedMessage) =>
    role === "user" && getParts(message).some((part) => part.functionResponse === undefined);
  for (const { role, message, path } of turns.slice(turns.findLastIndex(speaks) + 1)) {
    const first = role === "assistant" ? getParts(message).findIndex((part) => part.functionCall !== undefined) : -1;
    if (first < 0 || getParts(message)[first]?.thoughtSignature !== undefined) continue;
    yield problem("thought-signature", `${path}.parts[${first}]`, "is a call without its thoughtSignature");
  }
}

/** Rules `first-role` and `role-order`: newer models accept several contents of one role in a row. */
function* checkOrder({ turns }: CheckedRequest): Generator<Problem> {
  if (turns[0]?.role === "assistant") {
    yield problem("first-role", `${turns[0].path}.role`, "is model; a conversation starts with the user");
  }
  for (const [index, { role, path }] of turns.entries()) {
    if (index === 0 || role === undefined || role !== turns[index - 1]?.role) continue;
    yield problem("role-order", `${path}.role`, `is ${role === "assistant" ? "model" : role} a second time in a row`);
  }
}
