/** What the integrations share: makes a request of any provider fit, with state for each conversation. */

import { ContextError } from "../errors.ts";
import {
  type Checkpoint,
  checkOptions,
  checkTrimmerOptions,
  createTrimmer,
  type LargePart,
  lookForDecisions,
  type OptionChecks,
  type Overflow,
  optionChecks,
  type Reduction,
  type Trimmer,
  type TrimmerOptions,
  type TrimRequest,
  type TrimStats,
} from "../history/index.ts";
import { type FormatName, nameMessage } from "../messages/index.ts";
import type { Store } from "../store/index.ts";
import { type Fields, isNumber, mapOf, readJson } from "../text/index.ts";
import { billedInputTokens } from "../tokens/index.ts";
import { type Limits, limitsFor } from "./context-windows.ts";
import { type ConversationIntake, type IntakeSettings, openConversationIntake } from "./conversation-intake.ts";

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
  /** Returns the id of the conversation of one request. If it returns undefined, `sessionId` and its default apply. */
  readonly sessionIdOf?: ((request: Request) => string | undefined) | undefined;
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
  /** Set if a summary was asked for: whether it is used, or why not. */
  readonly summary?: Reduction["summary"];
  /** Set if the request still does not fit. */
  readonly overflow?: Reduction["overflow"];
}

export interface BudgetCall<Request> extends TrimRequest {
  readonly request: Request;
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly cacheLifetimeMs: number;
}

export interface RequestFitter<Request> {
  fit(call: BudgetCall<Request>): Promise<FittedCall>;
}

export function createRequestFitter<Request>(options: RequestFitterOptions<Request>): RequestFitter<Request> {
  checkBudgetOptions(options);
  const { sessionIdOf, onOverflow = "throw", onTrim, now = Date.now, cacheLifetimeMs, ...rest } = options;
  const sessions = createConversations((id) => createConversation(id, { ...rest, now }));
  return {
    async fit(call) {
      const model = options.model ?? call.model;
      const sessionId = sessionIdOf?.(call.request) ?? options.sessionId ?? conversationOf(call.messages);
      const lifetimeMs = cacheLifetimeMs ?? call.cacheLifetimeMs;
      const fitted = await sessions(sessionId).fit({ ...call, model, cacheLifetimeMs: lifetimeMs });
      const { isEpoch, stats, summary, overflow } = fitted.reduction;
      if (isEpoch) {
        const set = { ...(summary !== undefined && { summary }), ...(overflow !== undefined && { overflow }) };
        onTrim?.({ sessionId, model, stats, ...set });
      }
      if (overflow !== undefined && onOverflow === "throw") throw overflowError(overflow, fitted.limits);
      return fitted;
    },
  };
}

// A session holds its conversation's messages. One that was dropped and comes back is trimmed again, or resumes from
// its store.
const maxConversations = 100;

/** Keeps the sessions that were used last, by id. */
function createConversations(create: (id: string) => Conversation): (id: string) => Conversation {
  const sessions = new Map<string, Conversation>();
  return (id) => {
    const session = sessions.get(id) ?? create(id);
    sessions.delete(id);
    sessions.set(id, session);
    const [oldest] = sessions.keys();
    if (sessions.size > maxConversations && oldest !== undefined) sessions.delete(oldest);
    return session;
  };
}

/** A history is appended to, forked or rewound after its first question. So the first question identifies a
 *  conversation. */
function conversationOf(messages: readonly object[]): string {
  const list = Array.isArray(messages) ? messages : [];
  const first = list.find((message) => Object(message).role === "user");
  return first === undefined ? "default" : nameMessage(first);
}

/** Creates the error for a request that cannot fit: what is too large, by how much, and what to do. */
function overflowError(overflow: Overflow, { contextWindow, reserve }: Limits): ContextError {
  const { tokens, limit, largest } = overflow;
  const taken = Math.max(0, contextWindow - reserve - limit);
  const fixed = `${taken} for system text, tools and margin`;
  const named = largest.length === 0 ? "" : ` Largest: ${largest.map(describe).join(", ")}.`;
  const room = `a window of ${contextWindow} less ${reserve} for the answer and ${fixed}`;
  const message = `the smallest request has ${tokens} tokens of messages, but only ${limit} fit (${room}).${named}`;
  return new ContextError("context_overflow", message, {
    hint: 'Shorten the largest parts, raise contextWindow or lower reserve. With onOverflow: "pass" it is sent anyway.',
  });
}

