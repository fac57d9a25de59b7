/** Counts, checks and repairs messages in the formats of Anthropic, OpenAI, Gemini and the AI SDK. */
export {
  type CountOptions,
  countMessages,
  countTools,
  type FormatName,
  formatNames,
  type Problem,
  type ValidateOptions,
  validateRequest,
} from "../core/messages/index.ts";
