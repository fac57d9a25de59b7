/** How the agent of each phase would be run: what a person looks at before trusting a plan. */
import { agentCommand, type Nebula } from "../../agent/index.ts";
import { printable } from "../../text/index.ts";
import type { AgentCall } from "../choose-agent.ts";
import { renderTable } from "../table.ts";
import { shownWorkingDirectory } from "../trust.ts";

export interface PhaseRun {
  readonly id: string;
  /** As seen from the current directory, links followed. */
  readonly workingDirectory: string;
  /** Null where no agent is named. */
  readonly command: string | null;
  readonly permissions: string;
}

/** No command line of ours passes a permission. */
export const permissions = "the agent's own settings";

export async function phaseRuns(
  { phases, workingDirectory: named }: Nebula,
  { options, cwd }: Pick<AgentCall, "options" | "cwd">,
): Promise<PhaseRun[]> {
  const { agent, "agent-command": command } = options;
  const workingDirectory = await shownWorkingDirectory(named, cwd);
  const hasAgent = agent !== undefined || command !== undefined;
  return phases.map(({ id, model }) => ({
    id,
    workingDirectory,
    command: hasAgent ? agentCommand({ agent, command, model }) : null,
    permissions,
  }));
}

/** A table with a line a phase, or one line where all are run alike. */
export function renderPhaseRuns(runs: readonly PhaseRun[]): string[] {
  const cells = runs.map(({ id, workingDirectory, command, permissions: allowed }) => [
    ...[id, workingDirectory, command ?? "(none named: see --agent)", allowed].map(printable),
  ]);
  const alike = new Set(cells.map(([, ...rest]) => rest.join("\n"))).size === 1 && cells.length > 1;
  const rows = alike ? [["all", ...cells[0]!.slice(1)]] : cells;
  if (rows.length === 0) return [];
  return renderTable(
    [["phase", "works in", "command", "permissions"], ...rows],
    ["left", "left", "left", "left"],
  );
}
