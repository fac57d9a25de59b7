import type { Bill } from "../billing/index.ts";
import type { KindTokens } from "./message-blocks.ts";

/** What a session, or many, came to under one policy at one window. */
export interface ReplayTotals {
  readonly calls: number;
  /** Of all input, in tokens of uncached input. */
  readonly cost: number;
  /** Calls that read less from the cache than the call before had left there. */
  readonly breaks: number;
  /** Calls that were too large. */
  readonly overWindow: number;
  /** Calls whose request the provider would refuse. */
  readonly invalid: number;
  /** Mean over the calls of the share that can still be read. */
  readonly visibleShare: number;
  readonly msPerTurn: number;
}

export interface CallReplay {
  /** As sent. */
  readonly tokens: KindTokens;
  /** This call rewrote what was sent before. */
  readonly isEpoch: boolean;
  readonly bill: Bill;
  /** Of all tokens so far, the share that can still be read. */
  readonly keptShare: number;
  /** More tokens than the window leaves beside the reserve. */
  readonly isOver: boolean;
  /** A request that the provider would refuse. */
  readonly isInvalid: boolean;
}

export function totalsOf(calls: readonly CallReplay[], elapsedMs: number): ReplayTotals {
  const count = (holds: (call: CallReplay) => boolean): number => calls.filter(holds).length;
  const sum = (value: (call: CallReplay) => number): number =>
    calls.reduce((total, call) => total + value(call), 0);
  return {
    calls: calls.length,
    cost: sum(({ bill }) => bill.cost),
    breaks: count(({ bill }) => bill.isBreak),
    overWindow: count(({ isOver }) => isOver),
    invalid: count(({ isInvalid }) => isInvalid),
    visibleShare: meanOf(
      sum(({ keptShare }) => keptShare),
      calls.length,
      1,
    ),
    msPerTurn: meanOf(elapsedMs, calls.length, 0),
  };
}

/** Several sessions as one: means are over all their calls. */
export function addTotals(all: readonly ReplayTotals[]): ReplayTotals {
  const sum = (value: (totals: ReplayTotals) => number): number =>
    all.reduce((total, each) => total + value(each), 0);
  const calls = sum((each) => each.calls);
  return {
    calls,
    cost: sum(({ cost }) => cost),
    breaks: sum(({ breaks }) => breaks),
    overWindow: sum(({ overWindow }) => overWindow),
    invalid: sum(({ invalid }) => invalid),
    visibleShare: meanOf(
      sum((each) => each.visibleShare * each.calls),
      calls,
      1,
    ),
    msPerTurn: meanOf(
      sum((each) => each.msPerTurn * each.calls),
      calls,
      0,
    ),
  };
}

/** Without a call nothing was lost and no time was spent. */
function meanOf(sum: number, count: number, otherwise: number): number {
  return count === 0 ? otherwise : sum / count;
}
