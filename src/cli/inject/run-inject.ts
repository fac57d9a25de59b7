/** `inject` and `inject --dry-run`: the engine's run, told to people and programs. */
import {
  type ClipResult,
  copyToClipboard,
  draftClip,
  injectFiles,
  type LeftOver,
  leftOversOf,
  removeLeftOvers,
  type TargetResult,
} from "../../adapters/index.ts";
import { ContextError } from "../../errors.ts";
import { formatNumber, printable } from "../../text/index.ts";
import { createCounter } from "../../tokens/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { describeError } from "../report-error.ts";
import { shownPath } from "../shown-path.ts";
import type { Prepared } from "./prepare.ts";
import { adapterRows, leftOverRows, renderChanges, renderRemoved, renderStats } from "./report.ts";
import { tellFindings } from "./tell-findings.ts";
import { createDiff } from "./unified-diff.ts";

type InjectCall = Call<{
  readonly "dry-run"?: boolean | undefined;
  readonly prune?: boolean | undefined;
  readonly stats?: boolean | undefined;
  readonly tool?: readonly string[] | undefined;
  readonly content?: string | undefined;
}>;

export async function runInject({ engine }: Prepared, call: InjectCall): Promise<CommandResult> {
  const { cwd, env, options, output } = call;
  const dryRun = options["dry-run"] === true;
  if (engine.packs.length === 0) {
    const id = engine.content.profile?.id;
    throw new ContextError(
      "invalid_content",
      `the profile "${id}" holds no packs: there is nothing to inject`,
    );
  }
  if (engine.adapters.length === 0) output.note("no tool is chosen, so there is nothing to write");
  const files = await injectFiles({ ...engine, dryRun });
  const clips = await clipsOf({ engine, dryRun }, call);
  const leftOvers = await leftOversOf(engine);
  const removed = options.prune === true ? await removeLeftOvers(leftOvers, { ...engine, dryRun }) : [];
  const shown = (path: string) => shownPath(path, cwd, env);
  const diffOf = dryRun ? await createDiff(shown) : undefined;
  if (options.tool !== undefined) tellAbsent(engine, call);
  for (const result of [...files, ...clips]) tellFindings(result, { output, shown });
  for (const { problem } of removed) if (problem !== undefined) output.problem(describeError(problem, shown));
  if (options.prune !== true) tellLeftOvers(leftOvers, { output, shown });
  const about = { shown, counter: engine.counter.name, diffOf };
  const rows = adapterRows(engine.adapters, [...files, ...clips], about);
  const changes = [...files, ...clips, ...removed].flatMap(({ change }) => change ?? []);
  const diffs = diffOf === undefined ? [] : changes.map(diffOf);
  const stats = options.stats === true ? renderStats(rows) : renderChanges(files, { shown, dryRun });
  if (options.stats === true) await tellDifference(files, { engine, call });
  return {
    json: [...rows, ...leftOverRows(leftOvers, removed, about)],
    text: [
      ...[...diffs.filter((diff) => diff !== ""), ...stats, ...clips.map(({ copied }) => copied)],
      ...renderRemoved(removed, { shown, dryRun }),
    ]
      .filter(Boolean)
      .join("\n"),
    failed:
      [...files, ...clips].some(({ status }) => status === "failed" || status === "over budget") ||
      removed.some(({ problem }) => problem !== undefined),
  };
}

/** The first few are enough to know what it is about. */
const mostNamed = 5;

function tellLeftOvers(
  leftOvers: readonly LeftOver[],
  { output, shown }: { readonly output: InjectCall["output"]; readonly shown: (path: string) => string },
): void {
  if (leftOvers.length === 0) return;
  const names = leftOvers.slice(0, mostNamed).map(({ path }) => printable(shown(path)));
  const more = leftOvers.length > mostNamed ? ` and ${leftOvers.length - mostNamed} more` : "";
  output.note(
    `left over from another choice of tools or packs: ${names.join(", ")}${more}. Remove it with plimsoll inject --prune`,
  );
}

type Clip = ClipResult & { readonly copied: string };

/** Clipboard and exports belong to a person, not to a project. */
async function clipsOf(
  { engine, dryRun }: { engine: Prepared["engine"]; dryRun: boolean },
  { env, options, output }: InjectCall,
): Promise<Clip[]> {
  const adapters = engine.adapters.filter(
    ({ type }) => type === "clipboard-export" || type === "file-export",
  );
  if (engine.places.scope === "project") {
    const ids = adapters.map(({ id }) => id).join(",");
    const content = options.content === undefined ? "" : ` --content ${options.content}`;
    if (ids !== "")
      output.note(`not for a project: ${ids}. Run plimsoll inject --global${content} --tool ${ids}`);
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
  /** The adapter whose text is in the clipboard already. */
  readonly holder: string | undefined;
  readonly dryRun: boolean;
  readonly env: InjectCall["env"];
}

/** What a person is told, and whether the text is in the clipboard, or would be. */
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

/** A tool that was asked for and has nothing to write to must not look done. */
function tellAbsent({ adapters, places: { scope } }: Prepared["engine"], { output }: InjectCall): void {
  for (const { id, type, targets } of adapters) {
    if (type !== "file-inject" || targets.some((target) => target.scope === scope)) continue;
    output.problem(`${id} has no file ${scope === "global" ? "under HOME" : "in a project"}`);
  }
}

/** The default formula sees less than current models do; people should know before they set a budget. */
async function tellDifference(
  files: readonly TargetResult[],
  { engine, call }: { engine: Prepared["engine"]; call: InjectCall },
): Promise<void> {
  const largest = [...files].sort((a, b) => b.bytes - a.bytes)[0];
  if (engine.counterChosen || largest === undefined || largest.text === undefined) return;
  const estimator = await createCounter("auto");
  const ratio = estimator.count(largest.text) / engine.counter.count(largest.text);
  if (Math.abs(ratio - 1) <= 0.2) return;
  call.output.note(
    `${engine.counter.name} counts ${formatNumber(largest.tokens)} tokens where ${estimator.name} counts ${formatNumber(estimator.count(largest.text))}`,
  );
}
