/** The part of a long list that one call may need: everything passes by and is counted, little is kept. */
export interface Window<Item> {
  /** Items are offered in their order. What is not kept is never made. */
  offer(make: () => Item, characters?: number): void;
  readonly items: readonly Item[];
  /** Everything that was offered. */
  total(): number;
  /** Something after the kept items was offered. */
  more(): boolean;
}

export interface WindowOptions {
  readonly offset: number;
  readonly limit?: number | undefined;
  /** Fewer than a window holds by itself. At least one item is kept, however long. */
  readonly maxCharacters?: number | undefined;
}

/** Ten times what the largest page of a known client holds (Claude Code: 25,000 tokens). */
const mostCharacters = 1_000_000;

export function createWindow<Item>({
  offset,
  limit = Number.POSITIVE_INFINITY,
  maxCharacters = mostCharacters,
}: WindowOptions): Window<Item> {
  const items: Item[] = [];
  let offered = 0;
  let characters = 0;
  let full = false;
  return {
    offer: (make, size = 0) => {
      offered++;
      if (offered <= offset || full) return;
      // Once full always full: what is kept has no gaps.
      full =
        items.length >= limit ||
        (items.length > 0 && characters + size > Math.min(maxCharacters, mostCharacters));
      if (full) return;
      items.push(make());
      characters += size;
    },
    items,
    total: () => offered,
    more: () => offered > offset + items.length,
  };
}
