/** One call: follow the history → replay the ledger → count → the policy decides → write the ledger → send. */
import { createMessageLens, type MessageLens } from "../messages/index.ts";
import type { Counter } from "../tokens/index.ts";
import { createDraft } from "./draft.ts";
import type { LedgerIndex } from "./ledger.ts";
import type { MessageBudget } from "./message-budget.ts";
import { describeOverflow, type Overflow } from "./overflow.ts";
import type { Policy } from "./policies/policy.ts";
import { createTrackedHistory, type TrackedHistory, type TrackedMessage } from "./tracked-history.ts";
import type { RequestParts } from "./trim-request.ts";
import type { TrimmerSettings } from "./trimmer-options.ts";

export interface TrimCall {
  /** The provider's cache is lost whatever is sent: idle past its lifetime, another model, a resumed session. */
  readonly isCold?: boolean | undefined;
}

export interface Reduction<Message extends object = object> {
  /** What to send, in a list of its own: the caller's own objects where nothing changed. */
  readonly messages: Message[];
  readonly metadata: { readonly trimmed_up_to_message_index?: number };
  readonly stats: TrimStats;
  /** This call rewrote what was sent before: the provider's cache holds only up to there. */
  readonly isEpoch: boolean;
  /** Indexes of sent messages behind which a cache marker pays, oldest first: where the history was last cut and, on the call that cuts, where
   *  it was cut before. */
  readonly breakpoints: readonly number[];
  /** There exactly when what is left is still too large. */
  readonly overflow?: Overflow;
}

export interface TrimStats {
  /** Tokens of the messages, as they came in and as they go out. */
  readonly before: number;
  readonly after: number;
  /** Of those that came in, the tokens that can still be read. */
  readonly kept: number;
  readonly budget: number;
  /** Size above which the policy trims. */
  readonly threshold: number;
  readonly boundary: number;
  /** Indexes of the messages that are not sent as they came in. */
  readonly trimmed: readonly number[];
  readonly epochs: number;
}

export interface TrimState {
  readonly settings: TrimmerSettings;
  readonly counter: Counter;
  readonly policy: Policy;
  readonly ledger: LedgerIndex;
  readonly budget: MessageBudget;
  lens: MessageLens | undefined;
  history: TrackedHistory | undefined;
  /** Whether the format is certain. */
  isSettled: boolean;
}

export function trim(state: TrimState, request: RequestParts, { isCold = false }: TrimCall): Reduction {
  const { policy, ledger, budget } = state;
  const { lens, history } = openHistory(state, request);
  const prepared = policy.prepare?.(request.messages, lens) ?? request.messages;
  const unchanged = history.follow(prepared);
  state.isSettled ||= isSettled(lens, history.messages.slice(unchanged));
  const allowed = budget.forRequest({ system: request.system, tools: request.tools, format: lens.format });
  const frame = prepared.length === 0 ? 0 : lens.requestTokens;
  const draft = createDraft(history, ledger, frame);
  const before = history.collapsed;
  const call = { budget: allowed.messages, toolTokens: allowed.tools, isCold, unchanged };
  // A rule for pinned messages that throws leaves a draft half decided: then the next call reads everything anew.
  state.history = undefined;
  const outcome = policy.decide(draft, call);
  const isEpoch = draft.commit(outcome.outgrownAt);
  state.history = history;
  if (isEpoch) budget.rewritten();
  const { excess } = outcome;
  const { boundary } = history;
  return {
    messages: history.sent(),
    metadata: boundary === 0 ? {} : { trimmed_up_to_message_index: boundary },
    stats: {
      before: frame + history.totals.original,
      after: frame + history.totals.tokens,
      kept: frame + history.totals.kept,
      budget: allowed.messages,
      threshold: outcome.threshold,
      boundary,
      trimmed: history.trimmed(),
      epochs: ledger.rewrites,
    },
    isEpoch,
    breakpoints: history.sentBefore(isEpoch ? [before, history.collapsed] : [history.collapsed]),
    ...(excess !== undefined && { overflow: describeOverflow(history.messages, excess, lens) }),
  };
}

/** The format may show only after a few messages of plain text; then everything is read anew with it. */
function openHistory(
  state: TrimState,
  { messages, format: told }: RequestParts,
): { lens: MessageLens; history: TrackedHistory } {
  const { settings, counter, ledger } = state;
  const format = settings.format ?? told;
  if (!state.isSettled || state.lens === undefined || state.history === undefined) {
    const { model, sealed } = settings;
    const lens = createMessageLens(telling(state, messages), { counter, format, model, sealed });
    if (state.lens === undefined || state.history === undefined || lens.format !== state.lens.format) {
      state.lens = lens;
      state.history = createTrackedHistory(lens, ledger);
    }
    state.isSettled = format !== undefined;
  }
  return { lens: state.lens, history: state.history };
}

/** The messages that may tell the format. Plain text is taken for Anthropic's, so that only what is new can tell more; a `developer` is taken
 *  for one of a chat, and without it the rest would tell something else. */
function telling({ lens, history }: TrimState, messages: readonly object[]): readonly object[] {
  return lens?.format === "anthropic"
    ? messages.slice(countSame(messages, history?.messages ?? []))
    : messages;
}

/** How many messages from the beginning are the objects of the call before. */
function countSame(messages: readonly object[], tracked: readonly TrackedMessage[]): number {
  let count = 0;
  while (count < messages.length && messages[count] === tracked[count]?.source) count++;
  return count;
}

/** The first two formats also stand for text that is claimed by none. */
function isSettled({ format }: MessageLens, news: readonly TrackedMessage[]): boolean {
  if (format !== "anthropic" && format !== "openai") return true;
  return news.some(({ original }) => original.parts.some(({ kind }) => kind !== "text"));
}
