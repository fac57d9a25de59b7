/** A policy decides which parts of a history to trim, and when. It sees the history as it would be sent. */
import type { MessageLens } from "../../messages/index.ts";
import { decideParts, drop, type HistoryDraft } from "../draft.ts";
import type { Excess } from "../overflow.ts";

/**
 * The names of all trimming policies. `economic` is the default; `gentle` trims less at once and `frugal` more; `rfc`
 * and `rfc-headroom` follow the context-engineering RFC.
 *
 * @example
 * ```ts
 * import { createTrimmer, policyNames } from "plimsoll/history";
 *
 * const [policy] = policyNames.filter((name) => name === process.env.POLICY);
 * const trimmer = await createTrimmer({ contextWindow: 200_000, policy });
 * ```
 */
export const policyNames = ["economic", "gentle", "frugal", "rfc", "rfc-headroom"] as const;
/** The name of a trimming policy. */
export type PolicyName = (typeof policyNames)[number];

/** Whether the policy counts and trims as the context-engineering RFC does. */
export function isRfc(policy: PolicyName): boolean {
  return policy === "rfc" || policy === "rfc-headroom";
}

export interface Policy {
  /** Changes the messages before they are counted. Absent: they stay as they are. */
  prepare?(messages: readonly object[], lens: MessageLens): readonly object[];
  /** Makes the decisions for one call. */
  decide(draft: HistoryDraft, call: PolicyCall): PolicyOutcome;
}

export interface PolicyCall {
  /** The tokens that the messages may have, including the frame. */
  readonly budget: number;
  /** The tokens of tool definitions, which `budget` already excludes. The rfc policies count them themselves. */
  readonly toolTokens: number;
  /** Up to which message another program has already trimmed. Only the rfc policies continue from there. */
  readonly trimmedBefore?: number | undefined;
  /** Whether the provider's cache is lost whatever is sent. */
  readonly isCold: boolean;
  /** The number of messages that are the same as on the previous call. */
  readonly unchanged: number;
}

export interface PolicyOutcome {
  /** The size that the history was compared with. */
  readonly threshold: number;
  /** Set if what is left is above the policy's limit, by its own count. */
  readonly excess?: Excess | undefined;
  /** The index of the message with which the history became too large to be sent as it was. Absent if it did not. */
  readonly outgrownAt?: number | undefined;
}

/** Models that tie a thinking block to everything before it. If that changes, the API refuses or drops the block
 *  (Anthropic, 2026-11). */
const binding = /opus-5[-.]5|(?:fable|mythos)-5[-.]1/;

export function bindsThinking(model: string | undefined): boolean {
  return model !== undefined && binding.test(model.toLowerCase());
}

/** Drops all thinking after the draft's first change. Such models refuse it once anything before it has changed. */
export function dropBoundThinking(draft: HistoryDraft): void {
  for (let index = draft.firstChanged; index < draft.messages.length; index++) {
    decideParts(draft, index, (part) => (part.kind === "thinking" && part.isBound !== true ? drop : undefined));
  }
}
