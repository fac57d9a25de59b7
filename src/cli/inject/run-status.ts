import { injectionStatus, type TargetState, uninstallFiles } from "../../adapters/index.ts";
import { formatNumber, printable } from "../../text/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { describeError } from "../report-error.ts";
import { renderTable, shownPath } from "../table.ts";
import type { Prepared } from "./prepare.ts";
import { budgetProblem, renderRemoved } from "./run-inject.ts";

/** Reports the state of each file. `--check` also fails unless all are current and within limits. */
export async function reportStatus(
  { engine, whyNoPacks }: Prepared,
  { cwd, env, options, output }: Call<{ readonly check?: boolean | undefined }>,
): Promise<CommandResult> {
  const states = await injectionStatus(engine);
  const shown = (path: string) => shownPath(path, cwd, env);
  if (whyNoPacks !== undefined) output.note(`${whyNoPacks}, so no file needs a block`);
  for (const state of states) {
    if (state.problem !== undefined) output.problem(describeError(state.problem, shown));
    const excess = budgetProblem(state, { ids: state.tools, shown });
    if (excess !== undefined) output.problem(excess);
    const dropped = dropProblem(state);
    if (dropped === undefined) continue;
    const hint = `${isBudget(state) ? "Raise the budget" : "Give the packs globs"}, ${dropHint}`;
    if (options.check === true && engine.onDrop === "fail") output.problem(`${dropped}. ${hint}`);
    else output.note(dropped);
  }
  return {
    json: statusRows(states, shown),
    text: renderStatus(states, shown),
    failed: options.check === true && states.some(({ holds }) => !holds),
  };
}

const dropHint = "leave the packs out with packs.exclude, or set on_drop: warn in .plimsoll/config.yaml.";

/** Whether the budget, not the tool's own limit, decides what fits. */
function isBudget({ budget, boundBy }: TargetState): boolean {
  return budget !== undefined && boundBy !== "limit";
}

/** Names the packs that do not fit. A target without any pack has a message of its own. */
function dropProblem(state: TargetState): string | undefined {
  const { tools, status, budget, limit, dropped } = state;
  if (status !== "ok" || dropped.length === 0) return undefined;
  const verb = dropped.length === 1 ? "does" : "do";
  const [name, most] = isBudget(state) ? ["the budget", budget] : ["the tool's own limit", limit];
  const size = most === undefined ? name : `${name} of ${formatNumber(most.value)} ${most.unit}`;
  return `${tools.join(", ")}: ${dropped.join(", ")} ${verb} not fit ${size}`;
}

/** Rows of `--status` for programs: one per adapter and file. The adapter is null if none knows the file. */
function statusRows(states: readonly TargetState[], shown: (path: string) => string): object[] {
  return states.flatMap(({ tools, scope, path, state, bytes, limit, dropped }) =>
    (tools.length === 0 ? [null] : tools).map((adapter) => ({
      adapter,
      scope,
      path: shown(path),
      state,
      bytes,
      limit: limit === undefined ? null : { value: limit.value, unit: limit.unit, kind: limit.kind },
      dropped,
    })),
  );
}

function renderStatus(states: readonly TargetState[], shown: (path: string) => string): string {
  if (states.length === 0) return "no file to write for these tools in this scope";
  const rows = states.map(({ tools, path, state, bytes, limit }) => [
    state,
    shown(path),
    tools.join(", "),
    formatNumber(bytes),
    limit === undefined ? "" : `${formatNumber(limit.value)} ${limit.unit}`,
  ]);
  return renderTable(
    [["State", "File", "Tools", "Bytes", "Hard limit"], ...rows],
    ["left", "left", "left", "right", "right"],
  ).join("\n");
}

type UninstallCall = Call<{
  readonly tool?: readonly string[] | undefined;
  readonly "dry-run"?: boolean | undefined;
}>;

/** Removes our blocks and files. Without `--tool` removes all of them, also those for tools of earlier runs. */
export async function runUninstall(
  { engine }: Prepared,
  { cwd, env, options, output }: UninstallCall,
): Promise<CommandResult> {
  const dryRun = options["dry-run"] === true;
  const onlyKnown = options.tool !== undefined;
  const known = onlyKnown ? engine.adapters : engine.everyAdapter;
  const results = await uninstallFiles({ ...engine, known, onlyKnown, env, dryRun });
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of results) if (problem !== undefined) output.problem(describeError(problem, shown));
  const lines = renderRemoved(results, { shown: (path) => printable(shown(path)), dryRun });
  return {
    json: results.map(({ adapters: owners, path, change }) => ({
      adapters: owners.map(({ id }) => id),
      path: shown(path),
      deleted: change !== undefined && change.after === undefined,
      written: change?.written ?? false,
    })),
    text: results.length === 0 ? "found nothing that Plimsoll wrote" : lines.join("\n"),
    failed: results.some(({ problem }) => problem !== undefined),
  };
}
