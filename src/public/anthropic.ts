/** Keeps the requests of Anthropic's client within the context window. */
export {
  type AnthropicOptions,
  type CallEvent,
  type CallSummary,
  type RecallTool,
  recallTool,
  type TrimEvent,
  withContextBudget,
} from "../conversation/sdk/anthropic.ts";
