/** A history as it comes in, call by call, and as it is sent: history + ledger, replayed. Work per call grows with what is new:
 *  a message that is the same object is not looked at again, one with the same content is not counted again. */
import { type CountedMessage, isSameJson, type MessageLens } from "../messages/index.ts";
import { applyDecisions, type Decisions } from "./apply-decisions.ts";
import { addMessage, subtractMessage, type Totals } from "./history-totals.ts";
import type { Anchor, Boundary, Epoch, LedgerEntry, LedgerIndex } from "./ledger.ts";
import { hashAt, isPlain, readMessage } from "./read-message.ts";
import { createSentView, type SentView } from "./sent-view.ts";

export interface TrackedMessage {
  /** The caller's latest object of this content. */
  readonly source: object;
  readonly hash: string;
  /** Hash of this message and all before it. */
  readonly chain: string;
  /** Whether the content is a plain text: the same text as a block has the same hash, and may count otherwise. */
  readonly isPlain: boolean;
  readonly original: CountedMessage;
  /** Decision by part index. */
  readonly decisions: Decisions;
  /** What goes out in its place; undefined when it is dropped. */
  readonly sent: object | undefined;
  readonly tokens: number;
  /** Those of the original's tokens that can still be read. */
  readonly kept: number;
}

export interface TrackedHistory extends Omit<SentView, "reset"> {
  readonly messages: readonly TrackedMessage[];
  readonly boundary: number;
  readonly collapsed: number;
  readonly totals: Readonly<Totals>;
  /** Takes the history of a call. What differs from the last one, and all behind it, is read anew. Gives the number of messages
   *  that are as they were. */
  follow(messages: readonly object[]): number;
  /** The newest epoch in force, by its index in the ledger. */
  readonly epoch: number | undefined;
  has(anchor: Anchor): boolean;
  /** Puts entries into force that were just decided. */
  apply(entries: readonly LedgerEntry[]): void;
  /** Takes note of the epoch that they were written as. */
  hold(epoch: number): void;
}

const start: Boundary = { boundary: 0, collapsed: 0 };

// Clients do edit their newest messages in place (a streamed answer, one more result): those that were the newest on the call before
// are hashed again.
const rehashed = 8;

export function createTrackedHistory(lens: MessageLens, ledger: LedgerIndex): TrackedHistory {
  const tracked: TrackedMessage[] = [];
  const state: State = {
    lens,
    ledger,
    tracked,
    sources: [],
    view: createSentView(tracked),
    totals: { original: 0, tokens: 0, kept: 0 },
    followed: 0,
    held: [],
  };
  const { totals, view } = state;
  const boundary = (): Boundary => epochOf(state) ?? start;
  return {
    messages: tracked,
    totals,
    get boundary() {
      return boundary().boundary;
    },
    get collapsed() {
      return boundary().collapsed;
    },
    get epoch() {
      return state.held.at(-1);
    },
    has: (anchor) => has(state, anchor),
    follow(messages) {
      rewind(state, countUnchanged(state, messages));
      const unchanged = Math.min(state.followed, tracked.length);
      for (let index = tracked.length; index < messages.length; index++)
        append(state, messages[index] as object);
      state.followed = tracked.length;
      return unchanged;
    },
    apply: (entries) => apply(state, entries),
    hold(epoch) {
      state.held.push(epoch);
    },
    sent: view.sent,
    sentBefore: view.sentBefore,
    trimmed: view.trimmed,
  };
}

interface State {
  readonly lens: MessageLens;
  readonly ledger: LedgerIndex;
  readonly tracked: TrackedMessage[];
  /** Of each tracked message; a list of its own, since it is run through on every call. */
  readonly sources: object[];
  readonly view: SentView;
  readonly totals: Totals;
  /** How many messages are as they were on the last call that could be read to its end. */
  followed: number;
  /** Epochs in the order in which they came into force; the last one, with those that it is based on, is in force. */
  readonly held: number[];
}

function epochOf({ held, ledger }: State): Epoch | undefined {
  const last = held.at(-1);
  return last === undefined ? undefined : ledger.ledger.epochs[last];
}

function has({ tracked }: State, { message, chain }: Anchor): boolean {
  return tracked[message]?.chain === chain;
}

