/** What the configuration and a session's ledger both know about a session's budget. */

export const ledgerTiers = ["system", "history", "tool_results", "user", "response"] as const;
export type LedgerTier = (typeof ledgerTiers)[number];
export type LedgerTiers = Readonly<Record<LedgerTier, number>>;

/** Enough for an error or a continuation with its envelope, even if every byte is a token. */
export const leastAllocation = 512;
