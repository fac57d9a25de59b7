import { ContextError } from "../../errors.ts";
import {
  type ContextManagerOptions,
  createContextManager,
  estimateTokens,
  type RfcMessage,
} from "../../history/index.ts";
import type { AgentState, HookContext } from "./hook-context.ts";
import type { Hook } from "./hook-registry.ts";

export interface ContextHookOptions extends ContextManagerOptions {
  /** Tokens kept free for the answer, and the most that it may take. Absent: 16,000. */
  readonly reservedOutputTokens?: number | undefined;
}

/** The RFC's hook: before each inference it fits the history into what the model's limit leaves beside the system prompt and the
 *  answer, stores the boundary in `state.metadata` and the model's input in `state.llmInput`. Other events pass untouched. */
export function createContextHook(options: ContextHookOptions = {}): Hook<HookContext> {
  const {
    keepLastNAssistantMessages = 50,
    contextBudgetThreshold = 0.8,
    reservedOutputTokens = 16_000,
  } = options;
  const manager = createContextManager({ keepLastNAssistantMessages, contextBudgetThreshold });
  checkTokens("reservedOutputTokens", reservedOutputTokens);
  return ({ model, state }, event) => {
    if (event !== "before_inference") return "continue";
    const limit = checkTokens("model.limit.context", model?.limit?.context);
    const system = systemMessages(state);
    const { messages, metadata, overflow } = manager.reduceContextWithBudget(state.messages, {
      contextWindow: Math.max(0, limit - estimateTokens(system) - reservedOutputTokens),
      // A checkpoint that another program wrote may say null for none.
      metadata: state.metadata ?? undefined,
      tools: state.tools,
    });
    if (metadata !== undefined) state.metadata = metadata;
    if (overflow === undefined) delete state.overflow;
    else state.overflow = overflow;
    const { tools } = state;
    const input = { messages: [...system, ...messages], maxTokens: reservedOutputTokens };
    state.llmInput = tools === undefined ? input : { ...input, tools };
    return "continue";
  };
}

function systemMessages({ systemPrompt }: AgentState): readonly RfcMessage[] {
  if (systemPrompt === undefined) return [];
  if (typeof systemPrompt === "string") return [{ role: "system", content: systemPrompt }];
  throw new ContextError(
    "invalid_argument",
    `state.systemPrompt must be a string, not a ${typeof systemPrompt}`,
  );
}

function checkTokens(name: string, value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  throw new ContextError(
    "invalid_argument",
    `${name} must be a number of tokens from 0, not ${String(value)}`,
  );
}
