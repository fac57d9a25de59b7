/** Runs `inject` and `inject --dry-run`, and reports the results. */
import {
  type Adapter,
  type ClipResult,
  copyToClipboard,
  draftClip,
  injectFiles,
  isEnforced,
  type LeftOver,
  type LimitUse,
  leftOversOf,
  type RemovedFile,
  removeLeftOvers,
  type TargetResult,
} from "../../adapters/index.ts";
import { ContextError } from "../../errors.ts";
import { countNoun, formatNumber, printable, scanLines } from "../../text/index.ts";
import type { FileChange } from "../../workspace/index.ts";
import type { Call, CommandResult } from "../command.ts";
import type { Output } from "../output.ts";
import { describeError } from "../report-error.ts";
import { renderTable, shownPath } from "../table.ts";
import type { Prepared } from "./prepare.ts";
import { createDiff } from "./unified-diff.ts";

type InjectCall = Call<{
  readonly "dry-run"?: boolean | undefined;
  readonly prune?: boolean | undefined;
  readonly diff?: boolean | undefined;
  readonly stats?: boolean | undefined;
  readonly tool?: readonly string[] | undefined;
  readonly content?: string | undefined;
}>;

export async function runInject(
  { engine, whyNoPacks, hasOneBudget }: Prepared,
  call: InjectCall,
): Promise<CommandResult> {
  const { cwd, env, options, output } = call;
  const dryRun = options["dry-run"] === true;
  if (whyNoPacks !== undefined) await tellNoPacks(whyNoPacks, { engine, call });
  if (engine.adapters.length === 0) output.note("no tool is chosen, so there is nothing to write");
  const files = await injectFiles({ ...engine, dryRun });
  const clips = await clipsOf({ engine, dryRun }, call);
  const leftOvers = await leftOversOf(engine);
  const removed = options.prune === true ? await removeLeftOvers(leftOvers, { ...engine, dryRun }) : [];
  const plain = (path: string) => shownPath(path, cwd, env);
  const shown = (path: string) => printable(plain(path));
  const diffOf = dryRun ? await createDiff(shown) : undefined;
  if (options.tool !== undefined) tellAbsent(engine, call);
  if (engine.places.scope === "global") tellUnscoped(engine.packs, output);
  else tellLostSkills(engine, output);
  for (const result of [...files, ...clips]) tellFindings(result, { output, shown, hasOneBudget });
  for (const { problem } of removed) if (problem !== undefined) output.problem(describeError(problem, shown));
  if (options.prune !== true) tellLeftOvers(leftOvers, { output, shown });
  const about = { shown: plain, counter: engine.counter.name, diffOf };
  const rows = adapterRows(engine.adapters, [...files, ...clips], about);
  const changes = [...files, ...clips, ...removed].flatMap(({ change }) => change ?? []);
  const diffs = diffOf === undefined ? [] : changes.map(diffOf);
  const stats = options.stats === true ? renderStats(rows) : renderChanges(files, { shown, dryRun });
  return {
    json: [...rows, ...leftOverRows(leftOvers, removed, about)],
    text: [
      ...withDiffs(stats, diffs, options),
      ...clips.map(({ copied }) => copied),
      ...renderRemoved(removed, { shown, dryRun }),
    ]
      .filter(Boolean)
      .join("\n"),
    failed:
      [...files, ...clips].some(({ status }) => status === "failed" || status === "over budget") ||
      removed.some(({ problem }) => problem !== undefined),
  };
}

/** With --stats the table comes first, and the diffs only if they are asked for. */
function withDiffs(lines: readonly string[], diffs: readonly string[], { stats, diff }: InjectCall["options"]) {
  if (stats !== true) return [...diffs, ...lines];
  return diff === true ? [...lines, ...diffs] : lines;
}

