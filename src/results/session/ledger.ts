import { type LedgerTier, type LedgerTiers, leastAllocation, ledgerTiers } from "../../core/budget/index.ts";
import { argumentChecks, refuseUnknownOptions } from "../../core/text/index.ts";
import { type CallShare, createCallShares } from "./call-shares.ts";

/** A session's account of tokens by tier. If a program announces turns (`beginTurn`), results of earlier turns count
 *  only with their compressed entries. If nobody announces turns, old results leave the tool tier to make room, but
 *  they stay in the client's window. So everything that was delivered in the conversation counts against the total. */
export interface Ledger {
  readonly limits: LedgerLimits;
  /** Adds the tokens of tool results. In every other tier the new number replaces the old one. `part` names a part of
   *  the system tier, which is the sum of its parts: each server of a conversation has its own tool definitions. */
  record(tier: LedgerTier, tokens: number, part?: string): void;
  used(): LedgerTiers;
  /** Returns the total minus system text, history and tool results. Can be negative. */
  remaining(): number;
  /** Returns `remaining` minus the user's message and the reserve for the response. Can be negative. */
  available(): number;
  /** Returns the next call's share of the tool tier, at most what is available, but enough for an error and a
   *  continuation. */
  allocate(toolName: string): number;
  /** Starts a call. If nobody announces turns, the oldest results leave the tier to make room. The call's share counts
   *  in `used` only when its result is added. */
  beginCall(toolName: string, maxTokens?: number): CallShare;
  /** Adds a delivered result. It is current until it is released. */
  addResult(id: string, tokens: number): void;
  /** Frees the tokens of current results. */
  releaseResults(ids: Iterable<string>): void;
  /** Takes back a result that nobody received. */
  cancelResult(id: string): void;
  /** Returns what `allocate` would return after `makeRoom`. `further` is the number of tokens that are about to be
   *  recorded. */
  expected(toolName: string, further?: number): number;
  /** If nobody announces turns, frees the oldest results until the tool's share fits. */
  makeRoom(toolName: string): void;
  /** Frees all results, because they belong to earlier turns. */
  beginTurn(): void;
  /** Starts a new conversation: only system text and the response reserve still count. */
  reset(): void;
  isCurrent(id: string): boolean;
  /** Returns the tokens that tools have delivered in this conversation. */
  delivered(): number;
  /** Returns the tokens that tools have delivered in all conversations. */
  lifetime(): number;
  /** Whether less history would make more available. */
  countsHistory(): boolean;
  /** `further` is the number of tokens that are about to be recorded. */
  warning(further?: number): string | undefined;
  summary(): string;
  forModel(): ModelView;
  snapshot(): LedgerSnapshot;
  /** Continues with another snapshot of the same account. Running calls keep their shares. */
  restore(snapshot: LedgerSnapshot): void;
}

export interface LedgerSnapshot {
  readonly used: Omit<LedgerTiers, "tool_results">;
  /** The parts of the system tier. Absent if there is only the unnamed one. */
  readonly systemParts?: Readonly<Record<string, number>> | undefined;
  readonly results: ResultTokens;
  /** In this conversation. */
  readonly delivered: number;
  /** In earlier conversations. Absent if there was none. */
  readonly deliveredBefore?: number | undefined;
  readonly turnsAnnounced: boolean;
  /** Whether the response's number was recorded. Otherwise the number is the reserve of the options. */
  readonly responseRecorded?: boolean;
}

