/** Decides on one request, and on the earlier requests of a history that were decided elsewhere. Every decision depends
 *  on the history alone. So a trimmer that meets a long history for the first time replays its turns, and arrives at the
 *  decisions of the trimmer that was there from the beginning. */
import type { DecisionIndex } from "./decision-log.ts";
import { createHistoryDraft, growInstead, type HistoryDraft } from "./draft.ts";
import type { RequestBudget } from "./message-budget.ts";
import type { Policy, PolicyOutcome } from "./policies/policy.ts";
import type { TrackedHistory } from "./tracked-history.ts";

/** What the decisions of one call need. */
export interface CallContext {
  readonly policy: Policy;
  readonly ledger: DecisionIndex;
  /** The requests that were decided on before, by the hash of everything in them. */
  readonly requested: ReadonlySet<string>;
  readonly history: TrackedHistory;
  readonly room: RequestBudget;
  /** The tokens of a request that are not in a message. */
  readonly frame: number;
  readonly trimmedBefore: number;
  /** Whether the newest request has a recall tool. Earlier requests are not known, so it counts for them, too. If the tools
   *  have changed, no cache matches anyway, because they come first. */
  readonly hasRecall: boolean;
}

/** Decisions that are not in the ledger yet. */
export interface Decided {
  readonly draft: HistoryDraft;
  readonly outcome: PolicyOutcome;
  /** The tokens that the messages may have. */
  readonly budget: number;
}

/** Lets the policy decide on the history as it is. If a trim would leave the working budget nearly full, the conversation
 *  needs more than that: the trim is undone, and the budget doubles. */
export function decideNow(context: CallContext, request: { isCold: boolean; unchanged: number }): Decided {
  const { policy, ledger, history, room, frame, trimmedBefore, hasRecall } = context;
  for (;;) {
    const budget = room.messages(history.growth);
    const draft = createHistoryDraft(history, ledger, frame);
    const { isCold, unchanged } = request;
    const limits = { isCold, unchanged, budget, toolTokens: room.tools, trimmedBefore, hasRecall };
    const outcome = policy.decide(draft, limits);
    const isTrimmed = draft.firstChanged < draft.messages.length;
    // Above 70 % of its budget, the next trim would follow soon.
    const isCramped = outcome.excess !== undefined || (isTrimmed && draft.size > 0.7 * budget);
    if (!isCramped || !room.canGrow(history.growth)) return { draft, outcome, budget };
    growInstead(history, ledger, outcome.outgrownAt);
  }
}

/** The epochs that were found by replaying turns. */
export interface DerivedEpochs {
  readonly epochs: number;
  /** Whether the provider's cache still matches: this trimmer has sent nothing before, and the newest turn needed no
   *  epoch of its own. */
  readonly keepsCache: boolean;
  /** False if nearly every turn needed an epoch. Such a history breaks the cache on each call anyway, so the replay
   *  ends. */
  readonly isComplete: boolean;
}

/** Replays the requests of a history that end after the first `seen` messages, and commits their epochs. Returns undefined
 *  if there were none. Nothing happens while the history fits: without an epoch, an earlier request was never larger. */
export function deriveEpochs(context: CallContext, seen: number): DerivedEpochs | undefined {
  const { history } = context;
  let epochs = 0;
  let inARow: number | undefined;
  let decidedAt = Math.max(seen, history.decidedUpTo);
  for (;;) {
    const next = findOutgrown(context, decidedAt);
    if (next === undefined) return epochs === 0 ? undefined : { epochs, keepsCache: seen === 0, isComplete: true };
    inARow = next.isFirst && inARow !== undefined ? inARow + 1 : 0;
    if (inARow >= 8) return { epochs, keepsCache: seen === 0, isComplete: false };
    const unchanged = decidedAt;
    history.withPrefix(next.length, () => {
      const { draft, outcome } = decideNow(context, { isCold: false, unchanged });
      if (draft.commit(outcome.outgrownAt)) epochs++;
    });
    decidedAt = next.length;
  }
}

/** Finds the first request with more than `from` messages that was too large. Returns the number of its messages, and
 *  whether it is the first request after those. The newest request does not count: it is being decided on. */
function findOutgrown(
  { history, requested, room, frame }: CallContext,
  from: number,
): { readonly length: number; readonly isFirst: boolean } | undefined {
  const budget = room.messages(history.growth);
  const { messages, totals } = history;
  if (frame + totals.tokens <= budget) return undefined;
  let tokens = frame;
  let isFirst = true;
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    // What comes before an answer was a request.
    const startsTurn = message.original.role === "assistant" && before?.original.role !== "assistant";
    if (index > from && startsTurn && !requested.has(before?.chain ?? "")) {
      if (tokens > budget) return { length: index, isFirst };
      isFirst = false;
    }
    tokens += message.tokens;
  }
  return undefined;
}
