/** What it costs that a model no longer reads its earlier thinking: it thinks again, so its answers get longer. */

/** How much more output a session has, as a share of it: with one loss, and with a loss before every answer. Source:
 *  platform.claude.com/docs/en/build-with-claude, preserved thinking, 2026-10. */
const outputGrowth = {
  low: { once: 0.025, always: 0.046 },
  medium: { once: 0.039, always: 0.097 },
  high: { once: 0.045, always: 0.103 },
  max: { once: 0.201, always: 0.671 },
} as const;

export interface ThinkingLosses {
  /** The calls so far that lost thinking, and all calls so far. */
  readonly losses: number;
  readonly calls: number;
  /** @default "high", as the API's */
  readonly effort?: keyof typeof outputGrowth | undefined;
}

/** Returns the share by which the next answer is longer. Between one loss and one before each answer, it grows with their
 *  number: nothing between the two is published. */
export function outputGrowthOf({ losses, calls, effort = "high" }: ThinkingLosses): number {
  if (losses === 0) return 0;
  const { once, always } = outputGrowth[effort];
  return once + (always - once) * Math.min(1, (losses - 1) / Math.max(1, calls - 1));
}
