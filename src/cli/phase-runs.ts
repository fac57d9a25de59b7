/** Shows how the agent of each phase would run, for a person who must decide whether to trust a plan. */
import { relative, resolve } from "node:path";
import type { Nebula } from "../nebula/index.ts";
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
  }));
}

async function shownWorkingDirectory(named: string | undefined, cwd: string): Promise<string> {
  const path = await followLinks(resolve(cwd, named ?? ""));
  return relative(await followLinks(cwd), path) || ".";
}

/** Renders a line per phase, or one line if all run the same way. */
export function renderPhaseRuns(runs: readonly RunStart[]): string[] {
  const cells = runs.map(({ id, workingDirectory, model, command, permissions }) => {
    const unnamed = `(no agent chosen, use --agent)${model === null ? "" : `, model ${model}`}`;
    return [id, workingDirectory, command ?? unnamed, permissions].map(printable);
  });
  const alike = new Set(cells.map(([, ...rest]) => rest.join("\n"))).size === 1 && cells.length > 1;
  const rows = alike ? [["all", ...cells[0]!.slice(1)]] : cells;
  if (rows.length === 0) return [];
  return renderTable([["phase", "works in", "command", "permissions"], ...rows], ["left", "left", "left", "left"]);
}
