/** The agents that are known by name. Each takes the prompt on stdin and prints its answer on stdout. */
import { ContextError } from "../../errors.ts";
import { didYouMean } from "../../text/index.ts";

/** Command lines; `{model}` is where a model is named, with --model in all of them. What an agent may do without being asked is
 *  the user's own setting of it. */
export const agentPresets: Readonly<Record<string, string>> = {
  // Reads stdin where it is no terminal: code.claude.com/docs/en/cli-reference, 2026-09.
  claude: "claude -p {model}",
  // "-" makes stdin the prompt: developers.openai.com/codex/noninteractive, 2026-09.
  codex: "codex exec {model} -",
  // Without a message stdin is the message: packages/opencode/src/cli/cmd/run.ts, 2026-09. A model is PROVIDER/MODEL.
  opencode: "opencode run {model}",
  // Without a terminal it reads stdin, up to 8 MB, and answers once: geminicli.com/docs/cli/headless, 2026-09.
  gemini: "gemini {model}",
  // Prepends stdin to the prompt, which is empty: packages/coding-agent/docs/cli.md of pi, 2026-09.
  pi: "pi -p {model}",
};

export interface AgentChoice {
  /** One of the presets. */
  readonly agent?: string | undefined;
  /** A command line of one's own; which model it uses is its own matter. */
  readonly command?: string | undefined;
  readonly model?: string | undefined;
}

/** The command line that is meant. */
export function agentCommand({ agent, command, model }: AgentChoice): string {
  if (command !== undefined) return command;
  const line = Object.entries(agentPresets).find(([name]) => name === agent)?.[1];
  if (line === undefined) throw unknownAgent(agent ?? "");
  const flag = model === undefined ? "" : `--model ${quote(model)}`;
  return line.replace(/ ?\{model\}/, () => (flag === "" ? "" : ` ${flag}`));
}

function unknownAgent(name: string): ContextError {
  const names = Object.keys(agentPresets);
  const hint = [didYouMean(name, names), `Choose from ${names.join(", ")}.`].filter(Boolean).join(" ");
  return new ContextError("usage", `unknown agent "${name}"`, { hint });
}

/** As one word of a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
