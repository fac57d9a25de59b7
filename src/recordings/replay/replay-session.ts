/** Replays one recorded session with one policy at one window: what every call sends and what it costs. */

import {
  createReplayTrimmer,
  type PolicyName,
  policyNames,
  type ReplayTrimmer,
} from "../../conversation/history/index.ts";
import { createIntake, createMessageIntake } from "../../conversation/intake/index.ts";
import {
  type Bill,
  type BillableBlock,
  createReplaySimulator,
  type Prices,
  priceOf,
  providerOfModel,
  type ReplaySimulator,
  type Ttl,
} from "../../core/billing/index.ts";
import { bindsThinking } from "../../core/messages/index.ts";
import { type KindTokens, noTokens, type PreparedSession, type SentKind, sentKinds } from "./prepare-session.ts";
import { type ReferenceTotals, referenceKinds, type Tally } from "./references.ts";
import { createRequestObserver, noReferences, type ObserverOptions, type Removal } from "./request-observer.ts";

export interface SessionReplay {
  readonly calls: readonly CallReplay[];
  readonly totals: ReplayTotals;
}

export interface ReplayOptions extends ObserverOptions, Pick<PolicyOptions, "window" | "reserve" | "prefixTokens"> {
  readonly prices?: Prices | undefined;
  /** The provider's cache as earlier stretches of the session left it. By default it is empty. */
  readonly cache?: ReplaySimulator | undefined;
  /** Whether the provider's cache was lost before a call, by the call's index. By default never. */
  readonly isCold?: ((call: number) => boolean) | undefined;
  /** When a call was sent, in milliseconds, by the call's index. By default no time passes, so that nothing expires. */
  readonly startOf?: ((call: number) => number | undefined) | undefined;
  /** The lifetime that every marker asks for.
   * @default "5m" */
  readonly ttl?: Ttl | undefined;
  /** A clock in milliseconds. Without it, turns take no time. */
  readonly now?: (() => number) | undefined;
  /** Called after each call with the number of calls so far, and awaited. It lets a long replay yield to other work. */
  readonly pause?: ((done: number) => Promise<void> | undefined) | undefined;
}

/** Replays the stretches of a session, or a session that has only one, with one of our policies. All stretches share
 *  one trimmer and one cache. Where a recording starts a new stretch, the client changed the history: that is not
 *  counted as a break. */
export async function replaySession(
  session: PreparedSession | readonly [PreparedSession, ...PreparedSession[]],
  options: ReplayOptions & PolicyOptions,
): Promise<SessionReplay> {
  const stretches = "messages" in session ? ([session] as const) : session;
  const [trimming, intake] = options.policy.split("+") as [Trimming, IntakeMode?];
  const trimmer = trimming === "none" ? undefined : await createPolicyTrimmer(stretches[0], trimming, options);
  const cache = options.cache ?? createSimulator(stretches[0], options.prices);
  const replays: SessionReplay[] = [];
  let done = 0;
  for (const stretch of stretches) {
    const before = done;
    const pause = (count: number) => options.pause?.(before + count);
    const reduce = await withIntake(createPolicyReducer(stretch, trimmer, trimming), stretch, intake);
    const isCold = (call: number) => options.isCold?.(before + call) ?? false;
    const startOf = (call: number) => options.startOf?.(before + call);
    const replay = await replayReducer(stretch, reduce, { ...options, cache, pause, isCold, startOf });
    replays.push(before === 0 ? replay : withoutFirstBreak(replay));
    done += stretch.calls.length;
  }
  const [first] = replays;
  if (replays.length === 1 && first !== undefined) return first;
  return { calls: replays.flatMap(({ calls }) => calls), totals: addTotals(replays.map(({ totals }) => totals)) };
}

/** Runs the tool results of a stretch through an intake before the policy sees them. A stretch starts with an empty
 *  context, because the client has changed the history. */
