/** Tracks a history as it comes in, call by call, and as it is sent: the history with the ledger applied. The work per
 *  call grows with what is new. A message that is the same object is not read again, and one with equal content is not
 *  counted again. */

import { ContextError } from "../../core/errors.ts";
import {
  type CountedMessage,
  hashMessage,
  isSameJson,
  type MessageLens,
  takeSnapshot,
  withFramedResults,
} from "../../core/messages/index.ts";
import { applyDecisions, type Decisions } from "./apply-decisions.ts";
import type { Anchor, DecisionIndex, Epoch, LoggedDecision } from "./decision-log.ts";

export interface TrackedMessage {
  /** The caller's latest object with this content. */
  readonly source: object;
  /** Returns whether an object has the same content as the source had, also if the source was edited since. */
  readonly isUnchanged: (source: object) => boolean;
  readonly hash: string;
  /** The hash of this message and all messages before it. */
  readonly chain: string;
  /** Whether the content is a plain string. The same text as a block has the same hash but may count differently. */
  readonly isPlain: boolean;
  readonly original: CountedMessage;
  /** The decision on each part, by part index. */
  readonly decisions: Decisions;
  /** What is sent instead; undefined if the message is dropped. */
  readonly sent: object | undefined;
  readonly tokens: number;
  /** The original's tokens that can still be read. */
  readonly kept: number;
}

export interface TrackedHistory extends Omit<SentView, "reset"> {
  readonly messages: readonly TrackedMessage[];
  /** For each run of `runLength` messages, a number that is another one after each change of the run. */
  readonly versions: readonly number[];
  readonly boundary: number;
  readonly collapsed: number;
  readonly totals: Readonly<Totals>;
  /** Takes the history of the next call. Reads the first message that differs, and everything after it, again. Returns
   *  the number of messages that did not change. The first `known` are those of the previous call. */
  follow(messages: readonly object[], known?: number): number;
  /** The newest epoch that applies, by its index in the ledger. */
  readonly epoch: number | undefined;
  /** The factor on the working budget that the epochs led to. */
  readonly growth: number;
  /** The index of the message up to which the newest epoch has decided. */
  readonly decidedUpTo: number;
  has(anchor: Anchor): boolean;
  /** Counts the epochs that the history needed from this message on. */
  epochsSince(message: number): number;
  /** Applies entries that were just decided. */
  apply(entries: readonly LoggedDecision[]): void;
  /** Takes back entries that no epoch holds. */
  undo(): void;
  /** Takes the messages from an index on away, as if they had not been sent yet, and returns them. No decision may concern
   *  them. */
  detach(length: number): readonly TrackedMessage[];
  /** Puts the next message back at the end. */
  attach(message: TrackedMessage): void;
  /** Records the epoch that the entries were written as. */
  hold(epoch: number): void;
}

/** The number of messages that have one version. */
export const runLength = 64;

/** How messages are read. */
export interface HistoryReader {
  readonly lens: MessageLens;
  readonly hashOf: (message: object) => string;
  /** Whether messages are never edited in place, as in a recording. */
  readonly isFrozen: boolean;
}

/** Reads and hashes each message of a recording once. The trimmers of all policies share it. */
export interface RecordingReader extends HistoryReader {
  readonly isFrozen: true;
  /** The names of messages, by what was read of them. */
  readonly names: WeakMap<object, string>;
}

/** `lens` must have the format, the model and the counter of the trimmers. */
export function createRecordingReader(lens: MessageLens): RecordingReader {
  const hashes = new WeakMap<object, string>();
  return {
    lens,
    hashOf(message) {
      let hash = hashes.get(message);
      if (hash === undefined) {
        hash = hashMessage(message);
        hashes.set(message, hash);
      }
      return hash;
    },
    isFrozen: true,
    names: new WeakMap(),
  };
}

