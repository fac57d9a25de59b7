import { type Adapter, isEnforced, type TargetResult } from "../../adapters/index.ts";
import { formatNumber } from "../../text/index.ts";

/** Why nothing may be written for these adapters; nothing to say where it fits. */
export function budgetProblem(
  { status, limits }: Pick<TargetResult, "status" | "limits">,
  adapters: readonly Adapter[],
): string | undefined {
  const ids = adapters.map(({ id }) => id).join(", ");
  if (status === "too small") return `adapter ${ids}: budget too small to include any pack content`;
  if (status !== "over budget") return undefined;
  const uses = limits
    .filter(({ limit, exceeded }) => exceeded && isEnforced(limit))
    .map(
      ({ limit, used }) =>
        `${formatNumber(used)} of ${formatNumber(limit.value)} ${limit.unit} in a ${limit.scope}`,
    );
  return `adapter ${ids}: over its hard limit without any pack (${uses.join(", ")}): nothing was written`;
}
