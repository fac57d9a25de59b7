/** One conversation of a wrapped client: its trimmer, its intake, and what is known about the provider's cache. */
import type { ModelPrice } from "../../core/billing/index.ts";
import { ContextError } from "../../core/errors.ts";
import { type FormatName, nameMessage } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import { type Fields, isNumber, mapOf, readJson } from "../../core/text/index.ts";
import { billedInputTokens } from "../../core/tokens/index.ts";
import {
  type Checkpoint,
  createTrimmer,
  isRfc,
  lookForDecisions,
  type Reduction,
  type Trimmer,
  type TrimmerOptions,
  type TrimRequest,
} from "../history/index.ts";
import { type CacheLifetimes, type ChosenLifetime, openCacheLifetimes } from "./choose-lifetime.ts";
import { computeLimits, type Limits } from "./context-windows.ts";
import type { ConversationIntake, IntakeSettings } from "./conversation-intake.ts";
import { type Learned, openLearned, type RefusingHosts } from "./learned.ts";
import type { LengthRefusal, Refusal, ThinkingRefusal } from "./refusals.ts";

interface ConversationOptions extends Omit<TrimmerOptions, "contextWindow" | "format" | "checkpoint"> {
  readonly intake?: boolean | IntakeSettings | undefined;
  readonly contextWindow?: number | undefined;
  readonly workingBudget?: number | undefined;
  /** Hosts that refuse `stream_options`, shared by all conversations of a client. */
  readonly hosts: Set<string>;
  /** Where the intake keeps originals.
   * @default the value of `store` */
  readonly intakeStore?: Store | undefined;
  readonly now: () => number;
}

interface ConversationCall extends TrimRequest {
  readonly format: FormatName;
  readonly model: string | undefined;
  readonly maxOutputTokens: number | undefined;
  /** How long the provider's cache lives after a call. */
  readonly cacheLifetimeMs: number;
  /** The prices by which to choose the lifetime of the call's cache markers. Undefined if there is nothing to choose. */
  readonly cachePrice?: ModelPrice | undefined;
}

export interface FittedCall {
  readonly reduction: Reduction;
  readonly limits: Limits;
  readonly hosts: RefusingHosts;
  /** The refusal after which this call was fitted again. */
  readonly learned?: Refusal | undefined;
  /** Whether the provider's cache was lost before the call. */
  readonly isCold: boolean;
  /** Set if the call had a `cachePrice`. */
  readonly lifetime: ChosenLifetime | undefined;
  /** Takes the usage of the answer. */
  observe(usage: unknown): void;
  /** Learns from the provider's refusal, and fits the call again. Returns undefined if that changes nothing. */
  refused(refusal: Refusal): Promise<FittedCall | undefined>;
}

/** One conversation: its trimmer, which is created again from its own state if another model answers, and what is known
 *  about the provider's cache. */
export interface FittedConversation {
  /** Calls take effect one after the other. The decisions of a trim are in the store before `fit` returns. */
  fit(call: ConversationCall): Promise<FittedCall>;
  /** Returns what `fit` would send, without any effect on the conversation or its store. It asks for no summary. */
  preview(call: ConversationCall): Promise<Reduction>;
}

export function createConversation(id: string, options: ConversationOptions): FittedConversation {
  const state: State = {
    id,
    options,
    current: undefined,
    times: undefined,
    learned: undefined,
    lifetimes: undefined,
    intake: undefined,
    prefix: undefined,
    saved: undefined,
    seenMessages: 0,
    isRecorded: options.store !== undefined,
    seenRevision: 0,
    calls: 0,
    observedTokens: 0,
    queue: Promise.resolve(),
  };
  return {
    fit: (call) => takeTurn(state, () => fitNext(state, call)),
    preview: (call) => takeTurn(state, () => previewNext(state, call)),
  };
}

/** Runs after everything that was started before it. */
function takeTurn<Result>(state: State, run: () => Promise<Result>): Promise<Result> {
  const result = state.queue.then(run);
  state.queue = result.catch(() => undefined);
  return result;
}

