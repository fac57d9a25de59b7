/** Replays a recorded session as the provider billed it: counts are fitted to the recorded usage, requests have their
 *  recorded times and the recorded model, and the cache is lost where the recording shows it. `bill --what-if` and
 *  `replay` share it, so that both give the same figures. */

import {
  createReplaySimulator,
  inputCost,
  type Prices,
  type ReplaySimulator,
  type Ttl,
} from "../../core/billing/index.ts";
import type { ContextError } from "../../core/errors.ts";
import { problemWithWindow } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { type PreparedSession, prepareStretches } from "../replay/prepare-session.ts";
import { type CallReplay, replaySession, type SessionReplay } from "../replay/replay-session.ts";
import type { RecordedSession } from "../sessions/recorded-session.ts";
import { describePrice } from "../sessions/recorded-usage.ts";
import { findLosses, type Loss } from "./find-losses.ts";
import type { BilledCall, BilledSession } from "./price-calls.ts";

export interface RecordedReplay {
  /** The model with most of the tokens. All calls are simulated with it. */
  readonly model: string;
  readonly counter: Counter;
  readonly stretches: readonly [PreparedSession, ...PreparedSession[]];
  /** Tokens of tools and system text, as the provider counts them. */
  readonly prefixTokens: number;
  /** Input dollars that were recorded. */
  readonly usd: number;
  /** The simulated bill of what was sent, divided by the recorded one. */
  readonly fit: number;
  /** Whether all requests leave the reserve free, so that a policy has nothing to trim. */
  isRoomy(window: number, reserve: number): boolean;
  /** Returns why a window leaves no room for messages, or undefined. */
  findProblem(window: number, reserve: number): ContextError | undefined;
  /** Replays the session with a policy. The window and all results are in tokens as the provider counts them, and
   *  everything sent as it was costs what was recorded. */
  run(options: RecordedRunOptions): Promise<SessionReplay>;
}

export interface RecordedRunOptions
  extends Omit<Parameters<typeof replaySession>[1], "window" | "reserve" | "prefixTokens" | "prices" | "cache"> {
  /** By default there is no limit. */
  readonly window?: number | undefined;
  readonly reserve?: number | undefined;
}

export interface RecordedReplayOptions extends Pick<RecordedRunOptions, "findsInvalid"> {
  /** The session with the calls that other sessions have too. A fork is fitted from its beginning.
   *  @default the session itself */
  readonly whole?: RecordedSession | undefined;
  readonly counter: Counter;
  readonly prices: Prices;
  readonly pause?: (() => Promise<void> | undefined) | undefined;
}

/** The share by which a simulated bill may differ from the recorded one. */
const maxDifference = 0.05;

