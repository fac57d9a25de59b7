export type { CallShare } from "./call-shares.ts";
export type { ModelView } from "./describe-ledger.ts";
export { createLedger, type Ledger, type LedgerSnapshot } from "./ledger.ts";
export {
  type LedgerLimits,
  type LedgerOptions,
  type LedgerTier,
  type LedgerTiers,
  leastAllocation,
  ledgerTiers,
} from "./ledger-options.ts";
