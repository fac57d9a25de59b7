import { ContextError } from "../../core/errors.ts";
import {
  createMessageLens,
  type FormatName,
  geminiSystemText,
  hashMessage,
  type MessageLens,
} from "../../core/messages/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import { createBindingWatch, type UnboundThinking, type WatchBinding } from "./binding-watch.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { createDecisionIndex, type DecisionIndex, type DecisionLog } from "./decision-log.ts";
import { type CallContext, type Decided, type DerivedEpochs, decideNow, deriveEpochs } from "./derive-epochs.ts";
import { createHistoryStore, type Recalled } from "./history-store.ts";
import { createMessageBudget, type MessageBudget } from "./message-budget.ts";
import { rekeyLog } from "./older-hashes.ts";
import { createLargestFinder, describePressure, type LargePart, type Overflow, type Pressure } from "./overflow.ts";
import { createPolicy } from "./policies/index.ts";
import { isRfc, type Policy } from "./policies/policy.ts";
import { hasRecallTool } from "./recall-tool.ts";
import type { ContextMetadata } from "./rfc-context.ts";
import { boundaryIn } from "./rfc-metadata.ts";
import { type SummaryOutcome, summariseEpoch } from "./summary.ts";
import {
  createTrackedHistory,
  type RecordingReader,
  type TrackedHistory,
  type TrackedMessage,
} from "./tracked-history.ts";
import { settleOptions, type TrimmerOptions, type TrimmerSettings } from "./trimmer-options.ts";

/** Keeps the history of one conversation within its model's window, call after call. */
export interface Trimmer {
  /** Returns the messages to send. Trimmed parts stay trimmed: the next call sends the same bytes again, plus what is
   *  new. If the request cannot fit, the result has an `overflow` and the smallest valid messages. Throws if a message
   *  is malformed, or if the trimmer has a `summarise`. */
  reduce<Message extends object>(
    request: TrimRequest<Message> | ResponsesRequest<Message> | GeminiRequest<Message>,
    call?: TrimCall,
  ): Reduction<Message>;
  /** Does the same as `reduce`. If the call trims, it also waits for `summarise` and puts the summary into the request.
   *  Calls take effect one after the other. */
  reduceWithSummary<Message extends object>(
    request: TrimRequest<Message> | ResponsesRequest<Message> | GeminiRequest<Message>,
    call?: TrimCall,
  ): Promise<Reduction<Message>>;
  /** Learns from the `usage` of the response to the last reduced request, so that the counter's error does not grow.
   *  Ignores a usage without input tokens, and any usage before the first `reduce`. */
  observe(usage: unknown): void;
  /** Learns that the provider refused the last reduced request as too long. `tokens` is the provider's count, if it said
   *  one. Without it, the trimmer assumes that its counter is wrong by 15 %, so reduce again and send once more. If the
   *  counter cannot be the cause, the window is smaller than `contextWindow`: returns the most tokens that a request
   *  should have, to create the trimmer again. */
  refused(tokens?: number): number | undefined;
  /** Returns the state as plain JSON. With a store, also saves it there. Rejects with `store_conflict` if another
   *  trimmer of the session has stored decisions since: create the trimmer again, and reduce again before you send. */
  checkpoint(): Promise<Checkpoint>;
  /** Returns the same state as `checkpoint`, without saving it. */
  snapshot(): Promise<Checkpoint>;
  /** Returns trimmed content by the id in its placeholder, or undefined if the content is not available any more. */
  recall(id: string): Promise<Recalled | undefined>;
  /** Returns all trimmed content that is still available, oldest first. */
  listTrimmed(): Promise<readonly Recalled[]>;
}

/**
 * Creates a trimmer for one conversation. If the store has a checkpoint for `sessionId`, the trimmer resumes from it.
 *
 * @example
 * ```ts
 * import { createTrimmer } from "plimsoll/history";
 *
 * const trimmer = await createTrimmer({ contextWindow: 200_000, model: "claude-sonnet-5" });
 * const messages = [{ role: "user", content: "Why is the build slow?" }];
 * const { messages: toSend, stats } = trimmer.reduce({ messages });
 * console.log(toSend.length, stats.after);
 * ```
 */