/** Without packs, a run can only remove blocks of earlier runs. */
async function tellNoPacks(
  why: string,
  { engine, call }: Pick<Prepared, "engine"> & { readonly call: InjectCall },
): Promise<void> {
  const message = `${why}, so there is nothing to inject`;
  if (call.options.prune === true) {
    call.output.note(message);
    return;
  }
  const isLeft = (await leftOversOf(engine)).length > 0;
  throw new ContextError("invalid_content", message, {
    hint: isLeft ? "Change that, or remove the blocks of earlier runs with plimsoll inject --prune." : undefined,
  });
}

/** How many left-over files a note names. */
const mostNamed = 5;

function tellLeftOvers(
  leftOvers: readonly LeftOver[],
  { output, shown }: { readonly output: InjectCall["output"]; readonly shown: (path: string) => string },
): void {
  if (leftOvers.length === 0) return;
  const names = leftOvers.slice(0, mostNamed).map(({ path }) => shown(path));
  const more = leftOvers.length > mostNamed ? ` and ${leftOvers.length - mostNamed} more` : "";
  output.note(
    `no chosen tool needs the block that Plimsoll wrote in ${names.join(", ")}${more}. Remove it with plimsoll inject --prune`,
  );
}

type Clip = ClipResult & { readonly copied: string };

/** Copies and exports, which belong to a person, not to a project. */
async function clipsOf(
  { engine, dryRun }: { engine: Prepared["engine"]; dryRun: boolean },
  { env, options, output }: InjectCall,
): Promise<Clip[]> {
  if (engine.packs.length === 0) return [];
  const adapters = engine.adapters.filter(({ type }) => type === "clipboard-export" || type === "file-export");
  if (engine.places.scope === "project") {
    const ids = adapters.map(({ id }) => id).join(",");
    const content = options.content === undefined ? "" : ` --content ${options.content}`;
    if (ids !== "") output.note(`not for a project: ${ids}. Run plimsoll inject --global${content} --tool ${ids}`);
    return [];
  }
  const clips: Clip[] = [];
  let holder: string | undefined;
  for (const adapter of adapters) {
    const clip = await draftClip(adapter, { ...engine, env, dryRun });
    const { told, taken } = await copy(clip, { holder, dryRun, env });
    if (taken) holder ??= adapter.id;
    clips.push({ ...clip, copied: told });
  }
  return clips;
}

interface CopyOptions {
  /** The adapter whose text is already in the clipboard. */
  readonly holder: string | undefined;
  readonly dryRun: boolean;
  readonly env: InjectCall["env"];
}

/** Copies a text. Returns the message, and whether the text is or would be in the clipboard. */
async function copy(
  { adapter, text, bytes }: ClipResult,
  { holder, dryRun, env }: CopyOptions,
): Promise<{ told: string; taken: boolean }> {
  const { id, type, instructions } = adapter;
  if (text === undefined) return { told: "", taken: false };
  if (holder !== undefined) {
    const told = `${id}: not copied, the clipboard holds ${holder}; run it with --tool ${id}`;
    return { told, taken: false };
  }
  const size = `${formatNumber(bytes)} bytes`;
  if (dryRun) return { told: `${id}: would copy ${size} to the clipboard`, taken: true };
  const program = await copyToClipboard(text, env);
  const advice = type === "clipboard-export" && instructions !== "" ? `\n${instructions.trim()}` : "";
  if (program !== undefined) return { told: `${id}: copied ${size} with ${program}${advice}`, taken: true };
  const rule = "-".repeat(40);
  return { told: `${rule}\n${text.trimEnd()}\n${rule}${advice}`, taken: false };
}

/** Reports chosen tools that have no file in this scope. */
function tellAbsent({ adapters, places: { scope } }: Prepared["engine"], { output }: InjectCall): void {
  for (const { id, type, targets } of adapters) {
    if (type !== "file-inject" || targets.some((target) => target.scope === scope)) continue;
    output.problem(`${id} has no file ${scope === "global" ? "under HOME" : "in a project"}`);
  }
}

