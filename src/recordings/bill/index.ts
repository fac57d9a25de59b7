export { type Cause, causes, findLosses, type Loss } from "./find-losses.ts";
export { type OpencodeExport, readOpencodeFacts } from "./other-facts.ts";
export { type PackedFacts, packFacts, unpackFacts } from "./packed-facts.ts";
export { type BilledSession, billSessions, createSessionBiller } from "./price-calls.ts";
export { prepareRecordedReplay, type RecordedReplay } from "./recorded-replay.ts";
export type { SessionFacts } from "./session-facts.ts";
export { createSessionScan, factsOfText, type ScanState } from "./session-scan.ts";
export {
  agentNames,
  type BillRow,
  type BillTotals,
  billedCalls,
  type Grouping,
  groupings,
  type PlacedCall,
  periodOf,
  sumCalls,
  totalOf,
} from "./sum-calls.ts";
export { type WeighedResult, weighResults } from "./weigh-results.ts";
export { computeWhatIf, type VariantResult, variants } from "./what-if.ts";