function describe({ path, role, kind, tokens }: LargePart): string {
  return `${path} (${role} ${kind.replace("_", " ")}, ${tokens} tokens)`;
}

/** Throws on wrong options when an integration is created, not when the first request is sent. `own` are the options of
 *  one integration. */
export function checkBudgetOptions(options: RequestFitterOptions<never>, own: OptionChecks = {}): void {
  checkTrimmerOptions(options, { ...added, ...own });
}

type Added = Exclude<keyof RequestFitterOptions<never>, keyof TrimmerOptions> | "contextWindow";
type LeftOut = Exclude<keyof TrimmerOptions, keyof RequestFitterOptions<never>>;

// `format` comes from the integration, `checkpoint` from the store. Both are therefore refused as options.
const added: OptionChecks & Readonly<Record<Added | LeftOut, unknown>> = {
  contextWindow: optionChecks.positive,
  workingBudget: optionChecks.positive,
  sessionIdOf: optionChecks.callback,
  onOverflow: optionChecks.oneOf(["throw", "pass"]),
  onTrim: optionChecks.callback,
  intake: checkIntake,
  cacheLifetimeMs: optionChecks.milliseconds,
  now: optionChecks.callback,
  format: undefined,
  checkpoint: undefined,
  sealed: undefined,
};

function checkIntake(_name: string, value: unknown): void {
  if (typeof value === "boolean") return;
  checkOptions(value, {
    ...{
      maxResultTokens: optionChecks.positive,
      pageTokens: optionChecks.positive,
      deltaWindow: optionChecks.positive,
    },
    ...{ deltas: optionChecks.flag, recallHint: optionChecks.callback },
  } satisfies Record<keyof IntakeSettings, unknown>);
}

interface ConversationOptions extends Omit<TrimmerOptions, "contextWindow" | "format" | "checkpoint"> {
  readonly intake?: boolean | IntakeSettings | undefined;
  readonly contextWindow?: number | undefined;
  readonly workingBudget?: number | undefined;
  readonly now: () => number;
}

interface ConversationCall extends TrimRequest {
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly maxOutputTokens: number | undefined;
  /** How long the provider's cache lives after a call. */
  readonly cacheLifetimeMs: number;
}

export interface FittedCall {
  readonly reduction: Reduction;
  readonly limits: Limits;
  /** Takes the usage of the answer. */
  observe(usage: unknown): void;
}

/** One conversation: its trimmer, which is created again from its own state if another model answers, and what is known
 *  about the provider's cache. */
interface Conversation {
  /** Calls take effect one after the other. The decisions of a trim are in the store before `fit` returns. */
  fit(call: ConversationCall): Promise<FittedCall>;
}

function createConversation(id: string, options: ConversationOptions): Conversation {
  const state: State = {
    id,
    options,
    current: undefined,
    times: undefined,
    intake: undefined,
    maxOutputTokens: 0,
    growth: 1,
    saved: undefined,
    seenRevision: 0,
    calls: 0,
    observedTokens: 0,
  };
  let queue: Promise<unknown> = Promise.resolve();
  return {
    fit(call) {
      const fitted = queue.then(() => fitNext(state, call));
      queue = fitted.catch(() => undefined);
      return fitted;
    },
  };
}

interface State {
  readonly id: string;
  readonly options: ConversationOptions;
  current: { readonly trimmer: Trimmer; readonly settings: Settings } | undefined;
  times: CallTimes | undefined;
  intake: ConversationIntake | undefined;
  /** The longest answer that was ever requested. A call that requests a short answer must not change the budget. */
  maxOutputTokens: number;
  /** The factor on the working budget. */
  growth: number;
  /** The trimmer's state after the last trim that was sent. */
  saved: Checkpoint | undefined;
  /** The revision of the stored checkpoint that this process saw last. */
  seenRevision: number;
  /** The number of the last call. */
  calls: number;
  /** The size of the largest request since the last trim whose usage was observed. */
  observedTokens: number;
}

