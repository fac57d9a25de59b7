import { ContextError } from "../errors.ts";
import { type CallShare, createCallShares } from "./call-shares.ts";
import { type ModelView, summarize, viewForModel, warn } from "./describe-ledger.ts";
import {
  checkTokens,
  type LedgerLimits,
  type LedgerOptions,
  type LedgerTier,
  type LedgerTiers,
  leastAllocation,
  ledgerLimits,
  ledgerTiers,
} from "./ledger-options.ts";
import { createResultTier, type ResultTokens } from "./result-tier.ts";

/** A session's account of tokens by tier. What was delivered long ago is no longer in the tool tier, only in `delivered`. */
export interface Ledger {
  readonly limits: LedgerLimits;
  /** Tool results add up; in every other tier the new number replaces the old one. */
  record(tier: LedgerTier, tokens: number): void;
  used(): LedgerTiers;
  /** The total less system, history and tool results. May be negative. */
  remaining(): number;
  /** What is remaining less the user's message and the response reserve: what is really free. May be negative. */
  available(): number;
  /** The next call's share of the tool tier, never less than an error and a continuation need. */
  allocate(toolName: string): number;
  /** A call begins, for which there is room now or will be: where nobody announces turns the oldest results leave the tier. Its share is
   *  kept out of `used` until its result is added. */
  beginCall(toolName: string, maxTokens?: number): CallShare;
  /** A result that was delivered: current, until it is released. */
  addResult(id: string, tokens: number): void;
  /** Frees the tokens of current results. */
  releaseResults(ids: Iterable<string>): void;
  /** What `allocate` gives once `makeRoom` was called. */
  expected(toolName: string): number;
  /** Where nobody announces turns: frees the oldest results until the tool's share fits. */
  makeRoom(toolName: string): void;
  /** All results so far are of earlier turns: frees them. */
  beginTurn(): void;
  isCurrent(id: string): boolean;
  /** All that was ever delivered by tools. */
  delivered(): number;
  /** `further`: tokens that are about to be recorded. */
  warning(further?: number): string | undefined;
  summary(): string;
  forModel(): ModelView;
  snapshot(): LedgerSnapshot;
}

export interface LedgerSnapshot {
  readonly used: Omit<LedgerTiers, "tool_results">;
  readonly results: ResultTokens;
  readonly delivered: number;
  readonly turnsAnnounced: boolean;
  /** The response's number was recorded. Otherwise it is the reserve of the options, and follows them. */
  readonly responseRecorded?: boolean;
}

/** Opens an account, or with a snapshot one that goes on. */
export function createLedger(options: LedgerOptions = {}, snapshot?: LedgerSnapshot): Ledger {
  const limits = ledgerLimits(options);
  let responseRecorded = snapshot?.responseRecorded ?? false;
  const used = { system: 0, history: 0, user: 0, response: 0, ...snapshot?.used };
  if (!responseRecorded) used.response = limits.tiers.response;
  const results = createResultTier(snapshot?.results ?? []);
  let turnsAnnounced = snapshot?.turnsAnnounced ?? false;
  let delivered = snapshot?.delivered ?? 0;

  const usedTiers = (): LedgerTiers => ({ ...used, tool_results: results.tokens() });
  const remaining = (): number => limits.total - used.system - used.history - results.tokens();
  const available = (): number => remaining() - used.user - used.response;
  const shareOf = (tool: string): number =>
    Object.hasOwn(limits.tools, tool) ? limits.tools[tool]! : limits.perToolCall;
  const shares = createCallShares(() => limits.tiers.tool_results - results.tokens());
  const left = (): number => limits.tiers.tool_results - results.tokens() - shares.held();
  const allocate = (tool: string, room: number): number =>
    Math.max(leastAllocation, Math.min(shareOf(tool), room));
  const addResult = (id: string, tokens: number): void => {
    checkTokens("tokens", tokens, 0);
    delivered += tokens - results.set(id, tokens);
  };
  const makeRoom = (tokens: number): void => {
    if (!turnsAnnounced) results.releaseOldest(() => left() >= tokens);
  };

  return {
    limits,
    record(tier, tokens) {
      checkTier(tier);
      checkTokens("tokens", tokens, 0);
      if (tier === "tool_results") return addResult("", tokens);
      used[tier] = tokens;
      if (tier === "response") responseRecorded = true;
    },
    used: usedTiers,
    remaining,
    available,
    allocate: (tool) => allocate(tool, left()),
    expected: (tool) => allocate(tool, turnsAnnounced ? left() : limits.tiers.tool_results),
    beginCall(tool, maxTokens = Number.POSITIVE_INFINITY) {
      const most = allocate(tool, Math.min(maxTokens, limits.tiers.tool_results));
      makeRoom(most);
      return shares.begin(most);
    },
    addResult,
    releaseResults: (ids) => results.release(ids),
    makeRoom: (tool) => makeRoom(shareOf(tool)),
    beginTurn() {
      turnsAnnounced = true;
      results.releaseOldest(() => false);
    },
    isCurrent: (id) => results.has(id),
    delivered: () => delivered,
    warning: (further = 0) => warn(available() - further, limits.warningThreshold),
    summary: () => summarize({ limits, used: usedTiers(), available: available(), delivered }),
    forModel: () =>
      viewForModel({ limits, used: usedTiers(), available: available(), remaining: remaining(), delivered }),
    snapshot: () => ({
      used: { ...used },
      results: results.list(),
      delivered,
      turnsAnnounced,
      responseRecorded,
    }),
  };
}

function checkTier(tier: LedgerTier): void {
  if (ledgerTiers.includes(tier)) return;
  throw new ContextError("invalid_argument", `there is no tier ${JSON.stringify(tier)}`, {
    hint: `Use one of ${ledgerTiers.join(", ")}.`,
  });
}