export function createTrackedHistory(reader: HistoryReader, ledger: DecisionIndex): TrackedHistory {
  const tracked: TrackedMessage[] = [];
  const state: State = {
    reader,
    ledger,
    tracked,
    versions: [],
    sources: [],
    view: createSentView(tracked),
    totals: { original: 0, tokens: 0, kept: 0 },
    followed: 0,
    held: [],
  };
  const { totals, view, versions } = state;
  return {
    messages: tracked,
    versions,
    totals,
    get boundary() {
      return currentEpoch(state)?.boundary ?? 0;
    },
    get collapsed() {
      return currentEpoch(state)?.collapsed ?? 0;
    },
    get epoch() {
      return state.held.at(-1);
    },
    get growth() {
      return currentEpoch(state)?.growth ?? 1;
    },
    get decidedUpTo() {
      return currentEpoch(state)?.at.message ?? 0;
    },
    has: ({ message, chain }) => tracked[message]?.chain === chain,
    epochsSince(message) {
      const last = state.held.at(-1);
      return last === undefined ? 0 : ledger.countSince(last, message);
    },
    follow(messages, known = 0) {
      rewind(state, countUnchanged(state, messages, known));
      const unchanged = Math.min(state.followed, tracked.length);
      for (let index = tracked.length; index < messages.length; index++)
        attach(state, readMessage(state, messages[index] as object));
      state.followed = tracked.length;
      return unchanged;
    },
    apply: (entries) => apply(state, entries),
    undo: () => replay(state),
    detach: (length) => cutOff(state, length),
    attach: (message) => attach(state, message),
    hold(epoch) {
      state.held.push(epoch);
    },
    sent: view.sent,
    sentBefore: view.sentBefore,
    trimmed: view.trimmed,
  };
}

interface State {
  readonly reader: HistoryReader;
  readonly ledger: DecisionIndex;
  readonly tracked: TrackedMessage[];
  readonly versions: number[];
  /** The source of each tracked message. A separate list, because every call iterates over it. */
  readonly sources: object[];
  readonly view: SentView;
  readonly totals: Totals;
  /** How many messages were unchanged after the last call that could be read completely. */
  followed: number;
  /** Epochs in the order in which they came to apply. The last one applies, with those that it is based on. */
  readonly held: number[];
}

function currentEpoch({ held, ledger }: State): Epoch | undefined {
  const last = held.at(-1);
  return last === undefined ? undefined : ledger.ledger.epochs[last];
}

/** Counts how many messages from the start did not change. Equal content in another object counts; that object is then
 *  the one to send. */
function countUnchanged(state: State, messages: readonly object[], known: number): number {
  const { sources } = state;
  const common = Math.min(messages.length, sources.length);
  // Clients edit their newest messages in place (a streamed answer, one more result). Those that were the newest on the
  // previous call are compared with what they were then.
  const settled = common - 8;
  let index = Math.min(known, common);
  while (index < settled && sources[index] === messages[index]) index++;
  for (; index < common; index++) {
    const source = messages[index] as object;
    // The newest messages may have been edited in place, even inside a new object.
    const isSame =
      index < settled
        ? isSameAs(sources[index] as object, source)
        : (state.tracked[index] as TrackedMessage).isUnchanged(source);
    if (isSame) replaceSource(state, index, source);
    else if (!takeSameHash(state, index, source)) return index;
  }
  return common;
}

function isSameAs(known: object, source: object): boolean {
  return known === source || isSameJson(known, source);
}

/** The content is also the same if only cache markers differ, or the form of a result. */
function takeSameHash(state: State, index: number, source: object): boolean {
  const known = state.tracked[index] as TrackedMessage;
  const { reader } = state;
  if (isPlain(source) !== known.isPlain || hashAt(source, index, reader) !== known.hash) return false;
  render(state, index, { ...known, source, isUnchanged: createComparison(source, reader) }, known.decisions);
  return true;
}

/** Takes equal content from another object. Works in place, because a history that is parsed on every call has
 *  thousands. */
function replaceSource({ tracked, sources, view }: State, index: number, source: object): void {
  const known = tracked[index] as { -readonly [Key in keyof TrackedMessage]: TrackedMessage[Key] };
  if (known.source === source) return;
  known.source = source;
  sources[index] = source;
  if (known.decisions.size > 0) return;
  known.sent = source;
  view.reset(index);
}