export async function createTrimmer(options: TrimmerOptions): Promise<Trimmer> {
  const settings = settleOptions(options);
  const saved = createHistoryStore(settings.store, settings.sessionId);
  const checkpoint = await saved.load(settings.checkpoint);
  const counter = settings.counter ?? (await createCounter("auto", { model: settings.model }));
  const state = openState({ ...settings, counter }, checkpoint);
  let sentTokens: number | undefined;
  // A reduction that waits for its summary. Until then its decisions are not in the ledger.
  let pending: Promise<unknown> = Promise.resolve();
  // Not awaited: nobody waits for what the next process learns from it.
  const keep = (): void => saved.keepCalibration(state.budget.snapshot(), state.ledger.ledger.epochs.length);
  const sent = <Message extends object>({ reduction }: Reduced): Reduction<Message> => {
    sentTokens = reduction.stats.after;
    // Edits keep the format, and so the caller's message type.
    return { ...reduction, messages: reduction.messages.slice() as Message[] };
  };
  return {
    reduce(request, call = {}) {
      if (settings.summarise !== undefined) {
        throw new ContextError("invalid_argument", "reduce cannot wait for the summary of a trimmer with summarise", {
          hint: "Call await trimmer.reduceWithSummary(request) instead.",
        });
      }
      return sent(finish(state, decide(state, readRequest(request), call)));
    },
    reduceWithSummary<Message extends object>(
      request: TrimRequest<Message> | ResponsesRequest<Message> | GeminiRequest<Message>,
      call: TrimCall = {},
    ) {
      const next = pending.then(async () => sent<Message>(await trimWithSummary(state, readRequest(request), call)));
      pending = next.catch(() => undefined);
      return next;
    },
    observe(usage) {
      if (sentTokens === undefined) return;
      state.budget.observe(usage, sentTokens);
      keep();
    },
    refused(tokens) {
      const most = sentTokens === undefined ? undefined : state.budget.refused(sentTokens, tokens);
      keep();
      return most;
    },
    async checkpoint() {
      await pending;
      const current = takeCheckpoint(state);
      await saved.save(current, state.history?.messages ?? []);
      return current;
    },
    snapshot: () => pending.then(() => takeCheckpoint(state)),
    async recall(id) {
      await pending;
      return saved.recall(id, state.ledger.entry(id), state.history?.messages ?? []);
    },
    async listTrimmed() {
      await pending;
      const entries = state.ledger.ledger.epochs.flatMap((epoch) => epoch.entries);
      return saved.list(entries, state.history?.messages ?? []);
    },
  };
}

/** Reduces the requests of a recording, in which one list of messages grows. The messages that come back are one list
 *  too: it is valid until the next call. So a call costs only what is new, however long the recording is. */
export type ReplayTrimmer = (request: TrimRequest, call: ReplayCall) => Reduced;

interface ReplayCall extends TrimCall {
  /** How many messages at the start are known to be those of the previous call. They are not compared.
   *  @default 0 */
  readonly known?: number | undefined;
}

interface Reduced {
  readonly reduction: Reduction;
  /** How many messages to send are at the start the same objects as on the previous call. */
  readonly same: number;
}

export async function createReplayTrimmer(
  options: Omit<TrimmerOptions, "store" | "checkpoint" | "summarise"> & { readonly counter: Counter },
  recording: RecordingReader,
): Promise<ReplayTrimmer> {
  const state = openState({ ...settleOptions(options), counter: options.counter, recording });
  return (request, call) => finish(state, decide(state, request, call));
}

function openState(
  { recording, ...settings }: TrimmerSettings & Pick<TrimState, "counter" | "recording">,
  checkpoint?: Checkpoint,
): TrimState {
  const { counter } = settings;
  const ledger = checkpoint?.ledger;
  const isOlder = ledger !== undefined && ledger.key === undefined && ledger.epochs.length > 0;
  return {
    settings,
    counter,
    recording,
    policy: createPolicy(settings.policy, { ...settings, counter }),
    ledger: createDecisionIndex(settings.sessionId, isOlder ? undefined : ledger, recording?.names),
    older: isOlder ? ledger : undefined,
    budget: createMessageBudget({ ...settings, counter, calibrator: checkpoint?.calibrator }),
    requested: new Set(),
    lens: undefined,
    history: undefined,
    isSettled: false,
    findLargest: createLargestFinder(),
    watchBinding: createBindingWatch(settings.model),
  };
}

/** Returns a copy, because the ledger keeps growing. */
function takeCheckpoint({ settings, ledger, older, budget }: TrimState): Checkpoint {
  const calibrator = budget.snapshot();
  return structuredClone({
    version: 2,
    policy: settings.policy,
    ledger: older ?? ledger.ledger,
    ...(calibrator !== undefined && { calibrator }),
  });
}