type Settings = Limits & Pick<ConversationCall, "format" | "model">;

async function fitNext(state: State, call: ConversationCall): Promise<FittedCall> {
  const isCold = await isCacheCold(state, call);
  const { trimmer, limits, reduction } = await reduceAndSave(state, call, isCold);
  const number = ++state.calls;
  const { after } = reduction.stats;
  return {
    reduction,
    limits,
    observe(usage) {
      // A trimmer takes usage as that of its last request. A request smaller than an earlier one is a side question,
      // such as one for a title. Its usage would make the next estimate worse.
      if (number !== state.calls || after < state.observedTokens) return;
      if (billedInputTokens(usage) === undefined) return;
      trimmer.observe(usage);
      state.observedTokens = after;
    },
  };
}

/** Reduces the request, and saves the decisions of a trim before anything is sent. If another process has trimmed the
 *  conversation, takes over its decisions first, so that both send the same bytes. */
async function reduceAndSave(state: State, call: ConversationCall, isCold: boolean): Promise<NextReduction> {
  for (let attempt = 1; ; attempt += 1) {
    await takeOverDecisions(state);
    try {
      const next = await reduceAdmitted(state, call, isCold);
      if (!next.reduction.isEpoch) return next;
      state.observedTokens = 0;
      state.saved = await next.trimmer.checkpoint();
      return next;
    } catch (error) {
      const isConflict = error instanceof ContextError && error.code === "store_conflict";
      if (!isConflict || attempt === mostAttempts) throw error;
    }
  }
}

/** Each failed attempt means that another process has trimmed, which is rare. */
const mostAttempts = 5;

async function takeOverDecisions(state: State): Promise<void> {
  const { id, options, saved: own, seenRevision } = state;
  if (options.store === undefined) return;
  const { revision, isNew } = await lookForDecisions(options.store, id, { revision: seenRevision, own });
  state.seenRevision = revision;
  if (!isNew) return;
  // The next trimmer resumes from the store.
  state.current = undefined;
  state.saved = undefined;
}

interface NextReduction {
  readonly trimmer: Trimmer;
  readonly limits: Limits;
  readonly reduction: Reduction;
}

/** Reduces the request with its results as the intake gives them. */
async function reduceAdmitted(state: State, call: ConversationCall, isCold: boolean): Promise<NextReduction> {
  const intake = await intakeFor(state, call);
  if (intake === undefined) return reduceNext(state, call, isCold);
  const reduce = async (): Promise<NextReduction> =>
    reduceNext(state, { ...call, messages: await intake.admit(call.messages, call.tools ?? []) }, isCold);
  let next = await reduce();
  // A trim may remove what a later result refers to. That result gets its original back, which makes the history larger.
  for (let attempt = 0; attempt < 3 && next.reduction.isEpoch; attempt++) {
    if (!(await intake.restore(next.reduction.messages))) break;
    const again = await reduce();
    next = { ...again, reduction: { ...again.reduction, isEpoch: true } };
  }
  await intake.save();
  return next;
}

async function intakeFor(state: State, call: ConversationCall): Promise<ConversationIntake | undefined> {
  const { intake = false, counter, store } = state.options;
  if (intake === false) return undefined;
  const settings = intake === true ? {} : intake;
  const { format, model, system = "", messages } = call;
  const markSeed = (): string =>
    nameMessage({ system, first: messages.find((message) => (message as Fields).role === "user") });
  const options = { sessionId: state.id, settings, format, model, counter, store };
  state.intake ??= await openConversationIntake({ ...options, markSeed: markSeed() });
  return state.intake;
}

/** Reduces the request. If a trim leaves the working budget nearly full, the conversation needs more than that: the trim
 *  is undone, and the budget doubles. */
