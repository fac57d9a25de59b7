/** What belongs together in a history: an assistant turn, and the results that answer its calls. */
import type { CountedPart } from "../messages/index.ts";
import type { TrackedMessage } from "./tracked-history.ts";

/** Messages [start, end) are the assistant's; [end, next) come before its next turn and hold the results. */
export interface Turn {
  readonly start: number;
  readonly end: number;
  readonly next: number;
  /** Where the response begins that it is of: with itself, or with an earlier turn. */
  readonly origin: number;
  /** Whether the next turn is of the same response, so that it cannot go before that one. */
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

/** Whether the turn that starts there is of the response that the turn before it is of. */
function continues(messages: readonly TrackedMessage[], before: Turn, start: number): boolean {
  if (start - before.origin > mostItemsAtOnce) return false;
  if (!isOfSameReasoning(messages, before, start) && !hasOpenCall(messages, before, start)) return false;
  return messages.slice(before.end, start).every(isOfResults);
}

function isOfSameReasoning(messages: readonly TrackedMessage[], before: Turn, start: number): boolean {
  const [first] = partsAt(messages, start);
  if (first?.kind !== "tool_call" || first.isBound !== true) return false;
  return messages
    .slice(before.origin, before.end)
    .some(({ original }) => original.parts.some(isBoundThinking));
}

/** Whether a tool of the provider waits for results of the caller's tools: its own result comes in a later turn. */
function hasOpenCall(messages: readonly TrackedMessage[], { origin, end }: Turn, start: number): boolean {
  const open = new Set<string>();
  for (let index = origin; index < end; index++) {
    for (const { exchangeRole, callId } of partsAt(messages, index)) {
      if (exchangeRole === undefined || callId === undefined) continue;
      if (exchangeRole === "call") open.add(callId);
      else open.delete(callId);
    }
  }
  if (open.size === 0) return false;
  const isAnswer = ({ exchangeRole, callId = "" }: CountedPart) =>
    exchangeRole === "result" && open.has(callId);
  return messages
    .slice(start, origin + mostItemsAtOnce)
    .some(({ original }) => original.parts.some(isAnswer));
}

function isOfResults({ original: { role, parts } }: TrackedMessage): boolean {
  return role === "tool" || parts.every(({ kind }) => kind === "tool_result");
}

function isBoundThinking({ kind, isBound }: CountedPart): boolean {
  return kind === "thinking" && isBound === true;
}

/** Whether tools ran in the turn, the caller's or the provider's own. */
export function hasCalls(messages: readonly TrackedMessage[], { start, next }: Turn): boolean {
  return messages
    .slice(start, next)
    .some(({ original }) =>
      original.parts.some((part) => part.kind !== "tool_result" && roleOf(part) !== undefined),
    );
}

/** What the person was told: the texts at the end of a turn, behind all that tools of the provider did in it. A turn with calls of the
 *  caller's tools has none, since results come next. */
export function answerOf(messages: readonly TrackedMessage[], { start, end }: Turn): PartPlace[] {
  const answer: PartPlace[] = [];
  for (let message = start; message < end; message++) {
    for (const [part, { kind, exchangeRole }] of partsAt(messages, message).entries()) {
      if (kind === "tool_call") return [];
      if (exchangeRole !== undefined) answer.length = 0;
      else if (kind === "text") answer.push({ message, part });
    }
  }
  return answer;
}

/** The turn and its results, when they can go as a whole: it calls tools, each call is answered before the next turn, and nothing
 *  else in there needs it. Turns of one response go as one, with the last of them. Undefined otherwise. */
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
  readonly results: readonly PartPlace[];
}

export interface PartPlace {
  readonly message: number;
  readonly part: number;
}

interface Pairs {
  /** Up to here messages go with all that they hold. */
  readonly end: number;
  readonly calls: Set<string>;
  readonly answered: Set<string>;
  readonly results: PartPlace[];
}

function canGo(part: CountedPart, place: PartPlace, { end, calls, answered, results }: Pairs): boolean {
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
