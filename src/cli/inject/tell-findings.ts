/** What could not be done, what gave way, and limits that a tool only warns or advises about. */
import { type ClipResult, isEnforced, type LimitUse, type TargetResult } from "../../adapters/index.ts";
import { formatNumber } from "../../text/index.ts";
import type { Output } from "../output.ts";
import { describeError } from "../report-error.ts";
import { budgetProblem, limitText } from "./budget-problem.ts";

interface Telling {
  readonly output: Output;
  /** A path as the person sees it. */
  readonly shown: (path: string) => string;
}

export function tellFindings(result: TargetResult | ClipResult, { output, shown }: Telling): void {
  const owners = "adapters" in result ? result.adapters : [result.adapter];
  const ids = owners.map(({ id }) => id).join(", ");
  const excess = budgetProblem(result, { ids: owners.map(({ id }) => id), shown });
  if (excess !== undefined) output.problem(excess);
  if (result.problem !== undefined) output.problem(describeError(result.problem, shown));
  if ("path" in result && owners.length > 1 && result.budget !== undefined) {
    output.note(`${shown(result.path)} is shared by ${ids}: the smallest budget rules`);
  }
  const tightest =
    result.budget === undefined && gaveWay(result) ? tightestLimit(result.limits, shown) : undefined;
  if (tightest !== undefined) output.note(`${ids}: fitted to ${tightest}, the tool's own limit`);
  for (const use of result.limits) tellLimit(use, ids, output);
}

function gaveWay({ status, thinned, dropped }: TargetResult | ClipResult): boolean {
  return status === "ok" && (thinned.length > 0 || dropped.some(({ reason }) => reason === "budget"));
}

function tightestLimit(limits: readonly LimitUse[], shown: Telling["shown"]): string | undefined {
  const hard = limits.filter(({ limit }) => isEnforced(limit));
  const tightest = hard.sort((a, b) => b.used / b.limit.value - a.used / a.limit.value)[0];
  return tightest === undefined ? undefined : limitText(tightest, shown);
}

function tellLimit({ limit, used, exceeded }: LimitUse, ids: string, output: Output): void {
  if (!exceeded || isEnforced(limit)) return;
  const what = `${formatNumber(used)} ${limit.unit}, ${formatNumber(limit.value)} is its ${limit.kind} limit`;
  output.note(`${ids}: ${what} (${limit.evidence}${limit.note === undefined ? "" : `: ${limit.note}`})`);
}