/** A request to reduce, as Anthropic, OpenAI chat and the AI SDK have it. */
export interface TrimRequest<Message extends object = object> {
  /** The conversation so far, in any supported format. */
  readonly messages: readonly Message[];
  /** System text that is not in a message. */
  readonly system?: unknown;
  /** The tool definitions of the request. They count against the window. */
  readonly tools?: readonly object[] | null | undefined;
  /** What a program with the context-engineering RFC stored. Only the policies `rfc` and `rfc-headroom` read it. */
  readonly metadata?: object | null | undefined;
}

/** A request to OpenAI's responses API: `input` has the messages and `instructions` the system text. */
export interface ResponsesRequest<Item extends object = object> {
  readonly input: string | readonly Item[];
  readonly instructions?: string | null | undefined;
  readonly tools?: readonly object[] | null | undefined;
  readonly metadata?: object | null | undefined;
}

/** A request to Gemini's `generateContent`: `contents` has the messages and `systemInstruction` the system text. */
export interface GeminiRequest<Content extends object = object> {
  readonly contents: readonly Content[];
  readonly systemInstruction?: unknown;
  readonly tools?: readonly object[] | null | undefined;
  readonly metadata?: object | null | undefined;
}

export interface RequestParts extends TrimRequest {
  /** Set if the request itself shows its format. */
  readonly format?: FormatName | undefined;
}

function readRequest(request: TrimRequest | ResponsesRequest | GeminiRequest): RequestParts {
  const fields = Object(request) as Partial<TrimRequest & ResponsesRequest & GeminiRequest>;
  const { messages, system, input, instructions, contents, systemInstruction, tools, metadata } = fields;
  if (messages === undefined && input !== undefined) {
    const items = typeof input === "string" ? [{ role: "user", content: input }] : checkList(input, "input");
    return { messages: items, system: system ?? instructions, tools, metadata, format: "responses" };
  }
  if (messages === undefined && contents !== undefined) {
    const text = system ?? geminiSystemText(systemInstruction);
    return { messages: checkList(contents, "contents"), system: text, tools, metadata, format: "gemini" };
  }
  return { messages: checkList(messages, "messages"), system, tools, metadata };
}

function checkList(value: unknown, name: string): readonly object[] {
  if (Array.isArray(value)) return value;
  const given = value === null ? "null" : typeof value;
  throw new ContextError("invalid_message", `${name} must be an array, not ${given}`, {
    hint: "Pass { messages, system, tools }, for OpenAI's responses { input, instructions, tools }, or for Gemini { contents, systemInstruction, tools }.",
  });
}

export interface TrimCall {
  /** Whether the provider's cache is lost whatever is sent: after a long pause, with another model, in a resumed
   *  session. */
  readonly isCold?: boolean | undefined;
  /** Whether placeholders name ids, because the model can recall by id, such as with a command.
   * @default whether the request has a recall tool */
  readonly hasRecall?: boolean | undefined;
}

/** The outcome of one `reduce` call. */
export interface Reduction<Message extends object = object> {
  /** The messages to send, in a new list. Messages that did not change are the caller's own objects. */
  readonly messages: Message[];
  /** The boundary in the form of the context-engineering RFC. Empty while nothing is trimmed. */
  readonly metadata: { readonly trimmed_up_to_message_index?: number };
  /** Sizes before and after, in tokens. */
  readonly stats: TrimStats;
  /** True if this call trimmed more than the calls before it. The provider's cache then matches only up to the first
   *  change, unless `derived` says otherwise. */
  readonly isEpoch: boolean;
  /** Set if the trimmer met turns that it had not seen, and trimmed as it would have on each of them. So a trimmer
   *  without any state sends the same bytes as one that was there from the beginning. */
  readonly derived?: DerivedEpochs;
  /** Indexes of the messages to send after which a cache marker is worthwhile, oldest first: the end of the part that
   *  no later trim changes and, on the call that trims, the previous such place. */
  readonly breakpoints: readonly number[];
  /** Set on a call that asked for a summary: whether it is `used`, or why the digest is there instead. */
  readonly summary?: SummaryOutcome;
  /** Set on a call that trims, if that happened on more than a quarter of the last 20 turns. */
  readonly pressure?: Pressure;
  /** Set on a call whose system text or tools differ from the last one's, if the model refuses thinking for that. */
  readonly unbound?: UnboundThinking;
  /** Set if the smallest valid request is still too large. */
  readonly overflow?: Overflow;
}

