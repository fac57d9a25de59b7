import { type CallReplay, type SentKind, sentKinds } from "../../../replay/index.ts";

/** The calls of many runs as JSON texts. Runs that sent and cost the same, such as those of a session that fits, share one. */
export interface SeriesList {
  readonly all: readonly string[];
  /** The index of the calls' text. */
  add(calls: readonly CallReplay[]): number;
}

/** The kinds of tokens in the order of `CallSeries.tokens`. */
export const seriesKinds: readonly SentKind[] = sentKinds.filter((kind) => kind !== "prefix");

/** Columns, one entry a call. */
export interface CallSeries {
  readonly prefix: number;
  readonly tokens: readonly (readonly number[])[];
  readonly cost: readonly number[];
  readonly read: readonly number[];
  /** In thousandths. */
  readonly kept: readonly number[];
  /** 1: epoch, 2: break, 4: invalid. */
  readonly flags: readonly number[];
}

export function createSeriesList(): SeriesList {
  const all: string[] = [];
  const known = new Map<string, number>();
  return {
    all,
    add(calls) {
      const text = JSON.stringify(seriesOf(calls));
      const index = known.get(text) ?? all.push(text) - 1;
      known.set(text, index);
      return index;
    },
  };
}

function seriesOf(calls: readonly CallReplay[]): CallSeries {
  return {
    prefix: calls[0]?.tokens.prefix ?? 0,
    tokens: seriesKinds.map((kind) => calls.map(({ tokens }) => tokens[kind])),
    cost: calls.map(({ bill }) => Math.round(bill.cost)),
    read: calls.map(({ bill }) => bill.read),
    kept: calls.map(({ keptShare }) => Math.round(1000 * keptShare)),
    flags: calls.map(
      ({ isEpoch, bill, isInvalid }) => Number(isEpoch) + 2 * Number(bill.isBreak) + 4 * Number(isInvalid),
    ),
  };
}
