import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { usageError } from "../../core/errors.ts";
import { printable, printableLines, wholeNumber } from "../../core/text/index.ts";
import {
  type ExitCode,
  exitCodes,
  loadConfig,
  modelForCounter,
  removeTree,
  requireTrust,
  takeEndSignals,
} from "../../host/index.ts";
import {
  type AgentEnd,
  type AgentRequest,
  defaultAgentLimits,
  judgeEnd,
  readScopeState,
  startAgent,
} from "../../plans/agent/index.ts";
import { withTask } from "../../plans/compose/index.ts";
import { type ChosenAgent, composeContext, findLoadedFiles, readContextSettings } from "../../plans/index.ts";
import { agentFor, agentOptions, contextOptions, requireAgent } from "../agent-options.ts";
import {
  type Call,
  type Command,
  type CommandResult,
  defineCommand,
  type OptionSpecs,
  type OptionValues,
} from "../command.ts";
import { notesOnContext } from "../context-notes.ts";
import { counterOptions, layerOptions, trustOption } from "../shared-options.ts";
import { readLayer, readTextInput, refuseSharedStdin } from "../text-input.ts";

const runOptions = {
  ...agentOptions,
  "max-context-tokens": {
    value: "N",
    summary: "token budget of the context; 0 sends none (default: from the configuration, 10000)",
  },
  "no-project-context": { summary: "leave out the snapshot of the project" },
  ...layerOptions,
  scope: {
    value: "GLOB",
    list: true,
    summary: "the files that the agent should change; the run fails if it changes none of them",
  },
  "with-conventions": contextOptions["with-conventions"],
  counter: counterOptions.counter,
  timeout: {
    value: "SECONDS",
    summary: `how long the agent may run (default: ${defaultAgentLimits.timeoutMs / 1000})`,
  },
  "dry-run": {
    summary: "print the prompt, and on stderr its parts and how the agent would run; run nothing",
  },
  ...trustOption,
} as const satisfies OptionSpecs;

export const runCommand: Command = defineCommand({
  arguments: [{ name: "TASK", summary: 'what the agent should do, or "-" for standard input', isSentence: true }],
  options: runOptions,
  details: `Sends an agent a prompt on stdin: a snapshot of the project, the fabric and prior work within the
budget, then the task. Known agents: claude, codex, opencode, gemini, pi. --allow says what they may do without
asking: read files; edit files too, but run no free commands (codex runs commands in its sandbox); or all.
--dry-run shows the command line. Any other agent is a command line for /bin/sh. In it, {model} is the model and
{prompt_file} a file with the prompt; its environment has PLIMSOLL_MODEL.
The answer goes to stdout; with --json it is part of the result, with cost and usage if the agent reports them.
The exit code is 1 if the agent fails, was denied a tool, changed nothing in --scope, runs too long or prints more
than 10 MB. Ctrl-C stops the agent and everything that it started. The snapshot leaves out convention files that the
agent loads by itself. The counter is that of --counter, or else of the model, or else of the configuration, or else
of the agent's models, or else bytes/4.`,
  examples: [
    { line: 'plimsoll run "Fix the failing test" --agent claude', meaning: "with the project's snapshot" },
    {
      line: 'plimsoll run "Plan the release" --agent codex --prior notes.md --dry-run',
      meaning: "look at the prompt first",
    },
    {
      line: 'plimsoll run "Fix the cart" --agent codex --scope "src/cart/**"',
      meaning: "fail if nothing in src/cart changes",
    },
    { line: "plimsoll run - --agent-command './agent.sh {prompt_file}' < task.md", meaning: "your own agent" },
    { line: 'plimsoll run "Summarise" --agent gemini --json | jq -r .answer', meaning: "JSON for programs" },
  ],
  async run(call) {
    const { options } = call;
    const isDryRun = options["dry-run"] === true;
    const timeoutMs = (wholeNumber(options.timeout, "timeout", 1) ?? defaultAgentLimits.timeoutMs / 1000) * 1000;
    requireTrust((await loadConfig(call)).leftOut, call);
    const agent = await agentFor(call);
    // A dry run does not need the agent.
    if (isDryRun) return showPrompt(await buildPrompt(call, agent), agent, call);
    const command = await requireAgent(agent, call);
    const prompt = await buildPrompt(call, agent);
    for (const line of notesOnContext(prompt.context)) call.output.note(line);
    const end = await judgedRun(call, agent, { command, prompt: prompt.text, timeoutMs });
    const isPrinted = isPrintedAtOnce(agent);
    const { outcome, code, answer, seconds, usage, costUsd, denials = [], hint = null } = end;
    const failed = outcome !== "completed";
    const interrupted = outcome === "interrupted";
    const message = interrupted ? "interrupted: plimsoll stopped the agent" : (end.error ?? "");
    if (failed) call.output.problem([message, ...(hint === null ? [] : [hint])].map(printable).join(" "));
    const { tokens, context } = prompt;
    const cost = { ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }), denials };
    const value = { answer, exitCode: code, seconds, ...cost, prompt: { tokens, context: context.account } };
    const json = failed ? { ...value, error: { code: outcome, message, hint } } : value;
    return { json, text: isPrinted ? "" : answer, failed, interrupted };
  },
});

