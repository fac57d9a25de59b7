/** Gives an agent tool results in pages that fit a token budget, and keeps a log of its work. */
export {
  type BudgetedTool,
  type CallOptions,
  type Compressor,
  createSession,
  type Delivered,
  deleteSession,
  type Envelope,
  type JsonSchema,
  listSessions,
  readSessionReport,
  type Session,
  type SessionOptions,
  type SessionReport,
  type SessionStatus,
  type ToolArguments,
  type ToolResult,
} from "../results/session/index.ts";
