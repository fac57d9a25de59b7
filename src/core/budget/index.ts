export { type CallShare, leastAllocation } from "./call-shares.ts";
export {
  createLedger,
  type Ledger,
  type LedgerLimits,
  type LedgerOptions,
  type LedgerSnapshot,
  type LedgerTier,
  type LedgerTiers,
  ledgerTiers,
  type ModelView,
} from "./ledger.ts";
