/** Ways to trim a history, each of which replays whole sessions: our policies, and the peers. */
import type { Prices } from "../../src/core/billing/index.ts";
import {
  addTotals,
  type ReplayPolicy,
  type ReplayTotals,
  replayReducer,
  replaySession,
} from "../../src/recordings/replay/replay-session.ts";
import { type BenchSession, messageBudget, PREFIX_TOKENS, PRICES, RESERVE } from "./bench-session.ts";
import { createStopwatch, type Peer } from "./peers/peer.ts";

export interface Run {
  readonly name: string;
  readonly kind: "policy" | "peer";
  replay(session: BenchSession, window: number): Promise<ReplayTotals>;
}

const fixed = { reserve: RESERVE, prefixTokens: PREFIX_TOKENS, prices: PRICES } as const;

export function policyRun(policy: ReplayPolicy, prices: Prices = PRICES): Run {
  return {
    name: policy,
    kind: "policy",
    async replay({ prepared }, window) {
      const now = (): number => performance.now();
      return (await replaySession(prepared, { ...fixed, policy, window, prices, now })).totals;
    },
  };
}

export function peerRun(peer: Peer): Run {
  return {
    name: peer.name,
    kind: "peer",
    async replay(session, window) {
      const stopwatch = createStopwatch();
      const budget = messageBudget(session, window);
      const options = { ...fixed, window, now: () => stopwatch.elapsedMs };
      return (await replayReducer(session.prepared, peer.open(session, { budget, stopwatch }), options)).totals;
    },
  };
}

/** All sessions as one. */
export async function replayAll(
  sessions: readonly BenchSession[],
  { replay }: Run,
  window: number,
): Promise<ReplayTotals> {
  const totals: ReplayTotals[] = [];
  for (const session of sessions) totals.push(await replay(session, window));
  return addTotals(totals);
}