async function withIntake(reduce: Reducer, { reader, counter }: PreparedSession, mode?: IntakeMode): Promise<Reducer> {
  if (mode === undefined) return reduce;
  const limits = mode === "delta" ? { maxResultTokens: Number.MAX_SAFE_INTEGER } : {};
  const intake = createMessageIntake(
    reader.lens,
    await createIntake({ counter, sessionId: "replay", deltas: mode !== "page", ...limits }),
  );
  return async (history, call) => {
    let sent = await reduce(await intake.admit(history, call.known), call);
    // A restored text makes the history larger, so the policy decides again.
    for (let attempt = 0; attempt < 3 && sent.isEpoch && (await intake.restore(sent.messages)); attempt++) {
      sent = { ...(await reduce(await intake.admit(history, 0), { ...call, known: 0 })), same: 0 };
    }
    return sent;
  };
}

function withoutFirstBreak({ calls: [first, ...rest], totals }: SessionReplay): SessionReplay {
  if (first === undefined || !first.bill.isBreak) return { calls: first === undefined ? [] : [first, ...rest], totals };
  const changed = { ...first, bill: { ...first.bill, isBreak: false } };
  return { calls: [changed, ...rest], totals: { ...totals, breaks: totals.breaks - 1 } };
}

/** Replays a session with any reducer. Only the reducer is timed. */
export async function replayReducer(
  session: PreparedSession,
  reduce: Reducer,
  options: ReplayOptions,
): Promise<SessionReplay> {
  const { now = () => 0, isCold = () => false } = options;
  const meter = createMeter(session, options);
  let elapsedMs = 0;
  // One list that grows: a copy for each call would take most of the time of a session of thousands of calls.
  const messages: object[] = [];
  for (const [index, length] of session.calls.entries()) {
    const call = { isCold: isCold(index), known: messages.length };
    while (messages.length < length) messages.push(session.messages[messages.length] as object);
    const started = now();
    const reduced = reduce(messages, call);
    const sent = reduced instanceof Promise ? await reduced : reduced;
    elapsedMs += now() - started;
    meter.add(sent, messages, call.isCold);
    const paused = options.pause?.(index + 1);
    if (paused !== undefined) await paused;
  }
  const { calls, references } = meter.finish();
  return { calls, totals: { ...sumCalls(calls, elapsedMs), references } };
}

/** Measures the requests of a session, one call after the other. */
function createMeter(session: PreparedSession, { window, reserve, ttl = "5m", ...options }: ReplayOptions) {
  const prefixTokens = options.prefixTokens + session.prefixTokens + session.frameTokens;
  const request = createSentRequest({ prefixTokens, blocksOf: session.blocksOf });
  const simulator = options.cache ?? createSimulator(session, options.prices);
  const observer = createRequestObserver(session, options);
  const addThinking = createThinkingBill(session, options.prices);
  const calls: CallReplay[] = [];
  return {
    add({ messages, same, breakpoints, isEpoch, keptShare }: Sent, given: readonly object[], isCold: boolean): void {
      const unchanged = request.update(messages, same);
      const { blocks, tokens } = request;
      const places = [0, ...breakpoints.map(request.findLastBlock), blocks.length - 1];
      const markers = places.map((after) => ({ after, ttl }));
      const startMs = options.startOf?.(calls.length);
      const sameBlocks = calls.length === 0 ? 0 : request.findLastBlock(unchanged - 1) + 1;
      const input = simulator.bill({ blocks, breakpoints: markers, isCold, startMs }, sameBlocks);
      const bill = addThinking(input, tokens.thinking, session.messages[given.length]);
      const removed = observer.add({ given, sent: messages, unchanged, isEpoch });
      const isOver = bill.total > window - reserve;
      calls.push({ tokens: { ...tokens }, isEpoch, keptShare, bill, isOver, removed, isInvalid: false });
    },
    finish(): Pick<SessionReplay, "calls"> & Pick<ReplayTotals, "references"> {
      const { references, brokenRules } = observer.finish();
      for (const [index, invalidRule] of brokenRules.entries())
        if (invalidRule !== undefined) Object.assign(calls[index] as object, { isInvalid: true, invalidRule });
      return { calls, references };
    },
  };
}

