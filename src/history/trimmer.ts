import { ContextError } from "../errors.ts";
import {
  countSystem,
  countTools,
  createMessageLens,
  type FormatName,
  geminiSystemText,
  type MessageLens,
} from "../messages/index.ts";
import {
  type CalibratorSnapshot,
  type Counter,
  createCalibrator,
  createCounter,
  familyOfModel,
} from "../tokens/index.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { createDecisionIndex, type DecisionIndex, type DecisionLog } from "./decision-log.ts";
import { createHistoryDraft, type HistoryDraft } from "./draft.ts";
import { createHistoryStore, type Recalled } from "./history-store.ts";
import { rekeyLog } from "./older-hashes.ts";
import { createLargestFinder, describePressure, type LargePart, type Overflow, type Pressure } from "./overflow.ts";
import { createPolicy } from "./policies/index.ts";
import { isRfc, type Policy, type PolicyName, type PolicyOutcome } from "./policies/policy.ts";
import { boundaryIn, type ContextMetadata } from "./rfc-context.ts";
import { estimateTokens, estimateToolOverhead } from "./rfc-message.ts";
import { type SummaryOutcome, summariseEpoch } from "./summary.ts";
import { createTrackedHistory, type TrackedHistory, type TrackedMessage } from "./tracked-history.ts";
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
  /** Returns the state as plain JSON. With a store, also saves it there. Rejects with `store_conflict` if another
   *  trimmer of the session has stored decisions since: create the trimmer again, and reduce again before you send. */
  checkpoint(): Promise<Checkpoint>;
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
  const sent = <Message extends object>(reduction: Reduction): Reduction<Message> => {
    sentTokens = reduction.stats.after;
    // Edits keep the format, and so the caller's message type.
    return reduction as Reduction<Message>;
  };
  return {
    reduce(request, call = {}) {
      if (settings.summarise !== undefined) throw needsSummary();
      return sent(finish(state, decide(state, partsOf(request), call)));
    },
    reduceWithSummary<Message extends object>(
      request: TrimRequest<Message> | ResponsesRequest<Message> | GeminiRequest<Message>,
      call: TrimCall = {},
    ) {
      const next = pending.then(async () => sent<Message>(await trimWithSummary(state, partsOf(request), call)));
      pending = next.catch(() => undefined);
      return next;
    },
    observe(usage) {
      if (sentTokens !== undefined) state.budget.observe(usage, sentTokens);
    },
    async checkpoint() {
      await pending;
      const current = checkpointOf(state);
      await saved.save(current, state.history?.messages ?? []);
      return current;
    },
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

function needsSummary(): ContextError {
  return new ContextError("invalid_argument", "reduce cannot wait for the summary of a trimmer with summarise", {
    hint: "Call await trimmer.reduceWithSummary(request) instead.",
  });
}

function openState(settings: TrimmerSettings & { counter: TrimState["counter"] }, checkpoint?: Checkpoint): TrimState {
  const { counter } = settings;
  const ledger = checkpoint?.ledger;
  const isOlder = ledger !== undefined && ledger.key === undefined && ledger.epochs.length > 0;
  return {
    settings,
    counter,
    policy: createPolicy(settings.policy, { ...settings, counter }),
    ledger: createDecisionIndex(settings.sessionId, isOlder ? undefined : ledger),
    older: isOlder ? ledger : undefined,
    budget: createMessageBudget({ ...settings, counter, calibrator: checkpoint?.calibrator }),
    lens: undefined,
    history: undefined,
    isSettled: false,
    findLargest: createLargestFinder(),
  };
}

/** Returns a copy, because the ledger keeps growing. */
function checkpointOf({ settings, ledger, older, budget }: TrimState): Checkpoint {
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

function partsOf(request: TrimRequest | ResponsesRequest | GeminiRequest): RequestParts {
  const fields = Object(request) as Partial<TrimRequest & ResponsesRequest & GeminiRequest>;
  const { messages, system, input, instructions, contents, systemInstruction, tools, metadata } = fields;
  if (messages === undefined && input !== undefined) {
    const items = typeof input === "string" ? [{ role: "user", content: input }] : listAt(input, "input");
    return { messages: items, system: system ?? instructions, tools, metadata, format: "responses" };
  }
  if (messages === undefined && contents !== undefined) {
    const text = system ?? geminiSystemText(systemInstruction);
    return { messages: listAt(contents, "contents"), system: text, tools, metadata, format: "gemini" };
  }
  return { messages: listAt(messages, "messages"), system, tools, metadata };
}

function listAt(value: unknown, name: string): readonly object[] {
  if (Array.isArray(value)) return value;
  const given = value === null ? "null" : typeof value;
  throw new ContextError("invalid_message", `${name} must be an array, not ${given}`, {
    hint: "Pass { messages, system, tools }, for OpenAI's responses { input, instructions, tools }, or for Gemini { contents, systemInstruction, tools }.",
  });
}

interface BudgetOptions {
  readonly policy: PolicyName;
  readonly contextWindow: number;
  readonly reserve: number;
  readonly prefixTokens: number;
  readonly model?: string | undefined;
  readonly counter: Counter;
  readonly calibrator?: CalibratorSnapshot | undefined;
}

/** Computes the tokens that messages may have: the window minus the answer, the prefix, system text and tools. Usage
 *  that the provider reported corrects the counter's scale. */
export interface MessageBudget {
  /** Returns the tokens for the messages of a request with this system text and these tools. */
  forRequest(request: FixedParts): { readonly messages: number; readonly tools: number };
  /** Learns from the usage that the provider reported for the request whose messages had this size. */
  observe(usage: unknown, sentTokens: number): void;
  /** Must be called after history was rewritten: totals that were billed before do not apply any more. */
  rewritten(): void;
  snapshot(): CalibratorSnapshot | undefined;
}

interface FixedParts {
  readonly system?: unknown;
  readonly tools?: readonly object[] | null | undefined;
  readonly format: FormatName;
}

function createMessageBudget(options: BudgetOptions): MessageBudget {
  const { model, counter, prefixTokens } = options;
  const limit = options.contextWindow - options.reserve;
  const family = (model === undefined ? undefined : familyOfModel(model)) ?? "claude-5";
  const snapshot = options.calibrator;
  const calibrator = createCalibrator(snapshot === undefined ? { family } : { family, snapshot });
  let isCalibrated = snapshot !== undefined;
  let fixed = prefixTokens;
  return {
    forRequest({ system, tools, format }) {
      const given = tools ?? [];
      const counted = isRfc(options.policy)
        ? rfcFixed(system, given)
        : {
            system: countSystem(system, counter),
            tools: given.length === 0 ? 0 : countTools(given, counter, { format, model }),
          };
      fixed = prefixTokens + counted.system + counted.tools;
      const whole = isCalibrated
        ? largestEstimate(limit, (size) => calibrator.correct(size) + calibrator.margin(size))
        : limit;
      return { messages: Math.max(0, whole - fixed), tools: counted.tools };
    },
    observe(usage, sentTokens) {
      calibrator.observe({ estimated: fixed + sentTokens, usage });
      // A usage without input tokens teaches nothing.
      isCalibrated ||= calibrator.snapshot().anchor !== null;
    },
    rewritten: () => calibrator.reset("history"),
    snapshot: () => (isCalibrated ? calibrator.snapshot() : undefined),
  };
}

/** Estimates system text and tools as the RFC does, so that its policies put the boundary where the RFC puts it. */
function rfcFixed(system: unknown, tools: readonly object[]): { readonly system: number; readonly tools: number } {
  const hasSystem = system !== undefined && system !== null && system !== "";
  // A tool that the provider runs may have no name.
  const named = (tool: object): object =>
    "name" in Object(tool) || "function" in Object(tool) ? tool : { name: JSON.stringify(tool) };
  return {
    system: hasSystem ? estimateTokens([{ role: "system", content: system }]) : 0,
    tools: estimateToolOverhead(Array.isArray(tools) ? tools.map(named) : tools),
  };
}

/** Returns the largest estimate whose corrected size is within the limit. Corrections grow with the estimate. */
function largestEstimate(limit: number, corrected: (estimate: number) => number): number {
  let fits = 0;
  let beyond = limit * 2 + 1;
  while (beyond - fits > 1) {
    const estimate = Math.floor((fits + beyond) / 2);
    if (corrected(estimate) <= limit) fits = estimate;
    else beyond = estimate;
  }
  return fits;
}

export interface TrimCall {
  /** Whether the provider's cache is lost whatever is sent: after a long pause, with another model, in a resumed
   *  session. */
  readonly isCold?: boolean | undefined;
}

/** The outcome of one `reduce` call. */
export interface Reduction<Message extends object = object> {
  /** The messages to send, in a new list. Messages that did not change are the caller's own objects. */
  readonly messages: Message[];
  /** The boundary in the form of the context-engineering RFC. Empty while nothing is trimmed. */
  readonly metadata: { readonly trimmed_up_to_message_index?: number };
  /** Sizes before and after, in tokens. */
  readonly stats: TrimStats;
  /** True if this call changed messages that were sent before. The provider's cache then matches only up to the first
   *  change. */
  readonly isEpoch: boolean;
  /** Indexes of the messages to send after which a cache marker is worthwhile, oldest first: the end of the part that
   *  no later trim changes and, on the call that trims, the previous such place. */
  readonly breakpoints: readonly number[];
  /** Set on a call that asked for a summary: whether it is `used`, or why the digest is there instead. */
  readonly summary?: SummaryOutcome;
  /** Set on a call that trims, if that happened on more than a quarter of the last 20 turns. */
  readonly pressure?: Pressure;
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
  readonly policy: Policy;
  ledger: DecisionIndex;
  /** The log of an earlier version, until the first history shows which of its epochs apply. */
  older: DecisionLog | undefined;
  readonly budget: MessageBudget;
  lens: MessageLens | undefined;
  history: TrackedHistory | undefined;
  /** Whether the format is certain. */
  isSettled: boolean;
  readonly findLargest: ReturnType<typeof createLargestFinder>;
}

/** One call whose decisions are not in the ledger yet. */
interface OpenCall {
  readonly history: TrackedHistory;
  readonly lens: MessageLens;
  readonly draft: HistoryDraft;
  readonly outcome: PolicyOutcome;
  /** The tokens that the messages may have. */
  readonly budget: number;
  readonly frame: number;
  readonly trimmedBefore: number;
}

/** Starts one call: follow the history, apply the ledger, count, let the policy decide. */
function decide(state: TrimState, request: RequestParts, { isCold = false }: TrimCall): OpenCall {
  const { policy, budget } = state;
  const opened = openHistory(state, request);
  const prepared = policy.prepare?.(request.messages, opened.lens) ?? request.messages;
  const { lens, history } = takeOlder(state, prepared, opened);
  const { ledger } = state;
  const unchanged = history.follow(prepared);
  state.isSettled ||= isSettled(lens, history.messages.slice(unchanged));
  const allowed = budget.forRequest({ system: request.system, tools: request.tools, format: lens.format });
  const frame = prepared.length === 0 ? 0 : lens.requestTokens;
  const draft = createHistoryDraft(history, ledger, frame);
  const trimmedBefore = Math.max(boundaryIn(state.settings.metadata), requestBoundary(state, request));
  const call = { budget: allowed.messages, toolTokens: allowed.tools, isCold, unchanged, trimmedBefore };
  // If `isPinned` throws, the draft is half decided. The next call then reads everything again.
  state.history = undefined;
  const outcome = policy.decide(draft, call);
  return { history, lens, draft, outcome, budget: allowed.messages, frame, trimmedBefore };
}

/** Applies the log of an earlier version to the first history. */
function takeOlder(state: TrimState, messages: readonly object[], opened: OpenedHistory): OpenedHistory {
  const { older, settings } = state;
  if (older === undefined) return opened;
  const { hash, ledger } = state.ledger;
  state.ledger = createDecisionIndex(settings.sessionId, { ...ledger, epochs: rekeyLog(older, messages, hash) });
  state.older = undefined;
  state.history = createTrackedHistory(opened.lens, state.ledger);
  return { lens: opened.lens, history: state.history };
}

async function trimWithSummary(state: TrimState, request: RequestParts, call: TrimCall): Promise<Reduction> {
  const { settings, counter, ledger } = state;
  const open = decide(state, request, call);
  if (settings.summarise === undefined) return finish(state, open);
  const summary = await summariseEpoch(open.draft, {
    ...{ summarise: settings.summarise, waitMs: settings.summaryWaitMs },
    ...{ budget: open.budget, counter, ledger, after: open.history.epoch },
  });
  const reduction = finish(state, open);
  return summary === undefined ? reduction : { ...reduction, summary };
}

/** Ends one call: write the ledger, collect what is sent. */
function finish(state: TrimState, { history, lens, draft, outcome, frame, ...call }: OpenCall): Reduction {
  const { trimmedBefore } = call;
  const before = history.collapsed;
  const isEpoch = draft.commit(outcome.outgrownAt);
  state.history = history;
  if (isEpoch) state.budget.rewritten();
  const { excess } = outcome;
  const { boundary } = history;
  let found: LargePart[] | undefined;
  const findLargest = (): LargePart[] => {
    found ??= state.findLargest(history, lens);
    return found;
  };
  const pressure = isEpoch ? describePressure(history, findLargest) : undefined;
  if (pressure !== undefined) state.settings.onPressure?.(pressure);
  return {
    messages: history.sent(),
    metadata: metadataOf(Math.max(boundary, trimmedBefore)),
    stats: {
      before: frame + history.totals.original,
      after: frame + history.totals.tokens,
      kept: frame + history.totals.kept,
      budget: call.budget,
      threshold: outcome.threshold,
      boundary,
      trimmed: history.trimmed(),
      epochs: state.ledger.rewrites,
    },
    isEpoch,
    breakpoints: history.sentBefore(isEpoch ? [before, history.collapsed] : [history.collapsed]),
    ...(pressure !== undefined && { pressure }),
    ...(excess !== undefined && { overflow: { ...excess, largest: [...findLargest()] } }),
  };
}

/** Only the rfc policies read metadata: in a request to Anthropic it has another meaning. */
function requestBoundary({ settings }: TrimState, { metadata }: RequestParts): number {
  return isRfc(settings.policy) ? boundaryIn(metadata as ContextMetadata) : 0;
}

function metadataOf(boundary: number): Reduction["metadata"] {
  return boundary === 0 ? {} : { trimmed_up_to_message_index: boundary };
}

interface OpenedHistory {
  readonly lens: MessageLens;
  readonly history: TrackedHistory;
}

/** The format may show only after a few messages of plain text. Everything is then read again with that format. */
function openHistory(state: TrimState, { messages, format: told }: RequestParts): OpenedHistory {
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

/** Returns the messages that may show the format. Plain text is read as Anthropic's, so only new messages can show
 *  more. A `developer` message is read as OpenAI chat; without it the rest would show another format. */
function telling({ lens, history }: TrimState, messages: readonly object[]): readonly object[] {
  return lens?.format === "anthropic" ? messages.slice(countSame(messages, history?.messages ?? [])) : messages;
}

/** Counts how many messages from the start are the same objects as on the previous call. */
function countSame(messages: readonly object[], tracked: readonly TrackedMessage[]): number {
  let count = 0;
  while (count < messages.length && messages[count] === tracked[count]?.source) count++;
  return count;
}

/** Anthropic and OpenAI chat are also the defaults for plain text, which fits every format. */
function isSettled({ format }: MessageLens, news: readonly TrackedMessage[]): boolean {
  if (format !== "anthropic" && format !== "openai") return true;
  return news.some(({ original }) => original.parts.some(({ kind }) => kind !== "text"));
}
