/** The least that oldest-first trimming of a session can cost for what it keeps, by somebody who knows the whole session beforehand:
 *  a dynamic programme over call and boundary. A call that leaves the boundary where it is reads all that the call before sent; one
 *  that moves it reads up to the old boundary, where a marker was, and writes the rest. */
import type { TrimmedMessage } from "./trimmed-messages.ts";

export interface BoundSession {
  readonly messages: readonly TrimmedMessage[];
  /** For each call the number of messages in its request, rising. */
  readonly calls: readonly number[];
}

export interface BoundOptions {
  /** Tokens that the messages may have. */
  readonly budget: number;
  readonly prefixTokens: number;
  /** Of a token, in tokens of uncached input. */
  readonly price: { readonly read: number; readonly write: number };
  /** What it is worth to have everything readable on one call, in the same unit. 0: cost alone counts. */
  readonly worth: number;
  /** The newest content, which is trimmed only when nothing else makes room: turns, and share of the budget. */
  readonly protect?: { readonly turns: number; readonly share: number };
}

export interface BoundResult {
  readonly cost: number;
  /** Sum over the calls of the share that can still be read. */
  readonly keptShares: number;
  /** For each call the number of messages that are trimmed. */
  readonly boundaries: readonly number[];
  /** Calls that are over the budget whatever is trimmed. */
  readonly over: number;
}

export function offlineBound(session: BoundSession, options: BoundOptions): BoundResult {
  const sums = sumUp(session.messages);
  let states: States = [start];
  for (const [index, length] of session.calls.entries()) {
    const before = session.calls[index - 1];
    states = nextStates(states, { session, sums, length, before, options });
  }
  return tally(cheapest(states), { session, sums, options });
}

/** The fewest calls that must change what was sent before: trimming as late and as deep as possible, whatever it costs. */
export function fewestBreaks(session: BoundSession, options: BoundOptions): number {
  const sums = sumUp(session.messages);
  let boundary = 0;
  let breaks = 0;
  for (const [index, length] of session.calls.entries()) {
    if (sizeOf(sums, length, boundary) <= options.budget) continue;
    const farthest = farthestBoundary({ session, sums, length, before: session.calls[index - 1], options });
    if (farthest > boundary && index > 0) breaks++;
    boundary = Math.max(boundary, farthest);
  }
  return breaks;
}

/** The best way to have `boundary` in force after a call. */
interface State {
  readonly boundary: number;
  /** Cost so far, with what was lost at its worth. */
  readonly score: number;
  readonly previous: State | undefined;
}

const start: State = { boundary: 0, score: 0, previous: undefined };

/** By boundary; undefined where it cannot be. */
type States = readonly (State | undefined)[];

/** For each number of messages, from the first on. */
interface Sums {
  readonly tokens: Float64Array;
  readonly left: Float64Array;
  readonly lost: Float64Array;
}

function sumUp(messages: readonly TrimmedMessage[]): Sums {
  const sum = (value: (message: TrimmedMessage) => number): Float64Array => {
    const sums = new Float64Array(messages.length + 1);
    for (const [index, message] of messages.entries()) sums[index + 1] = sums[index]! + value(message);
    return sums;
  };
  return {
    tokens: sum(({ tokens }) => tokens),
    left: sum(({ leftTokens }) => leftTokens),
    lost: sum(({ lostTokens }) => lostTokens),
  };
}

/** Messages up to `length` with the first `boundary` trimmed. */
function sizeOf({ tokens, left }: Sums, length: number, boundary: number): number {
  return left[boundary]! + tokens[length]! - tokens[boundary]!;
}

interface Step {
  readonly session: BoundSession;
  readonly sums: Sums;
  readonly length: number;
  /** Number of messages of the call before; undefined on the first. */
  readonly before: number | undefined;
  readonly options: BoundOptions;
}

