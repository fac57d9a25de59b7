/** `import --move` on the command line: plans, moves and reports. `init` offers the same. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { formatNumber, printable } from "../core/text/index.ts";
import {
  chooseCounter,
  homeDirectory,
  loadConfig,
  projectRoot,
  renderTable,
  type Style,
  withJournal,
} from "../host/index.ts";
import {
  embeddedAdapters,
  type LoadedTokens,
  loadMoveFiles,
  type MovePlan,
  type MoveResult,
  readEmbeddedContent,
  readProjectTree,
} from "../rules/index.ts";
import type { Call, CommandResult } from "./command.ts";

type MoveCall = Call<{ readonly "dry-run"?: boolean | undefined; readonly force?: boolean | undefined }>;

/** Moves the text of the files into packs, in one step that `undo` takes back. */
export function runMove(call: MoveCall): Promise<CommandResult> {
  const root = projectRoot(call.cwd, homeDirectory(call.env));
  if (call.options["dry-run"] === true) return move(root, call);
  return withJournal({ root, env: call.env }, () => move(root, call));
}

async function move(root: string, call: MoveCall): Promise<CommandResult> {
  const { cwd, env, output } = call;
  const dryRun = call.options["dry-run"] === true;
  const { applyMove, planMove, takeBackInterrupted } = await loadMoveFiles();
  if (await takeBackInterrupted(root, { ...call, dryRun })) {
    const first = dryRun ? "A run without --dry-run takes it back first." : "It was taken back first.";
    output.note(`an earlier import --move was interrupted. ${first}`);
  }
  const { values: config } = await loadConfig({ cwd, env, projectOnly: true });
  const folder = join(root, ".plimsoll/packs");
  const options = {
    root,
    tree: await readProjectTree(root, env),
    adapters: embeddedAdapters(),
    config,
    takenIds: [
      ...readEmbeddedContent().sources.map(({ id }) => id),
      ...(existsSync(folder) ? readdirSync(folder) : []),
    ],
    named: call.arguments,
    counter: await chooseCounter({ ...call, options: {} }, "auto", { config, quiet: true }),
    force: call.options.force === true,
  };
  const plan = await planMove(options, call);
  for (const { path, reason } of plan.kept) output.note(`${printable(path)} ${printable(reason)}`);
  for (const { path, reason } of plan.unreadable) output.problem(`${printable(path)} ${reason}. It was not moved.`);
  const failed = plan.unreadable.length > 0;
  if (plan.moved.length === 0) {
    return { json: renderJson(plan, undefined), text: failed ? "" : "Found no rules to move here.", failed };
  }
  const result = dryRun ? undefined : await applyMove(plan, options, call);
  for (const { from, notes } of plan.packs)
    for (const note of notes) output.note(`${printable(from)}: ${printable(note)}`);
  for (const note of result?.notes ?? []) output.note(note);
  return { json: renderJson(plan, result), text: renderText(plan, result, call), failed };
}

function renderJson({ packs, moved, kept, tools, before, unreadable }: MovePlan, result: MoveResult | undefined) {
  return {
    packs: packs.map(({ id, from, globs, nested, tools: own, notTools }) => ({
      ...{ id, from, globs, nested },
      ...(own === undefined ? {} : { tools: own }),
      ...(notTools === undefined ? {} : { not_tools: notTools }),
    })),
    moved: moved.map(({ path }) => path),
    kept,
    tools,
    tokens: pairLoads(before, result?.after),
    unreadable,
  };
}

/** Returns the tools that load something, in each folder. */
function pairLoads(before: readonly LoadedTokens[], after: readonly LoadedTokens[] = []) {
  const key = ({ tool, folder }: LoadedTokens) => `${folder}\n${tool}`;
  const now = new Map(after.map((each) => [key(each), each]));
  return before.flatMap((then) => {
    const { tool, folder, tokens } = then;
    const later = now.get(key(then));
    if (tokens === 0 && (later?.tokens ?? 0) === 0) return [];
    const loaded = later && { after: later.tokens, markers: later.markers, twice: later.repeated };
    return [{ tool, folder, before: tokens, ...loaded }];
  });
}

function renderText(plan: MovePlan, result: MoveResult | undefined, { output }: MoveCall): string {
  const rows = plan.packs.map(({ id, from, globs, tools, notTools }) => {
    const whom = tools?.join(", ") ?? (notTools === undefined ? "all" : `not ${notTools.join(", ")}`);
    return [id, whom, printable(`${from}${globs.length === 0 ? "" : ` (${globs.join(", ")})`}`)];
  });
  const packs = renderTable([["pack", "for", "from"], ...rows], ["left", "left", "left"], output.style);
  const files = plan.moved.map(({ path }) => printable(path)).join(", ");
  const ending =
    result === undefined
      ? [`would move the text of ${files}`, "Nothing was written, because this was a dry run."]
      : [`moved the text of ${files}`, '"plimsoll undo" takes it back.'];
  const tables = [...(rows.length === 0 ? [] : [packs]), renderLoads(plan, result, output.style)];
  return [...tables.flatMap((lines) => [...lines, ""]), ...ending].join("\n");
}

/** Tools with the same numbers share a line. */
function renderLoads({ before }: MovePlan, result: MoveResult | undefined, style: Style): string[] {
  const tools = new Map<string, string[]>();
  for (const { tool, folder, before: then, after, markers } of pairLoads(before, result?.after)) {
    const numbers = result === undefined ? [then] : [then, after ?? 0, markers ?? 0];
    const cells = [...numbers.map(formatNumber), printable(folder) || "."].join("\n");
    tools.set(cells, [...(tools.get(cells) ?? []), tool]);
  }
  const names = result === undefined ? ["tokens"] : ["before", "after", "of it markers"];
  const rows = [...tools].map(([cells, ids]) => [...cells.split("\n"), ids.join(", ")]);
  const sides = [...names.map(() => "right" as const), "left" as const, "left" as const];
  return renderTable([[...names, "in", "loaded by"], ...rows], sides, style);
}
