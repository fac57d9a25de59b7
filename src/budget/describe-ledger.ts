/** The account in words: for the model's prompt, for one line, as data. */
import type { LedgerLimits, LedgerTiers } from "./ledger-options.ts";

/** What a model is told of its budget. */
export interface ModelView {
  readonly total_budget: number;
  readonly used: {
    readonly system: number;
    readonly history: number;
    readonly tool_results: number;
    readonly user_message: number;
    readonly response_reserve: number;
  };
  readonly remaining: number;
  readonly available: number;
  readonly delivered: number;
  readonly per_tool_budget: number;
  readonly warning?: string;
}

interface Account {
  readonly limits: LedgerLimits;
  readonly used: LedgerTiers;
  readonly available: number;
  readonly delivered: number;
}

/** Nothing at the threshold itself. A negative number is shown as such. */
export function warn(available: number, threshold: number): string | undefined {
  if (available >= threshold) return undefined;
  const left = `~${thousands(available)} tokens remaining`;
  return available < threshold / 2
    ? `[Budget Critical: ${left}. Complete the task or summarize now.]`
    : `[Budget Alert: ${left}. Consider summarizing or completing soon.]`;
}

export function summarize({ limits, used, available, delivered }: Account): string {
  const tiers = [
    `sys:${thousands(used.system)}`,
    `hist:${thousands(used.history)}`,
    `tools:${thousands(used.tool_results)}`,
    `user:${thousands(used.user)}`,
    `resp:${thousands(used.response)}`,
  ];
  const line = `Budget: ${thousands(available)}/${thousands(limits.total)} remaining (${tiers.join(" ")})`;
  return delivered === 0 ? line : `${line}, ${thousands(delivered)} delivered so far`;
}

export function viewForModel(account: Account & { readonly remaining: number }): ModelView {
  const { limits, used, available, remaining, delivered } = account;
  const warning = warn(available, limits.warningThreshold);
  return {
    total_budget: limits.total,
    used: {
      system: used.system,
      history: used.history,
      tool_results: used.tool_results,
      user_message: used.user,
      response_reserve: used.response,
    },
    remaining,
    available,
    delivered,
    per_tool_budget: limits.perToolCall,
    ...(warning === undefined ? {} : { warning }),
  };
}

/** Toward zero: 17,999 is 17k. */
function thousands(tokens: number): string {
  return `${Math.trunc(tokens / 1_000)}k`;
}
