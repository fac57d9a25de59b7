/** Where the trimmed part of a history ends: the RFC's arithmetic on numbers alone. The boundary rests while the history is
 *  within the threshold, moves up to what `keep` protects once it is not, then one message at a time, and never back. */

export interface BoundaryInput {
  /** `assistant` counts for `keep`; only `assistant` and `tool` can be trimmed, in whatever format they live. */
  readonly roles: readonly ("system" | "user" | "assistant" | "tool")[];
  /** Tokens a message, untrimmed and trimmed, before what `estimate` adds. */
  readonly full: readonly number[];
  readonly trimmed: readonly number[];
  /** The boundary so far; one beyond the end trims what is there and stays. */
  readonly previous: number;
  /** Assistant messages at the end that are left alone while the threshold allows. */
  readonly keep: number;
  /** From a sum of messages to the tokens that threshold and target are compared with. Must not fall as the sum grows. */
  readonly estimate: (rawTokens: number) => number;
  readonly threshold: number;
  /** What to get down to once the threshold is passed: the threshold itself, or less, so that the boundary then rests. */
  readonly target: number;
}

export interface Boundary {
  readonly boundary: number;
  /** The estimate with everything before the boundary trimmed. */
  readonly tokens: number;
}

/** One pass over the messages: a trimmed message changes the sum by its own difference. */
export function advanceBoundary(input: BoundaryInput): Boundary {
  const { roles, previous, keep, estimate, threshold, target } = input;
  let rawTokens = rawTokensAt(input, previous);
  if (estimate(rawTokens) <= threshold) return { boundary: previous, tokens: estimate(rawTokens) };
  const protectedFrom = firstKept(roles, keep);
  let boundary = Math.max(previous, protectedFrom);
  for (let index = previous; index < protectedFrom; index++) rawTokens += difference(input, index);
  for (let index = boundary; index < roles.length && estimate(rawTokens) > target; index++) {
    if (!isTrimmable(roles[index])) continue;
    rawTokens += difference(input, index);
    boundary = index + 1;
  }
  return { boundary, tokens: estimate(rawTokens) };
}

/** The message up to which the history is above the threshold, and was not before it, with the boundary where it was. */
export function firstBeyond(input: BoundaryInput): number | undefined {
  const { roles, previous, estimate, threshold } = input;
  let rawTokens = 0;
  const index = roles.findIndex((_role, at) => {
    rawTokens += tokensAt(input, at, previous);
    return estimate(rawTokens) > threshold;
  });
  return index < 0 ? undefined : index;
}

/** The RFC keeps window and share as 32-bit floats, and its threshold is the whole part of their product. */
export function budgetThreshold(contextWindow: number, share: number): number {
  return Math.floor(Math.fround(Math.fround(contextWindow) * Math.fround(share)));
}

/** Trimming down to the threshold itself would move the boundary, and break the cache, on every further turn. */
export function headroomTarget(threshold: number): number {
  return Math.floor(threshold * 0.75);
}

function rawTokensAt(input: BoundaryInput, boundary: number): number {
  let sum = 0;
  for (let index = 0; index < input.roles.length; index++) sum += tokensAt(input, index, boundary);
  return sum;
}

function tokensAt({ roles, full, trimmed }: BoundaryInput, index: number, boundary: number): number {
  const isTrimmed = index < boundary && isTrimmable(roles[index]);
  return (isTrimmed ? trimmed[index] : full[index]) ?? 0;
}

/** Index of the assistant message that is `keep` from the end: 0 when there are fewer, the end when none is kept. */
function firstKept(roles: BoundaryInput["roles"], keep: number): number {
  if (keep === 0) return roles.length;
  let found = 0;
  for (let index = roles.length - 1; index >= 0; index--) {
    if (roles[index] === "assistant" && ++found >= keep) return index;
  }
  return 0;
}

function difference({ roles, full, trimmed }: BoundaryInput, index: number): number {
  return isTrimmable(roles[index]) ? (trimmed[index] ?? 0) - (full[index] ?? 0) : 0;
}

function isTrimmable(role: string | undefined): boolean {
  return role === "assistant" || role === "tool";
}