function nextStates(states: States, step: Step): States {
  const { sums, length, options } = step;
  const farthest = farthestBoundary(step);
  const fits = (boundary: number): boolean => sizeOf(sums, length, boundary) <= options.budget;
  const isHopeless = !fits(farthest);
  const next: (State | undefined)[] = [];
  // Of all smaller boundaries the one that is cheapest to leave: what is read up to it costs less than what is written.
  let origin: { readonly state: State; readonly score: number } | undefined;
  for (let boundary = 0; boundary < length; boundary++) {
    const kept = states[boundary];
    // Content that had to be trimmed when it was the newest stays trimmed.
    const isBeyond = boundary > farthest;
    const isAllowed = isBeyond || fits(boundary) || (isHopeless && boundary === farthest);
    const stay = kept !== undefined && isAllowed ? after(kept, boundary, step) : undefined;
    const canMove = origin !== undefined && isAllowed && !isBeyond && isEdge(step, boundary);
    const move = canMove ? after(origin!.state, boundary, step) : undefined;
    next.push(cheapest([stay, move]));
    if (kept === undefined) continue;
    const score = kept.score - (options.price.write - options.price.read) * sums.left[boundary]!;
    if (origin === undefined || score < origin.score) origin = { state: kept, score };
  }
  return next;
}

function cheapest(states: States): State | undefined {
  let least: State | undefined;
  for (const state of states) {
    if (state !== undefined && (least === undefined || state.score < least.score)) least = state;
  }
  return least;
}

function isEdge({ session }: Step, boundary: number): boolean {
  return session.messages[boundary]?.isEdge === true;
}

function after(previous: State, boundary: number, step: Step): State {
  const { sums, length, options } = step;
  const lostShare = sums.lost[boundary]! / sums.tokens[length]!;
  const score = previous.score + costOf(previous.boundary, boundary, step) + options.worth * lostShare;
  return { boundary, score, previous };
}

function costOf(from: number, to: number, { sums, length, before, options }: Omit<Step, "session">): number {
  const { prefixTokens, price } = options;
  const total = prefixTokens + sizeOf(sums, length, to);
  const shared = before !== undefined && from === to ? sizeOf(sums, before, to) : sums.left[from]!;
  const read = before === undefined ? 0 : prefixTokens + shared;
  return price.read * read + price.write * (total - read);
}

const usualProtection = { turns: 10, share: 0.3 };

/** Up to where a call may trim: the protected content, or as far into it as it takes to fit. */
function farthestBoundary(step: Step): number {
  const { sums, length, options } = step;
  let boundary = protectedFrom(step);
  while (!isEdge(step, boundary)) boundary--;
  for (let next = boundary + 1; next < length; next++) {
    if (sizeOf(sums, length, boundary) <= options.budget) break;
    if (isEdge(step, next)) boundary = next;
  }
  return boundary;
}

function protectedFrom({ session: { messages }, length, options }: Step): number {
  const { turns, share } = options.protect ?? usualProtection;
  let tokens = 0;
  let turn = 0;
  for (let index = length - 1; index >= 0; index--) {
    const message = messages[index]!;
    tokens += message.tokens;
    if (tokens > share * options.budget && index < length - 1) return index + 1;
    if (message.isAssistant && ++turn === turns) return index;
  }
  return 0;
}

function tally(
  last: State | undefined,
  { session, sums, options }: Pick<Step, "session" | "sums" | "options">,
): BoundResult {
  const boundaries: number[] = [];
  for (let state = last; state?.previous !== undefined; state = state.previous) boundaries.push(state.boundary);
  boundaries.reverse();
  let cost = 0;
  let keptShares = 0;
  let over = 0;
  for (const [index, length] of session.calls.entries()) {
    const boundary = boundaries[index]!;
    const before = session.calls[index - 1];
    cost += costOf(boundaries[index - 1] ?? 0, boundary, { sums, length, before, options });
    keptShares += 1 - sums.lost[boundary]! / sums.tokens[length]!;
    if (sizeOf(sums, length, boundary) > options.budget) over++;
  }
  return { cost, keptShares, boundaries, over };
}