/** The sizes of one reduced request. All sizes are in tokens of the messages, without system text and tools. */
export interface TrimStats {
  /** The messages as they came in. */
  readonly before: number;
  /** The messages as they go out. */
  readonly after: number;
  /** The tokens of the incoming messages that can still be read. */
  readonly kept: number;
  /** The tokens that the messages may have. */
  readonly budget: number;
  /** The size above which the policy trims. */
  readonly threshold: number;
  /** The index of the first message that the policy has not trimmed yet. */
  readonly boundary: number;
  /** The indexes of the messages that are sent changed or not at all. */
  readonly trimmed: readonly number[];
  /** How often the conversation was trimmed so far. Each time costs one cache break. */
  readonly epochs: number;
}

interface TrimState {
  readonly settings: TrimmerSettings;
  readonly counter: Counter;
  readonly recording?: RecordingReader | undefined;
  readonly policy: Policy;
  ledger: DecisionIndex;
  /** The log of an earlier version, until the first history shows which of its epochs apply. */
  older: DecisionLog | undefined;
  readonly budget: MessageBudget;
  /** The requests of this trimmer, by the hash of everything in them. */
  readonly requested: Set<string>;
  lens: MessageLens | undefined;
  history: TrackedHistory | undefined;
  /** Whether the format is certain. */
  isSettled: boolean;
  readonly findLargest: ReturnType<typeof createLargestFinder>;
  readonly watchBinding: WatchBinding;
}

/** One call whose decisions are not in the ledger yet. */
interface OpenCall extends Decided {
  readonly request: RequestParts;
  readonly history: TrackedHistory;
  readonly lens: MessageLens;
  readonly derived: DerivedEpochs | undefined;
  readonly frame: number;
  readonly trimmedBefore: number;
}

/** Starts one call: follow the history, apply the ledger, count, let the policy decide. */
function decide(state: TrimState, request: RequestParts, call: ReplayCall): OpenCall {
  const { policy, settings } = state;
  const { isCold = false } = call;
  const opened = openHistory(state, request);
  const given = { messages: request.messages, known: call.known ?? 0 };
  const { messages: prepared, known } = policy.prepare?.(given, opened.lens) ?? given;
  const { lens } = opened;
  const history = state.older === undefined ? opened.history : takeOlder(state, prepared, lens);
  const unchanged = history.follow(prepared, known);
  state.isSettled ||= showsFormat(lens, history.messages.slice(unchanged));
  const room = state.budget.forRequest({ system: request.system, tools: request.tools, format: lens.format });
  const frame = prepared.length === 0 ? 0 : lens.requestTokens;
  // Only the rfc policies read metadata: in a request to Anthropic it has another meaning.
  const metadata = isRfc(settings.policy) ? (request.metadata as ContextMetadata) : undefined;
  const trimmedBefore = Math.max(boundaryIn(settings.metadata), boundaryIn(metadata));
  const { ledger, requested } = state;
  const hasRecall = call.hasRecall ?? hasRecallTool(request.tools);
  const context: CallContext = { policy, ledger, requested, history, room, frame, trimmedBefore, hasRecall };
  // If `isPinned` throws, the draft is half decided. The next call then reads everything again.
  state.history = undefined;
  // If decisions are stored, a decision that is not in the store was never made. To derive it now would change what was
  // sent, and models refuse thinking that was made from other bytes. Callers of the rfc policies store the boundary.
  const isDerivable = !isRfc(settings.policy) && settings.store === undefined && settings.checkpoint === undefined;
  const derived = isDerivable ? deriveEpochs(context, unchanged) : undefined;
  // Fields are copied one by one, here and in `finish`. With spreads, a replay of thousands of calls takes longer.
  const { draft, outcome, budget } = decideNow(context, { isCold, unchanged });
  return { request, history, lens, frame, trimmedBefore, derived, draft, outcome, budget };
}

/** Applies the log of an earlier version to the first history. */
function takeOlder(state: TrimState, messages: readonly object[], lens: MessageLens): TrackedHistory {
  const { older = { epochs: [] }, settings } = state;
  const { hash, ledger } = state.ledger;
  state.ledger = createDecisionIndex(settings.sessionId, { ...ledger, epochs: rekeyLog(older, messages, hash) });
  state.older = undefined;
  state.history = trackHistory(state, lens);
  return state.history;
}