/** Creates an account, or continues the one of the snapshot. */
export function createLedger(options: LedgerOptions = {}, snapshot?: LedgerSnapshot): Ledger {
  const limits = computeLimits(options);
  let state = openState(limits, snapshot);
  const minPerCall = limits.minPerCall ?? leastAllocation;
  const remaining = (): number => countRemaining(limits, state);
  const available = (): number => remaining() - state.used.user - state.used.response;
  const getShare = (tool: string): number =>
    Object.hasOwn(limits.tools, tool) ? limits.tools[tool]! : limits.perToolCall;
  const room = (): number => limits.tiers.tool_results - state.results.tokens();
  const shares = createCallShares(() => Math.min(room(), available()), minPerCall);
  const left = (): number => room() - shares.held();
  const allocate = (tool: string, tokens: number, further = 0): number =>
    Math.max(Math.min(minPerCall, getShare(tool)), Math.min(getShare(tool), tokens, available() - further));
  const addResult = (id: string, tokens: number): void => {
    argumentChecks.tokensFrom(0)("tokens", tokens);
    state.delivered += tokens - state.results.set(id, tokens);
  };
  const makeRoom = (tokens: number): void => {
    if (!state.turnsAnnounced) state.results.releaseOldest(() => left() >= tokens);
  };

  return {
    limits,
    record(tier, tokens, part = "") {
      argumentChecks.oneOf(ledgerTiers)("tier", tier);
      argumentChecks.tokensFrom(0)("tokens", tokens);
      if (tier === "tool_results") return addResult("", tokens);
      if (tier === "system") state.systemParts.set(part, tokens);
      state.used[tier] =
        tier === "system" ? [...state.systemParts.values()].reduce((sum, each) => sum + each, 0) : tokens;
      if (tier === "response") state.responseRecorded = true;
    },
    used: () => ({ ...state.used, tool_results: state.results.tokens() }),
    remaining,
    available,
    allocate: (tool) => allocate(tool, left()),
    expected: (tool, further) => allocate(tool, state.turnsAnnounced ? left() : limits.tiers.tool_results, further),
    beginCall(tool, maxTokens = Number.POSITIVE_INFINITY) {
      const maxForCall = allocate(tool, Math.min(maxTokens, limits.tiers.tool_results));
      makeRoom(maxForCall);
      return shares.begin(maxForCall);
    },
    addResult,
    releaseResults: (ids) => void state.results.release(ids),
    cancelResult(id) {
      state.delivered -= state.results.release([id]);
    },
    makeRoom: (tool) => makeRoom(getShare(tool)),
    beginTurn() {
      state.turnsAnnounced = true;
      state.results.releaseOldest(() => false);
    },
    reset() {
      state.results.releaseOldest(() => false);
      state.deliveredBefore += state.delivered;
      state.delivered = 0;
      state.used.user = 0;
    },
    isCurrent: (id) => state.results.has(id),
    delivered: () => state.delivered,
    lifetime: () => state.deliveredBefore + state.delivered,
    countsHistory: () => countSpent(state) === state.used.history + state.results.tokens(),
    warning: (further = 0) => warn(available() - further, limits.warningThreshold),
    summary: () => summarize(limits, state),
    forModel: () => viewForModel(limits, state),
    snapshot: () => takeSnapshot(state),
    restore(other) {
      state = openState(limits, other);
    },
  };
}

interface LedgerState {
  readonly used: { -readonly [Tier in keyof LedgerSnapshot["used"]]: number };
  readonly systemParts: Map<string, number>;
  readonly results: ReturnType<typeof createResultTier>;
  delivered: number;
  deliveredBefore: number;
  turnsAnnounced: boolean;
  responseRecorded: boolean;
}

function openState({ tiers }: LedgerLimits, snapshot: LedgerSnapshot | undefined): LedgerState {
  const responseRecorded = snapshot?.responseRecorded ?? false;
  const used = { system: 0, history: 0, user: 0, response: 0, ...snapshot?.used };
  if (!responseRecorded) used.response = tiers.response;
  return {
    used,
    systemParts: new Map(Object.entries(snapshot?.systemParts ?? (used.system > 0 ? { "": used.system } : {}))),
    results: createResultTier(snapshot?.results ?? []),
    delivered: snapshot?.delivered ?? 0,
    deliveredBefore: snapshot?.deliveredBefore ?? 0,
    turnsAnnounced: snapshot?.turnsAnnounced ?? false,
    responseRecorded,
  };
}

/** Returns the tokens that tools have put into the window. The work log counts if it replaces results there. */
function countSpent({ used, results, delivered, turnsAnnounced }: LedgerState): number {
  const spent = used.history + results.tokens();
  return turnsAnnounced ? spent : Math.max(spent, delivered);
}

function countRemaining({ total }: LedgerLimits, state: LedgerState): number {
  return total - state.used.system - countSpent(state);
}

function takeSnapshot({ used, systemParts, results, ...rest }: LedgerState): LedgerSnapshot {
  const { delivered, deliveredBefore, turnsAnnounced, responseRecorded } = rest;
  const isNamed = [...systemParts.keys()].some((part) => part !== "");
  return {
    used: { ...used },
    ...(isNamed ? { systemParts: Object.fromEntries(systemParts) } : {}),
    results: results.list(),
    delivered,
    ...(deliveredBefore > 0 ? { deliveredBefore } : {}),
    turnsAnnounced,
    responseRecorded,
  };
}