interface State {
  readonly id: string;
  readonly options: ConversationOptions;
  current: { readonly trimmer: Trimmer; readonly settings: Settings } | undefined;
  times: CallTimes | undefined;
  learned: Learned | undefined;
  lifetimes: CacheLifetimes | undefined;
  intake: ConversationIntake | undefined;
  /** The system text and tools of the last call, and about how many tokens they have. */
  prefix: { readonly system: unknown; readonly tools: unknown; readonly size: number } | undefined;
  /** The trimmer's state after the last trim that was sent. */
  saved: Checkpoint | undefined;
  /** Whether a store has every decision. A preview works without the store and still follows it. */
  readonly isRecorded: boolean;
  /** The number of messages of the last request, if results pass an intake. */
  seenMessages: number;
  /** The revision of the stored checkpoint that this process saw last. */
  seenRevision: number;
  /** The number of the last call. */
  calls: number;
  /** The size of the largest request since the last trim whose usage was observed. */
  observedTokens: number;
  /** Settles when nothing is under way. */
  queue: Promise<unknown>;
}

type Settings = Limits & Pick<ConversationCall, "format" | "model">;

async function fitNext(state: State, call: ConversationCall): Promise<FittedCall> {
  const { options, id } = state;
  state.learned ??= await openLearned(options.store, id, options.hosts);
  const { learned } = state;
  const now = options.now();
  const isCold = await isCacheCold(state, call, now);
  const { trimmer, limits, reduction: reduced } = await reduceAndSave(state, call, isCold);
  // A model that bound thinking once does so after every trim.
  const isUnbound = learned.hasBoundThinking && reduced.isEpoch;
  if (isUnbound) await learned.dropThinking(reduced.messages, firstChange(reduced, call));
  const reduction = learned.withoutThinking(reduced);
  const number = ++state.calls;
  const { after } = reduction.stats;
  const fitted: FittedCall = {
    reduction,
    limits,
    hosts: learned.hosts,
    isCold,
    lifetime: await chooseLifetime(state, call, { reduction, now }),
    observe(usage) {
      // A trimmer takes usage as that of its last request. A request smaller than an earlier one is a side question,
      // such as one for a title. Its usage would make the next estimate worse.
      if (number !== state.calls || after < state.observedTokens) return;
      if (billedInputTokens(usage) === undefined) return;
      trimmer.observe(usage);
      state.observedTokens = after;
    },
    refused: (refusal) => takeTurn(state, () => fitAgain(state, { call, refusal, fitted, number })),
  };
  return fitted;
}

interface RefusedCall {
  readonly call: ConversationCall;
  readonly refusal: Refusal;
  readonly fitted: FittedCall;
  readonly number: number;
}

/** Learns from a refusal and fits the call again. */
async function fitAgain(state: State, refused: RefusedCall): Promise<FittedCall | undefined> {
  const { call, refusal, number } = refused;
  if (refusal.kind === "stream_options") return undefined;
  // What other calls learned meanwhile may be enough. Otherwise the trimmer must see this call last.
  const current = number === state.calls ? undefined : await fitNext(state, call);
  if (current !== undefined && isBetter(current, refused)) return { ...current, learned: refusal };
  if (refusal.kind === "thinking") await learnThinking(state, refusal, refused);
  else await learnLength(state, refusal, refused);
  const again = await fitNext(state, call);
  return isBetter(again, refused) ? { ...again, learned: refusal } : undefined;
}

/** Whether the provider may accept a request that it refused before. */
function isBetter({ reduction }: FittedCall, { refusal, fitted }: RefusedCall): boolean {
  const { messages, stats } = fitted.reduction;
  if (refusal.kind === "length") return reduction.stats.after < stats.after;
  return messages.some((message, index) => message !== reduction.messages[index]);
}

/** Drops the thinking after the first change, or from where the provider says. */
async function learnThinking(state: State, { message }: ThinkingRefusal, { call, fitted }: RefusedCall): Promise<void> {
  const { messages } = fitted.reduction;
  const changed = firstChange(fitted.reduction, call);
  const from = Math.min(message ?? changed, changed);
  await state.learned?.dropThinking(messages, from < messages.length ? from : 0);
}

/** Returns the index of the first message that is not sent as the caller has it. */
function firstChange({ messages }: Reduction, call: ConversationCall): number {
  const index = messages.findIndex((message, each) => message !== call.messages[each]);
  return index < 0 ? messages.length : index;
}

/** Corrects the counter by what the provider counted. If that explains nothing, the window is smaller than assumed. */
async function learnLength(state: State, refusal: LengthRefusal, { call, fitted }: RefusedCall): Promise<void> {
  const { tokens, limit, answer = 0 } = refusal;
  const { reserve } = fitted.limits;
  const fitting = state.current?.trimmer.refused(tokens);
  const windows = [limit, fitting === undefined ? undefined : fitting + reserve].filter((each) => each !== undefined);
  const learned = {
    ...(windows.length > 0 && { contextWindow: Math.min(...windows) }),
    ...(answer > reserve && { reserve: answer }),
  };
  if (Object.keys(learned).length > 0) await state.learned?.addLimits(call.model ?? "", learned);
}

