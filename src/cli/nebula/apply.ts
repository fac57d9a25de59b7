import { defaultAgentLimits, type LoadedNebula, type Nebula, planApply } from "../../agent/index.ts";
import type { Store } from "../../store/index.ts";
import { homeDirectory, loadConfig, projectRoot, untrustedOf } from "../../workspace/index.ts";
import { agentOptions } from "../choose-agent.ts";
import { counterOptions } from "../choose-counters.ts";
import { type Command, type CommandResult, defineCommand } from "../command.ts";
import { lookInStore } from "../store-file.ts";
import { nebulaSettings, requireTrust, trustOption } from "../trust.ts";
import { tellAsEvents } from "./apply-events.ts";
import { renderApplyPlan } from "./apply-report.ts";
import { type ApplyCall, type ApplySettings, agentCommands, readApplySettings } from "./apply-settings.ts";
import { phaseRuns, renderPhaseRuns } from "./phase-runs.ts";
import { folderArgument, usableNebula } from "./read-nebula.ts";
import { runNebula } from "./run-nebula.ts";

const options = {
  ...agentOptions,
  "max-workers": { value: "N", summary: "how many phases run at a time (default: the manifest's, else 1)" },
  "max-context-tokens": {
    value: "N",
    summary:
      "budget for the context before each task; 0 for none (default: the manifest's, else the configuration's)",
  },
  timeout: {
    value: "SECONDS",
    summary: `how long one agent may take (default: ${defaultAgentLimits.timeoutMs / 1000})`,
  },
  counter: counterOptions.counter,
  store: {
    value: "FILE",
    summary: "where the state is kept (default: PLIMSOLL_STORE, else the configuration's)",
  },
  yes: { summary: "ask nothing: neither for phases whose gate asks for a person, nor before all runs again" },
  "dry-run": {
    summary: "show the waves, each prompt's tokens and how agents would run; run nothing, write nothing",
  },
  resume: { summary: "go on where the last run stopped: what has completed does not run again" },
  ...trustOption,
} as const;

export const applyCommand: Command = defineCommand({
  arguments: [folderArgument],
  options,
  details: `Runs every phase once all that it depends on has completed. The agent gets the project, the fabric and the answers of its
dependencies within the budget, then the task. What it reports in a fenced fabric block of its answer goes into the fabric. A phase that
fails blocks those that need it and nothing else; the exit code is 1 unless all have completed.
State is kept in the store: after a failure, Ctrl-C or kill -9, --resume goes on, and "plimsoll nebula status" shows what is left. Without
--resume all runs again; at a terminal you are asked first where the run before has stopped half way.
With --json, events are lines of JSON on stderr, warnings and notes among them.`,
  examples: [
    { line: "plimsoll nebula apply plan --agent claude", meaning: "one phase after the other" },
    {
      line: "plimsoll nebula apply plan --agent claude --max-workers 3 --resume",
      meaning: "go on, three at a time",
    },
    { line: "plimsoll nebula apply plan --dry-run", meaning: "what each phase would be told, in tokens" },
    {
      line: "plimsoll nebula apply plan --agent-command './agent.sh' --json",
      meaning: "an agent of your own, for programs",
    },
  ],
  async run(asked) {
    const { output, warn } = tellAsEvents(asked.output, () => new Date());
    const call = { ...asked, output };
    const { nebula, agentSettings } = await usableNebula(call, warn);
    await requireNebulaTrust({ directory: nebula.directory, agentSettings }, call);
    const settings = await readApplySettings(call, nebula);
    if (call.options["dry-run"] === true) return planNebula(nebula, settings, call);
    const command = await agentCommands(nebula, settings, call);
    return runNebula(nebula, { ...settings, command }, call);
  },
});

/** What the configuration sets, and what the nebula says of agents. Its folder may be in a project of its own. */
async function requireNebulaTrust(
  loaded: Pick<LoadedNebula, "directory" | "agentSettings">,
  call: ApplyCall,
): Promise<void> {
  const { cwd, env } = call;
  const { leftOut } = await loadConfig({ cwd, env });
  requireTrust(leftOut, call);
  const root = projectRoot(loaded.directory, homeDirectory(env));
  const settings = await nebulaSettings(loaded, call);
  requireTrust(await untrustedOf(settings, { root, env }), call, call.arguments[0]);
}

/** Looks only. */
async function planNebula(nebula: Nebula, settings: ApplySettings, call: ApplyCall): Promise<CommandResult> {
  const resume = call.options.resume === true;
  const look = (store?: Store) => planApply(nebula, { ...settings, store, resume });
  const plan = (await lookInStore(settings.storeFile, look)) ?? (await look());
  const runs = await phaseRuns(nebula, call);
  const waves = plan.waves.map((wave) =>
    wave.map((phase) => ({ ...phase, ...runs.find(({ id }) => id === phase.id) })),
  );
  const text = [renderApplyPlan(plan), "", ...renderPhaseRuns(runs)].join("\n");
  return { json: { ...plan, waves }, text };
}
