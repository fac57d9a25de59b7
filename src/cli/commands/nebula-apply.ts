import { throwProblems } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { formatNumber, printable } from "../../core/text/index.ts";
import {
  findUntrusted,
  homeDirectory,
  loadConfig,
  lookInStore,
  ownMachine,
  projectRoot,
  renderTable,
  requireTrust,
  shownPath,
  takeEndSignals,
  withStore,
} from "../../host/index.ts";
import { defaultAgentLimits } from "../../plans/agent/index.ts";
import {
  type ApplySettings,
  type ChosenAgent,
  chooseReviewers,
  findPhase,
  limitProblems,
  nebulaSettings,
  phaseRuns,
  requireNebula,
  workingDirectory,
} from "../../plans/index.ts";
import {
  type ApplyEvent,
  type ApplyOptions,
  type ApplyPlan,
  type ApplyReport,
  applyNebula,
  type LoadedNebula,
  type Nebula,
  nameBranches,
  openNebulaRecord,
  type PlannedPhase,
  planApply,
  reportStates,
  storedKey,
  withDependents,
} from "../../plans/nebula/index.ts";
import {
  agentFor,
  agentOptions,
  applySettings,
  contextOptions,
  folderArgument,
  requireAgent,
} from "../agent-options.ts";
import { type ApplyTelling, tellApply } from "../apply-progress.ts";
import { type Call, type Command, type CommandResult, defineCommand, type OptionValues } from "../command.ts";
import { layerName, missing } from "../context-notes.ts";
import { nextSteps, renderApplyReport, renderPhaseRuns } from "../nebula-report.ts";
import { storeOptions, trustOption } from "../shared-options.ts";

const options = {
  ...agentOptions,
  "max-workers": { value: "N", summary: "how many phases run at the same time (default: from nebula.toml, or else 1)" },
  ...contextOptions,
  timeout: {
    value: "SECONDS",
    summary: `how long one agent may run (default: ${defaultAgentLimits.timeoutMs / 1000})`,
  },
  "ignore-limits": { summary: "run although max_budget_usd cannot be kept, and without any such limit" },
  ...storeOptions,
  yes: { summary: "do not ask: start phases that wait for approval, and run everything again if --resume is absent" },
  "dry-run": {
    summary: "show the waves, the tokens of each prompt and how agents would run; run and write nothing",
  },
  resume: { summary: "continue the last run; completed phases do not run again" },
  rerun: {
    value: "PHASE",
    list: true,
    summary: "run this phase again, and all that depend on it; continues the last run",
  },
  worktrees: {
    summary: "give every phase its own git worktree and branch, and merge its work into the branch nebula/NAME",
  },
  remote: {
    value: "NAME",
    summary: "share the run with other machines that use the same store: a git remote that all of them push to",
  },
  lease: {
    value: "SECONDS",
    summary:
      "with --remote: after this time without a renewal, other machines take the phases of this one (default: 60)",
  },
  commit: { summary: "commit what a completed phase changed, with its id; needs one worker or --worktrees" },
  only: { value: "PHASE", list: true, summary: "run only this phase; continues the last run" },
  ...trustOption,
} as const;

