import { ContextError } from "../errors.ts";

export const ledgerTiers = ["system", "history", "tool_results", "user", "response"] as const;
export type LedgerTier = (typeof ledgerTiers)[number];
export type LedgerTiers = Readonly<Record<LedgerTier, number>>;

/** All in tokens. */
export interface LedgerOptions {
  /** The target for everything together: well below the model's window. */
  readonly total?: number | undefined;
  /** The most that one tool result gets. */
  readonly perToolCall?: number | undefined;
  /** The most that the work log takes. */
  readonly historyMax?: number | undefined;
  /** Below this much available there is a warning, below half of it a critical one. */
  readonly warningThreshold?: number | undefined;
  /** By tool name, instead of `perToolCall`. */
  readonly tools?: Readonly<Record<string, number>> | undefined;
  /** Instead of what follows from the others: 8,000 system, 12,000 history, 10,000 user, 30,000 response (smaller with a total
   *  below 100,000), and the rest for tool results. */
  readonly tiers?: Partial<LedgerTiers> | undefined;
}

export interface LedgerLimits {
  readonly total: number;
  readonly perToolCall: number;
  readonly warningThreshold: number;
  readonly tools: Readonly<Record<string, number>>;
  readonly tiers: LedgerTiers;
}

/** An error or a continuation, with its envelope, fits this even where every byte is a token. */
export const leastAllocation = 512;

/** Of a total of 100,000. A larger total leaves more for tool results, a smaller one shrinks all. */
const shares = {
  system: 8_000,
  history: 12_000,
  user: 10_000,
  response: 30_000,
  perToolCall: 8_000,
  warning: 20_000,
} as const;

export function ledgerLimits(options: LedgerOptions): LedgerLimits {
  const { total = 100_000, tools = {} } = options;
  checkTokens("total", total, 1);
  const share = (name: keyof typeof shares): number =>
    Math.min(shares[name], Math.floor((shares[name] * total) / 100_000));
  const limits = {
    total,
    perToolCall: options.perToolCall ?? Math.max(leastAllocation, share("perToolCall")),
    warningThreshold: options.warningThreshold ?? share("warning"),
    tools,
  };
  checkTokens("perToolCall", limits.perToolCall, leastAllocation);
  checkTokens("warningThreshold", limits.warningThreshold, 0);
  for (const [name, tokens] of Object.entries(tools)) checkTokens(`tools.${name}`, tokens, leastAllocation);
  const history = options.historyMax ?? share("history");
  checkTokens("historyMax", history, 0);
  const others = { system: share("system"), history, user: share("user"), response: share("response") };
  return { ...limits, tiers: tiersOf({ ...others, ...options.tiers }, limits) };
}

/** The tool tier is what the others leave, and has room for one call however little that is. */
function tiersOf(
  tiers: Omit<LedgerTiers, "tool_results"> & Partial<LedgerTiers>,
  { total, perToolCall }: Pick<LedgerLimits, "total" | "perToolCall">,
): LedgerTiers {
  const { system, history, user, response } = tiers;
  const rest = Math.max(perToolCall, total - system - history - user - response);
  const all = { system, history, tool_results: tiers.tool_results ?? rest, user, response };
  for (const [name, tokens] of Object.entries(all)) checkTokens(`tiers.${name}`, tokens, 0);
  return all;
}

export function checkTokens(name: string, tokens: number, least: number): void {
  if (Number.isSafeInteger(tokens) && tokens >= least) return;
  throw new ContextError("invalid_argument", `${name} is ${tokens}`, {
    hint: `Use a whole number of tokens from ${least}.`,
  });
}