// The account as text for the model's prompt, as one line, and as data.

/** What a model learns about its budget. No number is negative. */
export interface ModelView {
  readonly total_budget: number | "unlimited";
  readonly used: {
    readonly system: number;
    readonly history: number;
    readonly tool_results: number;
    readonly user_message: number;
    readonly response_reserve: number;
  };
  readonly remaining: number | "unlimited";
  readonly available: number | "unlimited";
  readonly delivered: number;
  readonly lifetime: number;
  readonly per_tool_budget: number;
  readonly warning?: string;
}

function viewForModel(limits: LedgerLimits, state: LedgerState): ModelView {
  const { system, history, user, response } = state.used;
  const remaining = countRemaining(limits, state);
  const available = remaining - user - response;
  const warning = warn(available, limits.warningThreshold);
  const show = (tokens: number) => describeLimit(Math.max(0, tokens));
  return {
    total_budget: describeLimit(limits.total),
    used: {
      system,
      history,
      // Everything that was delivered, also what has left the tier, so that the numbers add up.
      tool_results: countSpent(state) - history,
      user_message: user,
      response_reserve: response,
    },
    remaining: show(remaining),
    available: show(available),
    delivered: state.delivered,
    lifetime: state.deliveredBefore + state.delivered,
    per_tool_budget: limits.perToolCall,
    ...(warning === undefined ? {} : { warning }),
  };
}

/** Returns undefined at the threshold itself. The model decides what to do, so no warning asks it to end. */
function warn(available: number, threshold: number): string | undefined {
  if (available >= threshold) return undefined;
  return `[Budget Alert: ~${thousands(available)} tokens remaining. Consider summarizing or completing soon.]`;
}

/** Renders the account as one line. Until the budget is used up, the numbers in brackets and the tokens that are left
 *  add up to the total, apart from rounding. */
function summarize(limits: LedgerLimits, state: LedgerState): string {
  const { system, history, user, response } = state.used;
  const available = countRemaining(limits, state) - user - response;
  const tiers = [
    `sys:${thousands(system)}`,
    `hist:${thousands(history)}`,
    `tools:${thousands(countSpent(state) - history)}`,
    `user:${thousands(user)}`,
    `resp:${thousands(response)}`,
  ];
  const left = limits.total === unlimited ? "no total" : `${thousands(available)} of ${thousands(limits.total)} left`;
  const line = `Budget: ${left} (${tiers.join(" ")})`;
  const { delivered, deliveredBefore } = state;
  const now = delivered === 0 ? [] : [`${thousands(delivered)} delivered`];
  const before = deliveredBefore === 0 ? [] : [`${thousands(deliveredBefore + delivered)} in all conversations`];
  return [line, ...now, ...before].join(", ");
}

/** Rounds down: 17,999 is 17k. Less than nothing is 0k. */
function thousands(tokens: number): string {
  return `${Math.max(0, Math.trunc(tokens / 1_000))}k`;
}

/** The limits of a session. All numbers are tokens. */
export interface LedgerOptions {
  /** The budget for everything together. Choose it well below the model's window. `unlimited` suits a client that
   *  compacts its own context: only the limit of each result applies then.
   *  @default 100_000 */
  readonly total?: number | "unlimited" | undefined;
  /** The most tokens that one tool result gets. Defaults to 8,000, or less with a total below 100,000. */
  readonly perToolCall?: number | undefined;
  /** The fewest tokens that a result may have, however little is left. Never more than its limit.
   *  @default 512 */
  readonly minPerCall?: number | undefined;
  /** The most tokens that the work log takes. Defaults to 12,000, or less with a total below 100,000. */
  readonly historyMax?: number | undefined;
  /** If less than this is available, the model gets a warning, and below half of it a critical one. Defaults to 20,000,
   *  or less with a total below 100,000. */
  readonly warningThreshold?: number | undefined;
  /** The most tokens of a result by tool name, instead of `perToolCall`.
   *  @default {} */
  readonly tools?: Readonly<Record<string, number>> | undefined;
  /** Replaces the limit of a tier. By default system text gets 8,000, history 12,000, the user's message 10,000, the
   *  response 30,000 (less with a total below 100,000), and tool results get the rest. */
  readonly tiers?: Partial<LedgerTiers> | undefined;
}

