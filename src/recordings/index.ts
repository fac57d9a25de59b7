export {
  type BillReport,
  type BillSettings,
  billJson,
  createBillReport,
  iso,
} from "./bill/bill-report.ts";
export { billCsv, billText, describeKnown, describeUnreported, prefixTable, stamp } from "./bill/bill-text.ts";
export { describeCall, newCalls } from "./bill/describe-calls.ts";
export type { BilledSession } from "./bill/price-calls.ts";
export { agentNames, type Grouping, groupings, periodOf } from "./bill/sum-calls.ts";
export { computeWhatIfs } from "./bill/what-if-files.ts";
export { findSessionFiles, findSubAgents, recordingPlaces } from "./places.ts";
export { readLines } from "./read-lines.ts";
export { createRecordingsReader, type RecordingsReader, readTrims } from "./read-recordings.ts";
export {
  mayConfigure,
  readSpend,
  type Spend,
  type SpentAnswer,
} from "./read-spend.ts";
export { type ReplayReport, type ReplaySettings, replayFiles } from "./replay/replay-files.ts";
export {
  intakeModes,
  type ReplayPolicy,
  replayPolicies,
} from "./replay/replay-session.ts";
export {
  describeInvalid,
  describeRecorded,
  describeReferences,
  describeRun,
  replayJson,
  resultRows,
  rounded,
  seriesKinds,
  shareOf,
  withReference,
} from "./replay/report.ts";
