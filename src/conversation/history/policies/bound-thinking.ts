/** Some models bind thinking to everything before it. They refuse or drop it once anything before it has changed. So an
 *  epoch for such a model leaves no thinking after its first change. Thinking before the change stays, so what is left
 *  never has gaps. */
import { decideParts, drop, type HistoryDraft } from "../draft.ts";
import type { Policy } from "./policy.ts";

/** Drops all thinking after the draft's first change, including the thinking of a tool call in progress. Providers
 *  advise to keep that thinking, but refuse it after an edit. */
export function dropBoundThinking(draft: HistoryDraft): void {
  dropThinking(draft, draft.firstChanged, draft.messages.length);
}

/** Wraps a policy so that it also drops thinking that earlier epochs made invalid. A model that does not bind thinking
 *  keeps it after an edit. If the conversation then continues with a model that binds thinking, that model would
 *  refuse it. */
export function repairEarlierEpochs(policy: Policy): Policy {
  let checked: number | undefined;
  return {
    ...policy,
    decide(draft, call) {
      if (draft.epoch !== checked) for (const { first, last } of draft.rewrites()) dropThinking(draft, first, last + 1);
      checked = draft.epoch;
      dropBoundThinking(draft);
      // Without `outgrownAt`, the epoch applies only to histories that contain the last message. A fork from an earlier
      // message may have thinking that is bound to the untrimmed text. If the fork is too large as well, it adopts the
      // decisions and drops that thinking.
      return { ...policy.decide(draft, call), outgrownAt: undefined };
    },
  };
}

function dropThinking(draft: HistoryDraft, start: number, end: number): void {
  for (let index = start; index < end; index++) {
    decideParts(draft, index, (part) => (part.kind === "thinking" && part.isBound !== true ? drop : undefined));
  }
}