export interface LedgerLimits {
  /** `unlimited` is a number here, because records are JSON. */
  readonly total: number;
  readonly perToolCall: number;
  /** Absent in older records. */
  readonly minPerCall?: number;
  readonly warningThreshold: number;
  readonly tools: Readonly<Record<string, number>>;
  readonly tiers: LedgerTiers;
}

const unlimited = Number.MAX_SAFE_INTEGER;

/** Returns `unlimited` for numbers that come from an unlimited total: the total itself, what is left of it, and the
 *  limit of tool results. */
export function describeLimit(tokens: number): number | "unlimited" {
  return tokens > unlimited / 2 ? "unlimited" : tokens;
}

/** The parts of a total of 100,000. With a larger total, tool results get the rest. With a smaller one, all shrink. */
const shares = {
  system: 8_000,
  history: 12_000,
  user: 10_000,
  response: 30_000,
  perToolCall: 8_000,
  warning: 20_000,
} as const;

function computeLimits(options: LedgerOptions): LedgerLimits {
  refuseUnknownOptions(options, [
    "total",
    "perToolCall",
    "minPerCall",
    "historyMax",
    "warningThreshold",
    "tools",
    "tiers",
  ]);
  refuseUnknownOptions(options.tiers ?? {}, ledgerTiers);
  const { tools = {}, minPerCall = leastAllocation } = options;
  const total = options.total === "unlimited" ? unlimited : (options.total ?? 100_000);
  argumentChecks.tokensFrom(1)("total", total);
  const share = (name: keyof typeof shares): number =>
    Math.min(shares[name], Math.floor((shares[name] * total) / 100_000));
  const limits = {
    total,
    perToolCall: options.perToolCall ?? Math.max(leastAllocation, share("perToolCall")),
    minPerCall,
    warningThreshold: options.warningThreshold ?? share("warning"),
    tools,
  };
  argumentChecks.tokensFrom(leastAllocation)("perToolCall", limits.perToolCall);
  argumentChecks.tokensFrom(leastAllocation)("minPerCall", minPerCall);
  argumentChecks.tokensFrom(0)("warningThreshold", limits.warningThreshold);
  for (const [name, tokens] of Object.entries(tools))
    argumentChecks.tokensFrom(leastAllocation)(`tools.${name}`, tokens);
  const history = options.historyMax ?? share("history");
  argumentChecks.tokensFrom(0)("historyMax", history);
  const others = { system: share("system"), history, user: share("user"), response: share("response") };
  const { tool_results, ...tiers } = { ...others, ...options.tiers };
  const { system, user, response } = tiers;
  // The tool tier gets what the others leave, and always has room for one call.
  const rest = Math.max(limits.perToolCall, total - system - tiers.history - user - response);
  const all = { system, history: tiers.history, tool_results: tool_results ?? rest, user, response };
  for (const [name, tokens] of Object.entries(all)) argumentChecks.tokensFrom(0)(`tiers.${name}`, tokens);
  return { ...limits, tiers: all };
}

/** Oldest first. The id is empty for tokens that were recorded without one. */
type ResultTokens = readonly (readonly [id: string, tokens: number])[];

/** The current results. Keeps the sums, so that a call costs the same after a thousand others. */
function createResultTier(initial: ResultTokens) {
  const current = new Map<string, number>();
  let tokens = 0;
  const set = (id: string, added: number): number => {
    const before = current.get(id) ?? 0;
    // Tokens without an id are summed under the empty id.
    const value = id === "" ? before + added : added;
    tokens += value - before;
    current.set(id, value);
    return id === "" ? 0 : before;
  };
  const remove = (id: string): void => {
    tokens -= current.get(id) ?? 0;
    current.delete(id);
  };
  for (const [id, value] of initial) set(id, value);
  return {
    tokens: (): number => tokens,
    has: (id: string): boolean => current.has(id),
    /** Returns the tokens that the id had before. */
    set,
    /** Returns the tokens that are free now. */
    release(ids: Iterable<string>): number {
      const before = tokens;
      for (const id of ids) remove(id);
      return before - tokens;
    },
    releaseOldest(isEnough: () => boolean): void {
      for (const id of current.keys()) {
        if (isEnough()) return;
        remove(id);
      }
    },
    list: (): ResultTokens => [...current],
  };
}
