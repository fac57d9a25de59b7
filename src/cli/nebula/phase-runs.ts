/** How the agent of each phase would be run: what a person looks at before trusting a plan. */
import { relative, resolve } from "node:path";
import { agentCommand, type Nebula } from "../../agent/index.ts";
import { printable } from "../../text/index.ts";
import { followLinks } from "../../workspace/index.ts";
import type { AgentCall } from "../choose-agent.ts";
import { renderTable } from "../table.ts";

export interface PhaseRun {
  readonly id: string;
  /** As seen from the current directory, links followed. */
  readonly workingDirectory: string;
  /** Null where the nebula names none. */
  readonly model: string | null;
  /** Null where no agent is named. */
  readonly command: string | null;
  readonly permissions: string;
}

/** How the agent of the options would be run. No command line of ours passes a permission. */
export function agentRun({ agent, "agent-command": command }: AgentFlags, model?: string): AgentRun {
  if (agent === undefined && command === undefined) return { command: null, permissions: ownSettings };
  const line = agentCommand({ agent, command, model });
  return { command: line, permissions: command === undefined ? ownSettings : "as the command says" };
}

const ownSettings = "the agent's own settings";

type AgentFlags = AgentCall["options"];
type AgentRun = Pick<PhaseRun, "command" | "permissions">;

export async function phaseRuns(
  { phases, workingDirectory: named }: Nebula,
  { options, cwd }: Pick<AgentCall, "options" | "cwd">,
): Promise<PhaseRun[]> {
  const workingDirectory = await shownWorkingDirectory(named, cwd);
  return phases.map(({ id, model }) => ({
    ...{ id, workingDirectory, model: model ?? null },
    ...agentRun(options, model),
  }));
}

async function shownWorkingDirectory(named: string | undefined, cwd: string): Promise<string> {
  const path = await followLinks(resolve(cwd, named ?? ""));
  return relative(await followLinks(cwd), path) || ".";
}

/** A table with a line a phase, or one line where all are run alike. */
export function renderPhaseRuns(runs: readonly PhaseRun[]): string[] {
  const cells = runs.map(({ id, workingDirectory, model, command, permissions }) => {
    const unnamed = `(none named: see --agent)${model === null ? "" : `, model ${model}`}`;
    return [id, workingDirectory, command ?? unnamed, permissions].map(printable);
  });
  const alike = new Set(cells.map(([, ...rest]) => rest.join("\n"))).size === 1 && cells.length > 1;
  const rows = alike ? [["all", ...cells[0]!.slice(1)]] : cells;
  if (rows.length === 0) return [];
  return renderTable(
    [["phase", "works in", "command", "permissions"], ...rows],
    ["left", "left", "left", "left"],
  );
}