function showPrompt(
  { text, tokens, context }: Awaited<ReturnType<typeof buildPrompt>>,
  agent: ChosenAgent,
  call: RunCall,
): CommandResult {
  const [command, permissions] = [agent.line(), agent.permissions()];
  for (const line of notesOnContext(context, { evenIfWhole: true })) call.output.note(line);
  const shown = command === null ? "(no agent chosen, use --agent)" : printable(command);
  call.output.note(`works in ${printable(call.cwd)}, command: ${shown}, permissions: ${permissions}`);
  const prompt = { text, tokens, context: context.account };
  return { json: { prompt, workingDirectory: ".", command, permissions }, text, exact: true };
}

type RunCall = Call<OptionValues<typeof runOptions>>;

/** Returns the composed context with a separator and the task, which is never cut, and the tokens of it all. */
async function buildPrompt(call: RunCall, agent: ChosenAgent) {
  const { fabric, prior, counter } = call.options;
  refuseSharedStdin([call.arguments[0], fabric, prior], "input of TASK, --fabric and --prior");
  const { model, fallback } = agent.counting();
  // The model is also for the agent.
  const counting = {
    counter,
    model: modelForCounter({ counter, model }),
    maxContextTokens: wholeNumber(call.options["max-context-tokens"], "max-context-tokens", 0),
  };
  const settings = await readContextSettings({ ...call, options: counting }, fallback);
  const [given = ""] = call.arguments;
  const task = given === "-" ? (await readTextInput("-", call)).text : given;
  if (task.trim() === "") throw usageError("TASK is empty", "Say what the agent should do.");
  const snapshot = call.options["no-project-context"] !== true;
  const isKept = call.options["with-conventions"] === true || !snapshot;
  const loadsItself = isKept ? undefined : await findLoadedFiles(agent, call.cwd);
  const layers = { fabric: await readLayer(fabric, call), priorWork: await readLayer(prior, call) };
  const context = await composeContext(layers, { ...settings, snapshot, loadsItself }, call);
  const text = withTask(context.text, task);
  return { text, tokens: settings.counter.count(text), context };
}

type AgentJob = Pick<AgentRequest, "command" | "prompt" | "timeoutMs">;

/** Runs the agent and judges how it really ended. */
async function judgedRun(call: RunCall, agent: ChosenAgent, job: AgentJob): Promise<AgentEnd> {
  // Options are split at commas, also inside of braces.
  const scope = (call.options.scope ?? []).join(",").match(/(?:\{[^{}]*\}|[^,])+/g) ?? [];
  const look = () => (scope.length === 0 ? undefined : readScopeState(call.cwd, scope));
  const [before, model] = [await look(), agent.model()];
  const end = await runAgent(call, agent, job);
  const { prices } = (await loadConfig(call)).values;
  const unchangedScope = before !== undefined && (await look()) === before ? scope : undefined;
  return judgeEnd(end, { agent: agent.name, model, prices, unchangedScope });
}

/** Events of a known agent are read at the end. */
function isPrintedAtOnce({ preset }: ChosenAgent): boolean {
  return preset === undefined;
}

/** Passes the agent's output through, and ends it with this process. Never returns if the reader of stdout is gone. */
async function runAgent(call: RunCall, agent: ChosenAgent, job: AgentJob): Promise<AgentEnd> {
  const { cwd, output } = call;
  const model = agent.model();
  const env = { ...call.env, ...(model !== undefined && { PLIMSOLL_MODEL: model }) };
  // Handles interrupts, because exiting at once would leave the agent running.
  const controller = new AbortController();
  let unread: ExitCode | undefined;
  takeEndSignals(() => controller.abort());
  // A reader that closes the pipe early, such as head, is not a failure, but it ends the run.
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    unread ??= code === "EPIPE" ? exitCodes.done : exitCodes.failed;
    controller.abort();
  });
  const folder = await mkdtemp(join(tmpdir(), "plimsoll-run-"));
  output.settle();
  const show = { stdout: createShow(), stderr: createShow() };
  const { end } = startAgent({
    ...job,
    cwd,
    env,
    folder: join(folder, "attempt"),
    maxOutputBytes: defaultAgentLimits.maxOutputBytes,
    signal: controller.signal,
    onOutput(name, chunk) {
      if (name === "stderr") process.stderr.write(show.stderr(chunk));
      // A program gets the answer as it is, a terminal without escapes that could change what it shows.
      else if (!output.json && isPrintedAtOnce(agent))
        process.stdout.write(output.terminal ? show.stdout(chunk) : chunk);
    },
  });
  const ended = await end;
  await removeTree(folder);
  if (unread !== undefined) process.exit(unread);
  return ended;
}

/** Returns each part of a stream as text that cannot control a terminal. A character may be cut between two parts. */
function createShow(): (chunk: Buffer) => string {
  const decoder = new StringDecoder("utf8");
  return (chunk) => printableLines(decoder.write(chunk).replaceAll("\r\n", "\n"));
}
