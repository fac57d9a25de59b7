/** Groups messages that belong together: an assistant turn, and the results that answer its calls. */
import type { CountedPart } from "../../core/messages/index.ts";
import type { FindCall } from "./placeholders.ts";
import type { TrackedMessage } from "./tracked-history.ts";

/** Messages [start, end) are the assistant's. Messages [end, next) come before its next turn and hold the results. */
export interface Turn {
  readonly start: number;
  readonly end: number;
  readonly next: number;
  /** The index at which the response starts that the turn belongs to: its own start, or that of an earlier turn. */
  readonly origin: number;
  /** Whether the next turn belongs to the same response, so that this one cannot be removed without it. */
  readonly isContinued: boolean;
}

/** The turns of a history, and what belongs to each. */
export interface Turns {
  readonly list: readonly Turn[];
  /** Whether the turn uses tools, the caller's or the provider's. */
  hasCalls(turn: Turn): boolean;
  /** Returns the turn's answer to the person. */
  answer(turn: Turn): readonly PartPlace[];
  /** Returns the turn with its results if they can be removed as a whole. */
  exchange(turn: Turn): Exchange | undefined;
  /** Returns the call that a result answers, and a call itself. */
  findCall: FindCall;
}

/** Groups the messages of a history. `settled` is the index up to which nothing changes any more. */
export type ReadTurns = (messages: readonly TrackedMessage[], settled?: number) => Turns;

/** Remembers the turns that it read, so that it reads on from there if the history has only grown. */
export function createTurnReader(): ReadTurns {
  let list: readonly Turn[] = [];
  let read = 0;
  let chain: string | undefined;
  return (messages, settled = 0) => {
    const isLonger = messages[read - 1]?.chain === chain;
    // What came after them could have shown that they are continued.
    const isFinal = ({ origin, next }: Turn): boolean => next < read && origin + maxItemsAtOnce <= read;
    list = readTurns(messages, isLonger ? list.slice(0, list.findLastIndex(isFinal) + 1) : []);
    read = messages.length;
    chain = messages[read - 1]?.chain;
    return createTurns(messages, list, settled);
  };
}

function createTurns(messages: readonly TrackedMessage[], list: readonly Turn[], settled: number): Turns {
  // Created on demand, because they look at every part. Most parts in question come after `settled`.
  let recent: FindCall | undefined;
  let all: FindCall | undefined;
  return {
    list,
    hasCalls: (turn) => hasCalls(messages, turn),
    answer: (turn) => findAnswer(messages, turn),
    exchange: (turn) => findExchange(messages, turn),
    findCall(part) {
      if (part.callId === undefined || part.kind === "tool_call") return part.callId === undefined ? undefined : part;
      recent ??= indexCalls(messages.slice(settled));
      const call = recent(part);
      if (call !== undefined || settled === 0) return call;
      all ??= indexCalls(messages);
      return all(part);
    },
  };
}

