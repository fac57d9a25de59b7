import { isEnforced, type LimitUse, type TargetResult } from "../../adapters/index.ts";
import { formatNumber } from "../../text/index.ts";

/** Why nothing may be written for these tools; nothing to say where it fits. */
export function budgetProblem(
  { status, limits }: Pick<TargetResult, "status" | "limits">,
  { ids, shown }: { readonly ids: readonly string[]; readonly shown: (path: string) => string },
): string | undefined {
  const names = ids.join(", ");
  if (status === "too small") return `adapter ${names}: budget too small to include any pack content`;
  if (status !== "over budget") return undefined;
  const uses = limits
    .filter(({ limit, exceeded }) => exceeded && isEnforced(limit))
    .map((use) => `${formatNumber(use.used)} of ${limitText(use, shown)}`);
  return `adapter ${names}: over its hard limit without any pack (${uses.join(", ")}): nothing was written`;
}

/** `32,768 bytes in a chain, down to services/api`. */
export function limitText(
  { limit: { value, unit, scope }, folder }: LimitUse,
  shown: (path: string) => string,
): string {
  const place = folder === undefined ? "" : shown(folder);
  return `${formatNumber(value)} ${unit} in a ${scope}${place === "" ? "" : `, down to ${place}`}`;
}
