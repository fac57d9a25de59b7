/** Decisions while a policy makes them. Each takes effect at once, so the policy always sees the remaining size. */

import type { CountedPart } from "../../core/messages/index.ts";
import type { Anchor, Boundary, Decision, DecisionIndex, Epoch, LoggedDecision } from "./decision-log.ts";
import { plainPlaceholder } from "./placeholders.ts";
import type { TrackedHistory, TrackedMessage } from "./tracked-history.ts";

export interface HistoryDraft {
  readonly messages: readonly TrackedMessage[];
  /** Tokens of the messages as they would be sent now, including the request's frame. */
  readonly size: number;
  /** The same without any trimming. */
  readonly originalSize: number;
  readonly boundary: number;
  /** The index up to which whole exchanges are removed. Nothing before it changes any more. */
  readonly collapsed: number;
  /** The index of the first message that this draft changed, or the number of messages. */
  readonly firstChanged: number;
  /** The newest epoch that applied before this draft, by its index in the ledger. */
  readonly epoch: number | undefined;
  /** Returns what each epoch that applies has changed: from its first change to the last message that needed it. */
  rewrites(): readonly { readonly first: number; readonly last: number }[];
  /** The decisions so far. If two concern the same part, the later one applies. */
  readonly entries: readonly LoggedDecision[];
  /** Decides on parts of a message. */
  decide(message: number, decisions: ReadonlyMap<number, Decide>): void;
  /** Applies the decisions that another branch of the same conversation made next, if this history has all the messages
   *  that they concern. The provider may still have the result in its cache. Returns whether there were any. */
  adopt(): boolean;
  moveBoundary(boundary: number): void;
  /** Also moves the boundary, if it is before `collapsed`. */
  moveCollapsed(collapsed: number): void;
  /** Writes the decisions into the ledger as one epoch. The epoch applies to histories that contain the message
   *  `outgrownAt`, with which the history became too large; by default the last message. Returns whether anything
   *  changed. */
  commit(outgrownAt?: number): boolean;
}

/** Decides on a part. A placeholder may contain the part's id for `recall`. */
export type Decide = (createId: () => string) => Decision;

/** The part index of a decision on the whole message. */
const wholePart = -1;

export function createHistoryDraft(history: TrackedHistory, ledger: DecisionIndex, frameTokens: number): HistoryDraft {
  const { messages } = history;
  const getEpoch = (index: number): Epoch => ledger.ledger.epochs[index] as Epoch;
  const entries: LoggedDecision[] = [];
  let like: number | undefined;
  let firstChanged = messages.length;
  let lastChanged = -1;
  let { boundary, collapsed } = history;
  const changed = (index: number): void => {
    firstChanged = Math.min(firstChanged, index);
    lastChanged = Math.max(lastChanged, index);
  };
  const moveTo = (next: Boundary): void => {
    collapsed = Math.max(collapsed, next.collapsed);
    boundary = Math.max(boundary, next.boundary, collapsed);
  };
  return {
    messages,
    entries,
    get size() {
      return frameTokens + history.totals.tokens;
    },
    originalSize: frameTokens + history.totals.original,
    get boundary() {
      return boundary;
    },
    get collapsed() {
      return collapsed;
    },
    get firstChanged() {
      return firstChanged;
    },
    epoch: history.epoch,
    rewrites: () => findRewrites(history, ledger),
    decide(index, decisions) {
      const message = messages[index] as TrackedMessage;
      const decided = [...decisions].map(([part, decide]) => {
        const createId = (): string => ledger.createId(message, { message: index, part });
        return createEntry({ message: index, chain: message.chain, part, createId }, decide);
      });
      history.apply(decided);
      shareSavings(decided, message, message.tokens - (messages[index] as TrackedMessage).tokens);
      entries.push(...decided);
      changed(index);
    },
    adopt() {
      const others = ledger.decidedAfter(history.epoch);
      const found = others.findLast((index) => {
        const { entries: own, like: other, reach } = getEpoch(index);
        // An epoch without both only changed the working budget.
        return (own.length > 0 || other !== undefined) && history.has(reach);
      });
      if (found === undefined) return false;
      const adopted = ledger.entriesOf(found).filter(history.has);
      if (adopted.length === 0) return false;
      // If the epoch that was found is itself only a reference, point to its target, so that no chain grows.
      like = getEpoch(found).entries.length === 0 ? (getEpoch(found).like ?? found) : found;
      history.apply(adopted);
      for (const { message } of adopted) changed(message);
      moveTo(getEpoch(found));
      return true;
    },
    moveBoundary: (next) => moveTo({ boundary: next, collapsed }),
    moveCollapsed: (next) => moveTo({ boundary, collapsed: next }),
    commit(outgrownAt = messages.length - 1) {
      const isRewritten = lastChanged >= 0;
      if (!isRewritten && boundary === history.boundary) return false;
      const reach = Math.max(lastChanged, boundary - 1);
      const at = Math.max(reach, outgrownAt, history.decidedUpTo);
      addEpoch(history, ledger, { at, reach, boundary, collapsed, entries, like, growth: history.growth });
      return isRewritten;
    },
  };
}