/** Returns a reason if the session cannot be simulated. */
export async function prepareRecordedReplay(
  recorded: RecordedSession,
  billed: BilledSession,
  options: RecordedReplayOptions,
): Promise<RecordedReplay | string> {
  const calls = billed.calls.filter(({ fact, isCopy }) => fact.chain === 0 && !isCopy);
  const model = findMainModel(calls);
  const typical = calls.find(({ fact }) => fact.model === model);
  if (model === undefined || typical?.price === undefined) return "its model has no price of its own";
  const { price } = typical;
  const counter = countOnce(options.counter);
  const [first, ...rest] = prepareStretches(recorded, { counter, model }).filter((stretch) => stretch.calls.length > 0);
  if (first === undefined) return "it has no calls";
  const stretches = [first, ...rest] as const;
  const simulated = stretches.reduce((sum, stretch) => sum + stretch.calls.length, 0);
  if (simulated !== calls.length) return "its requests cannot be matched with its usage";
  const ttl = calls.reduce((sum, { fact }) => sum + fact.write1h - fact.write5m, 0) > 0 ? "1h" : "5m";
  // As if all calls had the same model, because the simulator has one.
  const recordedUsd = calls.reduce((sum, { fact }) => sum + inputCost(fact, price).usd, 0);
  const { pause, findsInvalid } = options;
  const tryFit = async (fit: TokenFit) => {
    const simulate = createSimulation({ stretches, calls, fit, ttl, typical, billed, options });
    const asSent = await simulate({ policy: "none", pause, findsInvalid });
    return { fit, simulate, asSent, ratio: (asSent.totals.usd * fit.factor) / recordedUsd };
  };
  const isClose = (tried: Awaited<ReturnType<typeof tryFit>> | undefined): boolean =>
    tried !== undefined && Math.abs(tried.ratio - 1) <= maxDifference;
  let best: Awaited<ReturnType<typeof tryFit>> | undefined;
  for (const fit of listFits(options.whole ?? recorded, { billed, counter, model, stretches, calls })) {
    if (!isClose(best)) best = await tryFit(fit);
  }
  if (best === undefined) return "its messages do not explain its usage";
  const { fit, simulate, asSent, ratio } = best;
  const { totals: base } = asSent;
  if (!isClose(best)) return `simulated as ${(100 * ratio).toFixed(0)} % of what was recorded`;
  const cost = calls.reduce((sum, call) => sum + inputCost(call.fact, call.price ?? price).cost, 0);
  const usd = calls.reduce((sum, call) => sum + (call.price ? inputCost(call.fact, call.price).usd : 0), 0);
  const factors = { tokens: fit.factor, cost: cost / base.cost, usd: usd / base.usd };
  const largest = calls.reduce((most, { total }) => Math.max(most, total), 0);
  const isRoomy = (window: number, reserve: number): boolean => largest + reserve <= window;
  const prefixTokens = Math.round((fit.prefix + first.prefixTokens + first.frameTokens) * fit.factor);
  return {
    model,
    counter: options.counter,
    stretches,
    usd,
    fit: ratio,
    isRoomy,
    prefixTokens,
    findProblem: (window, reserve) =>
      isRoomy(window, reserve)
        ? undefined
        : problemWithWindow(window, { reserve: Math.min(reserve, window / 2), prefixTokens }),
    async run({ window = noWindow, reserve = 0, ...run }) {
      if (run.policy === "none" && (run.ttl ?? ttl) === ttl) {
        return scaleReplay(withRoom(asSent, countRoom({ window, reserve }, fit)), factors);
      }
      // These requests are known to fit. Inexact counts must not cause a trim, so there is no window.
      const most = run.policy === "economic" && isRoomy(window, reserve) ? noWindow : window;
      return scaleReplay(await simulate({ ...run, window: most, reserve }), factors);
    },
  };
}

const noWindow = 1_000_000_000;

/** All variants send the same texts. Each text is counted once. */
function countOnce({ name, count }: Counter): Counter {
  const known = new Map<string, number>();
  return {
    name,
    count(text) {
      if (text.length < leastRemembered) return count(text);
      const tokens = known.get(text) ?? count(text);
      known.set(text, tokens);
      return tokens;
    },
  };
}

/** Counting a shorter text is as fast as looking up its count. */
const leastRemembered = 200;

function findMainModel(calls: readonly BilledCall[]): string | undefined {
  const tokens = new Map<string, number>();
  for (const { fact, total } of calls) tokens.set(fact.model, (tokens.get(fact.model) ?? 0) + total);
  return [...tokens].sort(([, left], [, right]) => right - left)[0]?.[0];
}

interface TokenFit {
  /** Recorded tokens for one counted token. */
  readonly factor: number;
  /** Counted tokens of what the messages do not show: tools and system text. */
  readonly prefix: number;
}

interface FitContext {
  readonly billed: BilledSession;
  readonly counter: Counter;
  readonly model: string;
  readonly stretches: readonly PreparedSession[];
  readonly calls: readonly BilledCall[];
}

/** Returns the possible fits, the best first: the whole session with its first call exact, the own calls with their
 *  first call exact, and all own calls alike. */
