/** How the targets stand, from a run that writes nothing: right after an inject everything is current, because both decide alike. */
import type { ContextError } from "../errors.ts";
import type { Adapter, Scope, ToolLimit } from "./adapter.ts";
import { draftClip } from "./clips/clips.ts";
import { type EngineOptions, injectFiles, type TargetResult } from "./engine.ts";
import { isEnforced } from "./fit/limits.ts";
import { exportTarget } from "./targets/targets.ts";

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

type StatusOptions = Omit<EngineOptions, "dryRun" | "force">;

export async function injectionStatus(options: StatusOptions): Promise<TargetState[]> {
  const results = await injectFiles({ ...options, dryRun: true, force: false });
  return [...results.map((result) => targetState(result, options)), ...(await exportStates(options))];
}

/** The files that `file-export` adapters keep under HOME. */
async function exportStates(options: StatusOptions): Promise<TargetState[]> {
  const states: TargetState[] = [];
  for (const adapter of options.adapters) {
    const target = exportTarget(adapter, options.places);
    if (target === undefined) continue;
    const { status, limits, bytes, change, problem } = await draftClip(adapter, {
      ...options,
      dryRun: true,
      force: false,
    });
    const unchanged = change !== undefined && change.before === change.after;
    const state = change?.before === undefined ? "not found" : unchanged ? "current" : "stale";
    states.push({
      ...{
        adapters: [adapter],
        scope: options.places.scope,
        path: target.path,
        state,
        bytes,
        status,
        limits,
      },
      limit: undefined,
      holds: state === "current" && status === "ok",
      ...(problem && { problem }),
    });
  }
  return states;
}

function targetState(result: TargetResult, { places }: StatusOptions): TargetState {
  const { adapters, path, bytes, status, limits, problem } = result;
  const state = stateOf(result);
  const hard = limits.filter(({ limit }) => isEnforced(limit));
  const tightest = hard.sort((a, b) => a.limit.value - a.used - (b.limit.value - b.used))[0];
  return {
    ...{ adapters, scope: places.scope, path, state, bytes, status, limits },
    limit: tightest?.limit,
    holds: state === "current" && status !== "too small" && status !== "over budget",
    ...(problem && { problem }),
  };
}

/** A file that imports another target is as current as the other, which has a line of its own. */
function stateOf({ status, state, change }: TargetResult): InjectionState {
  const unchanged = change !== undefined && change.before === change.after;
  if (status === "imported" || state === "injected") return unchanged ? "current" : "stale";
  if (state === "foreign") return "not injected";
  return state === "unknown" ? "not found" : state;
}
