/** Calls and their results, in whatever shape a format has them: each call is answered once, by results that follow it at once. */
import { type CheckedRequest, type Problem, problem, type Turn } from "./rule-set.ts";

export interface Pairing {
  callsOf(turn: Turn): readonly CallReference[];
  resultsOf(turn: Turn): readonly CallReference[];
  /** Whether the results may come after this message, which has none itself. */
  keepsCallsOpen?(turn: Turn, previous: Turn | undefined): boolean;
  /** Whether an id may serve once in a request, and not only once in a turn. */
  readonly areIdsUnique?: boolean;
  /** What a call lacks, and where it was expected: "no tool_result in the next message". */
  readonly lack: string;
}

export interface CallReference {
  readonly id: unknown;
  readonly path: string;
}

/** Rules `unanswered-call`, `orphan-result`, `duplicate-result` and `duplicate-call-id` (within one turn of the assistant). */
export function* checkPairing({ turns, fields }: CheckedRequest, pairing: Pairing): Generator<Problem> {
  const state: PairingState = { open: new Map(), earlier: new Map(), isBlind: false };
  let previous: Turn | undefined;
  for (const turn of turns) {
    yield* checkTurn(turn, previous, { pairing, state });
    previous = turn;
  }
  // A history may end with calls that still run; a request that ends so is refused.
  if (fields !== undefined || previous?.role !== "assistant") yield* closeCalls(state, pairing);
}

interface PairingState {
  /** Calls of the latest turn of the assistant, by id. */
  readonly open: Map<unknown, CallReference & { isAnswered: boolean }>;
  /** Where an id was called before that. */
  readonly earlier: Map<unknown, string>;
  /** After a message that could not be read nobody knows what was called. */
  isBlind: boolean;
}

function* checkTurn(
  turn: Turn,
  previous: Turn | undefined,
  { pairing, state }: { pairing: Pairing; state: PairingState },
): Generator<Problem> {
  if (turn.isMalformed) {
    state.open.clear();
    state.isBlind = true;
    return;
  }
  const calls = pairing.callsOf(turn);
  const results = pairing.resultsOf(turn);
  if (results.length > 0) yield* answerCalls(results, state);
  else if (pairing.keepsCallsOpen?.(turn, previous) !== true) yield* closeCalls(state, pairing);
  if (turn.role === "assistant") state.isBlind = false;
  if (calls.length > 0) yield* openCalls(calls, { pairing, state });
}

function* openCalls(
  calls: readonly CallReference[],
  { pairing, state }: { pairing: Pairing; state: PairingState },
): Generator<Problem> {
  const { open, earlier } = state;
  for (const { id, path } of calls) {
    if (!isId(id)) continue;
    const inTurn = open.get(id)?.path;
    const known = inTurn ?? (pairing.areIdsUnique === true ? earlier.get(id) : undefined);
    if (known !== undefined) yield problem("duplicate-call-id", path, `${shown(id)} is taken: see ${known}`);
    if (inTurn === undefined) open.set(id, { id, path, isAnswered: false });
  }
}

function* answerCalls(results: readonly CallReference[], state: PairingState): Generator<Problem> {
  for (const { id, path } of results) {
    if (!isId(id)) continue;
    const call = state.open.get(id);
    if (call?.isAnswered === true) {
      yield problem("duplicate-result", path, `is a second result for ${shown(id)}; a call has one`);
    } else if (call !== undefined) {
      call.isAnswered = true;
    } else if (!state.isBlind) {
      const earlier = state.earlier.get(id);
      const why =
        earlier === undefined ? "is no call of this conversation" : `was called earlier, in ${earlier}`;
      yield problem("orphan-result", path, `answers no call of the turn before it: ${shown(id)} ${why}`);
    }
  }
}

function* closeCalls({ open, earlier }: PairingState, { lack }: Pairing): Generator<Problem> {
  for (const { id, path, isAnswered } of open.values()) {
    if (!isAnswered) yield problem("unanswered-call", path, `${shown(id)} has ${lack}`);
    earlier.set(id, path);
  }
  open.clear();
}

/** Rule `tool-id`: what has none cannot be paired, and is told here alone. */
export function* checkIds({ turns }: CheckedRequest, pairing: Pairing): Generator<Problem> {
  for (const turn of turns) {
    for (const { id, path } of [...pairing.callsOf(turn), ...pairing.resultsOf(turn)]) {
      if (!isId(id)) yield problem("tool-id", path, `must be a text that is not empty, not ${shown(id)}`);
    }
  }
}

function isId(id: unknown): boolean {
  return typeof id === "string" && id !== "";
}

/** Rule `reused-call-id`, for formats that pair within a turn: a provider behind another one may not. */
export function* findReusedIds({ turns }: CheckedRequest, pairing: Pairing): Generator<Problem> {
  const seen = new Map<unknown, string>();
  for (const turn of turns) {
    const calls = turn.isMalformed ? [] : pairing.callsOf(turn);
    for (const { id, path } of calls) {
      const known = seen.get(id);
      if (known === undefined) continue;
      const message = `${shown(id)} was the id of ${known} before; some providers want ids that are never used again`;
      yield { ...problem("reused-call-id", path, message), severity: "warning" };
    }
    for (const { id, path } of calls) seen.set(id, path);
  }
}

function shown(id: unknown): string {
  return JSON.stringify(id) ?? "undefined";
}
