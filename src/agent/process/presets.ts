/** The agents that are known by name. Each takes the prompt on stdin and prints its answer on stdout. */
import { ContextError } from "../../errors.ts";
import { didYouMean } from "../../text/index.ts";

/** Command lines; what is in brackets is left out where no model is named. One word holds option and model, so that no model can be an
 *  option of its own. No line has a permission in it: what an agent may do without being asked is the user's own setting of it. */
export const agentPresets: Readonly<Record<string, string>> = {
  // Reads stdin where it is no terminal: code.claude.com/docs/en/cli-reference, 2026-09.
  claude: "claude -p [--model={model}]",
  // "-" makes stdin the prompt: developers.openai.com/codex/noninteractive, 2026-09.
  codex: "codex exec [--model={model}] -",
  // Without a message stdin is the message: packages/opencode/src/cli/cmd/run.ts, 2026-09. A model is PROVIDER/MODEL.
  opencode: "opencode run [--model={model}]",
  // Without a terminal it reads stdin, up to 8 MB, and answers once: geminicli.com/docs/cli/headless, 2026-09.
  gemini: "gemini [--model={model}]",
  // Prepends stdin to the prompt, which is empty: packages/coding-agent/docs/cli.md of pi, 2026-09. Its own parser takes a value only as
  // the next word: packages/coding-agent/src/cli/args.ts.
  pi: "pi -p [--model {model}]",
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
  if (model !== undefined && looksLikeOption(model)) {
    throw new ContextError("usage", `the model "${model}" ${optionReason}`);
  }
  return line.replace(/ ?\[(.*)\{model\}\]/, (_, flag) =>
    model === undefined ? "" : ` ${flag}${quote(model)}`,
  );
}

/** Whether an agent could take the value for an option. */
export function looksLikeOption(value: string): boolean {
  return value.trimStart().startsWith("-");
}

/** For people, of a value that looks like one. */
export const optionReason = 'begins with "-", and an agent could take it for an option';

function unknownAgent(name: string): ContextError {
  const names = Object.keys(agentPresets);
  const hint = [didYouMean(name, names), `Choose from ${names.join(", ")}.`].filter(Boolean).join(" ");
  return new ContextError("usage", `unknown agent "${name}"`, { hint });
}

/** As one word of a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
