/** The report of `inject`: rows for programs, tables and sentences for people. */

import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import type { FileChange } from "../../host/index.ts";
import { renderTable } from "../../host/index.ts";
import {
  type Adapter,
  type ClipResult,
  isEnforced,
  type LeftOver,
  type LimitUse,
  type RemovedFile,
  type TargetResult,
} from "../../rules/index.ts";

interface RowOptions {
  /** A path as the person sees it. Rows for programs keep control characters. */
  readonly shown: (path: string) => string;
  readonly counter: string;
  /** Returns the unified diff of a change, if diffs are wanted. */
  readonly diffOf?: ((change: FileChange) => string) | undefined;
}

/** Returns what a run did, or would do: the rows for programs and the lines for people. */
export function reportRun(
  run: {
    readonly adapters: readonly Adapter[];
    readonly files: readonly TargetResult[];
    readonly clips: readonly ClipResult[];
    readonly leftOvers: readonly LeftOver[];
    readonly removed: readonly RemovedFile[];
  },
  options: RowOptions & {
    readonly dryRun: boolean;
    /** Whether people get a table of adapters instead of a line per file. */
    readonly hasStats: boolean;
  },
): { readonly json: readonly object[]; readonly lines: readonly string[] } {
  const { adapters, files, clips, leftOvers, removed } = run;
  const rows = adapterRows(adapters, [...files, ...clips], options);
  const shown = (path: string) => printable(options.shown(path));
  return {
    json: [...rows, ...leftOverRows(leftOvers, removed, options)],
    lines: options.hasStats ? renderStats(rows) : renderChanges(files, { shown, dryRun: options.dryRun }),
  };
}

/** One row of the report: an adapter and its results. */
interface AdapterRow {
  readonly adapter: string;
  readonly paths: readonly string[];
  /** The packs that the tool always loads. */
  readonly packs: readonly string[];
  /** The packs that it loads for some files only. */
  readonly scoped: readonly string[];
  readonly dropped: TargetResult["dropped"];
  readonly thinned: TargetResult["thinned"];
  /** Parts of the block that gave way to packs. */
  readonly leftOut: TargetResult["leftOut"];
  readonly approxTokens: number;
  readonly renderedBytes: number;
  readonly counter: string;
  readonly budget: NonNullable<TargetResult["budget"]> | null;
  readonly verbosity: TargetResult["verbosity"];
  readonly status: string;
  readonly written: boolean;
  readonly diff?: string;
}

/** Returns rows in the order of adapters. When an adapter has several files, its row shows the one with the least
 *  room. */
function adapterRows(
  adapters: readonly Adapter[],
  results: readonly (TargetResult | ClipResult)[],
  options: RowOptions,
): AdapterRow[] {
  return adapters.flatMap((adapter) => {
    // The commands of a tool that reads this adapter's file have no row of their own.
    const isServed = ({ kind, adapters: [first] }: TargetResult) =>
      kind === "skill" && first !== undefined && !adapters.includes(first) && adapter.reads.includes(first.id);
    const own = results.filter((each) =>
      "adapters" in each ? each.adapters.includes(adapter) || isServed(each) : each.adapter === adapter,
    );
    // In a project, Codex has skills but no file of its own: the row of AGENTS.md is about it.
    return own.some(isBlock) ? [createRow(adapter, own, options)] : [];
  });
}

function createRow(adapter: Adapter, results: readonly (TargetResult | ClipResult)[], options: RowOptions): AdapterRow {
  const [blocks, rules] = [
    results.filter(isBlock),
    results.filter((result): result is TargetResult => !isBlock(result)),
  ];
  const tightest = [...blocks].sort((a, b) => a.packs.length - b.packs.length)[0]!;
  const scoped = [...new Set(rules.filter(({ kind }) => kind !== "skill").flatMap((result) => result.packs))];
  const changes = results.flatMap((result) => result.change ?? []);
  const diff = changes.map((change) => options.diffOf?.(change) ?? "").join("");
  return {
    adapter: adapter.id,
    paths: results.flatMap((result) => {
      const path = "path" in result ? result.path : result.change?.path;
      return path === undefined ? [] : [options.shown(path)];
    }),
    packs: tightest.packs,
    scoped,
    dropped: tightest.dropped,
    thinned: tightest.thinned,
    leftOut: tightest.leftOut,
    approxTokens: tightest.tokens,
    renderedBytes: tightest.bytes,
    counter: options.counter,
    budget: tightest.budget ?? null,
    verbosity: tightest.verbosity,
    status: statusText(tightest, { shown: options.shown, scoped: scoped.length }),
    written: changes.some((change) => change.written),
    ...(diff !== "" && { diff }),
  };
}

/** Whether the tool always loads the text. */
function isBlock(result: TargetResult | ClipResult): boolean {
  return !("kind" in result) || result.kind === "block";
}

