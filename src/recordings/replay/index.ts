export { kindOfLines, readRecording, usageOfLine } from "../sessions/index.ts";
export {
  isOpencodeExport,
  readOpencodeSession,
  usageOfMessage,
} from "../sessions/opencode-session.ts";
export { createCopyFinder, type RecordedSession } from "../sessions/recorded-session.ts";
export {
  bareModel,
  claudeCodeUsage,
  createUsageSum,
  type UsageRecord,
  type UsageTotals,
} from "../sessions/recorded-usage.ts";
export {
  type PreparedSession,
  prepareSession,
  prepareStretches,
  type SentKind,
  sentKinds,
} from "./prepare-session.ts";
export { type ReferenceTotals, referenceKinds, type Tally } from "./references.ts";
export {
  addTotals,
  type CallReplay,
  type IntakeMode,
  intakeModes,
  type Reducer,
  type ReplayPolicy,
  type ReplayTotals,
  replayPolicies,
  replayReducer,
  replaySession,
  type Sent,
  type SessionReplay,
} from "./replay-session.ts";
export type { Removal } from "./request-observer.ts";
