export type {
  BudgetedTool,
  JsonProperty,
  JsonSchema,
  ToolArguments,
  ToolCall,
  ToolFailure,
  ToolResult,
} from "./budgeted-tool.ts";
export type { CompressInput, Compressor } from "./compress/compressor.ts";
export type { Cut, Delivered, Envelope, ErrorEnvelope, PageData, SuccessEnvelope } from "./envelope.ts";
export type { HintMode, ToolSchema } from "./hints.ts";
export type { PageLimit } from "./results.ts";
export {
  type BudgetOption,
  type CallOptions,
  createSession,
  type GivenCall,
  type Session,
} from "./session.ts";
export {
  listSessions,
  readSession,
  type SessionLine,
  type SessionReport,
  type SessionStatus,
  viewReport,
} from "./session-report.ts";
export { shorten } from "./shorten.ts";
export type { SessionOptions, TokenForm } from "./state/live-session.ts";
export { type LogEntry, renderEntry } from "./work-log/log-entry.ts";
export { type WorkLogView, type WorkLogViewName, workLogViews } from "./work-log/views.ts";