/** Takes back decisions that are not committed, and doubles the working budget from the message `outgrownAt` on. */
export function growInstead(history: TrackedHistory, ledger: DecisionIndex, outgrownAt: number | undefined): void {
  history.undo();
  const { messages, growth, boundary, collapsed, decidedUpTo } = history;
  const at = Math.max(outgrownAt ?? messages.length - 1, decidedUpTo);
  addEpoch(history, ledger, { at, reach: at, boundary, collapsed, entries: [], growth: 2 * growth });
}

/** Writes an epoch into the ledger. `at` and `reach` are indexes of messages. */
function addEpoch(
  history: TrackedHistory,
  ledger: DecisionIndex,
  { at, reach, boundary, collapsed, entries, like, growth }: NewEpoch,
): void {
  const anchorAt = (message: number): Anchor => ({
    message,
    chain: (history.messages[message] as TrackedMessage).chain,
  });
  const { epoch: after } = history;
  const epoch: Epoch = {
    at: anchorAt(at),
    reach: anchorAt(reach),
    boundary,
    collapsed,
    entries,
    // JSON drops undefined fields, and a checkpoint must be equal after it is read again.
    ...(after !== undefined && { after }),
    ...(like !== undefined && { like }),
    ...(growth !== 1 && { growth }),
  };
  history.hold(ledger.add(epoch));
}

interface NewEpoch extends Boundary, Pick<Epoch, "entries"> {
  readonly at: number;
  readonly reach: number;
  readonly like?: number | undefined;
  readonly growth: number;
}

function findRewrites(
  { epoch: last, messages, has }: TrackedHistory,
  ledger: DecisionIndex,
): ReturnType<HistoryDraft["rewrites"]> {
  const path = last === undefined ? [] : (ledger.pathTo(last, undefined) ?? []);
  return path.flatMap((epoch) => {
    const changes = ledger.entriesOf(epoch).filter(has);
    const first = changes.reduce((least, { message }) => Math.min(least, message), messages.length);
    return first < messages.length ? [{ first, last: (ledger.ledger.epochs[epoch] as Epoch).at.message }] : [];
  });
}

type Entry = LoggedDecision & { tokensSaved: number };

/** Makes a decision whose id is computed when it is first read: that takes longer than the rest of the decision, and most
 *  ids are never read. */
function createEntry(
  { message, chain, part, createId }: Pick<Entry, "message" | "chain" | "part"> & { createId(): string },
  decide: Decide,
): Entry {
  let id: string | undefined;
  const readId = (): string => {
    id ??= createId();
    return id;
  };
  return {
    get id() {
      return readId();
    },
    message,
    chain,
    part,
    decision: decide(readId),
    tokensSaved: 0,
  };
}

/** Divides the tokens that a message lost among its entries, by the size of their parts. */
function shareSavings(decided: readonly Entry[], { original }: TrackedMessage, saved: number): void {
  const size = ({ part }: Entry): number => original.parts[part]?.tokens ?? 0;
  const total = decided.reduce((sum, entry) => sum + size(entry), 0);
  if (total === 0) return;
  for (const entry of decided) entry.tokensSaved = Math.round((saved * size(entry)) / total);
}

export const drop: Decide = () => ({ action: "drop" });

/** Decisions on whole messages. */
export const wholeMessage = {
  /** Whether a short text replaces the message. */
  isStubbed: ({ decisions }: TrackedMessage): boolean => decisions.get(wholePart)?.decision.action === "stub",
  /** Replaces the message with a short text. */
  stub: (draft: HistoryDraft, index: number): void => draft.decide(index, new Map([[wholePart, stub]])),
  /** Keeps the message's text without references to removed content. */
  detach(draft: HistoryDraft, index: number): void {
    if (draft.messages[index]?.decisions.has(wholePart)) return;
    draft.decide(index, new Map<number, Decide>([[wholePart, () => ({ action: "detach" })]]));
  },
} as const;

const stub: Decide = () => ({ action: "stub", text: plainPlaceholder });

/** Decides on the parts of one message. `choose` returns undefined to leave a part as it is. If every part is dropped, a
 *  short text replaces the message. */
export function decideParts(
  draft: HistoryDraft,
  index: number,
  choose: (part: CountedPart, message: TrackedMessage) => Decide | undefined,
): void {
  const message = draft.messages[index] as TrackedMessage;
  if (message.sent === undefined || wholeMessage.isStubbed(message)) return;
  const decisions = new Map<number, Decide>();
  let left = message.original.parts.length;
  for (const [at, part] of message.original.parts.entries()) {
    const known = message.decisions.get(at)?.decision.action;
    const isFinal = known === "drop" || known === "replace";
    const decide = isFinal ? undefined : choose(part, message);
    if (decide !== undefined) decisions.set(at, decide);
    if (known === "drop" || decide === drop) left--;
  }
  if (decisions.size === 0) return;
  if (left === 0) decisions.set(wholePart, stub);
  draft.decide(index, decisions);
}