export const applyCommand: Command = defineCommand({
  arguments: [folderArgument],
  options,
  details: `Runs every phase once all phases it depends on have completed. The agent gets the project, the fabric
and the answers of its dependencies within the budget, then the task. What it reports in a fenced fabric block of
its answer is added to the fabric. A failed phase blocks only the phases that need it. The exit code is 1 unless
all phases completed. A phase whose agent was denied a tool, or changed nothing in its scope, has not completed.
--allow says what known agents may do; without it the phase's own "allow" counts, or else the configuration's.
A limit in max_budget_usd stops phases that cost more. With an agent that reports no cost it is an error, unless
--ignore-limits is given.
The state is kept in the store. After a failure, Ctrl-C or kill -9, --resume continues the run, and "plimsoll
nebula status" shows what is left. Without --resume all phases run again. If the last run did not finish, plimsoll
asks first on a terminal. --rerun and --only continue the last run for some phases.
With --worktrees --remote NAME, several machines can apply one nebula at once: each phase runs on one of them, its
branch is pushed before it counts as completed, and the phases of a machine that is lost start again on another one.
With --json, events, warnings and notes are lines of JSON on stderr.`,
  examples: [
    { line: "plimsoll nebula apply plan --agent claude", meaning: "run one phase after the other" },
    {
      line: "plimsoll nebula apply plan --agent claude --max-workers 3 --resume",
      meaning: "continue, three phases at a time",
    },
    {
      line: "plimsoll nebula apply plan --agent claude --worktrees --remote origin",
      meaning: "share the phases with every machine that runs this line",
    },
    { line: "plimsoll nebula apply plan --dry-run", meaning: "the tokens of each prompt" },
    {
      line: "plimsoll nebula apply plan --agent-command './agent.sh' --json",
      meaning: "your own agent, with JSON for programs",
    },
  ],
  async run(asked) {
    const { output, warn, startProgress } = tellApply(asked.output, () => new Date());
    const call = { ...asked, output };
    const { nebula: written, agentSettings, limits } = await requireNebula(call.arguments[0]!, call, warn);
    for (const id of [...(call.options.rerun ?? []), ...(call.options.only ?? [])]) findPhase(written, id);
    await requireNebulaTrust({ directory: written.directory, agentSettings }, call);
    const agent = await agentFor(call, await workingDirectory(written, call.cwd));
    const nebula = call.options["ignore-limits"] === true ? withoutLimits(written) : written;
    const settings = await applySettings(nebula, agent, call);
    const brokenLimits = nebula === written ? limitProblems({ nebula, limits }, agent, call.cwd) : [];
    if (call.options["dry-run"] === true) {
      // A plan is worth showing even if it could not run.
      for (const { file, line, message } of brokenLimits) {
        call.output.note(`${printable(file)}:${line}: ${message}; apply would stop here. ${limitHint}`);
      }
      return planNebula(nebula, { ...settings, agent }, call);
    }
    await requireAgent(agent, { ...call, cwd: settings.cwd }, nebula.phases[0]);
    // A phase may name a model of its own. Throws if the agent cannot run with it.
    for (const phase of nebula.phases) agent.line(phase);
    // A limit that cannot be kept must not look as if it were.
    throwProblems("invalid_content", brokenLimits, limitHint);
    const command: ApplyOptions["command"] = (phase, start) => agent.line({ ...phase, ...start }) ?? "";
    const review = await chooseReviewers(nebula, { agent, command: call.options["agent-command"] }, call);
    return runNebula(
      nebula,
      { ...settings, agent: agent.name, model: agent.model, allow: agent.permissions, command, review },
      { ...call, startProgress },
    );
  },
});

function withoutLimits(nebula: Nebula): Nebula {
  const phases = nebula.phases.map((phase) => ({ ...phase, maxBudgetUsd: undefined }));
  return { ...nebula, phases, execution: { ...nebula.execution, maxBudgetUsd: undefined } };
}

const limitHint = "Use an agent that reports its cost (claude, or codex with a model), or --ignore-limits.";

/** Requires trust in the configuration and in the nebula's settings for agents. Its folder may be in another
 *  project. */
async function requireNebulaTrust(
  loaded: Pick<LoadedNebula, "directory" | "agentSettings">,
  call: ApplyCall,
): Promise<void> {
  const { cwd, env } = call;
  const { leftOut } = await loadConfig({ cwd, env });
  requireTrust(leftOut, call);
  const root = projectRoot(loaded.directory, homeDirectory(env));
  const settings = await nebulaSettings(loaded, call);
  requireTrust(await findUntrusted(settings, { root, env }), call, call.arguments[0]);
}

/** Shows the plan and changes nothing. */
async function planNebula(
  nebula: Nebula,
  { agent, ...settings }: ApplySettings & { readonly agent: ChosenAgent },
  call: ApplyCall,
): Promise<CommandResult> {
  const resume = call.options.resume === true;
  const look = (store?: Store) => planApply(nebula, { ...settings, store, resume });
  const plan = (await lookInStore(settings.storeFile, look)) ?? (await look());
  const runs = await phaseRuns(nebula, agent, call.cwd);
  const waves = plan.waves.map((wave) =>
    wave.map((phase) => ({ ...phase, ...runs.find(({ id }) => id === phase.id) })),
  );
  const text = [renderApplyPlan(plan), "", ...renderPhaseRuns(runs, nebula)].join("\n");
  return { json: { ...plan, waves, maxBudgetUsd: nebula.execution.maxBudgetUsd ?? null }, text };
}

