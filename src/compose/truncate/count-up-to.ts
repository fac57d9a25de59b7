import type { Counter } from "../../tokens/index.ts";

/** The tokens of a text, or infinity where a part of it has more than `most` already: a text of megabytes costs what may stay of it. */
export function countUpTo(counter: Counter, text: string, most: number): number {
  // A beginning that ends inside a word may count a little more than it does in the whole text.
  const tooMany = most * 1.01 + 16;
  // No counter promises how many characters a token has, so the beginning grows until it is enough.
  let length = most * 8 + 64;
  while (length < text.length) {
    const tokens = counter.count(text.slice(0, length));
    if (tokens > tooMany) return Number.POSITIVE_INFINITY;
    length = Math.ceil(length * growthTo(tooMany / tokens));
  }
  return counter.count(text);
}

/** To where there are too many if the text goes on as it begins, and a little further. A run of white space has few tokens, and to
 *  count many times too much of it would take seconds. */
function growthTo(missing: number): number {
  return Math.min(32, Math.max(1.25, missing * 1.1));
}
