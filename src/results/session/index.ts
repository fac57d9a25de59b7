export {
  type BudgetedTool,
  budgetParameter,
  createInputSchema,
  isFailure,
  type JsonProperty,
  type JsonSchema,
  type ParameterValues,
  readArguments,
  type ToolArguments,
  type ToolCall,
  type ToolFailure,
  type ToolParameters,
  type ToolResult,
} from "./budgeted-tool.ts";
export type { CallShare } from "./call-shares.ts";
export {
  type Delivered,
  type Envelope,
  type ErrorEnvelope,
  frameNames,
  type PageData,
} from "./envelope.ts";
export type { HintMode, ToolDefinition } from "./hints.ts";
export type { LedgerOptions } from "./ledger.ts";

export type { CompressInput, Compressor, LogEntry } from "./log-entry.ts";
export { type PageFormat, renderFailure } from "./page-text.ts";
export { type PageLimit, shareOfLimit } from "./results.ts";
export {
  type CallOptions,
  createSession,
  type Session,
  type SessionOptions,
} from "./session.ts";
export { compactSession } from "./session-record.ts";
export {
  deleteSession,
  findStoredResult,
  listSessions,
  listStoredSessions,
  pruneOrphans,
  readSessionReport,
  type SessionLine,
  type SessionReport,
  type SessionStatus,
  type StoredSession,
} from "./session-report.ts";

export { viewWorkLog, type WorkLogView, type WorkLogViewName, workLogViews } from "./work-log.ts";
