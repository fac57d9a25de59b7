/** Decisions while they are being made: each takes effect at once, so that a policy always sees the size that is left. */
import type { Anchor, Boundary, Decision, Epoch, LedgerEntry, LedgerIndex } from "./ledger.ts";
import type { TrackedHistory, TrackedMessage } from "./tracked-history.ts";

export interface Draft {
  readonly messages: readonly TrackedMessage[];
  /** Tokens of the messages as they would go out now, with the request's frame. */
  readonly size: number;
  /** The same without any trimming. */
  readonly originalSize: number;
  readonly boundary: number;
  /** Up to here whole exchanges are gone, and nothing changes any more. */
  readonly collapsed: number;
  /** Index of the first message that this draft changed; the history's length while there is none. */
  readonly firstChanged: number;
  /** Decides on parts of a message; a placeholder may name the id that it is recalled by. */
  decide(message: number, decisions: ReadonlyMap<number, Decide>): void;
  /** Takes over what another history with the same epochs so far decided next, if this one has all the messages that it is about: the
   *  provider may still have that in its cache. Tells whether there was anything. */
  adopt(): boolean;
  moveBoundary(boundary: number): void;
  /** Moves the boundary along where it lies behind. */
  moveCollapsed(collapsed: number): void;
  /** Writes what was decided into the ledger as one epoch. It holds in histories that have the message `outgrownAt`, with which the history
   *  became too large; absent: its last message. Tells whether anything was rewritten. */
  commit(outgrownAt?: number): boolean;
}

export type Decide = (id: string) => Decision;

/** The part index of decisions on a message as a whole. */
export const wholeMessage = -1;

export function createDraft(history: TrackedHistory, ledger: LedgerIndex, frameTokens: number): Draft {
  const { messages } = history;
  const epochOf = (index: number): Epoch => ledger.ledger.epochs[index] as Epoch;
  const entries: LedgerEntry[] = [];
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
    get size() {
      return frameTokens + history.totals.tokens;
    },
    get originalSize() {
      return frameTokens + history.totals.original;
    },
    get boundary() {
      return boundary;
    },
    get collapsed() {
      return collapsed;
    },
    get firstChanged() {
      return firstChanged;
    },
    decide(index, decisions) {
      const message = messages[index] as TrackedMessage;
      const { tokens, chain } = message;
      const decided = [...decisions].map(([part, decide]) => {
        const id = ledger.nextId();
        return { id, message: index, chain, part, decision: decide(id), tokensSaved: 0 };
      });
      history.apply(decided);
      entries.push(...withSavings(decided, message, tokens - (messages[index] as TrackedMessage).tokens));
      changed(index);
    },
    adopt() {
      const others = ledger.decidedAfter(history.epoch);
      const found = others.findLast((epoch) => history.has(epochOf(epoch).reach));
      if (found === undefined) return false;
      const adopted = ledger.entriesOf(found).filter(history.has);
      if (adopted.length === 0) return false;
      // Where one only took over another, that one is named: names of names would become long chains.
      like = epochOf(found).entries.length === 0 ? (epochOf(found).like ?? found) : found;
      history.apply(adopted);
      for (const { message } of adopted) changed(message);
      moveTo(epochOf(found));
      return true;
    },
    moveBoundary: (next) => moveTo({ boundary: next, collapsed }),
    moveCollapsed: (next) => moveTo({ boundary, collapsed: next }),
    commit(outgrownAt = messages.length - 1) {
      const isRewritten = lastChanged >= 0;
      if (!isRewritten && boundary === history.boundary) return false;
      const { epoch: after } = history;
      const reach = Math.max(lastChanged, boundary - 1);
      const at = Math.max(reach, outgrownAt, after === undefined ? 0 : epochOf(after).at.message);
      const anchors = { at: anchorAt(messages, at), reach: anchorAt(messages, reach) };
      history.hold(ledger.add(withoutAbsent({ ...anchors, after, like, boundary, collapsed, entries })));
      return isRewritten;
    },
  };
}

/** JSON has no `undefined`, and a checkpoint that was read again is to be the same. */
function withoutAbsent({ after, like, ...rest }: Absentable): Epoch {
  return { ...rest, ...(after !== undefined && { after }), ...(like !== undefined && { like }) };
}

type Absentable = Omit<Epoch, "after" | "like"> & Record<"after" | "like", number | undefined>;

function anchorAt(messages: readonly TrackedMessage[], message: number): Anchor {
  return { message, chain: (messages[message] as TrackedMessage).chain };
}

/** Shares what a message became smaller among its entries, by the size of their parts. */
function withSavings(decided: LedgerEntry[], { original }: TrackedMessage, saved: number): LedgerEntry[] {
  const size = ({ part }: LedgerEntry): number => original.parts[part]?.tokens ?? 0;
  const total = decided.reduce((sum, entry) => sum + size(entry), 0);
  if (total === 0) return decided;
  return decided.map((entry) => ({ ...entry, tokensSaved: Math.round((saved * size(entry)) / total) }));
}
