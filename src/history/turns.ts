/** What belongs together in a history: an assistant turn, and the results that answer its calls. */
import type { CountedPart } from "../messages/index.ts";
import type { TrackedMessage } from "./tracked-history.ts";

/** Messages [start, end) are the assistant's; [end, next) come before its next turn and hold the results. */
export interface Turn {
  readonly start: number;
  readonly end: number;
  readonly next: number;
  /** Where the reasoning stands that its calls came from: in itself, or in an earlier turn. */
  readonly origin: number;
  /** Whether calls of the next turn came from the same reasoning, so that it cannot go before them. */
  readonly isContinued: boolean;
}

export function turnsOf(messages: readonly TrackedMessage[]): Turn[] {
  const turns: Turn[] = [];
  let before: Turn | undefined;
  for (let start = nextTurn(messages, 0); start < messages.length; ) {
    let end = start + 1;
    while (messages[end]?.original.role === "assistant") end++;
    const next = nextTurn(messages, end);
    const isMore: boolean = before !== undefined && continues(messages, before, start);
    if (before !== undefined && isMore) turns[turns.length - 1] = { ...before, isContinued: true };
    const origin: number = before !== undefined && isMore ? before.origin : start;
    before = { start, end, next, origin, isContinued: false };
    turns.push(before);
    start = next;
  }
  return turns;
}

function nextTurn(messages: readonly TrackedMessage[], from: number): number {
  let index = from;
  while (index < messages.length && messages[index]?.original.role !== "assistant") index++;
  return index;
}

// Where each item is a message, a client may put the results of calls that were made at once between them. From the items alone that
// cannot be told from a call that was made later without any reasoning, save that nobody makes this many at once.
const mostItemsAtOnce = 64;

/** Whether the turn that starts there begins with a call of the response that the turn before it is of. */
function continues(messages: readonly TrackedMessage[], before: Turn, start: number): boolean {
  const [first] = partsAt(messages, start);
  if (first?.kind !== "tool_call" || first.isBound !== true) return false;
  if (start - before.origin > mostItemsAtOnce) return false;
  for (let index = before.end; index < start; index++)
    if (messages[index]?.original.role !== "tool") return false;
  return messages
    .slice(before.origin, before.end)
    .some(({ original }) => original.parts.some(isBoundThinking));
}

function isBoundThinking({ kind, isBound }: CountedPart): boolean {
  return kind === "thinking" && isBound === true;
}

/** Whether tools ran in the turn: the caller's, or the provider's own where they left more than a few words beside the answer. */
export function hasCalls(messages: readonly TrackedMessage[], { start, next }: Turn): boolean {
  let tokens = 0;
  for (let index = start; index < next; index++) {
    for (const part of partsAt(messages, index)) {
      if (part.kind === "tool_call") return true;
      if (part.exchangeRole !== undefined) tokens += part.tokens;
    }
  }
  return tokens >= fewTokens;
}

// The answer goes with what the tools left: what they left must be worth that.
const fewTokens = 200;

/** The turn and its results, when they can go as a whole: it calls tools, each call is answered before the next turn, and nothing
 *  else in there needs it. Turns whose calls came from one reasoning go as one, with the last of them. Undefined otherwise. */
export function exchangeOf(messages: readonly TrackedMessage[], turn: Turn): Exchange | undefined {
  const whole = { ...turn, start: turn.origin };
  if (turn.isContinued || !hasCalls(messages, whole)) return undefined;
  const pairs: Pairs = { end: whole.end, calls: new Set(), answered: new Set(), results: [] };
  for (let message = whole.start; message < whole.next; message++) {
    for (const [at, part] of partsAt(messages, message).entries())
      if (!canGo(part, { message, part: at }, pairs)) return undefined;
  }
  return pairs.answered.size === pairs.calls.size ? { turn: whole, results: pairs.results } : undefined;
}

export interface Exchange {
  readonly turn: Turn;
  /** In order; where a call and its result are one part, that part. */
  readonly results: readonly ResultPlace[];
}

export interface ResultPlace {
  readonly message: number;
  readonly part: number;
}

interface Pairs {
  /** Up to here messages go with all that they hold. */
  readonly end: number;
  readonly calls: Set<string>;
  readonly answered: Set<string>;
  readonly results: ResultPlace[];
}

function canGo(part: CountedPart, place: ResultPlace, { end, calls, answered, results }: Pairs): boolean {
  const { kind, callId = "" } = part;
  switch (roleOf(part)) {
    case "call":
      calls.add(callId);
      return part.callId !== undefined;
    case "result":
      answered.add(callId);
      results.push(place);
      return calls.has(callId);
    case "both":
      results.push(place);
      return true;
    default:
      return place.message >= end || kind === "text" || kind === "thinking";
  }
}

function roleOf({ kind, exchangeRole }: CountedPart): CountedPart["exchangeRole"] {
  if (kind === "tool_call") return "call";
  return kind === "tool_result" ? "result" : exchangeRole;
}

function partsAt(messages: readonly TrackedMessage[], index: number): readonly CountedPart[] {
  return (messages[index] as TrackedMessage).original.parts;
}
