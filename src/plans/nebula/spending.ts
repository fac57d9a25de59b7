/** What phases have cost, and what the next attempt may cost. */
import { countNoun } from "../../core/text/index.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { type NebulaRecord, type PhaseRun, runOf } from "./nebula-record.ts";

/** The dollars that all attempts of a phase have cost, as far as agents report it. */
export function spentOn(run: Pick<PhaseRun, "history"> | undefined): number {
  return (run?.history ?? []).reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);
}

export interface Grant {
  /** The most that the attempt may cost, in dollars; absent without a limit. */
  readonly budgetUsd?: number | undefined;
  /** Why the attempt must not start. */
  readonly refusal?: string | undefined;
}

/** Returns what the next attempt of a phase may cost: at most what is left of the phase's own limit, and at most a
 *  share of what is left of the nebula's limit. Phases that may run at the same time get equal shares, so that together
 *  they stay within the limit. */
export function grantFor(
  { id, maxBudgetUsd: ownLimit }: Phase,
  record: NebulaRecord,
  { nebula, maxWorkers }: { readonly nebula: Nebula; readonly maxWorkers: number },
): Grant {
  const run = runOf(record, id);
  const own = ownLimit === undefined ? undefined : ownLimit - spentOn(run);
  if (own !== undefined && own <= 0) {
    const tries = countNoun(run?.history?.length ?? 0, "attempt");
    return { refusal: `its limit of ${dollars(ownLimit!)} is used up by ${tries}. ${raise}` };
  }
  const limit = nebula.execution.maxBudgetUsd;
  if (limit === undefined) return { budgetUsd: own };
  const others = Object.entries(record.phases).flatMap(([each, other]) => (each === id ? [] : [other]));
  const running = others.filter(({ state }) => state === "running");
  const waiting = others.filter(({ state, awaits }) => state === "waiting" && awaits === undefined);
  const reserved = running.reduce((sum, { budgetUsd = 0 }) => sum + budgetUsd, 0);
  const left = limit - spentOn(run) - others.reduce((sum, other) => sum + spentOn(other), 0) - reserved;
  if (left <= 0) return { refusal: `the nebula's limit of ${dollars(limit)} is used up. ${raise}` };
  const share = left / Math.max(1, Math.min(maxWorkers - running.length, waiting.length + 1));
  return { budgetUsd: own === undefined ? share : Math.min(own, share) };
}

const raise = "Raise max_budget_usd and use --resume, or use --ignore-limits.";

/** `$0.0123`, `$1.20`. */
export function dollars(amount: number): string {
  return `$${amount.toFixed(amount !== 0 && amount < 1 ? 4 : 2)}`;
}
