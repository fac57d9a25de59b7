/** Computes what a session would have cost with another cache lifetime, with trimming, or with shorter results. */

import type { Ttl } from "../../core/billing/index.ts";
import { referenceKinds } from "../replay/references.ts";
import type { ReplayPolicy } from "../replay/replay-session.ts";
import type { RecordedSession } from "../sessions/recorded-session.ts";
import type { BilledSession } from "./price-calls.ts";
import { prepareRecordedReplay, type RecordedReplayOptions } from "./recorded-replay.ts";

export interface Variant {
  readonly name: string;
  readonly policy: ReplayPolicy;
  /** The working budget in tokens. */
  readonly window?: number;
  readonly ttl?: Ttl;
}

export const variants: readonly Variant[] = [
  { name: "as sent", policy: "none" },
  { name: "5-minute cache", policy: "none", ttl: "5m" },
  { name: "1-hour cache", policy: "none", ttl: "1h" },
  { name: "economic, 128k", policy: "economic", window: 128_000 },
  { name: "economic, 200k", policy: "economic", window: 200_000 },
  { name: "economic, 300k", policy: "economic", window: 300_000 },
  { name: "intake deltas", policy: "none+delta" },
  { name: "economic 200k, deltas", policy: "economic+delta", window: 200_000 },
];

export interface WhatIf {
  /** Input dollars that were recorded. */
  readonly usd: number;
  /** The simulated bill of what was sent, divided by the recorded one. */
  readonly fit: number;
  /** One for each variant. Undefined if its window has no room for the messages of this session. */
  readonly variants: readonly (VariantResult | undefined)[];
}

export interface VariantResult {
  /** Input dollars. */
  readonly usd: number;
  /** What turns referred to, and how much of it the requests still had. */
  readonly references: { readonly found: number; readonly total: number };
  readonly refetches: number;
  readonly calls: number;
}

export interface WhatIfOptions extends RecordedReplayOptions {
  /** Tokens kept free for the answer. */
  readonly reserve: number;
  /** Assistant turns that are trimmed last. */
  readonly keep: number;
}

/** Returns a reason if the session cannot be simulated. */
export async function computeWhatIf(
  recorded: RecordedSession,
  billed: BilledSession,
  options: WhatIfOptions,
): Promise<WhatIf | string> {
  const findsInvalid = false;
  const session = await prepareRecordedReplay(recorded, billed, { ...options, findsInvalid });
  if (typeof session === "string") return session;
  const { reserve, keep, pause } = options;
  const results: (VariantResult | undefined)[] = [];
  for (const { policy, window, ttl } of variants) {
    const [asSent] = results;
    // A policy that has nothing to trim sends what was sent.
    if (policy === "economic" && session.isRoomy(window ?? 0, reserve)) results.push(asSent);
    else if (window !== undefined && session.findProblem(window, reserve) !== undefined) results.push(undefined);
    else {
      const { totals } = await session.run({ policy, window, reserve, ttl, keep, findsInvalid, pause });
      const { usd, calls, references } = totals;
      const sum = (of: "found" | "total"): number =>
        referenceKinds.reduce((all, kind) => all + references[kind][of], 0);
      const { refetches } = references;
      results.push({ usd, calls, refetches, references: { found: sum("found"), total: sum("total") } });
    }
  }
  return { usd: session.usd, fit: session.fit, variants: results };
}