function listFits(
  whole: RecordedSession,
  { billed, counter, model, stretches, calls }: FitContext,
): readonly TokenFit[] {
  const all = billed.calls.filter(({ fact }) => fact.chain === 0);
  const isFork = all.length > calls.length;
  const complete = isFork ? prepareStretches(whole, { counter, model }) : stretches;
  const own = [stretches.flatMap(countRequests), calls.map(({ total }) => total)] as const;
  const counted = isFork ? complete.flatMap(countRequests) : own[0];
  const fromFirst =
    counted.length === all.length
      ? fitTokens(
          counted,
          all.map(({ total }) => total),
          1,
        )
      : undefined;
  return [fromFirst, fitTokens(...own, 1), fitTokens(...own, calls.length)].filter((fit) => fit !== undefined);
}

/** Fits recorded totals = factor × (prefix + counted tokens) over all calls. The mean of the first calls is exact: the
 *  first one shows best what requests have besides messages. */
function fitTokens(counted: readonly number[], totals: readonly number[], exact: number): TokenFit | undefined {
  const mean = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0) / list.length;
  const [baseX, baseY] = [mean(counted.slice(0, exact)), mean(totals.slice(0, exact))];
  const over = counted.reduce((sum, x, at) => sum + (x - baseX) * ((totals[at] as number) - baseY), 0);
  const under = counted.reduce((sum, x) => sum + (x - baseX) ** 2, 0);
  // One call, or calls of one size, show no slope.
  const slope = under > 0 ? over / under : 1;
  const prefix = slope > 0.2 && slope < 5 ? Math.round(baseY / slope - baseX) : 0;
  // A prefix has no negative size. Without one, the factor alone has to explain the totals: the slope of a few small
  // calls would make all of them too large.
  const factor = prefix > 0 ? slope : mean(totals) / Math.max(1, mean(counted));
  return factor > 0 && Number.isFinite(prefix) ? { factor, prefix: Math.max(0, prefix) } : undefined;
}

function countRequests({ messages, calls, blocksOf, prefixTokens, frameTokens }: PreparedSession): number[] {
  const sums = [0];
  for (const message of messages) {
    const { tokens } = blocksOf(message);
    sums.push((sums.at(-1) as number) + Object.values(tokens).reduce((sum, each) => sum + each, 0));
  }
  return calls.map((length) => prefixTokens + frameTokens + (sums[length] as number));
}

interface SimulationContext {
  readonly stretches: readonly [PreparedSession, ...PreparedSession[]];
  readonly calls: readonly BilledCall[];
  readonly fit: TokenFit;
  /** The lifetime that the recorded requests asked for. */
  readonly ttl: Ttl;
  /** A call of the model that answered most. The simulator has its price. */
  readonly typical: BilledCall;
  readonly billed: BilledSession;
  readonly options: RecordedReplayOptions;
}

/** Losses that the simulator produces itself, from recorded times and messages. All other losses are assumed for every
 *  policy: a client that edits its history does so anyway, and not every recording has the edited messages. */
const simulated: ReadonlySet<string> = new Set(["expired", "compaction", "rewound"]);

/** Returns a function that replays the session in counted tokens. Its window and reserve are given in recorded tokens.
 *  */
function createSimulation({ stretches, calls, fit, ttl, typical, billed, options }: SimulationContext) {
  const losses = findLosses(billed);
  const findCalls = (isWanted: (loss: Loss) => boolean): Set<unknown> =>
    new Set(losses.filter(isWanted).map(({ call }) => billed.calls[call]));
  // A compaction keeps tools and system text. If nothing at all was read, the whole cache was lost.
  const lost = findCalls(
    ({ cause, call }) => !simulated.has(cause) || (cause !== "expired" && billed.calls[call]?.fact.read === 0),
  );
  const expired = findCalls(({ cause }) => cause === "expired");
  /** What other sessions keep in the cache, such as tools and system text, is left after a loss, and before the first
   *  call. */
  const leftAt = calls.map((call, index) =>
    index === 0 || lost.has(call) || expired.has(call) ? call.fact.read / fit.factor : 0,
  );
  // Clocks go back, and parallel lines are not in order.
  let latest = 0;
  const starts = calls.map(({ fact }) => {
    latest = Math.max(latest, fact.start);
    return latest;
  });
  const { prices } = options;
  return async ({ window = noWindow, reserve = 0, ...run }: RecordedRunOptions): Promise<SessionReplay> => {
    return replaySession(stretches, {
      ...run,
      ...countRoom({ window, reserve }, fit),
      ttl: run.ttl ?? ttl,
      prefixTokens: fit.prefix,
      prices,
      cache: createSharedCache({ leftAt, factor: fit.factor }, { ...describePrice(typical.fact), prices }),
      isCold: (call) => lost.has(calls[call]),
      startOf: (call) => starts[call],
    });
  };
}

