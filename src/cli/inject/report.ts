/** What `inject` tells: rows for programs and tables for people, both made of the engine's results. */
import type { Adapter, ClipResult, LeftOver, RemovedFile, TargetResult } from "../../adapters/index.ts";
import { countNoun, formatNumber } from "../../text/index.ts";
import type { FileChange } from "../../workspace/index.ts";
import { renderTable } from "../table.ts";

/** One line of the report: an adapter and all that became of it. */
export interface AdapterRow {
  readonly adapter: string;
  readonly paths: readonly string[];
  readonly packs: readonly string[];
  readonly dropped: TargetResult["dropped"];
  readonly thinned: TargetResult["thinned"];
  readonly approxTokens: number;
  readonly renderedBytes: number;
  readonly counter: string;
  readonly budget: NonNullable<TargetResult["budget"]> | null;
  readonly verbosity: TargetResult["verbosity"];
  readonly status: string;
  readonly written: boolean;
  readonly diff?: string;
}

export interface RowOptions {
  /** A path as the person sees it. */
  readonly shown: (path: string) => string;
  readonly counter: string;
  /** The unified diff of a change, where one is wanted. */
  readonly diffOf?: ((change: FileChange) => string) | undefined;
}

/** Rows in the order of the adapters; of an adapter with several files the tightest one speaks. */
export function adapterRows(
  adapters: readonly Adapter[],
  results: readonly (TargetResult | ClipResult)[],
  options: RowOptions,
): AdapterRow[] {
  return adapters.flatMap((adapter) => {
    const own = results.filter((each) =>
      "adapters" in each ? each.adapters.includes(adapter) : each.adapter === adapter,
    );
    return own.length === 0 ? [] : [rowOf(adapter, own, options)];
  });
}

function rowOf(
  adapter: Adapter,
  results: readonly (TargetResult | ClipResult)[],
  options: RowOptions,
): AdapterRow {
  const tightest = [...results].sort((a, b) => a.packs.length - b.packs.length)[0]!;
  const changes = results.flatMap((result) => result.change ?? []);
  const diff = changes.map((change) => options.diffOf?.(change) ?? "").join("");
  return {
    adapter: adapter.id,
    paths: results.flatMap((result) => pathOf(result, options.shown)),
    packs: tightest.packs,
    dropped: tightest.dropped,
    thinned: tightest.thinned,
    approxTokens: tightest.tokens,
    renderedBytes: tightest.bytes,
    counter: options.counter,
    budget: tightest.budget ?? null,
    verbosity: tightest.verbosity,
    status: statusText(tightest, options.shown),
    written: changes.some((change) => change.written),
    ...(diff !== "" && { diff }),
  };
}

function pathOf(result: TargetResult | ClipResult, shown: RowOptions["shown"]): string[] {
  const path = "path" in result ? result.path : result.change?.path;
  return path === undefined ? [] : [shown(path)];
}

function statusText(result: TargetResult | ClipResult, shown: RowOptions["shown"]): string {
  if (result.status !== "ok") {
    const from =
      "importedFrom" in result && result.importedFrom !== undefined ? result.importedFrom : undefined;
    return from === undefined ? result.status : `OK (imports ${shown(from)})`;
  }
  const changes = [
    countOf(result.dropped.length, "trimmed"),
    countOf(new Set(result.thinned.map(({ id }) => id)).size, "thinned"),
  ].filter((text) => text !== "");
  return changes.length === 0 ? "OK" : `OK (${changes.join(", ")})`;
}

function countOf(count: number, what: string): string {
  return count === 0 ? "" : `${countNoun(count, "pack")} ${what}`;
}

const headings = ["Adapter", "Packs included", "Tokens (approx)", "Budget", "Verbosity", "Status"];

/** The table of `--stats`. */
export function renderStats(rows: readonly AdapterRow[]): string[] {
  const cells = rows.map((row) => [
    row.adapter,
    row.packs.length === 0 ? "(none)" : row.packs.join(", "),
    `~${formatNumber(row.approxTokens)}`,
    row.budget === null ? "unconstrained" : `${row.budget.value} ${row.budget.unit}`,
    row.verbosity,
    row.status,
  ]);
  return renderTable([headings, ...cells], ["left", "left", "right", "right", "left", "left"]);
}

/** A line a file: what was done, or would be. */
export function renderChanges(
  results: readonly TargetResult[],
  { shown, dryRun }: Pick<RowOptions, "shown"> & { dryRun: boolean },
): string[] {
  return results.flatMap((result) => {
    const { change, status } = result;
    const path = shown(result.path);
    const ids = result.adapters.map((adapter) => adapter.id).join(", ");
    if (status === "imported")
      return [`${path} (${ids}): imports ${shown(result.importedFrom!)}, which holds the block`];
    if (status !== "ok" || change === undefined) return [];
    if (change.before === change.after) return [`${path} (${ids}): already current`];
    const packs = countNoun(result.packs.length, "pack");
    return [`${path} (${ids}): ${verbOf(change, dryRun)}, ${packs}, ~${formatNumber(result.tokens)} tokens`];
  });
}

function verbOf({ before }: FileChange, dryRun: boolean): string {
  if (before === undefined) return dryRun ? "would create" : "created";
  return dryRun ? "would update" : "updated";
}

/** A line a file that was, or would be, given back. */
export function renderRemoved(
  results: readonly RemovedFile[],
  { shown, dryRun }: { readonly shown: (path: string) => string; readonly dryRun: boolean },
): string[] {
  return results.flatMap(({ path, change }) => {
    if (change === undefined) return [];
    const verb = change.after === undefined ? "delete" : "restore";
    return `${shown(path)}: ${dryRun ? `would ${verb}` : `${verb}d`}`;
  });
}

/** Rows of files that hold something that nobody wants any more. */
export function leftOverRows(
  leftOvers: readonly LeftOver[],
  removed: readonly RemovedFile[],
  { shown, counter, diffOf }: RowOptions,
): object[] {
  return leftOvers.map(({ path, adapters }) => {
    const result = removed.find((each) => each.path === path);
    const diff = result?.change === undefined ? "" : (diffOf?.(result.change) ?? "");
    const status = result === undefined ? "left over" : result.problem === undefined ? "removed" : "failed";
    return {
      ...{ adapter: adapters[0]?.id ?? null, paths: [shown(path)], packs: [], dropped: [], thinned: [] },
      ...{ approxTokens: 0, renderedBytes: 0, counter, budget: null, verbosity: "full", status },
      written: result?.change?.written ?? false,
      ...(diff !== "" && { diff }),
    };
  });
}
