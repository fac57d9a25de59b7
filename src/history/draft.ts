/** Decisions while they are being made: each takes effect at once, so that a policy always sees the size that is left. */
import type { Anchor, Decision, LedgerEntry, LedgerIndex } from "./ledger.ts";
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
  decide(message: number, decisions: ReadonlyMap<number, Decide>, until?: number): void;
  moveBoundary(boundary: number): void;
  /** Moves the boundary along where it lies behind. */
  moveCollapsed(collapsed: number): void;
  /** Writes what was decided into the ledger as one epoch. Tells whether there was anything. */
  commit(): boolean;
}

export type Decide = (id: string) => Decision;

/** The part index of decisions on a message as a whole. */
export const wholeMessage = -1;

export function createDraft(history: TrackedHistory, ledger: LedgerIndex, frameTokens: number): Draft {
  const { messages } = history;
  const entries: LedgerEntry[] = [];
  let firstChanged = messages.length;
  let { boundary, collapsed } = history;
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
    decide(index, decisions, until) {
      const message = messages[index] as TrackedMessage;
      const { tokens, chain } = message;
      const anchor = until === undefined ? undefined : anchorAt(messages, until);
      const decided = [...decisions].map(([part, decide]) => {
        const id = ledger.nextId();
        const entry = { id, message: index, chain, part, decision: decide(id), tokensSaved: 0 };
        return anchor === undefined ? entry : { ...entry, until: anchor };
      });
      history.apply(decided);
      entries.push(...withSavings(decided, message, tokens - (messages[index] as TrackedMessage).tokens));
      firstChanged = Math.min(firstChanged, index);
    },
    moveBoundary(next) {
      boundary = Math.max(boundary, next);
    },
    moveCollapsed(next) {
      collapsed = Math.max(collapsed, next);
      boundary = Math.max(boundary, next);
    },
    commit() {
      if (entries.length === 0) return false;
      const chain = messages[boundary - 1]?.chain ?? "";
      const epoch = { boundary, collapsed, chain, entries };
      ledger.add(epoch);
      history.moveBoundary(epoch);
      return true;
    },
  };
}

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