interface Room {
  readonly window: number;
  readonly reserve: number;
}

/** Turns recorded tokens into counted ones. */
function countRoom({ window, reserve }: Room, { factor }: TokenFit): Room {
  const most = Math.max(1000, Math.round(window / factor));
  return { window: most, reserve: Math.min(Math.round(reserve / factor), Math.floor(most / 2)) };
}

/** Everything sent as it was is the same at every window. Only what counts as too large differs. */
function withRoom({ calls, totals }: SessionReplay, { window, reserve }: Room): SessionReplay {
  const limited = calls.map((call) => ({ ...call, isOver: call.bill.total > window - reserve }));
  return { calls: limited, totals: { ...totals, overWindow: limited.filter(({ isOver }) => isOver).length } };
}

/** A cache in which others leave tokens: a call reads at least what the recording says was left before it. The tokens
 *  are not those of whole blocks, because a recording does not show where tools and system text end. Prices depend on
 *  the size of a prompt, as the provider counts it. */
function createSharedCache(
  { leftAt, factor }: { readonly leftAt: readonly number[]; readonly factor: number },
  options: Parameters<typeof createReplaySimulator>[0],
): ReplaySimulator {
  const cache = createReplaySimulator(options);
  let call = 0;
  return {
    price: cache.price,
    bill(request, sameBlocks) {
      const bill = cache.bill(request, sameBlocks);
      const read = Math.max(bill.read, Math.min(leftAt[call++] ?? 0, bill.total));
      const share = read === bill.read ? 1 : (bill.total - read) / (bill.total - bill.read);
      const { write5m, write1h, uncached } = bill;
      const tokens = { read, write5m: write5m * share, write1h: write1h * share, uncached: uncached * share };
      const { cost, usd } = inputCost(timesFactor(tokens, factor), cache.price);
      return { ...bill, ...tokens, cost: cost / factor, usd: usd / factor };
    },
  };
}

function timesFactor<Kind extends string>(
  counts: Readonly<Record<Kind, number>>,
  factor: number,
): Record<Kind, number> {
  const scaled: Record<Kind, number> = { ...counts };
  for (const kind in scaled) scaled[kind] *= factor;
  return scaled;
}

/** Turns counted tokens into recorded ones, and the simulated cost into what would have been billed. */
function scaleReplay(
  { calls, totals }: SessionReplay,
  { tokens: factor, cost, usd }: Record<"tokens" | "cost" | "usd", number>,
): SessionReplay {
  const times = <Kind extends string>(counts: Readonly<Record<Kind, number>>): Record<Kind, number> => {
    const exact = timesFactor(counts, factor);
    for (const kind in exact) exact[kind] = Math.round(exact[kind]);
    return exact;
  };
  const scaledCall = (call: CallReplay): CallReplay => {
    const { bill, tokens } = call;
    const { total, read, write5m, write1h, uncached } = bill;
    const counts = times({ total, read, write5m, write1h, uncached });
    return {
      ...call,
      tokens: times(tokens),
      bill: { ...bill, ...counts, cost: bill.cost * cost, usd: bill.usd * usd },
    };
  };
  return { calls: calls.map(scaledCall), totals: { ...totals, cost: totals.cost * cost, usd: totals.usd * usd } };
}
