/** Where the trimmed part of a history ends, by the arithmetic of the context-engineering RFC. */

/** The input of `advanceBoundary`. The boundary is the index up to which messages are trimmed. It stays while the
 *  history is within the threshold. Otherwise it moves up to what `keep` protects, then message by message. It never
 *  moves back. */
export interface BoundaryInput {
  /** Only `assistant` and `tool` messages can be trimmed; `assistant` messages count for `keep`. Any format maps to
   *  these roles. */
  readonly roles: readonly ("system" | "user" | "assistant" | "tool")[];
  /** Tokens of each message, untrimmed and trimmed, before `estimate` adds its overheads. */
  readonly full: readonly number[];
  readonly trimmed: readonly number[];
  /** Running sums of `full` and `trimmed`: the entry at an index adds up the messages before it. A caller that keeps
   *  them saves each call from adding up the whole history. In `trimmed`, a message that cannot be trimmed counts in
   *  full. */
  readonly sums?: { readonly full: readonly number[]; readonly trimmed: readonly number[] } | undefined;
  /** The boundary so far. If it is beyond the end, all messages are trimmed and it stays. */
  readonly previous: number;
  /** The number of newest assistant messages to leave alone while the threshold allows it. */
  readonly keep: number;
  /** Converts a sum of messages to the tokens that threshold and target are compared with. Must be monotonic. */
  readonly estimate: (rawTokens: number) => number;
  readonly threshold: number;
  /** The size to trim down to once the threshold is exceeded. Below the threshold it leaves headroom, so the boundary
   *  can stay for a while. */
  readonly target: number;
}

/** Makes one pass: each trimmed message changes the sum by its own difference. */
export function advanceBoundary(input: BoundaryInput): {
  readonly boundary: number;
  /** The estimate with everything before the boundary trimmed. */
  readonly tokens: number;
} {
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

/** Returns the index of the first message with which the history exceeds the threshold, if the boundary stays where it
 *  is. */
export function firstBeyond(input: BoundaryInput & Required<Pick<BoundaryInput, "sums">>): number | undefined {
  const { roles, previous, estimate, threshold } = input;
  let [low, high] = [0, roles.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (estimate(rawTokensAt(input, previous, middle + 1)) > threshold) high = middle;
    else low = middle + 1;
  }
  return low < roles.length ? low : undefined;
}

/** The RFC stores window and share as 32-bit floats and takes the whole part of their product. */
export function budgetThreshold(contextWindow: number, share: number): number {
  return Math.floor(Math.fround(Math.fround(contextWindow) * Math.fround(share)));
}

/** Returns the sum of the messages before `end`. */
function rawTokensAt(input: BoundaryInput, boundary: number, end: number = input.roles.length): number {
  const { sums } = input;
  if (sums !== undefined) {
    const trimmed = Math.min(boundary, end);
    return (sums.trimmed[trimmed] ?? 0) + (sums.full[end] ?? 0) - (sums.full[trimmed] ?? 0);
  }
  let sum = 0;
  for (let index = 0; index < end; index++) sum += tokensAt(input, index, boundary);
  return sum;
}

function tokensAt({ roles, full, trimmed }: BoundaryInput, index: number, boundary: number): number {
  const isTrimmed = index < boundary && isTrimmable(roles[index]);
  return (isTrimmed ? trimmed[index] : full[index]) ?? 0;
}

/** Returns the index of the assistant message that is number `keep` from the end. Returns 0 if there are fewer, and the
 *  number of messages if `keep` is 0. */
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

export function isTrimmable(role: string | undefined): boolean {
  return role === "assistant" || role === "tool";
}