/** Returns a function that adds what an answer costs more because a model that binds thinking no longer has all of it: it
 *  thinks again, so its answers get longer. */
function createThinkingBill(
  { model, blocksOf }: PreparedSession,
  prices: Prices | undefined,
): (bill: Bill, sentThinking: number, answer: object | undefined) => Bill {
  if (!bindsThinking(model)) return (bill) => bill;
  const price = priceOf({ provider: "anthropic", model, prices });
  let [losses, calls, before] = [0, 0, 0];
  return (bill, sentThinking, answer) => {
    calls++;
    if (sentThinking < before) losses++;
    before = sentThinking;
    const answered = answer === undefined ? 0 : blocksOf(answer).blocks.reduce((sum, { tokens }) => sum + tokens, 0);
    const more = estimateGrowth(losses, calls) * answered;
    if (more === 0) return bill;
    return {
      ...bill,
      cost: bill.cost + (more * price.output) / price.input,
      usd: bill.usd + (more * price.output) / 1e6,
    };
  };
}

/** How much more output a session has at high effort, which is the API's default, as a share of it: with one loss of
 *  thinking, and with a loss before every answer. Source: platform.claude.com/docs/en/build-with-claude, preserved
 *  thinking, 2026-10. */
const outputGrowth = { once: 0.045, always: 0.103 } as const;

/** Returns the share by which the next answer is longer, after the calls so far and those of them that lost thinking.
 *  Between one loss and one before each answer, it grows with their number: nothing between the two is published. */
export function estimateGrowth(losses: number, calls: number): number {
  if (losses === 0) return 0;
  const { once, always } = outputGrowth;
  return once + (always - once) * Math.min(1, (losses - 1) / Math.max(1, calls - 1));
}

function createSimulator({ model }: PreparedSession, prices: Prices | undefined): ReplaySimulator {
  const provider = (model === undefined ? undefined : providerOfModel(model)) ?? "anthropic";
  return createReplaySimulator({ provider, model, prices });
}

/** What a call sends. It is kept between calls, so that only changed messages are read. */
interface SentRequest {
  readonly blocks: readonly BillableBlock[];
  readonly tokens: KindTokens;
  /** Takes the messages of the next call. Returns how many at the start are the same objects as before; `known` of them
   *  need not be compared. */
  update(messages: readonly object[], known?: number): number;
  /** Returns the index of the last block of a message, or of the prefix for -1. */
  findLastBlock(message: number): number;
}

export function createSentRequest({
  prefixTokens,
  blocksOf,
}: Pick<PreparedSession, "prefixTokens" | "blocksOf">): SentRequest {
  // A stretch with other tools or another system text has another prefix.
  const blocks: BillableBlock[] = [{ key: `prefix of ${prefixTokens}`, tokens: prefixTokens, kind: "prefix" }];
  const sent: object[] = [];
  /** For each message, the number of blocks up to its end. */
  const ends: number[] = [];
  const tokens = { ...noTokens(), prefix: prefixTokens };
  return {
    blocks,
    tokens,
    update(messages, known = 0) {
      const most = Math.min(sent.length, messages.length);
      let same = Math.min(known, most);
      while (same < most && sent[same] === messages[same]) same++;
      for (const message of sent.splice(same)) add(tokens, blocksOf(message).tokens, -1);
      ends.length = same;
      blocks.length = ends.at(-1) ?? 1;
      for (let index = same; index < messages.length; index++) {
        const message = messages[index] as object;
        const read = blocksOf(message);
        for (const block of read.blocks) blocks.push(block);
        add(tokens, read.tokens, 1);
        sent.push(message);
        ends.push(blocks.length);
      }
      return same;
    },
    findLastBlock: (message) => (message < 0 ? 0 : (ends[message] as number) - 1),
  };
}