/** Reduces the request with copies of the trimmer and the intake. Nothing saves what they decide. */
async function previewNext(state: State, call: ConversationCall): Promise<Reduction> {
  const { id, options, saved: own, seenRevision, current } = state;
  const { store, intakeStore: _intakeStore, summarise: _summarise, onPressure: _onPressure, ...rest } = options;
  const found = store && (await lookForDecisions(store, id, { revision: seenRevision, own }));
  const saved = current === undefined ? own : await current.trimmer.snapshot();
  const isStored = found?.isNew === true || saved === undefined;
  state.learned ??= await openLearned(store, id, options.hosts);
  const isCold = await isColdNow(state, call, options.now());
  const intake = await (await openIntake(state, call))?.fork();
  const copy: State = { ...state, options: isStored ? { ...rest, store } : rest, current: undefined, saved, intake };
  return state.learned.withoutThinking((await reduceAdmitted(copy, call, isCold)).reduction);
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
      if (!isConflict || attempt === maxAttempts) throw error;
    }
  }
}

/** Each failed attempt means that another process has trimmed, which is rare. */
const maxAttempts = 5;

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

/** Reduces the request with its results as the intake gives them. What a result may refer to depends on the trims before
 *  it, so requests that this process has not seen are replayed one after the other. */
async function reduceAdmitted(state: State, call: ConversationCall, isCold: boolean): Promise<NextReduction> {
  const intake = await openIntake(state, call);
  if (intake === undefined) return reduceNext(state, call, isCold);
  const { messages } = call;
  const { policy = "economic" } = state.options;
  const isFirstSight = state.seenMessages === 0;
  let epochs = 0;
  const unseen = !state.isRecorded && !isRfc(policy) ? intake.findRequests(messages, state.seenMessages) : [];
  for (const length of unseen) {
    const earlier = await reduceOnce(state, intake, { ...call, messages: messages.slice(0, length), isCold: false });
    if (earlier.reduction.isEpoch) epochs++;
  }
  state.seenMessages = Math.max(state.seenMessages, messages.length);
  const next = await reduceOnce(state, intake, { ...call, isCold });
  await intake.save();
  if (epochs === 0) return next;
  const keepsCache = isFirstSight && !next.reduction.isEpoch;
  const derived = { epochs, keepsCache, isComplete: true };
  return { ...next, reduction: { ...next.reduction, isEpoch: true, derived } };
}

async function reduceOnce(
  state: State,
  intake: ConversationIntake,
  { isCold, ...call }: ConversationCall & { readonly isCold: boolean },
): Promise<NextReduction> {
  const reduce = async (): Promise<NextReduction> =>
    reduceNext(state, { ...call, messages: await intake.admit(call.messages, call.tools ?? []) }, isCold);
  let next = await reduce();
  // A trim may remove what a later result refers to. That result gets its original back, which makes the history larger.
  for (let attempt = 0; attempt < 3 && next.reduction.isEpoch; attempt++) {
    if (!(await intake.restore(next.reduction.messages))) break;
    const again = await reduce();
    next = { ...again, reduction: { ...again.reduction, isEpoch: true } };
  }
  return next;
}

async function openIntake(state: State, call: ConversationCall): Promise<ConversationIntake | undefined> {
  const { intake = false, counter, store, intakeStore = store } = state.options;
  if (intake === false) return undefined;
  const settings = intake === true ? {} : intake;
  const { format, model, system = "", messages } = call;
  const markSeed = (): string =>
    nameMessage({ system, first: messages.find((message) => (message as Fields).role === "user") });
  const options = { sessionId: state.id, settings, format, model, counter, store: intakeStore };
  const { openConversationIntake } = await import("./conversation-intake.ts");
  state.intake ??= await openConversationIntake({ ...options, markSeed: markSeed() });
  return state.intake;
}

async function reduceNext(state: State, call: ConversationCall, isCold: boolean): Promise<NextReduction> {
  const { messages, system, tools } = call;
  const { trimmer, settings: limits } = await chooseTrimmer(state, call);
  const reduction = await trimmer.reduceWithSummary({ messages, system, tools }, { isCold });
  return { trimmer, limits, reduction };
}

