/** Runs `inject` and `inject --dry-run`, and reports the results. */

import { basename, join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { formatNumber, printable, scanLines } from "../../core/text/index.ts";
import type { Output } from "../../host/index.ts";
import { createDiff, describeError, shownPath } from "../../host/index.ts";
import {
  type ClipResult,
  copyToClipboard,
  draftClip,
  explainFaults,
  explainUnplaced,
  injectFiles,
  isEnforced,
  isLossAllowed,
  type LeftOver,
  type LimitUse,
  listLeftOvers,
  type Prepared,
  removeLeftOvers,
  type TargetResult,
} from "../../rules/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { budgetProblem, nameUnit, renderRemoved, reportRun, tightestLimit } from "./inject-report.ts";

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
  const { results: files, files: planned, faults, notes, unplaced } = await injectFiles({ ...engine, dryRun });
  const clips = await copyClips({ engine, dryRun }, call);
  const leftOvers = await listLeftOvers(engine, planned);
  const removed = options.prune === true ? await removeLeftOvers(leftOvers, { ...engine, dryRun }) : [];
  const plain = (path: string) => shownPath(path, cwd, env);
  const shown = (path: string) => printable(plain(path));
  const diff = dryRun ? await createDiff(shown) : undefined;
  if (options.tool !== undefined) tellAbsent(engine, call);
  if (engine.places.scope === "global") tellUnscoped(engine.packs, output);
  else tellLostSkills(engine, output);
  const explained = [...explainFaults([...notes, ...faults], shown), ...explainUnplaced(unplaced, shown)];
  explained.forEach((line) => void output.note(line));
  for (const result of [...files, ...clips]) tellFindings(result, { output, shown, hasOneBudget, engine });
  for (const { problem } of removed) if (problem !== undefined) output.problem(describeError(problem, shown));
  if (options.prune !== true) tellLeftOvers(leftOvers, { output, shown });
  const { json, lines } = reportRun(
    { adapters: engine.adapters, files, clips, leftOvers, removed },
    { shown: plain, counter: engine.counter.name, diffOf: diff, dryRun, hasStats: options.stats === true },
  );
  const changes = [...files, ...clips, ...removed].flatMap(({ change }) => change ?? []);
  const diffs = diff === undefined ? [] : changes.map(diff);
  return {
    json,
    // A text for the clipboard is a result.
    isReport: clips.length === 0 && !dryRun && options.stats !== true,
    text: [
      ...withDiffs(lines, diffs, options),
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
  const isLeft = (await listLeftOvers(engine, [])).length > 0;
  throw new ContextError("invalid_content", message, {
    hint: isLeft ? "Change that, or remove the blocks of earlier runs with plimsoll inject --prune." : undefined,
  });
}

/** How many left-over files a note names. */
const maxNamed = 5;

function tellLeftOvers(
  leftOvers: readonly LeftOver[],
  { output, shown }: { readonly output: InjectCall["output"]; readonly shown: (path: string) => string },
): void {
  if (leftOvers.length === 0) return;
  const names = leftOvers.slice(0, maxNamed).map(({ path }) => shown(path));
  const more = leftOvers.length > maxNamed ? ` and ${leftOvers.length - maxNamed} more` : "";
  output.note(
    `no chosen tool needs the block that Plimsoll wrote in ${names.join(", ")}${more}. Remove it with plimsoll inject --prune`,
  );
}

type Clip = ClipResult & { readonly copied: string };

/** Copies and exports, which belong to a person, not to a project. */
async function copyClips(
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

/** Copies a text, unless the clipboard has that of the adapter `holder`. Returns the message, and whether the text is or would be in the clipboard. */
async function copy(
  { adapter, text, bytes }: ClipResult,
  {
    holder,
    dryRun,
    env,
  }: { readonly holder: string | undefined; readonly dryRun: boolean; readonly env: InjectCall["env"] },
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
  for (const key of ["globs", "skills", "commands", "agents"] as const) {
    const ids = packs
      .filter((pack) => (key === "globs" ? pack.globs : listNamed(pack, key)).length > 0)
      .map(({ id }) => id);
    const effect = key === "globs" ? "every session loads the whole pack" : "they are not installed";
    if (ids.length > 0) output.note(`with --global, the ${key} of ${ids.join(", ")} have no effect: ${effect}`);
  }
}

/** A skill of a project's own pack has a path that the block names. Other skills are lost without a tool for them, and so
 *  are commands and agents. */
function tellLostSkills({ packs, adapters, served }: Prepared["engine"], output: Output): void {
  const tools = [...adapters, ...(served?.run ?? [])];
  for (const key of ["skills", "commands", "agents"] as const) {
    if (tools.some((adapter) => adapter[key] !== undefined)) continue;
    const isLost = (pack: NamedPack) =>
      key === "skills" ? pack.skills.some(({ path }) => path === undefined) : listNamed(pack, key).length > 0;
    const ids = packs.filter(isLost).map(({ id }) => id);
    if (ids.length > 0)
      output.note(`no chosen tool loads ${key}, so the ${key} of ${ids.join(", ")} are not installed`);
  }
}

type NamedPack = Prepared["engine"]["packs"][number];

function listNamed(pack: NamedPack, key: "globs" | "skills" | "commands" | "agents"): readonly unknown[] {
  if (key === "globs" || key === "skills") return pack[key];
  return pack.prompts?.filter(({ kind }) => `${kind}s` === key) ?? [];
}

/** What messages about results need. */
interface Telling {
  readonly output: Output;
  readonly hasOneBudget: boolean;
  readonly engine: Prepared["engine"];
  /** A path as the person sees it. */
  readonly shown: (path: string) => string;
}

function tellFindings(result: TargetResult | ClipResult, { output, shown, hasOneBudget, engine }: Telling): void {
  const owners = "adapters" in result ? result.adapters : [result.adapter];
  const ids = owners.map(({ id }) => id).join(", ");
  const excess = budgetProblem(result, { ids: owners.map(({ id }) => id), shown });
  if (excess !== undefined) output.problem(excess);
  if (result.problem !== undefined) output.problem(describeError(result.problem, shown));
  if ("path" in result && result.readers.length > 1 && result.budget !== undefined && !hasOneBudget) {
    const readers = result.readers.map(({ id }) => id).join(", ");
    output.note(`${shown(result.path)} is shared by ${readers}, so the smallest of their budgets applies`);
  }
  tellGone(result, ids, output);
  if ("path" in result) {
    for (const { limit, used, folder = "" } of result.broken) {
      const file = shown(join(folder, basename(result.path)));
      const size = `${formatNumber(used)} of ${formatNumber(limit.value)} ${limit.unit}`;
      output.note(`${file}: even without the block a tool finds ${size} there, so it loses the end. Shorten the file`);
    }
    tellOpenFence(result, { output, shown });
    tellLost(result, { output, shown, engine });
  }
  const isLimit = result.budget === undefined || result.boundBy === "limit";
  const isShortened = result.thinned.length > 0 || result.dropped.some(({ reason }) => reason === "budget");
  const gaveWay = isLimit && result.status === "ok" && isShortened;
  const tightest = gaveWay ? tightestLimit(result.limits, shown) : undefined;
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

/** Names the required packs and the person's own packs that a file does not hold as a whole. */
export function tellLost(
  result: Pick<TargetResult, "path" | "status" | "lost">,
  { output, shown, engine }: Omit<Telling, "hasOneBudget">,
): void {
  const { path, status, lost } = result;
  if (status !== "ok") return;
  const name = ({ id, tiers }: TargetResult["lost"][number]) =>
    `${id} (${tiers.length === 0 ? "the whole pack" : tiers.join(", ")})`;
  const own = lost.filter(({ required }) => !required);
  const required = lost.filter((each) => each.required);
  if (required.length > 0) {
    const names = required.map((each) => (each.tiers.length === 0 ? each.id : name(each))).join(", ");
    const what = `${shown(path)} lacks ${names}, which the company requires: ${required.length === 1 ? "it does" : "they do"} not fit`;
    if (isLossAllowed({ lost: required }, engine)) output.note(what);
    else output.problem(`${what}. Leave out other packs with packs.exclude, or raise the budget.`);
  }
  if (own.length === 0) return;
  const what = `${shown(path)} lacks text of your own packs: ${own.map(name).join(", ")}`;
  if (isLossAllowed({ lost: own }, engine)) output.note(what);
  else output.problem(`${what}. Shorten these packs, leave out others with packs.exclude, or raise the budget.`);
}

/** Names the packs that were dropped or thinned, and the person's own notes if they were left out. Parts that Plimsoll
 *  itself adds are no loss. */
function tellGone(result: TargetResult | ClipResult, ids: string, output: Output): void {
  const { status, budget, boundBy, dropped, thinned, leftOut } = result;
  if (status !== "ok") return;
  const packs = dropped.filter(({ reason }) => reason === "budget").map(({ id }) => id);
  const tiers = new Map<string, string[]>();
  for (const { id, tier } of thinned) tiers.set(id, [tier, ...(tiers.get(id) ?? [])]);
  const thin = [...tiers].map(([id, names]) => `${id} (${names.join(", ")})`);
  const gone = [
    ...(packs.length === 0 ? [] : [`dropped ${packs.join(", ")}`]),
    ...(thin.length === 0 ? [] : [`thinned ${thin.join(", ")}`]),
    ...(leftOut.includes("Current Context") ? ["left out the notes"] : []),
  ];
  const why =
    budget === undefined || boundBy === "limit" ? "" : ` (budget ${formatNumber(budget.value)} ${nameUnit(budget)})`;
  if (gone.length > 0) output.note(`${ids}: ${gone.join(", and ")}${why}`);
}

function tellLimit({ limit, used, exceeded }: LimitUse, ids: string, output: Output): void {
  if (!exceeded || isEnforced(limit)) return;
  const size = `${measured[limit.scope]} ${formatNumber(used)} ${limit.unit}`;
  const source = limit.note === undefined ? limit.evidence : `${limit.evidence}: ${limit.note}`;
  output.note(`${ids}: ${size}, ${exceededText[limit.kind]} ${formatNumber(limit.value)} (${source})`);
}

const measured = { file: "the file has", chain: "the files together have", field: "the text has" } as const;

const exceededText = { hard: "the tool takes", warn: "the tool warns above", advice: "the advised limit is" } as const;