/** Scoped rules and skills belong to a project: Claude Code and Kiro do not load scoped rules from HOME. */
function tellUnscoped(packs: Prepared["engine"]["packs"], output: Output): void {
  for (const key of ["globs", "skills"] as const) {
    const ids = packs.filter((pack) => pack[key].length > 0).map(({ id }) => id);
    const effect = key === "globs" ? "every session loads the whole pack" : "they are not installed";
    if (ids.length > 0) output.note(`with --global, the ${key} of ${ids.join(", ")} have no effect: ${effect}`);
  }
}

/** A skill of a project's own pack has a path that the block names. Other skills are lost without a tool for them. */
function tellLostSkills({ packs, adapters }: Prepared["engine"], output: Output): void {
  if (adapters.some(({ skills }) => skills !== undefined)) return;
  const ids = packs.filter(({ skills }) => skills.some(({ path }) => path === undefined)).map(({ id }) => id);
  if (ids.length > 0) output.note(`no chosen tool loads skills, so the skills of ${ids.join(", ")} are not installed`);
}

/** What messages about results need. */
interface Telling {
  readonly output: Output;
  readonly hasOneBudget: boolean;
  /** A path as the person sees it. */
  readonly shown: (path: string) => string;
}

function tellFindings(result: TargetResult | ClipResult, { output, shown, hasOneBudget }: Telling): void {
  const owners = "adapters" in result ? result.adapters : [result.adapter];
  const ids = owners.map(({ id }) => id).join(", ");
  const excess = budgetProblem(result, { ids: owners.map(({ id }) => id), shown });
  if (excess !== undefined) output.problem(excess);
  if (result.problem !== undefined) output.problem(describeError(result.problem, shown));
  if ("path" in result && result.readers.length > 1 && result.budget !== undefined && !hasOneBudget) {
    const readers = result.readers.map(({ id }) => id).join(", ");
    output.note(`${shown(result.path)} is shared by ${readers}, so the smallest of their budgets applies`);
  }
  if ("path" in result) tellOpenFence(result, { output, shown });
  tellGone(result, ids, output);
  const isLimit = result.budget === undefined || result.boundBy === "limit";
  const tightest = isLimit && gaveWay(result) ? tightestLimit(result.limits, shown) : undefined;
  if (tightest !== undefined) output.note(`${ids}: shortened to the tool's own limit of ${tightest}`);
  for (const use of result.limits) tellLimit(use, ids, output);
}

/** Tools read the block as code if a code block above it has no end. */
function tellOpenFence(
  { path, change }: Pick<TargetResult, "path" | "change">,
  { output, shown }: Pick<Telling, "output" | "shown">,
): void {
  const text = change?.after ?? "";
  const open = scanLines(text.slice(0, Math.max(0, text.indexOf("<!-- plimsoll:start:"))), () => {});
  if (open === undefined) return;
  const why = "this code block is never closed, so the rules below it look like code";
  output.note(`${shown(path)}:${open.number}: ${why}. Close it with ${open.closer}`);
}

/** Names the packs that were dropped, and the person's own notes if they were left out. Parts that Plimsoll itself adds
 *  are no loss. */
function tellGone(result: TargetResult | ClipResult, ids: string, output: Output): void {
  const { status, budget, boundBy, dropped, leftOut } = result;
  if (status !== "ok") return;
  const packs = dropped.filter(({ reason }) => reason === "budget").map(({ id }) => id);
  const gone = [
    ...(packs.length === 0 ? [] : [`dropped ${packs.join(", ")}`]),
    ...(leftOut.includes("Current Context") ? ["left out the notes"] : []),
  ];
  const why =
    budget === undefined || boundBy === "limit" ? "" : ` (budget ${formatNumber(budget.value)} ${budget.unit})`;
  if (gone.length > 0) output.note(`${ids}: ${gone.join(", and ")}${why}`);
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
  const size = `${measured[limit.scope]} ${formatNumber(used)} ${limit.unit}`;
  const source = limit.note === undefined ? limit.evidence : `${limit.evidence}: ${limit.note}`;
  output.note(`${ids}: ${size}, ${exceededText[limit.kind]} ${formatNumber(limit.value)} (${source})`);
}

const measured = { file: "the file has", chain: "the files together have", field: "the text has" } as const;

