/** Keeps the calls of the AI SDK within the context window. */
export {
  type BreakpointMode,
  contextBudgetMiddleware,
  contextBudgetPrepareStep,
  type MiddlewareOptions,
  type PrepareStepOptions,
  type RecallSource,
  type RecallTool,
  recallTool,
  type TrimEvent,
} from "../integrations/ai-sdk.ts";
