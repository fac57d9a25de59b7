export type { Checkpoint } from "./checkpoint.ts";
export { forgetHistory, listHistories } from "./forget-history.ts";
export type { Anchor, Decision, Epoch, Ledger, LedgerEntry } from "./ledger.ts";
export type { LargePart, Overflow } from "./overflow.ts";
export type { PlaceholderStyle } from "./placeholders.ts";
export { type PolicyName, policyNames } from "./policies/policy.ts";
export type { Recalled } from "./recall.ts";
export type {
  BudgetOptions,
  ContextBudget,
  ContextManagerOptions,
  ContextMetadata,
} from "./rfc/budget-options.ts";
export { type ContextManager, createContextManager } from "./rfc/context-manager.ts";
export { estimateTokens, estimateToolOverhead } from "./rfc/estimate-tokens.ts";
export { dedupToolResults, mergeConsecutiveSameRole } from "./rfc/merge-messages.ts";
export { reduceContext } from "./rfc/reduce-context.ts";
export {
  type BudgetOverflow,
  type ReducedContext,
  reduceContextWithBudget,
} from "./rfc/reduce-with-budget.ts";
export { removeXmlTag } from "./rfc/remove-xml-tag.ts";
export type { RfcMessage, RfcPart } from "./rfc/rfc-message.ts";
export type { Reduction, TrimCall, TrimStats } from "./trim.ts";
export type { ResponsesRequest, TrimRequest } from "./trim-request.ts";
export { createTrimmer, type Trimmer } from "./trimmer.ts";
export { checkTrimmerOptions, defaultReserve, type TrimmerOptions } from "./trimmer-options.ts";