/** Returns the trimmer with the settings of this call. Decisions stay valid under other settings. */
async function chooseTrimmer(state: State, call: ConversationCall): Promise<NonNullable<State["current"]>> {
  const { current, id } = state;
  const { now: _now, intake: _intake, intakeStore: _intakeStore, hosts: _hosts, ...rest } = state.options;
  const { contextWindow, workingBudget, reserve, ...options } = rest;
  const { format, model, maxOutputTokens = 0 } = call;
  const learned = state.learned?.readLimits(model ?? "");
  const limits = computeLimits({ contextWindow, workingBudget, reserve, model, maxOutputTokens, learned });
  const settings: Settings = { ...limits, format, model };
  const names = ["contextWindow", "workingBudget", "reserve", "format", "model"] as const;
  if (current !== undefined && names.every((name) => current.settings[name] === settings[name])) return current;
  const saved = current === undefined ? state.saved : await current.trimmer.checkpoint();
  // From the store, if there is one: another process may have trimmed the conversation in this moment.
  const checkpoint = options.store === undefined ? saved : undefined;
  const trimmer = await createTrimmer({ ...options, ...settings, sessionId: id, checkpoint });
  state.observedTokens = 0;
  state.current = { trimmer, settings };
  return state.current;
}

/** Whether the cache is lost, because another model wrote it or it has expired. Trimming early then costs nothing
 *  extra. A conversation whose earlier calls are not known may have been served by another process a moment ago, so its
 *  cache counts as warm. */
async function isCacheCold(state: State, call: ConversationCall, now: number): Promise<boolean> {
  state.times ??= await openCallTimes(state.options.store, state.id);
  const isCold = await isColdNow(state, call, now);
  await state.times.note(call.model ?? "", now);
  return isCold;
}

/** Reads only, so that a preview leaves no trace. */
async function isColdNow(state: State, call: ConversationCall, now: number): Promise<boolean> {
  const { options, id } = state;
  const { model = "", cacheLifetimeMs, cachePrice } = call;
  state.times ??= await openCallTimes(options.store, id);
  const before = state.times.last(model);
  const isExpired = before === undefined ? state.times.isKnown : now - before > cacheLifetimeMs;
  if (!isExpired || cachePrice === undefined) return isExpired;
  state.lifetimes ??= await openCacheLifetimes(options.store, id);
  return !state.lifetimes.hasAnchor(cachePrice, now);
}

async function chooseLifetime(
  state: State,
  { cachePrice: price, system, tools }: ConversationCall,
  { reduction, now }: { reduction: Reduction; now: number },
): Promise<ChosenLifetime | undefined> {
  if (price === undefined) return undefined;
  state.lifetimes ??= await openCacheLifetimes(state.options.store, state.id);
  const { messages, stats, isEpoch, derived } = reduction;
  // Roughly: it only has to be the same in every process. Most calls pass the same text and tools again.
  let { prefix } = state;
  if (prefix === undefined || prefix.system !== system || prefix.tools !== tools) {
    prefix = { system, tools, size: Math.ceil(JSON.stringify([system, tools]).length / charsPerToken) };
    state.prefix = prefix;
  }
  const tokens = prefix.size + stats.after;
  return state.lifetimes.choose({
    price,
    nowMs: now,
    messages,
    tokens,
    isRewritten: isEpoch && derived?.keepsCache !== true,
  });
}

const charsPerToken = 4;

/** When a session last called each model. With a store the times survive a restart, so that a warm cache is
 *  recognised. */
interface CallTimes {
  /** Whether the time of an earlier call is known. */
  readonly isKnown: boolean;
  /** Records a call. Returns the time of the previous one, or undefined if it is not known. */
  note(model: string, nowMs: number): Promise<number | undefined>;
  /** Returns the time of the last call, without recording one. */
  last(model: string): number | undefined;
}

/** `forgetHistory` deletes from this collection. */
const collection = "history/calls";

export async function openCallTimes(store: Store | undefined, sessionId: string): Promise<CallTimes> {
  const record = await store?.get(collection, sessionId);
  // Times that cannot be read are ignored.
  const times = new Map(Object.entries(readJson(record?.value, mapOf(isNumber)) ?? {}));
  return {
    get isKnown() {
      return times.size > 0;
    },
    async note(model, nowMs) {
      const before = times.get(model);
      times.set(model, nowMs);
      await store?.put(collection, sessionId, JSON.stringify(Object.fromEntries(times)));
      return before;
    },
    last: (model) => times.get(model),
  };
}
