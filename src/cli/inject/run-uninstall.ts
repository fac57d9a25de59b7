import { uninstallFiles } from "../../adapters/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { describeError } from "../report-error.ts";
import { shownPath } from "../shown-path.ts";
import type { Prepared } from "./prepare.ts";

/** Without `--tool` every tool's files are looked at: what an earlier choice of tools left behind goes too. */
export async function runUninstall(
  { engine, adapters }: Prepared,
  {
    cwd,
    env,
    options,
    output,
  }: Call<{ readonly tool?: readonly string[] | undefined; readonly "dry-run"?: boolean | undefined }>,
): Promise<CommandResult> {
  const dryRun = options["dry-run"] === true;
  const chosen = options.tool === undefined ? adapters : engine.adapters;
  const results = await uninstallFiles({
    adapters: chosen,
    places: engine.places,
    env,
    force: engine.force,
    dryRun,
  });
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const { problem } of results) if (problem !== undefined) output.problem(describeError(problem, shown));
  const removed = results.filter(({ change }) => change !== undefined);
  const lines = removed.map(({ path, change }) => {
    const verb = change!.after === undefined ? "delete" : "restore";
    return `${shown(path)}: ${dryRun ? `would ${verb}` : `${verb}d`}`;
  });
  return {
    json: results.map(({ adapters: owners, path, change }) => ({
      adapters: owners.map(({ id }) => id),
      path: shown(path),
      deleted: change !== undefined && change.after === undefined,
      written: change?.written ?? false,
    })),
    text: lines.length === 0 && results.length === 0 ? "nothing of ours was found" : lines.join("\n"),
    failed: removed.length < results.length,
  };
}
