import { type AgentEnd, defaultAgentLimits } from "../../agent/index.ts";
import { printable } from "../../text/index.ts";
import { loadConfig } from "../../workspace/index.ts";
import { agentOptions, chooseAgent } from "../choose-agent.ts";
import { counterOptions } from "../choose-counters.ts";
import { type Command, type CommandResult, defineCommand } from "../command.ts";
import { describeContext, notesOnContext } from "../compose/describe-context.ts";
import { agentRun } from "../nebula/phase-runs.ts";
import type { Output } from "../output.ts";
import { buildPrompt, type Prompt, type RunCall } from "../run/build-prompt.ts";
import { runAgent } from "../run/run-agent.ts";
import { requireTrust, trustOption } from "../trust.ts";
import { wholeNumber } from "../whole-number.ts";

export const runCommand: Command = defineCommand({
  arguments: [
    { name: "TASK", summary: 'what the agent should do, or "-" for standard input', isSentence: true },
  ],
  options: {
    ...agentOptions,
    "max-context-tokens": {
      value: "N",
      summary: "the budget of the context; 0 for none (default: the configuration's, 10000)",
    },
    "no-project-context": { summary: "without the snapshot of the project" },
    fabric: { value: "FILE", summary: "the shared state of sibling work, as Markdown" },
    prior: { value: "FILE", summary: "what was done before" },
    model: { value: "ID", summary: "the agent's model; chooses the counter of its family too" },
    counter: counterOptions.counter,
    timeout: {
      value: "SECONDS",
      summary: `how long the agent may take (default: ${defaultAgentLimits.timeoutMs / 1000})`,
    },
    "dry-run": {
      summary: "print the prompt, and on stderr what is in it and how the agent would run; run nothing",
    },
    ...trustOption,
  },
  details: `Hands an agent its task behind a snapshot of the project, the fabric and prior work, composed within the budget, on its
stdin. The known agents and their command lines: claude (claude -p), codex (codex exec -), opencode (opencode run),
gemini, pi (pi -p); what they may do without asking is their own setting. Any other is a command line for /bin/sh;
it is told of no model. What the agent prints comes through as it comes, on the same streams; with --json its answer
is part of the result. The exit code is 1 when it fails, takes too long or prints more than 10 MB, and Ctrl-C ends it
with all that it started. The counter: --counter, else that of --model, else the configuration's, else bytes/4.`,
  examples: [
    { line: 'plimsoll run "Fix the failing test" --agent claude', meaning: "with the project's snapshot" },
    {
      line: 'plimsoll run "Plan the release" --agent codex --prior notes.md --dry-run',
      meaning: "look at it first",
    },
    { line: "plimsoll run - --agent-command './agent.sh' < task.md", meaning: "an agent of your own" },
    { line: 'plimsoll run "Summarise" --agent gemini --json | jq -r .answer', meaning: "for programs" },
  ],
  async run(call) {
    const { options } = call;
    const isDryRun = options["dry-run"] === true;
    const timeoutMs =
      options.timeout === undefined
        ? defaultAgentLimits.timeoutMs
        : wholeNumber(options.timeout, "timeout", 1) * 1000;
    requireTrust((await loadConfig(call)).leftOut, call);
    // What is only looked at can be looked at without the agent.
    if (isDryRun) return showPrompt(await buildPrompt(call), call);
    const command = await chooseAgent(call, options.model);
    const prompt = await buildPrompt(call);
    for (const line of notesOnContext(prompt.context)) call.output.note(line);
    const end = await runAgent(call, { command, prompt: prompt.text, timeoutMs });
    return report(end, prompt, call.output);
  },
});

function showPrompt({ text, tokens, context }: Prompt, call: RunCall): CommandResult {
  const { command, permissions } = agentRun(call.options, call.options.model);
  for (const line of describeContext(context)) call.output.note(line);
  const shown = command === null ? "(none named: see --agent)" : printable(command);
  call.output.note(`works in ${printable(call.cwd)}, command: ${shown}, permissions: ${permissions}`);
  const prompt = { text, tokens, context: context.account };
  return { json: { prompt, workingDirectory: ".", command, permissions }, text, exact: true };
}

/** Without --json its answer is out already. */
function report(
  { outcome, code, answer, seconds, error }: AgentEnd,
  { tokens, context }: Prompt,
  output: Output,
): CommandResult {
  const failed = outcome !== "completed";
  const interrupted = outcome === "interrupted";
  const message = interrupted ? "interrupted: the agent was ended" : (error ?? "");
  if (failed) output.problem(message);
  const value = { answer, exitCode: code, seconds, prompt: { tokens, context: context.account } };
  const json = failed ? { ...value, error: { code: outcome, message, hint: null } } : value;
  return { json, text: "", failed, interrupted };
}
