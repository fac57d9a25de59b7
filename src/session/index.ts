export type { CompressInput, Compressor } from "./compress/compressor.ts";
export { deleteSession, listStoredSessions, type StoredSession } from "./delete-session.ts";
export {
  type Cut,
  type Delivered,
  type Envelope,
  type ErrorEnvelope,
  frameNames,
  type PageData,
  type PageFrame,
  type SuccessEnvelope,
} from "./envelope.ts";
export type { HintMode, ToolSchema } from "./hints.ts";
export { type PageLimit, shareOfLimit } from "./results.ts";
export {
  type CallOptions,
  createSession,
  type GivenCall,
  type PageOption,
  type RecallOptions,
  type Session,
} from "./session.ts";
export type { ContinuationForm, SessionOptions } from "./session-options.ts";
export {
  listSessions,
  readSession,
  type SessionLine,
  type SessionReport,
  type SessionStatus,
  viewReport,
} from "./session-report.ts";
export {
  type BudgetedTool,
  isFailure,
  type JsonProperty,
  type JsonSchema,
  type ToolArguments,
  type ToolCall,
  type ToolFailure,
  type ToolResult,
} from "./tool/budgeted-tool.ts";
export {
  budgetParameter,
  inputSchemaOf,
  type ParameterValues,
  type ReadArguments,
  readArguments,
  type ToolParameter,
  type ToolParameters,
} from "./tool/read-arguments.ts";
export { type LogEntry, renderEntry } from "./work-log/log-entry.ts";
export { type WorkLogView, type WorkLogViewName, workLogViews } from "./work-log/views.ts";
