import type { BudgetOverflow, ContextMetadata, RfcMessage } from "../../history/index.ts";

/** What hooks share. Hooks change `state`, which a checkpoint stores as plain JSON. */
export interface HookContext {
  /** `limit.context` is the model's whole window in tokens. */
  readonly model: { readonly limit: { readonly context: number } };
  readonly state: AgentState;
}

export interface AgentState {
  /** The whole history, in the RFC's shape, untrimmed. */
  messages: readonly object[];
  systemPrompt?: string;
  tools?: readonly object[];
  metadata?: ContextMetadata;
  /** What goes to the model, written anew before each inference. */
  llmInput?: LlmInput;
  /** There when `llmInput` is still above the threshold. */
  overflow?: BudgetOverflow;
}

export interface LlmInput {
  readonly messages: readonly RfcMessage[];
  readonly maxTokens: number;
  readonly tools?: readonly object[];
}