function add(sum: Record<SentKind, number>, tokens: KindTokens, factor: 1 | -1): void {
  for (const kind of sentKinds) sum[kind] += factor * tokens[kind];
}

/** Decides what to send instead of a history. Called once per call, in order, with the same list: it has grown by the
 *  messages that are new. */
export type Reducer = (
  messages: readonly object[],
  call: {
    readonly isCold: boolean;
    /** The number of messages on the previous call.
     *  @default 0 */
    readonly known?: number | undefined;
  },
) => Sent | Promise<Sent>;

export interface Sent {
  /** Messages that are the same objects as on the previous call are not read again. The list may change on the next
   *  call. */
  readonly messages: readonly object[];
  /** How many at the start are known to be the same objects as on the previous call. Only the others are compared.
   *  @default 0 */
  readonly same?: number | undefined;
  /** Whether this call changed what was sent before. */
  readonly isEpoch: boolean;
  /** The share of all tokens so far that can still be read. */
  readonly keptShare: number;
  /** Indexes of sent messages after which to put a cache marker, in addition to those after the prefix and at the
   *  end. */
  readonly breakpoints: readonly number[];
}

/** The policies that `replay` compares. `none` sends everything. */
export const replayPolicies: readonly Trimming[] = ["none", ...policyNames];
/** With a mode of the intake, results are also shortened before they are first sent, as in `economic+delta`. */
export type ReplayPolicy = Trimming | `${Trimming}+${IntakeMode}`;
type Trimming = PolicyName | "none";

export const intakeModes = ["delta", "page", "all"] as const;
export type IntakeMode = (typeof intakeModes)[number];

interface PolicyOptions {
  readonly policy: ReplayPolicy;
  /** The model's limit, in tokens. */
  readonly window: number;
  /** Tokens kept free for the answer. */
  readonly reserve: number;
  /** Tokens of tools and system text that are neither in a message nor in the session. */
  readonly prefixTokens: number;
  readonly keep?: number | undefined;
  readonly threshold?: number | undefined;
}

async function createPolicyTrimmer(
  { format, counter, model, reader }: PreparedSession,
  policy: PolicyName,
  { window, reserve, prefixTokens, keep, ...options }: PolicyOptions,
): Promise<ReplayTrimmer> {
  const threshold = isRfc(policy) ? options.threshold : undefined;
  const settings = { contextWindow: window, policy, reserve, prefixTokens, keep, threshold };
  return createReplayTrimmer({ ...settings, format, counter, model, sealed: "readable" }, reader);
}

/** Creates a reducer that sends what the trimmer returns, or everything if there is none. */
function createPolicyReducer(
  { system, tools, frameTokens }: PreparedSession,
  trimmer: ReplayTrimmer | undefined,
  policy: Trimming,
): Reducer {
  if (trimmer === undefined) {
    return (messages, { known }) => ({ messages, same: known, isEpoch: false, keptShare: 1, breakpoints: [] });
  }
  return (messages, call) => {
    const { reduction, same } = trimmer({ messages, system, tools }, call);
    const { stats, isEpoch } = reduction;
    const [before, kept] = [stats.before - frameTokens, stats.kept - frameTokens];
    return {
      messages: reduction.messages,
      same,
      isEpoch,
      keptShare: before > 0 ? kept / before : 1,
      // The RFC does not set its own markers.
      breakpoints: isRfc(policy) ? [] : reduction.breakpoints,
    };
  };
}

function isRfc(policy: Trimming): boolean {
  return policy === "rfc" || policy === "rfc-headroom";
}

