/** How the targets stand, from a run that writes nothing: right after an inject everything is current, because both decide alike. */
import type { ContextError } from "../errors.ts";
import type { Adapter, Scope, ToolLimit } from "./adapter.ts";
import { brokenLimits } from "./audit/tool-chains.ts";
import { draftClip } from "./clips/clips.ts";
import { type EngineOptions, injectFiles, type TargetResult } from "./engine.ts";
import { isEnforced } from "./fit/limits.ts";
import { findLeftOvers, type LeftOver } from "./left-overs.ts";
import { exportTarget, fileTargets } from "./targets/targets.ts";

export const injectionStates = [
  "current",
  "stale",
  "edited",
  "not injected",
  "not found",
  "orphaned",
  "left over",
  "over the limit",
] as const;
export type InjectionState = (typeof injectionStates)[number];

export interface TargetState extends Pick<TargetResult, "status" | "limits"> {
  /** Ids of the adapters; of a file that no adapter knows, none. */
  readonly tools: readonly string[];
  readonly scope: Scope;
  readonly path: string;
  readonly state: InjectionState;
  /** Size of the block as it would be now; over the limit, of all that the tool reads. */
  readonly bytes: number;
  /** The hard limit that leaves the least room. */
  readonly limit: ToolLimit | undefined;
  /** Current, and within the budget and every hard limit. */
  readonly holds: boolean;
  readonly problem?: ContextError;
}

export interface StatusOptions extends Omit<EngineOptions, "dryRun" | "force"> {
  /** Adapters of every layer: what one of them may have left is looked for. */
  readonly everyAdapter: readonly Adapter[];
  /** Chosen as a rule, though not for this run: their files are wanted too. */
  readonly standing: readonly Adapter[];
  /** Ids of tools and adapters whose limits must hold. */
  readonly ids: readonly string[];
}

/** Of a project nothing outside of it is read, so that the answer is the same on every machine. */
export async function injectionStatus(options: StatusOptions): Promise<TargetState[]> {
  const results = await injectFiles({ ...options, dryRun: true, force: false });
  return [
    ...results.map((result) => targetState(result, options)),
    ...(await exportStates(options)),
    ...(await leftOversOf(options)).map((leftOver) => leftOverState(leftOver, options)),
    ...(await limitStates(options)),
  ];
}

/** What is ours and wanted neither by this run nor as a rule. */
export async function leftOversOf(options: StatusOptions): Promise<LeftOver[]> {
  const { adapters, standing, places, ownFiles, everyAdapter, tree, env } = options;
  const others = standing.some((adapter) => !adapters.includes(adapter)) ? standing : [];
  const wanted = [
    ...(await fileTargets(adapters, places, ownFiles)),
    ...(await fileTargets(others, places, ownFiles)),
  ];
  return findLeftOvers({ known: everyAdapter, wanted, places, tree, env });
}

function leftOverState({ adapters, path }: LeftOver, { places }: StatusOptions): TargetState {
  return {
    ...{ tools: adapters.map(({ id }) => id), scope: places.scope, path, state: "left over", bytes: 0 },
    ...{ status: "ok", limits: [], limit: undefined, holds: false },
  };
}

/** Where `audit` says OVER THE LIMIT. */
async function limitStates(options: StatusOptions): Promise<TargetState[]> {
  if (options.places.scope === "global") return [];
  const broken = await brokenLimits(options.ids, { ...options, adapters: options.known });
  return broken.map(({ tool, limit, used, path, bytes }) => ({
    ...{ tools: [tool], scope: options.places.scope, path, state: "over the limit", bytes, limit },
    ...{ status: "ok", limits: [{ limit, used, exceeded: true }], holds: false },
  }));
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
        tools: [adapter.id],
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
    ...{ tools: adapters.map(({ id }) => id), scope: places.scope, path, state, bytes, status, limits },
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