async function reduceNext(state: State, call: ConversationCall, isCold: boolean): Promise<NextReduction> {
  const { messages, system, tools } = call;
  for (;;) {
    const { trimmer, settings: limits } = await trimmerFor(state, call);
    const reduction = await trimmer.reduceWithSummary({ messages, system, tools }, { isCold });
    const { isEpoch, overflow, stats } = reduction;
    const isCramped = overflow !== undefined || (isEpoch && stats.after > crampedShare * stats.budget);
    if (!isCramped || !limits.canGrow) return { trimmer, limits, reduction };
    state.growth *= 2;
    state.current = undefined;
  }
}

// Above this share of its budget, the next trim would follow soon.
const crampedShare = 0.7;

/** Returns the trimmer with the settings of this call. Decisions stay valid under other settings. */
async function trimmerFor(state: State, call: ConversationCall): Promise<NonNullable<State["current"]>> {
  const { current, id } = state;
  const { now: _now, intake: _intake, contextWindow, workingBudget, reserve, ...options } = state.options;
  const { format, model } = call;
  state.maxOutputTokens = Math.max(state.maxOutputTokens, call.maxOutputTokens ?? 0);
  const { maxOutputTokens, growth } = state;
  const limits = limitsFor({ contextWindow, workingBudget, growth, reserve, model, maxOutputTokens });
  const settings: Settings = { ...limits, format, model };
  if (current !== undefined && isSame(current.settings, settings)) return current;
  const saved = current === undefined ? state.saved : await current.trimmer.checkpoint();
  const { canGrow: _canGrow, ...own } = settings;
  // From the store, if there is one: another process may have trimmed the conversation in this moment.
  const checkpoint = options.store === undefined ? saved : undefined;
  const trimmer = await createTrimmer({ ...options, ...own, sessionId: id, checkpoint });
  state.observedTokens = 0;
  state.current = { trimmer, settings };
  return state.current;
}

function isSame(known: Settings, asked: Settings): boolean {
  const names = ["contextWindow", "reserve", "canGrow", "format", "model"] as const;
  return names.every((name) => known[name] === asked[name]);
}

/** Whether the cache is lost, because another model wrote it or it has expired. Trimming early then costs nothing
 *  extra. */
async function isCacheCold(state: State, { model = "", cacheLifetimeMs }: ConversationCall): Promise<boolean> {
  const { options, id } = state;
  state.times ??= await openCallTimes(options.store, id);
  const now = options.now();
  const before = await state.times.note(model, now);
  return before === undefined || now - before > cacheLifetimeMs;
}

/** When a session last called each model. With a store the times survive a restart, so that a warm cache is
 *  recognised. */
interface CallTimes {
  /** Records a call. Returns the time of the previous one, or undefined if it is not known. */
  note(model: string, nowMs: number): Promise<number | undefined>;
}

/** `forgetHistory` deletes from this collection. */
const collection = "history/calls";

export async function openCallTimes(store: Store | undefined, sessionId: string): Promise<CallTimes> {
  const times = parseTimes((await store?.get(collection, sessionId))?.value);
  return {
    async note(model, nowMs) {
      const before = times.get(model);
      times.set(model, nowMs);
      await store?.put(collection, sessionId, JSON.stringify(Object.fromEntries(times)));
      return before;
    },
  };
}

/** Ignores times that cannot be read. */
function parseTimes(value: string | undefined): Map<string, number> {
  return new Map(Object.entries(readJson(value, isTimes) ?? {}));
}

const isTimes = mapOf(isNumber);

/** Replaces some fields of an object. Returns the object itself if nothing changes. */
export function replaceFields<Body extends object>(body: Body, fields: Partial<Body>): Body {
  const changes = Object.entries(fields).filter(([name, value]) => !isSameField(Reflect.get(body, name), value));
  return changes.length === 0 ? body : { ...body, ...Object.fromEntries(changes) };
}

/** Two lists are the same if they hold the same objects. */
function isSameField(before: unknown, after: unknown): boolean {
  if (before === after) return true;
  if (!Array.isArray(before) || !Array.isArray(after) || before.length !== after.length) return false;
  return before.every((each, index) => each === after[index]);
}
