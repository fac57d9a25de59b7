/** Pairs calls and results in any format: each call is answered once, by results that follow directly. */

import { type CheckedMessage, type CheckedRequest, getBlocks, type Problem, problem, quoteValue } from "./rule-set.ts";

export interface Pairing {
  findCalls(turn: CheckedMessage): readonly CallReference[];
  findResults(turn: CheckedMessage): readonly CallReference[];
  /** Whether the results may come after this message, which has none itself. */
  keepsCallsOpen?(turn: CheckedMessage, previous: CheckedMessage | undefined): boolean;
  /** Whether an id may be used only once in a request, and not only once in a turn. */
  readonly areIdsUnique?: boolean;
  /** What an unanswered call lacks, and where it was expected: "no tool_result in the next message". */
  readonly lack: string;
}

export interface CallReference {
  readonly id: unknown;
  readonly path: string;
}

/** Rules `unanswered-call`, `orphan-result`, `duplicate-result` and `duplicate-call-id` (within one assistant turn). */
export function* checkPairing({ turns, fields }: CheckedRequest, pairing: Pairing): Generator<Problem> {
  const state: PairingState = { open: new Map(), earlier: new Map(), isBlind: false };
  let previous: CheckedMessage | undefined;
  for (const turn of turns) {
    if (turn.isMalformed) {
      state.open.clear();
      state.isBlind = true;
    } else yield* checkTurn(turn, previous, { pairing, state });
    previous = turn;
  }
  // A history may end with calls that are still running. A request must not.
  if (fields !== undefined || previous?.role !== "assistant") yield* closeCalls(state, pairing);
}

interface PairingState {
  /** The calls of the latest assistant turn, by id. */
  readonly open: Map<unknown, CallReference & { isAnswered: boolean }>;
  /** Where an id was used before that. */
  readonly earlier: Map<unknown, string>;
  /** Set after a message that could not be read, because its calls are not known. */
  isBlind: boolean;
}

function* checkTurn(
  turn: CheckedMessage,
  previous: CheckedMessage | undefined,
  { pairing, state }: { pairing: Pairing; state: PairingState },
): Generator<Problem> {
  const calls = pairing.findCalls(turn);
  const results = pairing.findResults(turn);
  if (results.length > 0) yield* answerCalls(results, state);
  else if (pairing.keepsCallsOpen?.(turn, previous) !== true) yield* closeCalls(state, pairing);
  if (turn.role === "assistant") state.isBlind = false;
  for (const { id, path } of calls) {
    if (!isId(id)) continue;
    const inTurn = state.open.get(id)?.path;
    const known = inTurn ?? (pairing.areIdsUnique === true ? state.earlier.get(id) : undefined);
    if (known !== undefined) yield problem("duplicate-call-id", path, `${quoteValue(id)} is already used in ${known}`);
    if (inTurn === undefined) state.open.set(id, { id, path, isAnswered: false });
  }
}

function* answerCalls(results: readonly CallReference[], state: PairingState): Generator<Problem> {
  for (const { id, path } of results) {
    if (!isId(id)) continue;
    const call = state.open.get(id);
    if (call?.isAnswered === true) {
      yield problem("duplicate-result", path, `is a second result for ${quoteValue(id)}; a call has only one`);
    } else if (call !== undefined) {
      call.isAnswered = true;
    } else if (!state.isBlind) {
      const earlier = state.earlier.get(id);
      const why = earlier === undefined ? "is not the id of any call" : `was called earlier, in ${earlier}`;
      yield problem("orphan-result", path, `answers no call of the previous turn: ${quoteValue(id)} ${why}`);
    }
  }
}

function* closeCalls({ open, earlier }: PairingState, { lack }: Pairing): Generator<Problem> {
  for (const { id, path, isAnswered } of open.values()) {
    if (!isAnswered) yield problem("unanswered-call", path, `${quoteValue(id)} has ${lack}`);
    earlier.set(id, path);
  }
  open.clear();
}

/** Rule `tool-id`: a call or result without an id cannot be paired, and only this rule reports it. */
export function* checkIds({ turns }: CheckedRequest, pairing: Pairing): Generator<Problem> {
  for (const turn of turns) {
    for (const { id, path } of [...pairing.findCalls(turn), ...pairing.findResults(turn)]) {
      if (!isId(id)) yield problem("tool-id", path, `must be a non-empty string, not ${quoteValue(id)}`);
    }
  }
}

function isId(id: unknown): boolean {
  return typeof id === "string" && id !== "";
}

/** Rule `reused-call-id`, for formats that pair within a turn: another provider may require unique ids. */
export function* findReusedIds({ turns }: CheckedRequest, pairing: Pairing): Generator<Problem> {
  const seen = new Map<unknown, string>();
  for (const turn of turns) {
    const calls = turn.isMalformed ? [] : pairing.findCalls(turn);
    for (const { id, path } of calls) {
      const known = seen.get(id);
      if (known === undefined) continue;
      const message = `${quoteValue(id)} is also the id of ${known}; some providers require unique ids`;
      yield { ...problem("reused-call-id", path, message), severity: "warning" };
    }
    for (const { id, path } of calls) seen.set(id, path);
  }
}

// Fields of calls that both of OpenAI's formats have.

/** Rule `tool-id`. */
export function* checkIdLength({ id, path }: CallReference, longest: number): Generator<Problem> {
  if (typeof id !== "string" || id === "") yield problem("tool-id", path, "must be a non-empty string");
  else if (id.length > longest) {
    yield problem("tool-id", path, `has ${id.length} characters; an id has at most ${longest}`);
  }
}

/** Rule `call-arguments`: the text must be JSON. The rule `shape` reports a wrong type. */
export function* checkArguments(text: unknown, path: string): Generator<Problem> {
  if (typeof text !== "string") return;
  if (text.trim() === "") {
    yield problem("call-arguments", path, 'is empty; use "{}" for a call without arguments');
    return;
  }
  try {
    JSON.parse(text);
  } catch {
    yield problem("call-arguments", path, "is not valid JSON");
  }
}

/** Returns the ids of all blocks of a type, with their paths. */
export function referencesIn(turn: CheckedMessage, type: string, key: string): CallReference[] {
  const found: CallReference[] = [];
  for (const [index, part] of getBlocks(turn).entries()) {
    if (part.type === type) found.push({ id: part[key], path: `${turn.path}.content[${index}].${key}` });
  }
  return found;
}
