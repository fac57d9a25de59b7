/** What the integrations share: makes a request of any provider fit, with state for each conversation. */

import type { ModelPrice } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { type FormatName, nameMessage } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import { argumentChecks, checkOptions, type Fields, type OptionChecks } from "../../core/text/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import {
  checkTrimmerOptions,
  type Overflow,
  type Reduction,
  type TrimmerOptions,
  type TrimRequest,
  type TrimStats,
  type UnboundThinking,
} from "../history/index.ts";
import { type CallEvent, type CallLog, type ConversationLog, createCallLog } from "./call-events.ts";
import type { OwnMarkers } from "./compare-costs.ts";
import { findContextWindow, type Limits } from "./context-windows.ts";
import type { createConversation, FittedCall, FittedConversation } from "./conversation.ts";
import type { IntakeSettings } from "./conversation-intake.ts";
import { createFallbackStores } from "./fallback-store.ts";
import { type GuardedHooks, guardCounter, guardHooks, notify } from "./guard-hooks.ts";
import type { Refusal } from "./refusals.ts";
import { createFailureReporter, type ReportFailure } from "./report-failure.ts";

/** The settings that all integrations share: those of a trimmer, with defaults for each model. */
export interface RequestFitterOptions<Request>
  extends Omit<TrimmerOptions, "contextWindow" | "format" | "checkpoint" | "sealed"> {
  /** The most tokens that a request and its answer may have. By default it is the model's window, looked up by the
   *  model's id, with a working budget; an unknown model is an error. */
  readonly contextWindow?: number | undefined;
  /** The most tokens that a request should have, in a window that is larger. It grows by doubling, up to the window, in a
   *  conversation that does not fit.
   * @default 200000 in a window of 400000 tokens or more, unless `contextWindow` is set */
  readonly workingBudget?: number | undefined;
  /** The model's id.
   * @default the request's model */
  readonly model?: string | undefined;
  /** Tokens kept free for the answer.
   * @default what requests ask for, at least 16000 and at most half of the window */
  readonly reserve?: number | undefined;
  /** The id of the conversation that every request belongs to. By default, requests with the same first user message
   *  are one conversation. */
  readonly sessionId?: string | undefined;
  /** Returns the id of the conversation of one request. If it returns nothing or throws, `sessionId` and its default
   *  apply. */
  readonly sessionIdOf?: ((request: Request) => string | null | undefined) | undefined;
  /** How many conversations to keep in memory. One that was dropped and comes back is read again from its messages, or
   *  from the store, and sends the same bytes.
   * @default 100 */
  readonly maxConversations?: number | undefined;
  /** What to do with a request that cannot fit: `throw` an error with the code `context_overflow`, or `pass` on the
   *  smallest valid request.
   * @default "throw" */
  readonly onOverflow?: "throw" | "pass" | undefined;
  /** Shortens tool results before they are first sent: what the history already has is left out, and a very long result
   *  becomes a page. `true` uses the defaults of `createIntake`.
   * @default false */
  readonly intake?: boolean | IntakeSettings | undefined;
  /** Called after each trim. */
  readonly onTrim?: ((event: TrimEvent) => void) | undefined;
  /** Called if system text or tools have changed and the model refuses or drops thinking for that. Nothing is removed
   *  beforehand. */
  readonly onUnbound?: ((event: UnboundEvent) => void) | undefined;
  /** Called when a call has been answered, with its tokens, its cost and what happened to the cache. */
  readonly onCall?: ((event: CallEvent) => void) | undefined;
  /** Called once for each callback that fails, with the code `hook_failed`, and once if the store fails. The request is
   *  sent all the same, trimmed.
   * @default a warning of the process */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** How long the provider's cache lives after a call, in milliseconds.
   * @default the provider's documented lifetime */
  readonly cacheLifetimeMs?: number | undefined;
  /** Returns the current time in milliseconds.
   * @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** What `onTrim` receives after a trim. */
export interface TrimEvent {
  /** The id of the conversation that was trimmed. */
  readonly sessionId: string;
  /** The model of the request. */
  readonly model: string | undefined;
  /** Sizes before and after the trim. */
  readonly stats: TrimStats;
  /** Whether the trim happened in earlier calls, which this client has not seen. It sends what they led to, so the
   *  provider's cache still matches. */
  readonly isDerived: boolean;
  /** Set if a summary was asked for: whether it is used, or why not. */
  readonly summary?: Reduction["summary"];
  /** Set if the request still does not fit. */
  readonly overflow?: Reduction["overflow"];
}

/** What `onUnbound` receives: what differs from the request before. */
export interface UnboundEvent extends UnboundThinking {
  /** The id of the conversation. */
  readonly sessionId: string;
  /** The model of the request. */
  readonly model: string | undefined;
}

export interface BudgetCall<Request> extends TrimRequest {
  readonly request: Request;
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly cacheLifetimeMs: number;
  readonly cachePrice?: ModelPrice | undefined;
  /** Where the caller's request marks the cache.
   * @default nowhere */
  readonly ownMarkers?: OwnMarkers | undefined;
}

export interface RequestFitter<Request> {
  fit(call: BudgetCall<Request>): Promise<FittedCall>;
  /** Returns what `fit` would send, without any effect. */
  preview(call: BudgetCall<Request>): Promise<Reduction>;
  readonly calls: Pick<CallLog, "refused" | "summary">;
}

/** `client` names the integration in events. */
export function createRequestFitter<Request>(
  options: RequestFitterOptions<Request>,
  client = "sdk",
): RequestFitter<Request> {
  checkBudgetOptions(options);
  const { onOverflow = "throw", now = Date.now, cacheLifetimeMs } = options;
  const report = createFailureReporter({ onError: options.onError, onReport: (source) => calls.failed(source) });
  const calls: CallLog = createCallLog({
    client,
    store: options.store,
    now,
    onCall: notify("onCall", options.onCall, report),
    onStoreFailure: (error) => report("store", error),
  });
  const onTrim = notify("onTrim", options.onTrim, report);
  const onUnbound = notify("onUnbound", options.onUnbound, report);
  const openById = createOpener(options, { now, report, calls });
  const conversations = createConversations(options.maxConversations ?? 100, openById);
  const counterFor = createCounters(options.counter);
  const settle = (call: BudgetCall<Request>) => {
    const model = options.model ?? call.model;
    const sessionId = readSessionId(options, call, report);
    return { sessionId, call: { ...call, model, cacheLifetimeMs: cacheLifetimeMs ?? call.cacheLifetimeMs } };
  };
  return {
    async fit(given) {
      const { sessionId, call } = settle(given);
      const { model } = call;
      const { conversation, fitted } = await fitSafely(conversations, sessionId, { call, report });
      const { overflow } = fitted.reduction;
      const counter = await counterFor(model);
      const notifyCaller = ({ reduction }: FittedCall): void => {
        const { isEpoch, derived, stats, summary, unbound, overflow: left } = reduction;
        if (unbound !== undefined) onUnbound({ sessionId, model, ...unbound });
        if (!isEpoch) return;
        onTrim({
          sessionId,
          model,
          stats,
          isDerived: derived?.keepsCache === true,
          ...(summary !== undefined && { summary }),
          ...(left !== undefined && { overflow: left }),
        });
      };
      const follow = (each: FittedCall): FittedCall => followCall(each, { ...call, counter, log: conversation.log });
      notifyCaller(fitted);
      if (overflow !== undefined && onOverflow === "throw") {
        calls.refused(sessionId, overflow);
        throw overflowError(overflow, fitted.limits);
      }
      const refused = (tokens = 0, limit = 0): void => calls.refused(sessionId, { tokens, limit });
      const again = { notifyCaller, follow, refused, onOverflow };
      return { ...follow(fitted), refused: (refusal) => fitAgain(fitted, { refusal, ...again }) };
    },
    async preview(given) {
      const { sessionId, call } = settle(given);
      return conversations.peek(sessionId).fitted.preview(call);
    },
    calls,
  };
}

/** Starts the event of a call, which ends with the usage of the answer. */
function followCall(
  fitted: FittedCall,
  { log, ...call }: BudgetCall<unknown> & { readonly log: ConversationLog; readonly counter: Counter },
): FittedCall {
  const { reduction, isCold, lifetime, learned, limits } = fitted;
  const chosenMs = lifetime && call.cachePrice?.rules.lifetimeMs[lifetime.ttl];
  const started = log.start({
    ...call,
    windowTokens: findWindow(call.model, limits),
    cacheLifetimeMs: Math.max(call.cacheLifetimeMs, chosenMs ?? 0),
    reduction,
    isCold,
  });
  return {
    ...fitted,
    observe(usage) {
      if (isOfRequest(usage)) fitted.observe(usage);
      started.end(usage, learned);
    },
  };
}

/** If the request cannot be made to fit what the provider accepts, the caller gets its refusal. So it is if
 *  we fail. */
async function fitAgain(
  first: FittedCall,
  again: {
    readonly refusal: Refusal;
    notifyCaller(fitted: FittedCall): void;
    follow(fitted: FittedCall): FittedCall;
    /** Notes a refusal for length. */
    refused(tokens?: number, limit?: number): void;
    readonly onOverflow: "throw" | "pass";
  },
): Promise<FittedCall | undefined> {
  const { refusal, notifyCaller, follow, onOverflow } = again;
  if (refusal.kind === "length") again.refused(refusal.tokens, refusal.limit);
  const fitted = await first.refused(refusal).catch(() => undefined);
  if (fitted === undefined) return undefined;
  notifyCaller(fitted);
  if (fitted.reduction.overflow !== undefined && onOverflow === "throw") return undefined;
  return { ...follow(fitted), refused: (next) => fitAgain(fitted, { ...again, refusal: next }) };
}

/** Returns a counter for the log of calls. Loading one takes a moment. */
function createCounters(own: Counter | undefined): (model: string | undefined) => Promise<Counter> {
  const known = new Map<string | undefined, Promise<Counter>>();
  return async (model) => {
    if (own !== undefined) return own;
    const counter = known.get(model) ?? createCounter("auto", { model });
    known.set(model, counter);
    return counter;
  };
}

/** An id that is not a text, or a callback that throws, falls back to the default. */
function readSessionId<Request>(
  { sessionIdOf, sessionId }: RequestFitterOptions<Request>,
  { request, messages }: BudgetCall<Request>,
  report: ReportFailure,
): string {
  let found: unknown;
  try {
    found = sessionIdOf?.(request) ?? undefined;
    if (found !== undefined && typeof found !== "string")
      throw new TypeError(`it returned a value of type ${typeof found}`);
  } catch (error) {
    report("sessionIdOf", error);
    found = undefined;
  }
  const own = (found as string | undefined) || sessionId;
  if (own !== undefined) return own;
  // A history is appended to, forked or rewound after its first question. So that question identifies a conversation.
  const list = Array.isArray(messages) ? messages : [];
  const first = list.find((message) => Object(message).role === "user");
  return first === undefined ? "default" : nameMessage(first);
}

/** Tools that the provider runs call the model again within one answer. The reported input then is not that of the
 *  request. */
function isOfRequest(usage: unknown): boolean {
  const { server_tool_use: ran } = Object(usage) as Fields;
  return !Object.values(Object(ran)).some((count) => Number(count) > 0);
}

/** The caller's own window may be smaller than the model's. */
function findWindow(model: string | undefined, { contextWindow }: Limits): number {
  try {
    return Math.max(contextWindow, findContextWindow(model).tokens);
  } catch {
    return contextWindow;
  }
}

interface OpenConversation extends Pick<GuardedHooks<object>, "unpinFailed"> {
  readonly fitted: FittedConversation;
  readonly log: ConversationLog;
}

type OpenById = (id: string, how?: "without store") => OpenConversation;

/** Returns a function that opens a conversation, whose callbacks and store cannot stop a call. */
function createOpener<Request>(
  options: RequestFitterOptions<Request>,
  { now, report, calls }: { readonly now: () => number; readonly report: ReportFailure; readonly calls: CallLog },
): OpenById {
  const {
    sessionIdOf: _id,
    onOverflow: _overflow,
    onTrim: _onTrim,
    onUnbound: _onUnbound,
    onCall: _onCall,
    onError: _onError,
    ...rest
  } = options;
  const { cacheLifetimeMs: _lifetime, maxConversations: _max, store, counter, ...own } = rest;
  const guarded = counter && guardCounter(counter, report);
  const hosts = new Set<string>();
  const stores = store && createFallbackStores(store, { now, onFailure: (error) => report("store", error) });
  return (id, how) => {
    const opened = how === "without store" ? undefined : stores?.();
    const { hooks, unpinFailed } = guardHooks(own, report);
    const kept: { store?: Store; intakeStore?: Store } = opened
      ? { store: opened.store, intakeStore: opened.strict }
      : {};
    const fitted = openConversation(id, { ...hooks, ...kept, counter: guarded, hosts, now });
    return { fitted, log: calls.conversation(id), unpinFailed };
  };
}

/** Loads the trimmer, and all that it needs, with the first call: importing a client's wrapper stays cheap. */
function openConversation(...args: Parameters<typeof createConversation>): FittedConversation {
  const opening = import("./conversation.ts").then((module) => module.createConversation(...args));
  return {
    fit: async (call) => (await opening).fit(call),
    preview: async (call) => (await opening).preview(call),
  };
}

interface Conversations {
  get(id: string): OpenConversation;
  /** Returns a conversation without keeping it. */
  peek(id: string): OpenConversation;
  /** Opens a conversation again, without its store. */
  openWithoutStore(id: string): OpenConversation;
}

/** Keeps the conversations that were used last, by id. */
function createConversations(maxKept: number, openById: OpenById): Conversations {
  const known = new Map<string, OpenConversation>();
  const keep = (id: string, conversation: OpenConversation): OpenConversation => {
    known.delete(id);
    known.set(id, conversation);
    const [oldest] = known.keys();
    if (known.size > maxKept && oldest !== undefined) known.delete(oldest);
    return conversation;
  };
  return {
    get: (id) => keep(id, known.get(id) ?? openById(id)),
    peek: (id) => known.get(id) ?? openById(id),
    openWithoutStore: (id) => keep(id, openById(id, "without store")),
  };
}

/** Fits a request, whatever its store holds and its callbacks do. */
async function fitSafely<Request>(
  conversations: Conversations,
  sessionId: string,
  { call, report }: { readonly call: BudgetCall<Request>; readonly report: ReportFailure },
): Promise<{ readonly conversation: OpenConversation; readonly fitted: FittedCall }> {
  let conversation = conversations.get(sessionId);
  let fitted: FittedCall;
  try {
    fitted = await conversation.fitted.fit(call);
  } catch (error) {
    const isStoreProblem = error instanceof ContextError && error.code.startsWith("store_");
    if (!isStoreProblem || error.code === "store_conflict") throw error;
    // The store answers, but what it holds cannot be read.
    report("store", error);
    conversation = conversations.openWithoutStore(sessionId);
    fitted = await conversation.fitted.fit(call);
  }
  // Messages stay if `isPinned` throws, unless the request could not be sent because of that.
  if (fitted.reduction.overflow !== undefined && conversation.unpinFailed()) {
    fitted = await conversation.fitted.fit(call);
  }
  return { conversation, fitted };
}

/** Creates the error for a request that cannot fit: what is too large, by how much, and what to do. */
function overflowError(overflow: Overflow, { contextWindow, reserve }: Limits): ContextError {
  const { tokens, limit, largest } = overflow;
  const taken = Math.max(0, contextWindow - reserve - limit);
  const fixed = `${taken} for system text, tools and margin`;
  const parts = largest.map(
    ({ path, role, kind, tokens: size }) => `${path} (${role} ${kind.replace("_", " ")}, ${size} tokens)`,
  );
  const largestParts = parts.length === 0 ? "" : ` Largest: ${parts.join(", ")}.`;
  const room = `a window of ${contextWindow} less ${reserve} for the answer and ${fixed}`;
  const message = `the smallest request has ${tokens} tokens of messages, but only ${limit} fit (${room}).${largestParts}`;
  return new ContextError("context_overflow", message, {
    hint: 'Shorten the largest parts, raise contextWindow or lower reserve. With onOverflow: "pass" it is sent anyway.',
    overflow,
  });
}

/** Throws on wrong options when an integration is created, not when the first request is sent. `own` are the options of
 *  one integration. */
export function checkBudgetOptions(options: RequestFitterOptions<never>, own: OptionChecks = {}): void {
  checkTrimmerOptions(options, { ...added, ...own });
}

// `format` comes from the integration, `checkpoint` from the store. Both are therefore refused as options.
const added: OptionChecks &
  Readonly<
    Record<
      | Exclude<keyof RequestFitterOptions<never>, keyof TrimmerOptions>
      | Exclude<keyof TrimmerOptions, keyof RequestFitterOptions<never>>
      | "contextWindow",
      unknown
    >
  > = {
  contextWindow: argumentChecks.positive,
  workingBudget: argumentChecks.positive,
  sessionIdOf: argumentChecks.callback,
  maxConversations: argumentChecks.positive,
  onOverflow: argumentChecks.oneOf(["throw", "pass"]),
  onTrim: argumentChecks.callback,
  onUnbound: argumentChecks.callback,
  onCall: argumentChecks.callback,
  onError: argumentChecks.callback,
  intake: checkIntake,
  cacheLifetimeMs: argumentChecks.milliseconds,
  now: argumentChecks.callback,
  format: undefined,
  checkpoint: undefined,
  sealed: undefined,
};

function checkIntake(_name: string, value: unknown): void {
  if (typeof value === "boolean") return;
  const checks = {
    maxResultTokens: argumentChecks.positive,
    pageTokens: argumentChecks.positive,
    deltaWindow: argumentChecks.positive,
    deltas: argumentChecks.flag,
    recallHint: argumentChecks.callback,
  } satisfies Record<keyof IntakeSettings, unknown>;
  checkOptions(value, checks, "true, false or { maxResultTokens: 16_000 }");
}

/** Replaces some fields of an object. Returns the object itself if nothing changes. Two lists are the same if they hold
 *  the same objects. */
export function replaceFields<Body extends object>(body: Body, fields: Partial<Body>): Body {
  const isChanged = ([name, after]: [string, unknown]): boolean => {
    const before: unknown = Reflect.get(body, name);
    if (before === after) return false;
    if (!Array.isArray(before) || !Array.isArray(after) || before.length !== after.length) return true;
    return before.some((each, index) => each !== after[index]);
  };
  const changes = Object.entries(fields).filter(isChanged);
  return changes.length === 0 ? body : { ...body, ...Object.fromEntries(changes) };
}
