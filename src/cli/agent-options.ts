/** Options of commands that run agents, and the agent that they choose. */
import { usageError } from "../core/errors.ts";
import { wholeNumber } from "../core/text/index.ts";
import { type Allow, allowLevels } from "../host/index.ts";
import { agentPresets } from "../plans/agent/index.ts";
import {
  type AgentPreferences,
  type ApplyChoice,
  type ApplySettings,
  type ChosenAgent,
  checkAgentCommand,
  chooseAgent,
  findInstalledAgents,
  readApplySettings,
} from "../plans/index.ts";
import type { Nebula } from "../plans/nebula/index.ts";
import type { ArgumentSpec, Call, OptionValues } from "./command.ts";
import { counterOptions, type SwitchOption, type storeOptions, type ValueOption } from "./shared-options.ts";

export const agentOptions: Readonly<Record<"agent" | "agent-command" | "allow" | "model", ValueOption>> = {
  agent: { value: "NAME", choices: Object.keys(agentPresets), summary: "a known agent" },
  "agent-command": {
    value: "COMMAND",
    summary: "any other agent: a shell command that reads the prompt on stdin and prints its answer",
  },
  allow: {
    value: "LEVEL",
    choices: allowLevels,
    summary: "what a known agent may do without asking (default: from the configuration, edit)",
  },
  model: { value: "ID", summary: "the agent's model; also chooses the counter of its family" },
};

/** Options that decide the context of a nebula's prompts. */
export const contextOptions: Readonly<
  Record<"max-context-tokens" | "counter", ValueOption> & Record<"with-conventions", SwitchOption>
> = {
  "max-context-tokens": {
    value: "N",
    summary:
      "token budget of the context before each task; 0 sends none (default: from nebula.toml, or else the configuration)",
  },
  "with-conventions": { summary: "keep convention files in the snapshot that the agent loads by itself" },
  counter: counterOptions.counter,
};

/** Finds the agent of a command line that works in `directory`. */
export function agentFor(
  { options, cwd, env }: Pick<Call<OptionValues<typeof agentOptions>>, "options" | "cwd" | "env">,
  directory?: string,
): Promise<ChosenAgent> {
  const { agent, "agent-command": command, allow, model } = options;
  if (command !== undefined && (agent !== undefined || allow !== undefined)) {
    const [other, reason] = agent !== undefined ? ["--agent", ""] : ["--allow", ": only known agents can be limited"];
    throw usageError(`${other} and --agent-command are both given${reason}`, "Use one of them.");
  }
  // The parser has refused other levels.
  return chooseAgent({ agent, command, allow: allow as Allow | undefined, model }, { cwd, env, directory });
}

/** Throws unless an agent is chosen and its program can run. */
export async function requireAgent(
  agent: ChosenAgent,
  { cwd, env }: Pick<Call, "cwd" | "env">,
  preferred: AgentPreferences = {},
): Promise<string> {
  const line = agent.line(preferred);
  if (line === null) {
    const found = await findInstalledAgents(env);
    const choice =
      found.length === 0
        ? `None of ${Object.keys(agentPresets).join(", ")} is on PATH: install one, or use --agent-command.`
        : `Found on PATH: ${found.join(", ")}. Choose one with --agent, or use --agent-command.`;
    throw usageError("no agent is chosen", choice);
  }
  const advice = "Install it, or name another with --agent or --agent-command.";
  await checkAgentCommand(agent.name ?? line, { cwd, env, advice });
  return line;
}

/** The argument with the nebula's folder. */
export const folderArgument: ArgumentSpec = { name: "DIR", summary: "the folder with nebula.toml" };

/** Flags that decide how a nebula is applied. `nebula prompt` has only some of them. */
type ApplyFlags = OptionValues<typeof contextOptions & typeof storeOptions & Pick<typeof agentOptions, "model">> &
  OptionValues<Record<"max-workers" | "timeout" | "remote" | "lease", ValueOption>> &
  OptionValues<Record<"worktrees" | "commit", SwitchOption>>;

/** Reads how a command line wants a nebula to be applied. */
export async function applySettings(
  nebula: Nebula,
  agent: ChosenAgent,
  call: Call<ApplyFlags>,
): Promise<ApplySettings> {
  const { options } = call;
  const number = (name: "max-context-tokens" | "max-workers" | "timeout" | "lease", least = 1) =>
    wholeNumber(options[name], name, least);
  const milliseconds = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000);
  const choice: ApplyChoice = {
    ...options,
    maxContextTokens: number("max-context-tokens", 0),
    timeoutMs: milliseconds(number("timeout")),
    maxWorkers: number("max-workers"),
    leaseMs: milliseconds(number("lease")),
    withConventions: options["with-conventions"],
  };
  const settings = await readApplySettings(nebula, { agent, choice }, call);
  if (options.commit && !settings.worktrees && (settings.maxWorkers ?? nebula.execution.maxWorkers ?? 1) > 1) {
    throw usageError("--commit with several workers would mix their changes", "Use --worktrees, or --max-workers 1.");
  }
  if (options.remote !== undefined && !settings.worktrees) {
    throw usageError(
      "--remote needs --worktrees: machines share the work of phases as git branches",
      "Use both, or neither.",
    );
  }
  return settings;
}