/** Adds a message at the end, with the epoch that applies from it on. */
function attach(state: State, message: TrackedMessage): void {
  const { tracked, ledger, held } = state;
  const index = tracked.length;
  put(state, index, message);
  const epoch = ledger.epochAt({ message: index, chain: message.chain });
  if (epoch === undefined) return;
  const path = ledger.pathTo(epoch, held.at(-1));
  held.push(epoch);
  if (path === undefined) replay(state);
  else for (const each of path) apply(state, entriesHere(state, each));
}

/** A damaged or hand-made checkpoint may name messages that do not match. */
function entriesHere({ ledger, tracked }: State, epoch: number): readonly LoggedDecision[] {
  return ledger.entriesOf(epoch).filter(({ message, chain }) => tracked[message]?.chain === chain);
}

/** Removes the messages from an index on, and returns them. */
function cutOff(state: State, length: number): TrackedMessage[] {
  countChange(state, length);
  const removed = state.tracked.splice(length);
  for (const message of removed) countMessage(state.totals, message, -1);
  state.sources.length = length;
  state.view.reset(length);
  return removed;
}

function rewind(state: State, length: number): void {
  const { tracked, held, ledger } = state;
  if (length === tracked.length) return;
  cutOff(state, length);
  state.followed = Math.min(state.followed, length);
  const isGone = (epoch: number): boolean => (ledger.ledger.epochs[epoch] as Epoch).at.message >= length;
  const kept = held.findIndex(isGone);
  if (kept < 0) return;
  held.length = kept;
  replay(state);
}

/** Gives every message the decisions of the epochs that apply now. */
function replay(state: State): void {
  const { tracked, held, ledger } = state;
  const inForce = new Map<number, Map<number, LoggedDecision>>();
  const last = held.at(-1);
  for (const epoch of last === undefined ? [] : (ledger.pathTo(last, undefined) ?? []))
    for (const entry of entriesHere(state, epoch))
      inForce.set(entry.message, (inForce.get(entry.message) ?? new Map()).set(entry.part, entry));
  for (const [index, message] of tracked.entries()) {
    const decisions = inForce.get(index) ?? new Map();
    if (!isSame(message.decisions, decisions)) render(state, index, message, decisions);
  }
}

function isSame(before: Decisions, after: Decisions): boolean {
  if (before.size !== after.size) return false;
  for (const [part, entry] of before) if (after.get(part) !== entry) return false;
  return true;
}

function apply(state: State, entries: readonly LoggedDecision[]): void {
  const changed = new Map<number, Map<number, LoggedDecision>>();
  for (const entry of entries) {
    const decisions = changed.get(entry.message) ?? new Map(state.tracked[entry.message]?.decisions);
    changed.set(entry.message, decisions.set(entry.part, entry));
  }
  for (const [index, decisions] of changed) {
    render(state, index, state.tracked[index] as TrackedMessage, decisions);
  }
}

function render(state: State, index: number, message: TrackedMessage, decisions: Decisions): void {
  state.view.reset(index);
  const { source, isUnchanged, hash, chain, isPlain: plain, original } = message;
  const { sent, tokens, kept } = applyDecisions({ source, original, decisions }, state.reader.lens, index);
  // Field by field: an epoch renders thousands of messages, and a spread takes several times as long.
  put(state, index, { source, isUnchanged, hash, chain, isPlain: plain, original, decisions, sent, tokens, kept });
}

function put(state: State, index: number, message: TrackedMessage): void {
  const { tracked, sources, totals } = state;
  countChange(state, index);
  const before = tracked[index];
  if (before !== undefined) countMessage(totals, before, -1);
  tracked[index] = message;
  sources[index] = message.source;
  countMessage(totals, message, 1);
}

/** Gives the run of a message another version. A run that is cut off continues its count when messages follow again. */
function countChange({ versions }: State, index: number): void {
  const run = Math.floor(index / runLength);
  versions[run] = (versions[run] ?? 0) + 1;
}

