import { type ContextBudget, type ContextManagerOptions, checkManagerOptions } from "./budget-options.ts";
import { reduceContext } from "./reduce-context.ts";
import { type ReducedContext, reduceChecked } from "./reduce-with-budget.ts";
import type { RfcMessage } from "./rfc-message.ts";

/** What stands between a history and a model. An agent takes any; the RFC's own is `createContextManager`. */
export interface ContextManager {
  reduceContext(messages: readonly object[]): readonly RfcMessage[];
  reduceContextWithBudget(messages: readonly object[], budget: ContextBudget): ReducedContext;
}

/** The RFC's manager: `reduceContext` and `reduceContextWithBudget` with options that are fixed once. It holds no state. */
export function createContextManager(options: ContextManagerOptions = {}): ContextManager {
  const checked = checkManagerOptions(options);
  return {
    reduceContext,
    reduceContextWithBudget: (messages, budget) => reduceChecked(messages, budget, checked),
  };
}
