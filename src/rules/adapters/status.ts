/** Reports the state of every target, from a run that writes nothing. */
import type { ContextError } from "../../core/errors.ts";
import { fromByteString, textAt } from "../../core/text/index.ts";
import type { OnDrop } from "../../host/index.ts";
import { draftClip } from "../audit/clips.ts";
import { isEnforced } from "../audit/limits.ts";
import { brokenLimits } from "../audit/tool-chains.ts";
import type { Pack } from "../packs/index.ts";
import type { Scope, ToolLimit } from "./adapter.ts";
import { isLossAllowed } from "./draft-file.ts";
import { type EngineOptions, injectFiles, type TargetResult } from "./engine.ts";
import { type LeftOverOptions, listLeftOvers } from "./left-overs.ts";
import { exportTarget } from "./targets.ts";

export interface TargetState extends Pick<TargetResult, "status" | "limits" | "budget" | "boundBy" | "lost"> {
  /** Ids of the adapters. Empty for a file that no adapter names. */
  readonly tools: readonly string[];
  readonly scope: Scope;
  readonly path: string;
  readonly state:
    | ("current" | "stale" | "edited" | "not injected" | "not found" | "orphaned" | "blocked")
    | ("left over" | "over the limit" | "hidden" | "twice" | "not loaded");
  /** The size of the block as it would be now. For "over the limit", the size of everything that the tool reads. */
  readonly bytes: number;
  /** The hard limit with the least room. */
  readonly limit: ToolLimit | undefined;
  /** Ids of the packs that do not fit. */
  readonly dropped: readonly string[];
  /** Ids of packs that the company requires and that the file does not hold now. */
  readonly missing: readonly string[];
  /** The target is current and within every hard limit, and holds all packs unless they may be dropped. */
  readonly holds: boolean;
  readonly problem?: ContextError;
}

export interface StatusOptions extends Omit<EngineOptions, "dryRun" | "force" | "standing">, LeftOverOptions {
  /** Ids of the tools and adapters whose limits must hold. */
  readonly ids: readonly string[];
  /** Whether a target without all packs fails the check. */
  readonly onDrop: OnDrop;
}

/** Finds the states of targets by a run that writes nothing. Right after an inject every target is current, because both
 *  runs decide the same way. Reads nothing outside a project, so the result is the same on every machine. */
export async function injectionStatus(options: StatusOptions): Promise<TargetState[]> {
  const { scope } = options.places;
  const { results, files, faults } = await injectFiles({ ...options, dryRun: true, force: false });
  const exports = await readExports(options);
  const leftOvers = await listLeftOvers(options, files);
  // The limits for which `audit` prints OVER THE LIMIT.
  const broken = scope === "global" ? [] : await brokenLimits(options.ids, { ...options, adapters: options.known });
  const failed = { scope, status: "ok", budget: undefined, dropped: [], missing: [], lost: [], holds: false } as const;
  return [
    ...results.map((result) => describeTarget(result, options)),
    ...exports,
    ...leftOvers.map(({ adapters, path }) => ({
      ...failed,
      tools: adapters.map(({ id }) => id),
      path,
      state: "left over" as const,
      bytes: 0,
      limits: [],
      limit: undefined,
    })),
    ...broken.map(({ tool, limit, used, path, bytes }) => ({
      ...failed,
      tools: [tool],
      path,
      state: "over the limit" as const,
      bytes,
      limits: [{ limit, used, exceeded: true }],
      limit,
    })),
    // What a tool does not read, or reads twice, is a state of the file that it should read.
    ...faults.map(({ kind, tool, folder, file }) => ({
      ...failed,
      tools: [tool],
      path: file ?? folder,
      state: kind,
      bytes: 0,
      limits: [],
      limit: undefined,
    })),
  ];
}

/** Returns the states of the files that `file-export` adapters keep under HOME. */
async function readExports(options: StatusOptions): Promise<TargetState[]> {
  const states: TargetState[] = [];
  for (const adapter of options.packs.length === 0 ? [] : options.adapters) {
    const target = exportTarget(adapter, options.places);
    if (target === undefined) continue;
    const clip = await draftClip(adapter, { ...options, dryRun: true, force: false });
    const { status, limits, change, problem, exported = { state: "unknown", bytes: 0 } } = clip;
    const state = readFileState({ status, state: exported.state, change });
    states.push({
      tools: [adapter.id],
      scope: options.places.scope,
      path: target.path,
      state,
      bytes: exported.bytes,
      status,
      limits,
      // The file holds all packs. Only the text for the clipboard has a budget.
      limit: undefined,
      budget: undefined,
      dropped: [],
      missing: [],
      lost: [],
      holds: state === "current" && status === "ok",
      ...(problem && { problem }),
    });
  }
  return states;
}

function describeTarget(result: TargetResult, options: StatusOptions): TargetState {
  const { places, onDrop } = options;
  const { adapters, path, bytes, status, limits, budget, boundBy, lost, problem } = result;
  const state = readFileState(result);
  const hard = limits.filter(({ limit }) => isEnforced(limit));
  const tightest = hard.sort((a, b) => a.limit.value - a.used - (b.limit.value - b.used))[0];
  const dropped = result.dropped.filter(({ reason }) => reason === "budget").map(({ id }) => id);
  const fits = status !== "too small" && status !== "over budget" && (dropped.length === 0 || onDrop === "warn");
  return {
    tools: adapters.map(({ id }) => id),
    scope: places.scope,
    path,
    state,
    bytes,
    status,
    limits,
    limit: tightest?.limit,
    budget,
    boundBy,
    dropped,
    missing: findMissing(result, options.packs),
    lost,
    holds: state === "current" && fits && isLossAllowed(result, options),
    ...(problem && { problem }),
  };
}

/** A required pack is missing if it does not fit, or if a line of its core is not in the file yet. */
function findMissing({ kind, packs, lost, change }: TargetResult, all: readonly Pack[]): string[] {
  const before = change?.before;
  if (kind === "skill" || (change !== undefined && before === change.after && lost.length === 0)) return [];
  const lines = new Set(
    before === undefined
      ? []
      : fromByteString(before)
          .split(/\r?\n/)
          .map((line) => line.trim()),
  );
  const isThere = ({ context, constraints }: Pack) =>
    [context, constraints].every((text) =>
      textAt(text, "minimal")
        .split("\n")
        .every((line) => line.trim() === "" || lines.has(line.trim())),
    );
  const unfit = lost.filter(({ required }) => required).map(({ id }) => id);
  const absent = all.filter((pack) => pack.required && packs.includes(pack.id) && !isThere(pack)).map(({ id }) => id);
  return [...new Set([...unfit, ...absent])];
}

/** A file that imports another target is as current as that target, which has its own line. */
function readFileState({
  status,
  state,
  change,
}: Pick<TargetResult, "status" | "state"> & {
  readonly change?: TargetResult["change"] | undefined;
}): TargetState["state"] {
  const unchanged = change !== undefined && change.before === change.after;
  if (status === "imported" || state === "injected") return unchanged ? "current" : "stale";
  if (state === "foreign") return "not injected";
  // The file could not be read, for example because it is a folder. The problem says why.
  return state === "unknown" ? "blocked" : state;
}