/** The tokens of a whole history. They are kept up to date, because a call must not add up all messages. */
interface Totals {
  /** As they came in. */
  original: number;
  /** As they are sent. */
  tokens: number;
  /** The incoming tokens that can still be read. */
  kept: number;
}

/** Adds a message to the totals, or takes it off with the sign -1. */
function countMessage(totals: Totals, { original, tokens, kept }: TrackedMessage, sign: 1 | -1): void {
  totals.original += sign * original.tokens;
  totals.tokens += sign * tokens;
  totals.kept += sign * kept;
}

/** Reads the message after the tracked ones. */
function readMessage({ tracked, reader, ledger }: State, source: object): TrackedMessage {
  const index = tracked.length;
  const previous = tracked[index - 1];
  const original = withFramedResults(reader.lens.read(source, index), previous?.original);
  const hash = hashAt(source, index, reader);
  const { tokens } = original;
  return {
    source,
    isUnchanged: createComparison(source, reader),
    hash,
    chain: ledger.hash.text((previous?.chain ?? "") + hash),
    isPlain: isPlain(source),
    original,
    decisions: new Map(),
    sent: source,
    tokens,
    kept: tokens,
  };
}

function createComparison(source: object, { isFrozen }: HistoryReader): TrackedMessage["isUnchanged"] {
  return isFrozen ? (later) => isSameAs(source, later) : takeSnapshot(source);
}

function hashAt(source: object, index: number, { hashOf }: HistoryReader): string {
  try {
    return hashOf(source);
  } catch (cause) {
    // hashMessage knows the message but not its index.
    if (!(cause instanceof ContextError)) throw cause;
    throw new ContextError(cause.code, `messages[${index}]: ${cause.message}`, { cause });
  }
}

/** Whether the content is a string and not a list. The two have equal hashes but different parts. */
function isPlain(source: unknown): boolean {
  return typeof Object(source).content === "string";
}

/** Collects what is sent. Most calls only append or change the newest messages, so the lists are extended and not
 *  rebuilt. */
interface SentView {
  /** The messages to send, in order, and how many at the start are the same objects as on the previous call. The list
   *  is valid until the next call. */
  sent(): { readonly messages: object[]; readonly same: number };
  /** For each boundary, the index in `sent` of the last message before it. Leaves out boundaries before which nothing
   *  is sent. */
  sentBefore(boundaries: readonly number[]): readonly number[];
  /** The indexes of the messages that are not sent as they came in. */
  trimmed(): readonly number[];
  /** Must be called when a message has changed or is gone, with its index or that of an earlier one. */
  reset(from: number): void;
}

function createSentView(tracked: readonly TrackedMessage[]): SentView {
  const sent: object[] = [];
  const trimmed: number[] = [];
  /** For each message that was collected, how many were sent up to it. */
  const counts: number[] = [];
  let lastTrimmed: readonly number[] | undefined;
  /** How many of the messages to send did not change since they were last returned. */
  let same = 0;
  const collect = (): void => {
    for (let index = counts.length; index < tracked.length; index++) {
      const message = tracked[index] as TrackedMessage;
      if (message.sent !== undefined) sent.push(message.sent);
      counts.push(sent.length);
      if (message.decisions.size === 0) continue;
      trimmed.push(index);
      lastTrimmed = undefined;
    }
  };
  return {
    sent() {
      collect();
      const before = same;
      same = sent.length;
      return { messages: sent, same: before };
    },
    sentBefore(boundaries) {
      collect();
      const indexes = boundaries.map((boundary) => (counts[Math.min(boundary, counts.length) - 1] ?? 0) - 1);
      return [...new Set(indexes.filter((index) => index >= 0))];
    },
    trimmed() {
      collect();
      lastTrimmed ??= trimmed.slice();
      return lastTrimmed;
    },
    reset(from) {
      if (from >= counts.length) return;
      counts.length = from;
      sent.length = counts.at(-1) ?? 0;
      same = Math.min(same, sent.length);
      while ((trimmed.at(-1) ?? -1) >= from) {
        trimmed.pop();
        lastTrimmed = undefined;
      }
    },
  };
}
