/** The RFC's reduction under a budget: normalise, apply the boundary again, estimate, move the boundary or keep it, and
 *  write the metadata. */

import { isAmount, isPlainObject, isWhole, refuseUnknownOptions, refuseValue } from "../../core/text/index.ts";
import { plainPlaceholder } from "./placeholders.ts";
import { advanceBoundary, budgetThreshold } from "./rfc-boundary.ts";
import { countTokens, estimateToolOverhead, finalEstimate, type RfcMessage, type RfcPart } from "./rfc-message.ts";
import { boundaryIn } from "./rfc-metadata.ts";
import { reduceContext } from "./rfc-repairs.ts";

/** The outcome of `reduceContextWithBudget`. */
export interface ReducedContext {
  /** The messages to send. */
  readonly messages: readonly RfcMessage[];
  /** What to pass as `metadata` on the next call. If nothing was ever trimmed, it is the object that was passed in. */
  readonly metadata: ContextMetadata | undefined;
  /** Set if the messages are still above the threshold, because nothing more may be trimmed. */
  readonly overflow?: BudgetOverflow;
}

export interface BudgetOverflow {
  readonly tokens: number;
  readonly threshold: number;
}

/**
 * Trims assistant and tool messages, oldest first, until the history is within `contextWindow ×
 * contextBudgetThreshold`. Trimmed messages stay trimmed. User and system messages are never trimmed. This is the
 * algorithm of the context-engineering RFC; only `overflow` is added.
 *
 * @example
 * ```ts
 * import { reduceContextWithBudget } from "plimsoll/history";
 *
 * const history = [{ role: "user", content: "Why is the build slow?" }];
 * const first = reduceContextWithBudget(history, { contextWindow: 128_000 });
 * const { messages } = reduceContextWithBudget(history, { contextWindow: 128_000, metadata: first.metadata });
 * console.log(messages.length);
 * ```
 */
export function reduceContextWithBudget(
  messages: readonly object[],
  options: ContextManagerOptions & ContextBudget,
): ReducedContext {
  return reduceChecked(messages, options, checkManagerOptions(options, budgetOptions));
}

/** Does the same with options that a manager has already checked. */
function reduceChecked(
  messages: readonly object[],
  budget: ContextBudget,
  options: CheckedManagerOptions,
): ReducedContext {
  const previous = checkBudget(budget);
  const toolTokens = estimateToolOverhead(budget.tools);
  const threshold = budgetThreshold(budget.contextWindow, options.contextBudgetThreshold);
  const reduced = reduceContext(messages);
  const counts = reduced.map(countTokens);
  const { boundary, tokens } = advanceBoundary({
    roles: reduced.map(({ role }) => role),
    full: counts.map(({ full }) => full),
    trimmed: counts.map(({ trimmed }) => trimmed),
    previous,
    keep: options.keepLastNAssistantMessages,
    estimate: (rawTokens) => finalEstimate(rawTokens) + toolTokens,
    threshold,
    target: threshold,
  });
  const isOver = tokens > threshold;
  const isUntouched = previous === 0 && boundary === 0 && !isOver;
  return {
    messages: reduced.map((message, index) => (index < boundary ? trimMessage(message) : message)),
    metadata: isUntouched ? (budget.metadata ?? undefined) : withBoundary(budget.metadata, boundary),
    ...(isOver && { overflow: { tokens, threshold } }),
  };
}

function withBoundary(metadata: ContextBudget["metadata"], boundary: number): ContextMetadata {
  if (metadata?.trimmed_up_to_message_index === boundary) return metadata;
  return { ...metadata, trimmed_up_to_message_index: boundary };
}

/** Calls and images stay, so that every result still has its call. */
function trimMessage(message: RfcMessage): RfcMessage {
  const { role, content } = message;
  if (role === "user" || role === "system") return message;
  if (typeof content === "string") {
    return content === plainPlaceholder ? message : { ...message, content: plainPlaceholder };
  }
  const parts = content.map(trimPart);
  return parts.every((part, index) => part === content[index]) ? message : { ...message, content: parts };
}

function trimPart(part: RfcPart): RfcPart {
  if (part.type === "text") return part.text === plainPlaceholder ? part : { ...part, text: plainPlaceholder };
  if (part.type !== "tool_result" || part.content === plainPlaceholder) return part;
  return { ...part, content: plainPlaceholder };
}

