import { createTrimmer, type PolicyName, policyNames } from "../history/index.ts";
import type { PreparedSession } from "./prepare-session.ts";

/** Anything that decides what goes out in the place of a history. Called once a call, in order, with the same message objects. */
export type Reducer = (
  messages: readonly object[],
  call: { readonly isCold: boolean },
) => Sent | Promise<Sent>;

export interface Sent {
  /** Messages that are the same objects as on the call before cost nothing to look at. */
  readonly messages: readonly object[];
  /** This call rewrote what was sent before. */
  readonly isEpoch: boolean;
  /** Of all tokens so far, the share that can still be read. */
  readonly keptShare: number;
  /** Indexes of sent messages that get a cache marker beside those behind the prefix and at the end. */
  readonly breakpoints: readonly number[];
}

/** `none` sends everything: what the others are compared with. */
export const replayPolicies: readonly ReplayPolicy[] = ["none", ...policyNames];
export type ReplayPolicy = PolicyName | "none";

export interface PolicyReducerOptions {
  readonly policy: ReplayPolicy;
  /** The model's limit, in tokens. */
  readonly window: number;
  /** Tokens kept free for the answer. */
  readonly reserve: number;
  /** Tools and system text that are in no message and not in the session. */
  readonly prefixTokens: number;
  readonly keep?: number | undefined;
  readonly threshold?: number | undefined;
}

/** One of our policies, with a trimmer of its own. */
export async function createPolicyReducer(
  session: PreparedSession,
  { policy, window, ...options }: PolicyReducerOptions,
): Promise<Reducer> {
  if (policy === "none") {
    return (messages) => ({ messages, isEpoch: false, keptShare: 1, breakpoints: [] });
  }
  const { system, tools, format, counter, model, frameTokens } = session;
  const { reserve, prefixTokens, keep } = options;
  const isRfc = policy === "rfc" || policy === "rfc-headroom";
  const threshold = isRfc ? options.threshold : undefined;
  const trimmer = await createTrimmer({
    ...{ contextWindow: window, policy, reserve, prefixTokens, keep, threshold },
    ...{ format, counter, model, sealed: "readable" },
  });
  return (messages, call) => {
    const { stats, isEpoch, ...reduction } = trimmer.reduce({ messages, system, tools }, call);
    const [before, kept] = [stats.before - frameTokens, stats.kept - frameTokens];
    return {
      messages: reduction.messages,
      isEpoch,
      keptShare: before > 0 ? kept / before : 1,
      // The RFC sets no marker of its own.
      breakpoints: isRfc ? [] : reduction.breakpoints,
    };
  };
}