/** The totals of one or more sessions under one policy at one window. */
export interface ReplayTotals {
  readonly calls: number;
  /** The cost of all input, expressed as full-price tokens, and on models that bind thinking what answers cost more
   *  because thinking was lost. */
  readonly cost: number;
  /** The same in dollars. */
  readonly usd: number;
  /** Calls that read less from the cache than the previous call left there. */
  readonly breaks: number;
  /** Calls that were too large. */
  readonly overWindow: number;
  /** Calls whose request the provider would refuse. */
  readonly invalid: number;
  /** How many of these calls break each rule first. */
  readonly invalidRules: Readonly<Record<string, number>>;
  /** The mean over all calls of the share that can still be read. */
  readonly visibleShare: number;
  readonly msPerTurn: number;
  /** What the turns referred to, and how much of it the requests contained. */
  readonly references: ReferenceTotals;
}

export interface CallReplay {
  /** The tokens as sent. */
  readonly tokens: KindTokens;
  /** Whether this call changed what was sent before. */
  readonly isEpoch: boolean;
  readonly bill: Bill;
  /** The share of all tokens so far that can still be read. */
  readonly keptShare: number;
  /** Whether the call has more tokens than the window leaves beside the reserve. */
  readonly isOver: boolean;
  /** Whether the provider would refuse the request. */
  readonly isInvalid: boolean;
  /** The first rule that the request breaks. */
  readonly invalidRule?: string | undefined;
  /** What the call removed, if it is an epoch and removals are looked for. */
  readonly removed?: Removal | undefined;
}

function sumCalls(calls: readonly CallReplay[], elapsedMs: number): Omit<ReplayTotals, "references"> {
  const sums = { cost: 0, usd: 0, breaks: 0, overWindow: 0, invalid: 0 };
  const rules: string[] = [];
  let shares = 0;
  for (const { bill, keptShare, isOver, isInvalid, invalidRule } of calls) {
    sums.cost += bill.cost;
    sums.usd += bill.usd;
    sums.breaks += Number(bill.isBreak);
    sums.overWindow += Number(isOver);
    sums.invalid += Number(isInvalid);
    shares += keptShare;
    if (invalidRule !== undefined) rules.push(invalidRule);
  }
  return {
    calls: calls.length,
    ...sums,
    invalidRules: sumCounts(rules.map((rule) => [rule, 1])),
    visibleShare: average(shares, calls.length, 1),
    msPerTurn: average(elapsedMs, calls.length, 0),
  };
}

/** Adds up several sessions. Means are over all their calls. */
export function addTotals(all: readonly ReplayTotals[]): ReplayTotals {
  const sum = (value: (totals: ReplayTotals) => number): number => all.reduce((total, each) => total + value(each), 0);
  const calls = sum((each) => each.calls);
  return {
    calls,
    cost: sum(({ cost }) => cost),
    usd: sum(({ usd }) => usd),
    breaks: sum(({ breaks }) => breaks),
    overWindow: sum(({ overWindow }) => overWindow),
    invalid: sum(({ invalid }) => invalid),
    invalidRules: sumCounts(all.flatMap(({ invalidRules }) => Object.entries(invalidRules))),
    visibleShare: average(
      sum((each) => each.visibleShare * each.calls),
      calls,
      1,
    ),
    msPerTurn: average(
      sum((each) => each.msPerTurn * each.calls),
      calls,
      0,
    ),
    references: sumReferences(all.map(({ references }) => references)),
  };
}

function sumReferences(all: readonly ReferenceTotals[]): ReferenceTotals {
  const sum = noReferences();
  const add = (into: Tally, { found, total }: Tally): void => {
    into.found += found;
    into.total += total;
  };
  for (const each of all) {
    for (const kind of referenceKinds) {
      add(sum[kind], each[kind]);
      add(sum[kind].far, each[kind].far);
    }
    add(sum.filesNamed, each.filesNamed);
    add(sum.notes, each.notes);
    sum.refetches += each.refetches;
  }
  return sum;
}

function sumCounts(counts: readonly (readonly [name: string, count: number])[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
  return Object.fromEntries(sums);
}

/** Returns `otherwise` if there were no calls. */
function average(sum: number, count: number, otherwise: number): number {
  return count === 0 ? otherwise : sum / count;
}
