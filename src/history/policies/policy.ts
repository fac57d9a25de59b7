/** A policy decides which parts of a history give way, and when. It sees the history as it would go out and decides on a draft. */
import type { MessageLens } from "../../messages/index.ts";
import type { Draft } from "../draft.ts";
import type { Excess } from "../overflow.ts";

export const policyNames = ["economic", "gentle", "frugal", "rfc", "rfc-headroom"] as const;
export type PolicyName = (typeof policyNames)[number];

export interface Policy {
  /** The messages as the policy wants them before anything is counted; absent: as they are. */
  prepare?(messages: readonly object[], lens: MessageLens): readonly object[];
  /** Decides for one call. */
  decide(draft: Draft, call: PolicyCall): PolicyOutcome;
}

export interface PolicyCall {
  /** Tokens that the messages may have, frame included. */
  readonly budget: number;
  /** Tokens of tool definitions, for policies that do not take them off the budget; they are part of the budget already for the others. */
  readonly toolTokens: number;
  /** The provider's cache is lost whatever is sent. */
  readonly isCold: boolean;
  /** How many messages are the same as on the call before. */
  readonly unchanged: number;
}

export interface PolicyOutcome {
  /** What the size was compared with. */
  readonly threshold: number;
  /** There when what is left is above the policy's limit, by its own count. */
  readonly excess?: Excess | undefined;
  /** Index of the message with which the history became too large to be sent as it was. Absent: up to its end it is not. */
  readonly outgrownAt?: number | undefined;
}