/** Adds the turns after the known ones. */
function readTurns(messages: readonly TrackedMessage[], known: readonly Turn[]): Turn[] {
  const turns = [...known];
  let before = known.at(-1);
  for (let start = nextTurn(messages, before?.next ?? 0); start < messages.length; ) {
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

// If each item is a message, a client may put results between calls that were made at once. From the items alone,
// this looks the same as a later call without reasoning. But no response makes this many calls at once.
const maxItemsAtOnce = 64;

/** Whether the turn at `start` belongs to the same response as the turn before it. */
function continues(messages: readonly TrackedMessage[], before: Turn, start: number): boolean {
  if (start - before.origin > maxItemsAtOnce) return false;
  if (!isOfSameReasoning(messages, before, start) && !hasOpenCall(messages, before, start)) return false;
  return messages
    .slice(before.end, start)
    .every(({ original: { role, parts } }) => role === "tool" || parts.every(({ kind }) => kind === "tool_result"));
}

function isOfSameReasoning(messages: readonly TrackedMessage[], before: Turn, start: number): boolean {
  const [first] = partsAt(messages, start);
  if (first?.kind !== "tool_call" || first.isBound !== true) return false;
  return messages
    .slice(before.origin, before.end)
    .some(({ original }) => original.parts.some(({ kind, isBound }) => kind === "thinking" && isBound === true));
}

/** Whether a tool of the provider waits for results of the caller's tools. Its own result then comes in a later
 *  turn. */
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
  const isAnswer = ({ exchangeRole, callId = "" }: CountedPart) => exchangeRole === "result" && open.has(callId);
  return messages.slice(start, origin + maxItemsAtOnce).some(({ original }) => original.parts.some(isAnswer));
}

function hasCalls(messages: readonly TrackedMessage[], { start, next }: Turn): boolean {
  const isUse = (part: CountedPart): boolean =>
    part.isFramed === true || (part.kind !== "tool_result" && readRole(part) !== undefined);
  return messages.slice(start, next).some(({ original }) => original.parts.some(isUse));
}

/** Returns the answer to the person: the texts at the end of a turn, after everything that the provider's tools did. A
 *  turn that calls the caller's tools has no answer, because results come next. */
function findAnswer(messages: readonly TrackedMessage[], { start, end, next }: Turn): PartPlace[] {
  const answer: PartPlace[] = [];
  if (messages.slice(end, next).some(({ original }) => original.parts.some(({ isFramed }) => isFramed))) return answer;
  for (let message = start; message < end; message++) {
    for (const [part, { kind, exchangeRole }] of partsAt(messages, message).entries()) {
      if (kind === "tool_call") return [];
      if (exchangeRole !== undefined) answer.length = 0;
      else if (kind === "text") answer.push({ message, part });
    }
  }
  return answer;
}

/** Returns the turn and its results if they can be removed as a whole: the turn calls tools, each call is answered
 *  before the next turn, and no other part needs it. Turns of one response are removed together, with the last of
 *  them. */
function findExchange(messages: readonly TrackedMessage[], turn: Turn): Exchange | undefined {
  const whole = { ...turn, start: turn.origin };
  if (turn.isContinued || !hasCalls(messages, whole)) return undefined;
  const results: PartPlace[] = [];
  const pairs = { end: whole.end, calls: new Set<string>(), answered: new Set<string>(), results };
  for (let message = whole.start; message < whole.next; message++) {
    for (const [at, part] of partsAt(messages, message).entries())
      if (!canRemove(part, { message, part: at }, pairs)) return undefined;
  }
  return pairs.answered.size === pairs.calls.size ? { turn: whole, results } : undefined;
}

export interface Exchange {
  readonly turn: Turn;
  /** In order. If one part holds a call and its result, that part. */
  readonly results: readonly PartPlace[];
}

export interface PartPlace {
  readonly message: number;
  readonly part: number;
}

/** Whether a part can be removed with its exchange. Adds it to what was found so far. */
function canRemove(
  part: CountedPart,
  place: PartPlace,
  {
    end,
    calls,
    answered,
    results,
  }: {
    /** Up to here, messages are removed with everything in them. */
    readonly end: number;
    readonly calls: Set<string>;
    readonly answered: Set<string>;
    readonly results: PartPlace[];
  },
): boolean {
  const { kind, callId = "" } = part;
  switch (readRole(part)) {
    case "call":
      calls.add(callId);
      return part.callId !== undefined;
    case "result":
      results.push(place);
      // What an agent wrote as text has no id.
      if (part.isFramed === true) return true;
      answered.add(callId);
      return calls.has(callId);
    case "both":
      results.push(place);
      return true;
    default:
      return place.message >= end || kind === "text" || kind === "thinking";
  }
}

function readRole({ kind, exchangeRole }: CountedPart): CountedPart["exchangeRole"] {
  if (kind === "tool_call") return "call";
  return kind === "tool_result" ? "result" : exchangeRole;
}

function partsAt(messages: readonly TrackedMessage[], index: number): readonly CountedPart[] {
  return (messages[index] as TrackedMessage).original.parts;
}

/** Finds the call of each result: the nearest earlier call with the same id. */
function indexCalls(messages: readonly TrackedMessage[]): FindCall {
  const calls = new Map<CountedPart, CountedPart>();
  const latest = new Map<string, CountedPart>();
  for (const { original } of messages) {
    for (const part of original.parts) {
      if (part.callId === undefined) continue;
      if (part.kind === "tool_call") latest.set(part.callId, part);
      const call = latest.get(part.callId);
      if (call !== undefined) calls.set(part, call);
    }
  }
  return (part) => calls.get(part);
}
