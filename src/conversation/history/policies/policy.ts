/** A policy decides which parts of a history to trim, and when. It sees the history as it would be sent. */
import type { MessageLens } from "../../../core/messages/index.ts";
import type { HistoryDraft } from "../draft.ts";
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
  prepare?(history: GivenHistory, lens: MessageLens): GivenHistory;
  /** Makes the decisions for one call. */
  decide(draft: HistoryDraft, call: PolicyCall): PolicyOutcome;
}

export interface GivenHistory {
  readonly messages: readonly object[];
  /** How many at the start are known to be the same objects as on the previous call. */
  readonly known: number;
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
  /** Whether the request has a tool with which the model can read what was trimmed. */
  readonly hasRecall: boolean;
}

export interface PolicyOutcome {
  /** The size that the history was compared with. */
  readonly threshold: number;
  /** Set if what is left is above the policy's limit, by its own count. */
  readonly excess?: Excess | undefined;
  /** The index of the message with which the history became too large to be sent as it was. Absent if it did not. */
  readonly outgrownAt?: number | undefined;
}
