export {
  type BillReport,
  type BillSettings,
  billJson,
  createBillReport,
  iso,
  type WeightRow,
} from "./bill/bill-report.ts";
export { billText, projectName, stamp, usdText } from "./bill/bill-text.ts";
export type { Loss } from "./bill/find-losses.ts";
export type { BilledSession } from "./bill/price-calls.ts";
export { agentNames, type Grouping, groupings, periodOf } from "./bill/sum-calls.ts";
export { whatIfOfFiles } from "./bill/what-if-files.ts";
export { findSessionFiles, recordingPlaces } from "./places.ts";
export { readLines } from "./read-lines.ts";
export { createRecordingsReader, type RecordingsReader } from "./read-recordings.ts";
export {
  mayConfigure,
  readSpend,
  type Spend,
  type SpendProblem,
  type SpendSum,
  type SpentAnswer,
} from "./read-spend.ts";
export { type ReplayReport, type ReplaySettings, replayFiles } from "./replay/replay-files.ts";
export {
  type IntakeMode,
  intakeModes,
  type ReplayPolicy,
  type ReplayTotals,
  replayPolicies,
} from "./replay/replay-session.ts";
export {
  describeInvalid,
  describeRecorded,
  describeReferences,
  describeRun,
  type ResultRow,
  resultRows,
  rounded,
  seriesKinds,
  shareOf,
  withReference,
} from "./replay/report.ts";
export type { UsageTotals } from "./sessions/recorded-usage.ts";
export { parseFields } from "./sessions/session-scan.ts";