const exceededText = { hard: "the tool takes", warn: "the tool warns above", advice: "the advised limit is" } as const;

// The report of `inject`: rows for programs and tables for people.

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

interface RowOptions {
  /** A path as the person sees it. Rows for programs keep control characters. */
  readonly shown: (path: string) => string;
  readonly counter: string;
  /** Returns the unified diff of a change, if diffs are wanted. */
  readonly diffOf?: ((change: FileChange) => string) | undefined;
}

/** Returns rows in the order of adapters. When an adapter has several files, its row shows the one with the least
 *  room. */
function adapterRows(
  adapters: readonly Adapter[],
  results: readonly (TargetResult | ClipResult)[],
  options: RowOptions,
): AdapterRow[] {
  return adapters.flatMap((adapter) => {
    const own = results.filter((each) =>
      "adapters" in each ? each.adapters.includes(adapter) : each.adapter === adapter,
    );
    // In a project, Codex has skills but no file of its own: the row of AGENTS.md is about it.
    return own.some(isBlock) ? [rowOf(adapter, own, options)] : [];
  });
}

function rowOf(adapter: Adapter, results: readonly (TargetResult | ClipResult)[], options: RowOptions): AdapterRow {
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
    paths: results.flatMap((result) => pathOf(result, options.shown)),
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

function pathOf(result: TargetResult | ClipResult, shown: RowOptions["shown"]): string[] {
  const path = "path" in result ? result.path : result.change?.path;
  return path === undefined ? [] : [shown(path)];
}

function statusText(
  result: TargetResult | ClipResult,
  { shown, scoped }: Pick<RowOptions, "shown"> & { readonly scoped: number },
): string {
  if (result.status !== "ok") {
    const from = "importedFrom" in result && result.importedFrom !== undefined ? result.importedFrom : undefined;
    return from === undefined ? result.status : `OK (imports ${shown(from)})`;
  }
  const changes = [
    countOf(result.dropped.length, "trimmed"),
    countOf(new Set(result.thinned.map(({ id }) => id)).size, "thinned"),
    countOf(scoped, "scoped"),
  ].filter((text) => text !== "");
  return changes.length === 0 ? "OK" : `OK (${changes.join(", ")})`;
}

function countOf(count: number, what: string): string {
  return count === 0 ? "" : `${countNoun(count, "pack")} ${what}`;
}

const headings = ["Adapter", "Packs included", "Tokens (approx)", "Budget", "Verbosity", "Status"];

/** Renders the table of `--stats`. */
function renderStats(rows: readonly AdapterRow[]): string[] {
  const cells = rows.map((row) => [
    row.adapter,
    row.packs.length === 0 ? "(none)" : row.packs.join(", "),
    `~${formatNumber(row.approxTokens)}`,
    row.budget === null ? "no budget" : `${row.budget.value} ${row.budget.unit}`,
    row.verbosity,
    row.status,
  ]);
  return renderTable([headings, ...cells], ["left", "left", "right", "right", "left", "left"]);
}

/** Renders a line per file: what was done, or would be. */
function renderChanges(
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
    if (change.after === undefined) return [`${path} (${ids}): ${dryRun ? "would delete" : "deleted"}`];
    const packs = countNoun(result.packs.length, "pack");
    return [`${path} (${ids}): ${verbOf(change, dryRun)}, ${packs}, ~${formatNumber(result.tokens)} tokens`];
  });
}

function verbOf({ before }: FileChange, dryRun: boolean): string {
  if (before === undefined) return dryRun ? "would create" : "created";
  return dryRun ? "would update" : "updated";
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
      ...{ adapter: adapters[0]?.id ?? null, paths: [shown(path)], packs: [], scoped: [], dropped: [], thinned: [] },
      leftOut: [],
      ...{ approxTokens: 0, renderedBytes: 0, counter, budget: null, verbosity: "full", status },
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
  return `${formatNumber(value)} ${unit} for ${scope === "chain" ? files : `one ${scope}`}`;
}
