/** Keeps the requests of OpenAI's client within the context window. */
export {
  type CallEvent,
  type CallSummary,
  type OpenAiOptions,
  type RecallTool,
  recallTool,
  type TrimEvent,
  withContextBudget,
} from "../conversation/sdk/openai.ts";
