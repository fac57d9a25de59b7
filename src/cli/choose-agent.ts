import { agentCommand, agentPresets } from "../agent/index.ts";
import { ContextError } from "../errors.ts";
import { type Environment, findProgram } from "../workspace/index.ts";
import { checkAgentCommand } from "./check-agent-command.ts";
import type { Call, OptionSpec } from "./command.ts";

/** The options of every command that runs agents. */
export const agentOptions: AgentOptionSpecs = {
  agent: { value: "NAME", choices: Object.keys(agentPresets), summary: "an agent that is known by name" },
  "agent-command": {
    value: "COMMAND",
    summary: "any other: a shell command that takes the prompt on stdin and answers on stdout",
  },
};

interface AgentOptionSpecs {
  readonly agent: OptionSpec & { readonly value: string; readonly list?: never };
  readonly "agent-command": OptionSpec & { readonly value: string; readonly list?: never };
}

export type AgentCall = Call<{
  readonly agent?: string | undefined;
  readonly "agent-command"?: string | undefined;
}>;

/** The command line of the agent that is meant, for a model where one is. It can run: else nothing should. */
export async function chooseAgent(call: AgentCall, model?: string): Promise<string> {
  const { agent, "agent-command": command } = call.options;
  if (agent !== undefined && command !== undefined) {
    throw new ContextError("usage", "--agent and --agent-command are both given", {
      hint: "Use one of them.",
    });
  }
  if (agent === undefined && command === undefined) throw await missingAgent(call);
  const line = agentCommand({ agent, command, model });
  await checkAgentCommand(line, call);
  return line;
}

async function missingAgent({ env }: AgentCall): Promise<ContextError> {
  const found = await findPresets(env);
  const known = Object.keys(agentPresets).join(", ");
  const choice =
    found.length === 0
      ? `None of ${known} is on PATH: install one, or use --agent-command.`
      : `Found on PATH: ${found.join(", ")}. Choose one with --agent, or use --agent-command.`;
  return new ContextError("usage", "no agent is named", { hint: choice });
}

/** Those whose program is there. */
async function findPresets(env: Environment): Promise<string[]> {
  const names = Object.keys(agentPresets);
  const programs = await Promise.all(names.map((name) => findProgram(name, env)));
  return names.filter((_, index) => programs[index] !== undefined);
}
