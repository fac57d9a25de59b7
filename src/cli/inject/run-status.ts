import { injectionStatus } from "../../adapters/index.ts";
import type { Call, CommandResult } from "../command.ts";
import { describeError } from "../report-error.ts";
import { shownPath } from "../shown-path.ts";
import { budgetProblem } from "./budget-problem.ts";
import type { Prepared } from "./prepare.ts";
import { renderStatus, statusRows } from "./status-report.ts";

/** `--status` tells how things stand; `--check` also fails unless all is current and within limits. */
export async function reportStatus(
  { engine }: Prepared,
  { cwd, env, options, output }: Call<{ readonly check?: boolean | undefined }>,
): Promise<CommandResult> {
  const states = await injectionStatus(engine);
  const shown = (path: string) => shownPath(path, cwd, env);
  for (const state of states) {
    if (state.problem !== undefined) output.problem(describeError(state.problem, shown));
    const excess = budgetProblem(state, { ids: state.tools, shown });
    if (excess !== undefined) output.problem(excess);
  }
  return {
    json: statusRows(states, shown),
    text: renderStatus(states, shown),
    failed: options.check === true && states.some(({ holds }) => !holds),
  };
}
