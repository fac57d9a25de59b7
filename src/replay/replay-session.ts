/** One recorded session through one policy at one window: what every call sends, and what that is billed. */
import { createCacheSimulator, type Prices, providerOfModel } from "../billing/index.ts";
import { createInvalidFinder } from "./find-invalid.ts";
import { createPolicyReducer, type PolicyReducerOptions, type Reducer, type Sent } from "./policy-reducer.ts";
import type { PreparedSession } from "./prepare-session.ts";
import { type CallReplay, type ReplayTotals, totalsOf } from "./replay-totals.ts";
import { createSentRequest } from "./sent-request.ts";

export interface SessionReplay {
  readonly calls: readonly CallReplay[];
  readonly totals: ReplayTotals;
}

export interface ReplayOptions extends Pick<PolicyReducerOptions, "window" | "reserve" | "prefixTokens"> {
  readonly prices?: Prices | undefined;
  /** Whether the provider's cache was lost before a call, by its index. Absent: never. */
  readonly isCold?: ((call: number) => boolean) | undefined;
  /** A clock in ms. Without it turns take no time. */
  readonly now?: (() => number) | undefined;
  /** Called after each call with the number of calls so far, and waited for: a long session need not keep its process from all else. */
  readonly pause?: ((done: number) => Promise<void> | undefined) | undefined;
}

/** Replays a session with one of our policies. */
export async function replaySession(
  session: PreparedSession,
  options: ReplayOptions & PolicyReducerOptions,
): Promise<SessionReplay> {
  return replayReducer(session, await createPolicyReducer(session, options), options);
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
  for (const [index, length] of session.calls.entries()) {
    const call = { isCold: isCold(index) };
    const messages = session.messages.slice(0, length);
    const started = now();
    const reduced = reduce(messages, call);
    const sent = reduced instanceof Promise ? await reduced : reduced;
    elapsedMs += now() - started;
    meter.add(sent, call.isCold);
    const paused = options.pause?.(index + 1);
    if (paused !== undefined) await paused;
  }
  const calls = meter.finish();
  return { calls, totals: totalsOf(calls, elapsedMs) };
}

interface Meter {
  add(sent: Sent, isCold: boolean): void;
  finish(): readonly CallReplay[];
}

function createMeter(session: PreparedSession, { window, reserve, ...options }: ReplayOptions): Meter {
  const prefixTokens = options.prefixTokens + session.prefixTokens + session.frameTokens;
  const request = createSentRequest({ prefixTokens, blocksOf: session.blocksOf });
  const simulator = createSimulator(session, options.prices);
  const invalid = createInvalidFinder(session.format);
  const calls: Omit<CallReplay, "isInvalid">[] = [];
  return {
    add({ messages, breakpoints, isEpoch, keptShare }, isCold) {
      invalid.add(messages, request.update(messages));
      const { blocks, tokens } = request;
      const places = [0, ...breakpoints.map(request.lastBlockOf), blocks.length - 1];
      const markers = places.map((after) => ({ after, ttl: "5m" as const }));
      const bill = simulator.bill({ blocks, breakpoints: markers, isCold });
      calls.push({ tokens: { ...tokens }, isEpoch, keptShare, bill, isOver: bill.total > window - reserve });
    },
    finish() {
      const found = invalid.finish();
      return calls.map((call, index) => ({ ...call, isInvalid: found[index] === true }));
    },
  };
}

function createSimulator({ model }: PreparedSession, prices: Prices | undefined) {
  const provider = (model === undefined ? undefined : providerOfModel(model)) ?? "anthropic";
  return createCacheSimulator({ provider, model, prices });
}