async function trimWithSummary(state: TrimState, request: RequestParts, call: TrimCall): Promise<Reduced> {
  const { settings, counter, ledger } = state;
  const open = decide(state, request, call);
  if (settings.summarise === undefined) return finish(state, open);
  const summary = await summariseEpoch(open.draft, {
    summarise: settings.summarise,
    waitMs: settings.summaryWaitMs,
    budget: open.budget,
    counter,
    ledger,
    after: open.history.epoch,
  });
  const { reduction, same } = finish(state, open);
  return { reduction: summary === undefined ? reduction : { ...reduction, summary }, same };
}

/** Ends one call: writes the decisions into the log and collects what is sent. */
function finish(state: TrimState, call: OpenCall): Reduced {
  const { history, lens, draft, outcome, frame, trimmedBefore, derived } = call;
  const before = history.collapsed;
  state.requested.add(history.messages.at(-1)?.chain ?? "");
  const isDecided = draft.commit(outcome.outgrownAt);
  const isEpoch = isDecided || derived !== undefined;
  state.history = history;
  if (isEpoch) state.budget.rewritten();
  const { boundary } = history;
  let found: LargePart[] | undefined;
  const findLargest = (): LargePart[] => {
    found ??= state.findLargest(history, lens);
    return found;
  };
  const unbound = state.watchBinding(call.request, history.messages);
  // Nobody reads the reports of a replay, and writing them would take most of its time.
  const isReported = state.recording === undefined;
  const pressure = isEpoch && isReported ? describePressure(history, findLargest) : undefined;
  if (pressure !== undefined) state.settings.onPressure?.(pressure);
  const { messages, same } = history.sent();
  const trimmedUpTo = Math.max(boundary, trimmedBefore);
  const reduction: { -readonly [Key in keyof Reduction]: Reduction[Key] } = {
    messages,
    metadata: trimmedUpTo === 0 ? {} : { trimmed_up_to_message_index: trimmedUpTo },
    stats: {
      before: frame + history.totals.original,
      after: frame + history.totals.tokens,
      kept: frame + history.totals.kept,
      budget: call.budget,
      threshold: outcome.threshold,
      boundary,
      trimmed: isReported ? history.trimmed() : [],
      epochs: state.ledger.rewrites,
    },
    isEpoch,
    breakpoints: history.sentBefore(isDecided ? [before, history.collapsed] : [history.collapsed]),
  };
  if (derived !== undefined) reduction.derived = { ...derived, keepsCache: derived.keepsCache && !isDecided };
  if (pressure !== undefined) reduction.pressure = pressure;
  if (unbound !== undefined) reduction.unbound = unbound;
  if (outcome.excess !== undefined && isReported)
    reduction.overflow = { ...outcome.excess, largest: [...findLargest()] };
  return { reduction, same };
}

/** The format may show only after a few messages of plain text. Everything is then read again with that format. */
function openHistory(
  state: TrimState,
  request: RequestParts,
): { readonly lens: MessageLens; readonly history: TrackedHistory } {
  const { settings, counter } = state;
  const format = settings.format ?? request.format;
  if (!state.isSettled || state.lens === undefined || state.history === undefined) {
    const { model, sealed } = settings;
    const lens =
      state.recording?.lens ??
      createMessageLens(selectTelling(state, request.messages), { counter, format, model, sealed });
    if (state.lens === undefined || state.history === undefined || lens.format !== state.lens.format) {
      state.lens = lens;
      state.history = trackHistory(state, lens);
    }
    state.isSettled = format !== undefined;
  }
  return { lens: state.lens, history: state.history };
}

function trackHistory({ ledger, recording }: TrimState, lens: MessageLens): TrackedHistory {
  const reader = recording ?? {
    lens,
    hashOf: (message: object) => hashMessage(message, ledger.hash),
    isFrozen: false,
  };
  return createTrackedHistory(reader, ledger);
}

/** Returns the messages by which to recognise the format. Plain text fits every format and is read as Anthropic's.
 *  After plain text, only new messages can show another format. In every other case all messages are needed: a
 *  `developer` message shows OpenAI chat, and without it the others could show another format. */
function selectTelling({ lens, history }: TrimState, messages: readonly object[]): readonly object[] {
  if (lens?.format !== "anthropic") return messages;
  let same = 0;
  while (same < messages.length && messages[same] === history?.messages[same]?.source) same++;
  return messages.slice(same);
}

/** Returns whether new messages make the format certain. Plain text does not, because it fits every format and is read
 *  as Anthropic's or OpenAI chat. */
function showsFormat({ format }: MessageLens, news: readonly TrackedMessage[]): boolean {
  if (format !== "anthropic" && format !== "openai") return true;
  return news.some(({ original }) => original.parts.some(({ kind, isFramed }) => kind !== "text" && isFramed !== true));
}
