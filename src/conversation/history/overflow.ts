/** Reports why a request cannot be made to fit, or only with many epochs. */
import type { CountedPart, MessageLens } from "../../core/messages/index.ts";
import { runLength, type TrackedHistory, type TrackedMessage } from "./tracked-history.ts";

/** What is left after trimming, if that is too large. */
export interface Excess {
  /** The size of the smallest valid request. */
  readonly tokens: number;
  /** The tokens that the request may have. */
  readonly limit: number;
}

/** Reports that a request cannot be made to fit, and which parts are the largest. */
export interface Overflow extends Excess {
  /** The largest parts that were not trimmed, largest first; at most three. */
  readonly largest: readonly LargePart[];
}

/** One large part of an overflowing request. */
export interface LargePart {
  /** The part's path in the messages that were passed in, such as `messages[3].content[0]`. */
  readonly path: string;
  readonly role: string;
  readonly kind: CountedPart["kind"];
  readonly tokens: number;
}

/** Reports that the conversation is trimmed so often that the provider's cache is of little use. */
export interface Pressure {
  /** How many epochs the last `turns` assistant turns needed. */
  readonly epochs: number;
  readonly turns: number;
  /** The largest parts that were not trimmed, largest first; at most three. */
  readonly largest: readonly LargePart[];
}

/** Returns the pressure on a history, or undefined if epochs are rare enough. It depends on the history and its epochs
 *  alone, so a restart does not change it. */
export function describePressure(history: TrackedHistory, findLargest: () => LargePart[]): Pressure | undefined {
  const { messages } = history;
  const watchedTurns = 20;
  let turns = 0;
  let first = messages.length;
  while (first > 0 && turns < watchedTurns) {
    first--;
    const isTurn = messages[first]?.original.role === "assistant" && messages[first - 1]?.original.role !== "assistant";
    if (isTurn) turns++;
  }
  const epochs = history.epochsSince(first);
  if (turns < watchedTurns || epochs <= watchedTurns / 4) return undefined;
  return { epochs, turns, largest: findLargest() };
}

const maxLargest = 3;

/** Returns a function that finds the largest parts that were not trimmed, largest first. A history that does not fit asks
 *  on every call, so the function remembers how large the parts are and reads only the runs of messages that changed. */
export function createLargestFinder(): (history: TrackedHistory, lens: MessageLens) => LargePart[] {
  let known: TrackedHistory | undefined;
  let runs: { readonly version: number | undefined; readonly size: number }[] = [];
  return (history, lens) => {
    if (known !== history) [known, runs] = [history, []];
    const { messages, versions } = history;
    const largest: LargePlace[] = [];
    for (let run = 0; run * runLength < messages.length; run++) {
      const [start, end] = [run * runLength, Math.min((run + 1) * runLength, messages.length)];
      const version = versions[run];
      if (runs[run]?.version !== version) {
        const ofRun: LargePlace[] = [];
        addLarge(ofRun, messages, { start, end });
        runs[run] = { version, size: ofRun[0]?.tokens ?? 0 };
      }
      if ((runs[run]?.size ?? 0) <= (largest[maxLargest - 1]?.tokens ?? 0)) continue;
      addLarge(largest, messages, { start, end });
    }
    return largest.map((place) => describe(messages, place, lens));
  };
}

interface LargePlace {
  readonly index: number;
  readonly part: number;
  readonly tokens: number;
}

/** Adds the parts of messages that belong to the largest so far. */
function addLarge(
  largest: LargePlace[],
  messages: readonly TrackedMessage[],
  { start, end }: { start: number; end: number },
): void {
  for (let index = start; index < end; index++) {
    const { original, decisions, sent } = messages[index] as TrackedMessage;
    if (sent === undefined) continue;
    for (const [part, { tokens }] of original.parts.entries()) {
      if (tokens <= (largest[maxLargest - 1]?.tokens ?? 0) || decisions.has(part)) continue;
      const smaller = largest.findIndex((place) => place.tokens < tokens);
      largest.splice(smaller < 0 ? largest.length : smaller, 0, { index, part, tokens });
      largest.length = Math.min(largest.length, maxLargest);
    }
  }
}

function describe(
  messages: readonly TrackedMessage[],
  { index, part, tokens }: LargePlace,
  lens: MessageLens,
): LargePart {
  const { source } = messages[index] as TrackedMessage;
  // Read the message again: the tracked parts may belong to an equal object of an earlier call.
  const { role, parts } = lens.read(source, index);
  const { kind, value } = parts[part] as CountedPart;
  let path = `messages[${index}]`;
  // A part that is the whole message, or a plain text, has no place inside of it.
  for (const [name, list] of Object.entries(source)) {
    const at = typeof value === "object" && Array.isArray(list) ? list.indexOf(value) : -1;
    if (at < 0) continue;
    path += `.${name}[${at}]`;
    break;
  }
  return { path, role, kind, tokens };
}
