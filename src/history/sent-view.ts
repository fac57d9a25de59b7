/** What goes out of a tracked history, collected once and then only extended: most calls append, and leave all before as it was. */
import type { TrackedMessage } from "./tracked-history.ts";

export interface SentView {
  /** What goes out, in order. */
  sent(): object[];
  /** For each boundary the index in `sent` of the last message before it; none where nothing is left there. */
  sentBefore(boundaries: readonly number[]): readonly number[];
  /** Indexes of the messages that do not go out as they came in. */
  trimmed(): readonly number[];
  /** To be told when a message that was there has changed or is gone. */
  reset(): void;
}

export function createSentView(tracked: readonly TrackedMessage[]): SentView {
  let view = emptyView();
  return {
    sent() {
      for (; view.messages < tracked.length; view.messages++) {
        const { sent } = tracked[view.messages] as TrackedMessage;
        if (sent !== undefined) view.sent.push(sent);
      }
      return view.sent.slice();
    },
    sentBefore(boundaries) {
      const indexes = boundaries.map((boundary) => {
        if (view.before.boundary !== boundary)
          view.before = { boundary, count: countSent(tracked, boundary) };
        return view.before.count - 1;
      });
      return [...new Set(indexes.filter((index) => index >= 0))];
    },
    trimmed() {
      view.trimmed ??= indexesWithDecisions(tracked);
      return view.trimmed;
    },
    reset() {
      view = emptyView();
    },
  };
}

interface View {
  readonly sent: object[];
  /** How many messages `sent` is of. */
  messages: number;
  before: { readonly boundary: number; readonly count: number };
  trimmed: readonly number[] | undefined;
}

function emptyView(): View {
  return { sent: [], messages: 0, before: { boundary: 0, count: 0 }, trimmed: undefined };
}

function countSent(tracked: readonly TrackedMessage[], boundary: number): number {
  let count = 0;
  for (const { sent } of tracked.slice(0, boundary)) if (sent !== undefined) count++;
  return count;
}

function indexesWithDecisions(tracked: readonly TrackedMessage[]): number[] {
  const indexes: number[] = [];
  for (const [index, { decisions }] of tracked.entries()) if (decisions.size > 0) indexes.push(index);
  return indexes;
}
