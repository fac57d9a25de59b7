/** The results that are current, oldest first. */
export interface ResultTier {
  tokens(): number;
  has(id: string): boolean;
  /** Gives what the id had before. */
  set(id: string, tokens: number): number;
  release(ids: Iterable<string>): void;
  releaseOldest(isEnough: () => boolean): void;
  list(): ResultTokens;
}

/** Oldest first; an empty id for what was recorded without one. */
export type ResultTokens = readonly (readonly [id: string, tokens: number])[];

/** Keeps the sums, so that a call costs the same after a thousand others. */
export function createResultTier(initial: ResultTokens): ResultTier {
  const current = new Map<string, number>();
  let tokens = 0;
  const set = (id: string, added: number): number => {
    const before = current.get(id) ?? 0;
    // What has no id of its own adds up under the empty one.
    const value = id === "" ? before + added : added;
    tokens += value - before;
    current.set(id, value);
    return id === "" ? 0 : before;
  };
  const remove = (id: string): void => {
    tokens -= current.get(id) ?? 0;
    current.delete(id);
  };
  for (const [id, value] of initial) set(id, value);
  return {
    tokens: () => tokens,
    has: (id) => current.has(id),
    set,
    release(ids) {
      for (const id of ids) remove(id);
    },
    releaseOldest(isEnough) {
      for (const id of current.keys()) {
        if (isEnough()) return;
        remove(id);
      }
    },
    list: () => [...current],
  };
}
