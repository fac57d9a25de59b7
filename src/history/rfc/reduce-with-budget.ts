/** The RFC's reduction under a budget: normalise → re-apply the boundary → estimate → advance or freeze → metadata. */
import { advanceBoundary, type BoundaryInput, budgetThreshold } from "./advance-boundary.ts";
import {
  type BudgetOptions,
  type CheckedManagerOptions,
  type ContextBudget,
  type ContextMetadata,
  checkBudget,
  checkManagerOptions,
} from "./budget-options.ts";
import { estimateToolOverhead, finalEstimate, placeholder, tokensOf } from "./estimate-tokens.ts";
import { reduceContext } from "./reduce-context.ts";
import type { RfcMessage, RfcPart } from "./rfc-message.ts";

export interface ReducedContext {
  readonly messages: readonly RfcMessage[];
  /** To be stored and passed in on the next call; as given when nothing was ever trimmed. */
  readonly metadata: ContextMetadata | undefined;
  /** There exactly when the messages are still above the threshold: what is left must not be trimmed. */
  readonly overflow?: BudgetOverflow;
}

export interface BudgetOverflow {
  readonly tokens: number;
  readonly threshold: number;
}

/** Trims assistant and tool messages, oldest first, until the history is within `contextWindow × contextBudgetThreshold`.
 *  What was trimmed stays trimmed; user and system messages never are. Strictly the RFC, `overflow` apart. */
export function reduceContextWithBudget(messages: readonly object[], options: BudgetOptions): ReducedContext {
  return reduceChecked(messages, options, checkManagerOptions(options));
}

/** The same with options that a manager checked when it was made. */
export function reduceChecked(
  messages: readonly object[],
  budget: ContextBudget,
  options: CheckedManagerOptions,
): ReducedContext {
  const previous = checkBudget(budget);
  const toolTokens = estimateToolOverhead(budget.tools);
  const threshold = budgetThreshold(budget.contextWindow, options.contextBudgetThreshold);
  const reduced = reduceContext(messages);
  const { boundary, tokens } = advanceBoundary({
    ...measured(reduced),
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
    metadata: isUntouched ? budget.metadata : withBoundary(budget.metadata, boundary),
    ...(isOver && { overflow: { tokens, threshold } }),
  };
}

function measured(messages: readonly RfcMessage[]): Pick<BoundaryInput, "roles" | "full" | "trimmed"> {
  const tokens = messages.map(tokensOf);
  return {
    roles: messages.map(({ role }) => role),
    full: tokens.map(({ full }) => full),
    trimmed: tokens.map(({ trimmed }) => trimmed),
  };
}

function withBoundary(metadata: ContextMetadata | undefined, boundary: number): ContextMetadata {
  if (metadata?.trimmed_up_to_message_index === boundary) return metadata;
  return { ...metadata, trimmed_up_to_message_index: boundary };
}

/** Calls and images stay, so that every result still has its call. */
function trimMessage(message: RfcMessage): RfcMessage {
  const { role, content } = message;
  if (role === "user" || role === "system") return message;
  if (typeof content === "string") {
    return content === placeholder ? message : { ...message, content: placeholder };
  }
  const parts = content.map(trimPart);
  return parts.every((part, index) => part === content[index]) ? message : { ...message, content: parts };
}

function trimPart(part: RfcPart): RfcPart {
  if (part.type === "text") return part.text === placeholder ? part : { ...part, text: placeholder };
  if (part.type !== "tool_result" || part.content === placeholder) return part;
  return { ...part, content: placeholder };
}
