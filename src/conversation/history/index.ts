export type { UnboundThinking } from "./binding-watch.ts";
export type { Checkpoint } from "./checkpoint.ts";
export {
  findTrimmed,
  forgetHistory,
  listHistories,
  listHistoryUses,
  lookForDecisions,
  type Recalled,
} from "./history-store.ts";
export { olderNames } from "./older-hashes.ts";
export type { Overflow, Pressure } from "./overflow.ts";
export { isRfc, type PolicyName, policyNames } from "./policies/policy.ts";
export {
  createRecallTool,
  hasRecallTool,
  type RecallDefinition,
  type RecallSource,
  type RecallTool,
} from "./recall-tool.ts";
export {
  type BudgetOverflow,
  type ContextBudget,
  type ContextManager,
  type ContextManagerOptions,
  type ContextMetadata,
  createContextManager,
  type ReducedContext,
  reduceContextWithBudget,
} from "./rfc-context.ts";
export { estimateTokens, estimateToolOverhead, type RfcMessage } from "./rfc-message.ts";
export { dedupToolResults, mergeConsecutiveSameRole, reduceContext, removeXmlTag } from "./rfc-repairs.ts";
export type { RemovedContent } from "./summary.ts";
export { createRecordingReader, type RecordingReader } from "./tracked-history.ts";
export {
  createReplayTrimmer,
  createTrimmer,
  type Reduction,
  type ReplayTrimmer,
  type Trimmer,
  type TrimRequest,
  type TrimStats,
} from "./trimmer.ts";
export {
  checkTrimmerOptions,
  defaultReserve,
  type TrimmerOptions,
} from "./trimmer-options.ts";
