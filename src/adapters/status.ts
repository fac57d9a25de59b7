/** How the targets stand, from a run that writes nothing: right after an inject everything is current, because both decide alike. */
import type { ContextError } from "../errors.ts";
import type { Adapter, Scope, ToolLimit } from "./adapter.ts";
import { type EngineOptions, injectFiles, type TargetResult } from "./engine.ts";
import { isEnforced } from "./fit/limits.ts";

export const injectionStates = [
  "current",
  "stale",
  "edited",
  "not injected",
  "not found",
  "orphaned",
] as const;
export type InjectionState = (typeof injectionStates)[number];

export interface TargetState extends Pick<TargetResult, "status" | "limits"> {
  readonly adapters: readonly Adapter[];
  readonly scope: Scope;
  readonly path: string;
  readonly state: InjectionState;
  /** Size of the block as it would be now. */
  readonly bytes: number;
  /** The hard limit that leaves the least room. */
  readonly limit: ToolLimit | undefined;
  /** Current, and within the budget and every hard limit. */
  readonly holds: boolean;
  readonly problem?: ContextError;
}

export async function injectionStatus(
  options: Omit<EngineOptions, "dryRun" | "force">,
): Promise<TargetState[]> {
  const results = await injectFiles({ ...options, dryRun: true, force: false });
  return results.map((result) => {
    const state = stateOf(result);
    const hard = result.limits.filter(({ limit }) => isEnforced(limit));
    const tightest = [...hard].sort((a, b) => a.limit.value - a.used - (b.limit.value - b.used))[0];
    return {
      adapters: result.adapters,
      scope: options.places.scope,
      path: result.path,
      state,
      bytes: result.bytes,
      status: result.status,
      limits: result.limits,
      limit: tightest?.limit,
      holds: state === "current" && result.status !== "too small" && result.status !== "over budget",
      ...(result.problem && { problem: result.problem }),
    };
  });
}

/** A file that imports another target is as current as the other, which has a line of its own. */
function stateOf({ status, state, change }: TargetResult): InjectionState {
  const unchanged = change !== undefined && change.before === change.after;
  if (status === "imported" || state === "injected") return unchanged ? "current" : "stale";
  if (state === "foreign") return "not injected";
  return state === "unknown" ? "not found" : state;
}
