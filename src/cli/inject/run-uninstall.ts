import { uninstallFiles } from "../../adapters/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { describeError } from "../report-error.ts";
import { shownPath } from "../shown-path.ts";
import type { Prepared } from "./prepare.ts";
import { renderRemoved } from "./report.ts";

type UninstallCall = Call<{
  readonly tool?: readonly string[] | undefined;
  readonly "dry-run"?: boolean | undefined;
}>;

/** Without `--tool` everything of ours goes, wherever it is: what an earlier choice of tools left behind too. */
export async function runUninstall(
  { engine }: Prepared,
  { cwd, env, options, output }: UninstallCall,
): Promise<CommandResult> {
  const dryRun = options["dry-run"] === true;
  const { places, force } = engine;
  const what =
    options.tool === undefined
      ? { known: engine.everyAdapter, tree: engine.tree }
      : { known: engine.adapters, tree: undefined };
  const results = await uninstallFiles({ ...what, places, env, force, dryRun });
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of results) if (problem !== undefined) output.problem(describeError(problem, shown));
  const lines = renderRemoved(results, { shown, dryRun });
  return {
    json: results.map(({ adapters: owners, path, change }) => ({
      adapters: owners.map(({ id }) => id),
      path: shown(path),
      deleted: change !== undefined && change.after === undefined,
      written: change?.written ?? false,
    })),
    text: results.length === 0 ? "nothing of ours was found" : lines.join("\n"),
    failed: results.some(({ problem }) => problem !== undefined),
  };
}
