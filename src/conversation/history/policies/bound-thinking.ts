/** Models that tie thinking to everything before it refuse or drop it once anything before it has changed. So an epoch on
 *  such a model leaves no thinking after its first change. What was there before the change stays: the thinking that is
 *  left is always the beginning of what was sent, and never has gaps. */
import { decideParts, drop, type HistoryDraft } from "../draft.ts";
import type { Policy } from "./policy.ts";

/** Drops all thinking after the draft's first change, also that of a tool call in progress: providers advise to keep it,
 *  but refuse it behind an edit. */
export function dropBoundThinking(draft: HistoryDraft): void {
  dropThinking(draft, draft.firstChanged, draft.messages.length);
}

/** Makes a policy keep thinking valid where other settings decided earlier: a model that does not bind thinking leaves it
 *  after an edit, and the conversation may go on with one that does. */
export function repairEarlierEpochs(policy: Policy): Policy {
  let checked: number | undefined;
  return {
    ...policy,
    decide(draft, call) {
      if (draft.epoch !== checked) for (const { first, last } of draft.rewrites()) dropThinking(draft, first, last + 1);
      checked = draft.epoch;
      dropBoundThinking(draft);
      // The epoch applies from the last message on. A history that shares less of it may have thinking that is bound to
      // the untrimmed text; if it is too large, too, it adopts the decisions without that thinking.
      return { ...policy.decide(draft, call), outgrownAt: undefined };
    },
  };
}

function dropThinking(draft: HistoryDraft, start: number, end: number): void {
  for (let index = start; index < end; index++) {
    decideParts(draft, index, (part) => (part.kind === "thinking" && part.isBound !== true ? drop : undefined));
  }
}