function statusText(
  result: TargetResult | ClipResult,
  { shown, scoped }: Pick<RowOptions, "shown"> & { readonly scoped: number },
): string {
  if (result.status !== "ok") {
    const from = "importedFrom" in result && result.importedFrom !== undefined ? result.importedFrom : undefined;
    return from === undefined ? result.status : `OK (imports ${shown(from)})`;
  }
  const counts = {
    trimmed: result.dropped.length,
    thinned: new Set(result.thinned.map(({ id }) => id)).size,
    scoped,
  };
  const changes = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${countNoun(count, "pack")} ${what}`);
  return changes.length === 0 ? "OK" : `OK (${changes.join(", ")})`;
}

/** Renders the table of `--stats`. */
function renderStats(rows: readonly AdapterRow[]): string[] {
  const cells = rows.map((row) => [
    row.adapter,
    row.packs.length === 0 ? "(none)" : row.packs.join(", "),
    `~${formatNumber(row.approxTokens)}`,
    row.budget === null ? "unconstrained" : `${row.budget.value} ${nameUnit(row.budget)}`,
    row.verbosity,
    row.status,
  ]);
  const headings = ["Adapter", "Packs included", "Tokens (approx)", "Budget", "Verbosity", "Status"];
  return renderTable([headings, ...cells], ["left", "left", "right", "right", "left", "left"]);
}

/** Returns the unit as it follows the number: `1 token`, `2000 tokens`. */
export function nameUnit({ value, unit }: { readonly value: number; readonly unit: string }): string {
  return value === 1 ? unit.slice(0, -1) : unit;
}

/** Renders a line per file: what was done, or would be. */
function renderChanges(
  results: readonly TargetResult[],
  { shown, dryRun }: Pick<RowOptions, "shown"> & { dryRun: boolean },
): string[] {
  const verbs = dryRun
    ? { create: "would create", update: "would update", delete: "would delete" }
    : { create: "created", update: "updated", delete: "deleted" };
  return results.flatMap((result) => {
    const { change, status } = result;
    const path = shown(result.path);
    const ids = result.adapters.map((adapter) => adapter.id).join(", ");
    if (status === "imported")
      return [`${path} (${ids}): imports ${shown(result.importedFrom!)}, which holds the block`];
    if (status !== "ok" || change === undefined) return [];
    if (change.before === change.after) return [`${path} (${ids}): already current`];
    if (change.after === undefined) return [`${path} (${ids}): ${verbs.delete}`];
    const packs = countNoun(result.packs.length, "pack");
    const verb = change.before === undefined ? verbs.create : verbs.update;
    return [`${path} (${ids}): ${verb}, ${packs}, ~${countNoun(result.tokens, "token")}`];
  });
}

/** Renders a line per file that was restored, or would be. */
export function renderRemoved(
  results: readonly RemovedFile[],
  { shown, dryRun }: { readonly shown: (path: string) => string; readonly dryRun: boolean },
): string[] {
  return results.flatMap(({ path, change, copies = [] }) => {
    if (change === undefined) return [];
    const verb = change.after === undefined ? "delete" : "restore";
    const kept = copies.length === 0 ? "" : `; the text that --force replaced is in ${copies.map(shown).join(", ")}`;
    return `${shown(path)}: ${dryRun ? `would ${verb}` : `${verb}d`}${kept}`;
  });
}

/** Rows of files with left-over blocks. */
function leftOverRows(
  leftOvers: readonly LeftOver[],
  removed: readonly RemovedFile[],
  { shown, counter, diffOf }: RowOptions,
): object[] {
  return leftOvers.map(({ path, adapters }) => {
    const result = removed.find((each) => each.path === path);
    const diff = result?.change === undefined ? "" : (diffOf?.(result.change) ?? "");
    const status = result === undefined ? "left over" : result.problem === undefined ? "removed" : "failed";
    return {
      adapter: adapters[0]?.id ?? null,
      paths: [shown(path)],
      packs: [],
      scoped: [],
      dropped: [],
      thinned: [],
      leftOut: [],
      approxTokens: 0,
      renderedBytes: 0,
      counter,
      budget: null,
      verbosity: "full",
      status,
      written: result?.change?.written ?? false,
      ...(diff !== "" && { diff }),
    };
  });
}

/** Explains why nothing may be written for these tools; undefined if it fits. */
export function budgetProblem(
  { status, limits, budget }: Pick<TargetResult, "status" | "limits" | "budget">,
  { ids, shown }: { readonly ids: readonly string[]; readonly shown: (path: string) => string },
): string | undefined {
  const names = ids.join(", ");
  if (status === "too small") {
    const cause = budget === undefined ? "the tool's own limit leaves no room for" : "budget too small to include";
    return `adapter ${names}: ${cause} any pack content`;
  }
  if (status !== "over budget") return undefined;
  const uses = limits
    .filter(({ limit, exceeded }) => exceeded && isEnforced(limit))
    .map((use) => `${formatNumber(use.used)} of ${limitText(use, shown)}`);
  return `adapter ${names}: nothing was written, because the tool's own limit is exceeded even without packs (${uses.join(", ")})`;
}

/** `32,768 bytes for all files that it reads in services/api`. */
function limitText({ limit: { value, unit, scope }, folder }: LimitUse, shown: (path: string) => string): string {
  const place = folder === undefined ? "" : shown(folder);
  const files = place === "" ? "all files that it reads together" : `all files that it reads in ${place}`;
  return `${formatNumber(value)} ${nameUnit({ value, unit })} for ${scope === "chain" ? files : `one ${scope}`}`;
}

/** Describes the enforced limit that the text uses most of. */
export function tightestLimit(limits: readonly LimitUse[], shown: RowOptions["shown"]): string | undefined {
  const hard = limits.filter(({ limit }) => isEnforced(limit));
  const tightest = hard.sort((a, b) => b.used / b.limit.value - a.used / a.limit.value)[0];
  return tightest === undefined ? undefined : limitText(tightest, shown);
}
