/** Shows how the agent of each phase would run, for a person who must decide whether to trust a plan. */
import { relative, resolve } from "node:path";
import { dollars, type Nebula } from "../nebula/index.ts";
import { printable } from "../text/index.ts";
import { followLinks } from "../workspace/index.ts";
import type { ChosenAgent } from "./choose-agent.ts";
import { renderTable } from "./table.ts";

export interface RunStart {
  readonly id: string;
  /** Relative to the current directory, with links resolved. */
  readonly workingDirectory: string;
  /** Null if the nebula names none. */
  readonly model: string | null;
  /** Null if no agent is chosen. */
  readonly command: string | null;
  readonly permissions: string;
  /** The most that all attempts of the phase may cost together, in dollars. Null without a limit. */
  readonly maxBudgetUsd: number | null;
}

export async function phaseRuns(
  { phases, workingDirectory: named }: Nebula,
  agent: ChosenAgent,
  cwd: string,
): Promise<RunStart[]> {
  const workingDirectory = await shownWorkingDirectory(named, cwd);
  return phases.map((phase) => ({
    ...{ id: phase.id, workingDirectory, model: agent.model(phase) ?? null },
    ...{ command: agent.line(phase), permissions: agent.permissions(phase) },
    maxBudgetUsd: phase.maxBudgetUsd ?? null,
  }));
}

async function shownWorkingDirectory(named: string | undefined, cwd: string): Promise<string> {
  const path = await followLinks(resolve(cwd, named ?? ""));
  return relative(await followLinks(cwd), path) || ".";
}

/** Renders a line per phase, or one line if all run the same way. Shows limits of the cost if there are any. */
export function renderPhaseRuns(runs: readonly RunStart[], { execution }: Pick<Nebula, "execution">): string[] {
  const hasLimits = runs.some(({ maxBudgetUsd }) => maxBudgetUsd !== null);
  const cells = runs.map(({ id, workingDirectory, model, command, permissions, maxBudgetUsd }) => {
    const unnamed = `(no agent chosen, use --agent)${model === null ? "" : `, model ${model}`}`;
    const limit = hasLimits ? [maxBudgetUsd === null ? "" : dollars(maxBudgetUsd)] : [];
    return [id, workingDirectory, command ?? unnamed, permissions, ...limit].map(printable);
  });
  const alike = new Set(cells.map(([, ...rest]) => rest.join("\n"))).size === 1 && cells.length > 1;
  const rows = alike ? [["all", ...cells[0]!.slice(1)]] : cells;
  if (rows.length === 0) return [];
  const header = ["phase", "works in", "command", "permissions", ...(hasLimits ? ["limit"] : [])];
  const together = execution.maxBudgetUsd;
  return [
    ...renderTable(
      [header, ...rows],
      header.map(() => "left" as const),
    ),
    ...(together === undefined ? [] : [`All phases together may cost ${dollars(together)}.`]),
  ];
}
