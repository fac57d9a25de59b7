/** What `economic` costs for what it keeps, from little to much: on smaller budgets, then as `gentle`, which cuts less deep. Only
 *  what every user can set takes part, so the line is the policy's own whatever its constants are. */
import type { PolicyName } from "../../src/conversation/history/index.ts";
import { type BenchSession, PREFIX_TOKENS, RESERVE } from "./bench-session.ts";
import type { Point } from "./bound/frontier.ts";
import { policyRun, replayAll } from "./replay-runs.ts";

export interface LineOptions {
  readonly window: number;
  /** Fewer points. */
  readonly isQuick: boolean;
}

/** Of the tokens that the window leaves for messages. */
const shares = [0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1];

export async function measureLine(
  sessions: readonly BenchSession[],
  { window, isQuick }: LineOptions,
): Promise<Point[]> {
  const taken = RESERVE + PREFIX_TOKENS;
  const measure = async (policy: PolicyName, share: number): Promise<Point> => {
    const smaller = taken + Math.round(share * (window - taken));
    const { visibleShare, cost } = await replayAll(sessions, policyRun(policy), smaller);
    return { kept: visibleShare, cost };
  };
  const points: Point[] = [];
  // The last one is the policy as it is: always there.
  const chosen = shares.filter((_, index) => !isQuick || index % 2 === 0);
  for (const share of chosen) points.push(await measure("economic", share));
  return [...points, await measure("gentle", 1)];
}
