/** The decisions of one history, append-only. An entry names its message by the hash of everything up to it, so that it holds
 *  again wherever the same history comes back (after a restart, in a fork) and nowhere else. */
export interface Ledger {
  readonly epochs: readonly Epoch[];
}

/** One pass that moved the boundary, and so one cache break. */
export interface Epoch extends Boundary {
  /** Hash chain up to the last message before the boundary; empty for boundary 0. */
  readonly chain: string;
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
  /** The last message of an exchange that goes as a whole: without it the entry does not hold. */
  readonly until?: Anchor | undefined;
}

export interface Anchor {
  readonly message: number;
  readonly chain: string;
}

/** `shorten` keeps that many characters of a result; `stub` puts an assistant text in the place of the whole message. */
export type Decision =
  | { readonly action: "replace"; readonly text: string }
  | { readonly action: "drop" }
  | { readonly action: "stub"; readonly text: string }
  | { readonly action: "shorten"; readonly head: number; readonly tail: number };

/** Entries by the message that makes them hold, for histories that are read from their beginning. */
export interface LedgerIndex {
  readonly ledger: Ledger;
  add(epoch: Epoch): void;
  entriesAt(chain: string): readonly LedgerEntry[];
  /** The boundary of the last epoch that ended with this message. */
  boundaryAt(chain: string): Boundary | undefined;
  entry(id: string): LedgerEntry | undefined;
  nextId(): string;
}

export function createLedgerIndex(ledger: Ledger = { epochs: [] }): LedgerIndex {
  const epochs: Epoch[] = [];
  const byAnchor = new Map<string, LedgerEntry[]>();
  const boundaries = new Map<string, Boundary>();
  const byId = new Map<string, LedgerEntry>();
  let ids = 0;
  const add = (epoch: Epoch): void => {
    epochs.push(epoch);
    boundaries.set(epoch.chain, epoch);
    for (const entry of epoch.entries) {
      const chain = (entry.until ?? entry).chain;
      const entries = byAnchor.get(chain);
      if (entries === undefined) byAnchor.set(chain, [entry]);
      else entries.push(entry);
      byId.set(entry.id, entry);
      ids = Math.max(ids, Number(entry.id.slice(1)));
    }
  };
  for (const epoch of ledger.epochs) add(epoch);
  return {
    ledger: { epochs },
    add,
    entriesAt: (chain) => byAnchor.get(chain) ?? [],
    boundaryAt: (chain) => boundaries.get(chain),
    entry: (id) => byId.get(id),
    nextId: () => `r${++ids}`,
  };
}
