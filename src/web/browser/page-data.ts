/** The data of the pages: Node writes it as JSON, and the scripts read it. This file is compiled for both, so it imports
 *  nothing. */

export interface BillFacts {
  readonly description: string;
  readonly notes: readonly string[];
  readonly total: Readonly<Record<"usd" | "calls" | "read" | "write5m" | "write1h" | "uncached" | "output", number>>;
  /** Dollars by day: read, written, full price, output. */
  readonly days: readonly { readonly day: string; readonly sums: readonly number[] }[];
  readonly causes: readonly (Readonly<Record<"cause" | "knownFrom", string>> &
    Readonly<Record<"events" | "rewritten" | "usd" | "share", number>>)[];
  /** The most expensive losses of all sessions. */
  readonly losses: readonly (CacheLoss & Readonly<Record<"time" | "session" | "project" | "confidence", string>>)[];
  /** What requests start with. Absent without calls. */
  readonly prefix?: PageTable | undefined;
  readonly whatIf?: PageTable | undefined;
  readonly weights: Readonly<
    Record<
      "tools" | "files" | "servers",
      readonly ({ readonly name: string } & Readonly<Record<"results" | "tokens" | "carried" | "usd", number>>)[]
    >
  >;
  readonly sessions: readonly BillSession[];
}

/** A table as it is shown. The first column has names, the others numbers. */
export interface PageTable {
  readonly title: string;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly notes: readonly string[];
}

interface CacheLoss {
  readonly cause: string;
  readonly detail: string;
  readonly rewritten: number;
  /** Null without a price. */
  readonly usd: number | null;
}

/** A session. The lists have a value for each call. */
export interface BillSession
  extends Readonly<Record<"read" | "written" | "fresh" | "cost" | "times", readonly number[]>> {
  readonly session: string;
  readonly project: string;
  readonly subAgent?: string | undefined;
  readonly agent: string;
  readonly models: readonly string[];
  /** The time of the first call in ISO format, if it is known. */
  readonly start: string | null;
  readonly calls: number;
  readonly usd: number;
  readonly lossUsd: number;
  /** `call` is the index in the lists. */
  readonly losses: readonly (CacheLoss & { readonly call: number })[];
  readonly tools: readonly string[];
}

export interface ReplayFacts {
  readonly description: string;
  readonly pricing: string;
  readonly notes: readonly string[];
  readonly windows: readonly number[];
  /** Tokens kept free, by window. */
  readonly reserves: Readonly<Record<number, number>>;
  readonly policies: readonly string[];
  /** The policy that the page shows first. */
  readonly selected: string;
  /** The kinds of tokens in the order of `CallSeries.tokens`. */
  readonly kinds: readonly string[];
  readonly results: readonly (RunTotals & { readonly ratioToNone: number; readonly msPerTurn: number })[];
  readonly sessions: readonly ReplaySession[];
}

export interface RunTotals
  extends Readonly<
    Record<"window" | "calls" | "cost" | "usd" | "breaks" | "overWindow" | "invalid" | "visibleShare", number>
  > {
  readonly policy: string;
  /** A share is null if there was nothing to find. */
  readonly references: {
    readonly quotes: { readonly share: number | null };
    readonly names: { readonly far: { readonly share: number | null } };
    readonly edits: { readonly share: number | null };
    readonly refetches: number;
  };
}

export interface ReplaySession {
  readonly file: string;
  readonly title: string;
  readonly runs: readonly SessionRun[];
  /** What the client recorded, with the cost of each answer. */
  readonly recorded?: { readonly cost: number; readonly usd: number; readonly costs: readonly number[] };
}

export interface SessionRun extends RunTotals {
  readonly epochs: number;
  /** Index in the list of series. */
  readonly series: number;
}

/** What one run sent, call by call. `flags`: 1 epoch, 2 cache break, 4 invalid. */
export interface CallSeries extends Readonly<Record<"cost" | "read" | "kept" | "flags", readonly number[]>> {
  readonly prefix: number;
  readonly tokens: readonly (readonly number[])[];
  readonly rules: Readonly<Record<number, string>>;
  /** What epochs removed, by call. Absent if there are too many to show. */
  readonly removed?: Readonly<
    Record<
      number,
      {
        readonly tokens: number;
        readonly kinds: readonly { readonly name: string; readonly count: number; readonly tokens: number }[];
        readonly largest: readonly { readonly name: string; readonly tokens: number }[];
      }
    >
  >;
}