/** Reduces histories before they go to a model. `createContextManager` returns the RFC's own; an agent accepts any
 *  other. */
export interface ContextManager {
  /** Prepares messages without a budget, as the function `reduceContext` does. */
  reduceContext(messages: readonly object[]): readonly RfcMessage[];
  /** Trims messages to a budget, as the function `reduceContextWithBudget` does. */
  reduceContextWithBudget(messages: readonly object[], budget: ContextBudget): ReducedContext;
}

/**
 * Creates the context-engineering RFC's manager: `reduceContext` and `reduceContextWithBudget` with fixed options. It
 * holds no state, so one manager serves any number of conversations.
 *
 * @example
 * ```ts
 * import { createContextManager } from "plimsoll/history";
 *
 * const manager = createContextManager({ keepLastNAssistantMessages: 5 });
 * const history = [{ role: "user", content: "Why is the build slow?" }];
 * console.log(manager.reduceContextWithBudget(history, { contextWindow: 128_000 }).messages);
 * ```
 */
export function createContextManager(options: ContextManagerOptions = {}): ContextManager {
  const checked = checkManagerOptions(options);
  return {
    reduceContext,
    reduceContextWithBudget(messages, budget) {
      refuseUnknownOptions(checkObject(budget), budgetOptions);
      return reduceChecked(messages, budget, checked);
    },
  };
}

/** The settings of `createContextManager`, fixed for all of its calls. */
export interface ContextManagerOptions {
  /** How many of the newest assistant messages to leave alone while the budget allows it.
   * @default 10 */
  readonly keepLastNAssistantMessages?: number | undefined;
  /** The share of `contextWindow`, from 0 to 1, above which messages are trimmed.
   * @default 0.8 */
  readonly contextBudgetThreshold?: number | undefined;
}

/** The budget of one call: the window, the tools, and the state of the last call. */
export interface ContextBudget {
  /** The most tokens that messages and tool definitions may have together. */
  readonly contextWindow: number;
  /** The `metadata` that the last call for this conversation returned. */
  readonly metadata?: ContextMetadata | null | undefined;
  /** The tool definitions of the request. They count against `contextWindow`. */
  readonly tools?: readonly object[] | null | undefined;
}

/** The state that a caller stores between calls, as plain JSON. Other keys are kept. */
export interface ContextMetadata {
  /** The end of the trimmed messages, exclusive, counted after merging. */
  readonly trimmed_up_to_message_index?: number | null;
  readonly [key: string]: unknown;
}

export type CheckedManagerOptions = { readonly [Key in keyof ContextManagerOptions]-?: number };

const budgetOptions: readonly (keyof ContextBudget)[] = ["contextWindow", "metadata", "tools"];
const managerOptions: readonly (keyof ContextManagerOptions)[] = [
  "keepLastNAssistantMessages",
  "contextBudgetThreshold",
];

/** Throws on a wrong value, and on an option that is neither the manager's nor one of the `others`. */
function checkManagerOptions(options: ContextManagerOptions, others: readonly string[] = []): CheckedManagerOptions {
  refuseUnknownOptions(checkObject(options), [...managerOptions, ...others]);
  const keepLastNAssistantMessages = options.keepLastNAssistantMessages ?? 10;
  const contextBudgetThreshold = options.contextBudgetThreshold ?? 0.8;
  if (!isWhole(keepLastNAssistantMessages)) {
    refuseValue("keepLastNAssistantMessages", keepLastNAssistantMessages, { wanted: "a whole number from 0" });
  }
  if (!(isAmount(contextBudgetThreshold) && contextBudgetThreshold <= 1)) {
    refuseValue("contextBudgetThreshold", contextBudgetThreshold, { wanted: "a number from 0 to 1" });
  }
  return { keepLastNAssistantMessages, contextBudgetThreshold };
}

/** Returns the boundary in the metadata, or 0 if there is none. */
function checkBudget(budget: ContextBudget): number {
  const { contextWindow, metadata } = checkObject(budget);
  if (!isAmount(contextWindow)) refuseValue("contextWindow", contextWindow, { wanted: "a number of tokens from 0" });
  return boundaryIn(metadata);
}

function checkObject<Options extends object>(options: Options): Options {
  return isPlainObject(options) ? options : refuseValue("options", options, { wanted: "an object" });
}
