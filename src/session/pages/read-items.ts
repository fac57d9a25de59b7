import { plainItem } from "../plain-item.ts";

/** Reads items only as far as they may fit: a tool that walks 100,000 files is left after the first page. */
export interface ReadItems {
  readonly items: readonly unknown[];
  /** Of each item's JSON, counted by itself. */
  readonly tokens: readonly number[];
  /** Nothing follows; else the last item is the one that was too much. */
  readonly ended: boolean;
  /** Why the reading stopped before its end. */
  readonly failure?: unknown;
}

export interface ReadOptions {
  /** Tokens for the items together. */
  readonly room: number;
  measure(text: string): number;
}

export async function readItems(
  source: AsyncIterable<unknown> | Iterable<unknown>,
  { room, measure }: ReadOptions,
): Promise<ReadItems> {
  const items: unknown[] = [];
  const tokens: number[] = [];
  const tally = createTally(room, measure);
  try {
    for await (const value of source) {
      const { item, json } = isTooLong(value, room) ? { item: value, json: value } : plainItem(value);
      items.push(item);
      tokens.push(tally.add(json));
      if (tally.isFull()) return { items, tokens, ended: false };
    }
  } catch (failure) {
    return { items, tokens, ended: true, failure };
  }
  return { items, tokens, ended: true };
}

interface Tally {
  add(json: string): number;
  isFull(): boolean;
}

/** Enough to come within a few per cent of the room; each costs one count of what was read. */
const mostRecounts = 6;

/** Whatever the counter: what is longer does not fit, and a text of 10 MB need not be encoded and counted to say so. */
const mostCharactersPerToken = 100;

export function isTooLong(value: unknown, room: number): value is string {
  return typeof value === "string" && value.length > room * mostCharactersPerToken;
}

/** Many short texts counted one by one come to more than the text they make together, so the sum is corrected before it ends a page. */
function createTally(room: number, measure: (text: string) => number): Tally {
  const texts: string[] = [];
  let [sum, recounts] = [0, 0];
  return {
    add(json) {
      texts.push(json);
      const isLong = isTooLong(json, room);
      if (isLong) recounts = mostRecounts;
      const tokens = isLong ? json.length : measure(`${json},`);
      sum += tokens;
      return tokens;
    },
    isFull() {
      if (sum <= room) return false;
      // Whether anything follows a first item that is too large is known only with the next one.
      if (texts.length === 1) return false;
      if (recounts === mostRecounts) return true;
      recounts += 1;
      sum = measure(texts.join(","));
      return sum > room;
    },
  };
}
