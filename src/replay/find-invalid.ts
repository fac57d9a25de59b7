import { type FormatName, validateRequest } from "../messages/index.ts";

/** Tells which requests of a session a provider would refuse. */
export interface InvalidFinder {
  /** Takes the messages of the next call; the first `unchanged` are the same objects as in the call before. */
  add(messages: readonly object[], unchanged: number): void;
  /** For each call whether its request is invalid. */
  finish(): readonly boolean[];
}

/** As long as requests only grow, a problem that has come up stays: the longest is checked, and only where that is invalid the first
 *  one that is gets searched for, by halving. So a valid session costs one check for each time its history is rewritten. */
export function createInvalidFinder(format: FormatName): InvalidFinder {
  const found: boolean[] = [];
  // Of those that only grow, the longest holds all the others.
  let longest: readonly object[] = [];
  let lengths: number[] = [];
  const close = (): void => {
    const first = firstInvalid(longest, { lengths, format });
    // An empty request has a problem that goes away.
    for (const [index, length] of lengths.entries()) found.push(index >= first || length === 0);
    lengths = [];
  };
  return {
    add(messages, unchanged) {
      if (unchanged < longest.length) close();
      longest = messages;
      lengths.push(messages.length);
    },
    finish() {
      close();
      return found;
    },
  };
}

interface Growth {
  readonly lengths: readonly number[];
  readonly format: FormatName;
}

/** The index of the first invalid request, their number where none is. */
function firstInvalid(longest: readonly object[], { lengths, format }: Growth): number {
  const isInvalid = (index: number): boolean => {
    const problems = validateRequest(longest.slice(0, lengths[index]), { format });
    return problems.some(({ severity }) => severity === "error");
  };
  const last = lengths.length - 1;
  if (last < 0 || !isInvalid(last)) return lengths.length;
  let valid = lengths.lastIndexOf(0);
  let invalid = last;
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (isInvalid(middle)) invalid = middle;
    else valid = middle;
  }
  return invalid;
}