/** Runs a nebula: reports events, and ends the agents with this process. */
function runNebula(
  nebula: Nebula,
  settings: ApplySettings & Pick<ApplyOptions, "command" | "agent" | "model" | "allow" | "review">,
  call: ApplyCall & Pick<ApplyTelling, "startProgress">,
): Promise<CommandResult> {
  const { output, cwd, env } = call;
  const interrupt = new AbortController();
  const { signal } = interrupt;
  takeEndSignals(() => {
    // The terminal has printed ^C on the current line.
    if (process.stderr.isTTY && !signal.aborted) process.stderr.write("\n");
    interrupt.abort();
  });
  return withStore(settings.storeFile, async (store) => {
    const record = await openNebulaRecord(store, await storedKey(store, nebula, env)).read();
    const before = reportStates(nebula, record);
    const { rerun, only, resume: isResumed } = call.options;
    const named = rerun ?? [];
    const again = withDependents(nebula.phases, named).map(({ id }) => id);
    const resume = isResumed === true || named.length > 0 || only !== undefined;
    // The run may join others, and keep what they have done. It is known later which of them still live.
    const keeps = resume || (settings.remote !== undefined && record?.leases !== undefined);
    const progress = call.startProgress({
      phases: before.phases.length,
      completed: completedIn(before, (id) => keeps && !again.includes(id)),
      shown: (path) => shownPath(path, cwd, env),
    });
    const questions = progress.questions(call, signal);
    const mayBegin = await (keeps ? questions.mayRerun(again, named, before) : questions.mayRunAgain(before));
    const shown: Promise<void>[] = [];
    const onEvent = (event: ApplyEvent) => {
      progress.onEvent(event);
      if (event.event === "shown" && !output.json) shown.push(questions.showDiff(event));
    };
    const options = { ...settings, store, resume, rerun, only, approve: questions.approve, signal, onEvent };
    const report = mayBegin ? await applyNebula(nebula, options).finally(progress.end) : before;
    progress.end();
    await Promise.all(shown);
    const isDone = hasCompleted(report, only);
    const interrupted = signal.aborted && !isDone;
    if (interrupted) progress.interrupt();
    else if (mayBegin) noteNext(report, { nebula, settings, call });
    else output.problem("nothing was run. Use --resume to continue the last run");
    const viewer = { machine: (await ownMachine(env)).id, now: new Date() };
    return { json: report, text: renderApplyReport(report, viewer), failed: !(mayBegin && isDone), interrupted };
  });
}

/** Says what a person can do next. */
function noteNext(
  report: ApplyReport,
  { nebula, settings, call }: { readonly nebula: Nebula; readonly settings: ApplySettings; readonly call: ApplyCall },
): void {
  const branch = settings.worktrees ? nameBranches(nebula.name).branch : undefined;
  if (call.output.json) return;
  for (const step of nextSteps(report, { plan: printable(call.arguments[0]!), branch })) call.output.note(step);
}

/** Whether all phases have completed that may run. */
function hasCompleted(report: ApplyReport, only: readonly string[] | undefined): boolean {
  const isMeant = (id: string) => only?.includes(id) ?? true;
  return completedIn(report, isMeant) === report.phases.filter(({ id }) => isMeant(id)).length;
}

function completedIn({ phases }: ApplyReport, isMeant: (id: string) => boolean): number {
  return phases.filter(({ id, state }) => state === "completed" && isMeant(id)).length;
}

type ApplyCall = Call<OptionValues<typeof options>>;

/** Renders the waves with each phase's prompt and layers. */
export function renderApplyPlan({ waves }: Pick<ApplyPlan, "waves">): string {
  const lines = waves.flatMap((wave, index) => [
    `wave ${index + 1}`,
    ...renderTable(wave.map(renderPhase), ["left", "left", "right", "left"]).map((line) => `  ${line}`),
  ]);
  return [
    ...lines,
    "Nothing was run. Prior work is not counted here: it is known only after the dependencies have answered.",
  ].join("\n");
}

function renderPhase({ id, title, state, promptTokens, layers, overflow }: PlannedPhase): string[] {
  const parts = layers.map(
    ({ name, tokens, truncated }) => `${layerName(name)} ${formatNumber(tokens)}${truncated ? " (truncated)" : ""}`,
  );
  if (overflow > 0) parts.push(missing(overflow));
  if (state === "completed") return [printable(id), printable(title), "", "completed"];
  return [printable(id), printable(title), `${formatNumber(promptTokens)} tokens`, parts.join(", ") || "no context"];
}
