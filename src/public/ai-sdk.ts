/** Keeps the calls of the AI SDK within the context window. */
export {
  type CallEvent,
  type CallSummary,
  contextBudgetMiddleware,
  contextBudgetPrepareStep,
  type MiddlewareOptions,
  type PrepareStepOptions,
  type RecallTool,
  recallTool,
  type TrimEvent,
} from "../conversation/sdk/ai-sdk.ts";