/** How many messages from the beginning are as they were, be it as other objects, which are then the ones to send. */
function countUnchanged(state: State, messages: readonly object[]): number {
  const { sources } = state;
  const common = Math.min(messages.length, sources.length);
  const settled = common - rehashed;
  let index = 0;
  while (index < settled && sources[index] === messages[index]) index++;
  for (; index < common; index++) {
    const source = messages[index] as object;
    // The newest may have been edited in place, also inside of an object that is new: of these only the hash is what it was.
    const isSame = index < settled && isSameAs(sources[index] as object, source);
    if (isSame) replaceSource(state, index, source);
    else if (!hasSameHash(state, index, source)) return index;
  }
  return common;
}

function isSameAs(known: object, source: object): boolean {
  return known === source || isSameJson(known, source);
}

function hasSameHash(state: State, index: number, source: object): boolean {
  const known = state.tracked[index] as TrackedMessage;
  if (isPlain(source) !== known.isPlain || hashAt(source, index) !== known.hash) return false;
  if (known.source !== source) render(state, index, { ...known, source });
  return true;
}

/** The same content as another object. In place: a history that is parsed anew on every call has thousands of these. */
function replaceSource({ tracked, sources, view }: State, index: number, source: object): void {
  const known = tracked[index] as Writable<TrackedMessage>;
  if (known.source === source) return;
  known.source = source;
  sources[index] = source;
  if (known.decisions.size > 0) return;
  known.sent = source;
  view.reset();
}

type Writable<Value> = { -readonly [Key in keyof Value]: Value[Key] };

function append(state: State, source: object): void {
  const { tracked, lens, ledger, held } = state;
  const index = tracked.length;
  put(state, index, readMessage(source, { index, lens, chain: tracked[index - 1]?.chain ?? "" }));
  const { chain } = tracked[index] as TrackedMessage;
  const epoch = ledger.epochAt({ message: index, chain });
  if (epoch === undefined) return;
  const path = ledger.pathTo(epoch, held.at(-1));
  held.push(epoch);
  if (path === undefined) replay(state);
  else for (const each of path) apply(state, entriesHere(state, each));
}

/** A checkpoint that was damaged or put together by hand may name messages that it does not mean. */
function entriesHere(state: State, epoch: number): readonly LedgerEntry[] {
  return state.ledger.entriesOf(epoch).filter((entry) => has(state, entry));
}

function rewind(state: State, length: number): void {
  const { tracked, totals, held, ledger } = state;
  if (length === tracked.length) return;
  for (const message of tracked.splice(length)) subtractMessage(totals, message);
  state.followed = Math.min(state.followed, length);
  state.sources.length = length;
  state.view.reset();
  const isGone = (epoch: number): boolean => (ledger.ledger.epochs[epoch] as Epoch).at.message >= length;
  const kept = held.findIndex(isGone);
  if (kept < 0) return;
  held.length = kept;
  replay(state);
}

/** Gives every message the decisions of the epochs that are in force now, where others were before. */
function replay(state: State): void {
  const { tracked, held, ledger } = state;
  const inForce = new Map<number, Map<number, LedgerEntry>>();
  const last = held.at(-1);
  for (const epoch of last === undefined ? [] : (ledger.pathTo(last, undefined) ?? []))
    for (const entry of entriesHere(state, epoch))
      inForce.set(entry.message, (inForce.get(entry.message) ?? new Map()).set(entry.part, entry));
  for (const [index, message] of tracked.entries()) {
    const decisions = inForce.get(index) ?? new Map();
    if (!isSame(message.decisions, decisions)) render(state, index, { ...message, decisions });
  }
}

function isSame(before: Decisions, after: Decisions): boolean {
  if (before.size !== after.size) return false;
  for (const [part, entry] of before) if (after.get(part) !== entry) return false;
  return true;
}

function apply(state: State, entries: readonly LedgerEntry[]): void {
  const changed = new Map<number, Map<number, LedgerEntry>>();
  for (const entry of entries) {
    const decisions = changed.get(entry.message) ?? new Map(state.tracked[entry.message]?.decisions);
    changed.set(entry.message, decisions.set(entry.part, entry));
  }
  for (const [index, decisions] of changed) {
    render(state, index, { ...(state.tracked[index] as TrackedMessage), decisions });
  }
}

function render(state: State, index: number, message: TrackedMessage): void {
  state.view.reset();
  put(state, index, { ...message, ...applyDecisions(message, state.lens, index) });
}

function put({ tracked, sources, totals }: State, index: number, message: TrackedMessage): void {
  const before = tracked[index];
  if (before !== undefined) subtractMessage(totals, before);
  tracked[index] = message;
  sources[index] = message.source;
  addMessage(totals, message);
}
