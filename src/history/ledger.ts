/** The decisions of a conversation, append-only. An epoch belongs to the history on which it was decided: it holds in every history that has
 *  its message `at`, known by the hash of everything up to it, and in no other one. So a rewind or a fork gets the decisions of its own past,
 *  and a return to the longer history gets that one's again. */
export interface Ledger {
  readonly epochs: readonly Epoch[];
}

/** One pass that moved the boundary, and so one cache break. */
export interface Epoch extends Boundary {
  /** The first message with which the history needed the epoch, never before `reach`. */
  readonly at: Anchor;
  /** The last message that the epoch says anything about. */
  readonly reach: Anchor;
  /** Index of the epoch in force when this one was decided. Absent: there was none. */
  readonly after?: number;
  /** Index of an epoch of another history whose entries hold here too, before the ones below. */
  readonly like?: number;
  readonly entries: readonly LedgerEntry[];
}

export interface Boundary {
  /** Index up to which the history is trimmed. */
  readonly boundary: number;
  /** Index up to which whole exchanges are gone: no later epoch changes anything before it. */
  readonly collapsed: number;
}

export interface LedgerEntry {
  /** What recall asks for. */
  readonly id: string;
  readonly message: number;
  readonly chain: string;
  /** Index of the part in its message. */
  readonly part: number;
  readonly decision: Decision;
  readonly tokensSaved: number;
}

/** A message by its index and the hash of everything up to it. */
export interface Anchor {
  readonly message: number;
  readonly chain: string;
}

/** `shorten` keeps that many characters of a result. Of a message as a whole: `stub` puts an assistant text in its place, `detach` keeps its
 *  text without what ties that to content that is gone. */
export type Decision =
  | { readonly action: "replace"; readonly text: string }
  | { readonly action: "drop" }
  | { readonly action: "detach" }
  | { readonly action: "stub"; readonly text: string }
  | { readonly action: "shorten"; readonly head: number; readonly tail: number };

/** Epochs by the message that makes them hold, for histories that are read from their beginning. They are named by their index. */
export interface LedgerIndex {
  readonly ledger: Ledger;
  /** How many epochs rewrote something. */
  readonly rewrites: number;
  /** Returns the index of the epoch. */
  add(epoch: Epoch): number;
  /** The last epoch that holds from this message on. */
  epochAt(anchor: Anchor): number | undefined;
  /** The epochs from `base` (exclusive; undefined is the beginning) to `epoch`, oldest first. Undefined if `epoch` is not based on it. */
  pathTo(epoch: number, base: number | undefined): readonly number[] | undefined;
  /** All that an epoch decided, also what it took over from another history. */
  entriesOf(epoch: number): readonly LedgerEntry[];
  /** The epochs that were decided on top of this one, each in a history of its own. */
  decidedAfter(epoch: number | undefined): readonly number[];
  entry(id: string): LedgerEntry | undefined;
  nextId(): string;
}

export function createLedgerIndex(ledger: Ledger = { epochs: [] }): LedgerIndex {
  const epochs: Epoch[] = [];
  const byAnchor = new Map<string, number>();
  const byBase = new Map<number | undefined, number[]>();
  const byId = new Map<string, LedgerEntry>();
  let ids = 0;
  let rewrites = 0;
  const add = (epoch: Epoch): number => {
    const index = epochs.push(epoch) - 1;
    // A checkpoint that was damaged or put together by hand may contradict itself.
    if (isSound(epoch, index)) {
      byAnchor.set(epoch.at.chain, index);
      const others = byBase.get(epoch.after);
      if (others === undefined) byBase.set(epoch.after, [index]);
      else others.push(index);
    }
    if (epoch.entries.length > 0 || epoch.like !== undefined) rewrites++;
    for (const entry of epoch.entries) {
      byId.set(entry.id, entry);
      ids = Math.max(ids, Number(entry.id.slice(1)));
    }
    return index;
  };
  for (const epoch of ledger.epochs) add(epoch);
  const entriesOf = (index: number): readonly LedgerEntry[] => {
    const { like, entries } = epochs[index] as Epoch;
    return like === undefined ? entries : [...entriesOf(like), ...entries];
  };
  return {
    ledger: { epochs },
    get rewrites() {
      return rewrites;
    },
    add,
    epochAt({ message, chain }) {
      const index = byAnchor.get(chain);
      return index !== undefined && epochs[index]?.at.message === message ? index : undefined;
    },
    pathTo(epoch, base) {
      const path: number[] = [];
      let index: number | undefined = epoch;
      for (; index !== undefined && index !== base; index = epochs[index]?.after) path.push(index);
      return index === base ? path.reverse() : undefined;
    },
    entriesOf,
    decidedAfter: (epoch) => byBase.get(epoch) ?? [],
    entry: (id) => byId.get(id),
    nextId: () => `r${++ids}`,
  };
}

/** What an epoch refers to comes before it, and what it is about comes before the message that makes it hold. */
function isSound({ at, reach, after, like, boundary, collapsed }: Epoch, index: number): boolean {
  if (Math.max(after ?? -1, like ?? -1) >= index) return false;
  return collapsed <= boundary && boundary - 1 <= reach.message && reach.message <= at.message;
}
