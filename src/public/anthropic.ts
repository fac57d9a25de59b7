/** Keeps the requests of Anthropic's client within the context window. */
export {
  type AnthropicOptions,
  type BreakpointMode,
  type RecallSource,
  type RecallTool,
  recallTool,
  type TrimEvent,
  withContextBudget,
} from "../integrations/anthropic.ts";
