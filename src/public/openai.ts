/** Keeps the requests of OpenAI's client within the context window. */
export {
  type OpenAiOptions,
  type RecallSource,
  type RecallTool,
  recallTool,
  type TrimEvent,
  withContextBudget,
} from "../integrations/openai.ts";
