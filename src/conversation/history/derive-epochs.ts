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
  const { history, room, frame } = context;
  let budget = room.messages(history.growth);
  if (frame + history.totals.tokens <= budget) return undefined;
  const maxOutgrownInARow = 8;
  let decidedAt = Math.max(seen, history.decidedUpTo);
  let outgrownInARow = 0;
  let epochs = 0;
  for (const length of replayRequests(context, decidedAt)) {
    if (outgrownInARow > maxOutgrownInARow) continue;
    outgrownInARow = frame + history.totals.tokens > budget ? outgrownInARow + 1 : 0;
    if (outgrownInARow === 0 || outgrownInARow > maxOutgrownInARow) continue;
    const { draft, outcome } = decideNow(context, { isCold: false, unchanged: decidedAt });
    if (draft.commit(outcome.outgrownAt)) epochs++;
    decidedAt = length;
    budget = room.messages(history.growth);
  }
  const isComplete = outgrownInARow <= maxOutgrownInARow;
  return epochs === 0 && isComplete ? undefined : { epochs, keepsCache: seen === 0, isComplete };
}

/** Sends the messages after the first `from` again. Stops at the end of each request that was not decided on before, with
 *  the number of its messages. The newest request is not among them: it is being decided on. */
function* replayRequests({ history, requested }: CallContext, from: number): Generator<number> {
  for (const [offset, message] of history.detach(from).entries()) {
    const before = history.messages.at(-1);
    // What comes before an answer was a request.
    const startsTurn = message.original.role === "assistant" && before?.original.role !== "assistant";
    if (offset > 0 && startsTurn && !requested.has(before?.chain ?? "")) yield from + offset;
    history.attach(message);
  }
}
