/** The nebula that a person names, how it would be applied, and by which agents. */
import { stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { ContextError, usageError } from "../core/errors.ts";
import { didYouMean, printable } from "../core/text/index.ts";
import type { Counter } from "../core/tokens/index.ts";
import {
  type Caller,
  type CounterChoice,
  chooseCounter,
  exists,
  followLinks,
  homeDirectory,
  isInside,
  listFiles,
  loadConfig,
  modelForCounter,
  noteIgnoredStore,
  type PowerfulSetting,
  type ProjectPlace,
  powerfulSetting,
  projectRoot,
  storeFile,
  trustRecord,
} from "../host/index.ts";
import { readProjectFetches } from "../rules/index.ts";
import { type ChosenAgent, checkAgentCommand, chooseAgent, explainMissing, findLoadedFiles } from "./choose-agent.ts";
import {
  type ApplyOptions,
  type LoadedNebula,
  loadNebula,
  type Nebula,
  type NebulaProblem,
  type Phase,
} from "./nebula/index.ts";

/** Loads a nebula. Makes paths of problems relative to the current directory. */
export async function readNebula(folder: string, { cwd }: Pick<Caller, "cwd">): Promise<LoadedNebula> {
  try {
    const loaded = await loadNebula(resolve(cwd, folder));
    const problems = loaded.problems.map((each) => ({ ...each, file: relative(cwd, each.file) }));
    return { ...loaded, problems };
  } catch (error) {
    if (!(error instanceof ContextError) || error.file === undefined) throw error;
    const { code, message, hint, file, line, cause } = error;
    throw new ContextError(code, message, { hint, file: relative(cwd, file), line, cause });
  }
}

/** Loads a nebula and throws if it has errors. Reports warnings, as notes by default. */
export async function requireNebula(
  folder: string,
  caller: Pick<Caller, "cwd" | "output">,
  warn: (problem: NebulaProblem) => void = (problem) => caller.output.note(describeProblem(problem)),
): Promise<Pick<LoadedNebula, "agentSettings" | "limits"> & { readonly nebula: Nebula }> {
  const { nebula, problems, agentSettings, limits } = await readNebula(folder, caller);
  for (const problem of problems) if (problem.severity === "warning") warn(problem);
  if (nebula !== undefined) return { nebula, agentSettings, limits };
  const [first, ...rest] = problems.filter(({ severity }) => severity === "error");
  const { message, file, line } = first!;
  throw new ContextError("invalid_content", [message, ...rest.map(describeProblem)].join("\n"), { file, line });
}

/** Returns the phase with this id. Throws if there is none. */
export function findPhase({ phases }: Nebula, id: string): Phase {
  const found = phases.find((phase) => phase.id === id);
  if (found !== undefined) return found;
  const ids = phases.map((phase) => phase.id);
  const hint = [didYouMean(id, ids), `Its phases: ${ids.join(", ")}.`].filter(Boolean).join(" ");
  throw usageError(`the nebula has no phase "${id}"`, hint);
}

function describeProblem({ file, line, message }: NebulaProblem): string {
  return `${printable(file)}:${line}: ${printable(message)}`;
}

/** What a person asks for. It wins over nebula.toml and the configuration. */
export interface ApplyChoice
  extends CounterChoice<string>,
    Pick<
      ApplyOptions,
      "maxContextTokens" | "maxWorkers" | "timeoutMs" | "worktrees" | "remote" | "leaseMs" | "commit"
    > {
  /** Keeps convention files in the snapshot that the agent loads by itself. */
  readonly withConventions?: boolean | undefined;
  readonly store?: string | undefined;
}

export type ApplySettings = Omit<
  ApplyOptions,
  | "store"
  | "command"
  | "agent"
  | "model"
  | "allow"
  | "review"
  | "resume"
  | "rerun"
  | "only"
  | "approve"
  | "signal"
  | "onEvent"
>;

/** Reads settings: the choice, or else nebula.toml, or else the configuration, or else the defaults of applyNebula. */
export async function readApplySettings(
  nebula: Nebula,
  { agent, choice }: { readonly agent: ChosenAgent; readonly choice: ApplyChoice },
  caller: Caller,
): Promise<ApplySettings> {
  const { cwd, env } = caller;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, caller);
  const { execution } = nebula;
  const { context, nebula: configured, prices, deny, allow } = config.values;
  const directory = await workingDirectory(nebula, cwd);
  const loadsItself = choice.withConventions === true ? undefined : await findLoadedFiles(agent, directory);
  return {
    worktrees: choice.worktrees ?? configured.worktrees,
    remote: choice.remote,
    ...(choice.leaseMs !== undefined && { leaseMs: choice.leaseMs }),
    worktreeCopy: configured.worktree_copy,
    commit: choice.commit,
    counter: await loadCounters(nebula, { agent, choice }, caller),
    cwd: directory,
    env,
    ...(loadsItself !== undefined && { loadsItself }),
    prices,
    maxWorkers: choice.maxWorkers,
    maxContextTokens: choice.maxContextTokens ?? execution.maxContextTokens ?? context.max_tokens,
    secrets: { deny, allow },
    shares: {
      project: context.shares.project,
      fabric: context.shares.fabric,
      priorWork: context.shares.prior_work,
    },
    timeoutMs: choice.timeoutMs,
    storeFile: storeFile(choice.store, { cwd, env, config }),
  };
}

/** Returns what runs the reviewers of a nebula: agents that may only read. A reviewer without an agent is another run of
 *  the phase's agent, and an agent of another command line cannot be limited. */
export async function chooseReviewers(
  { phases }: Nebula,
  { agent, command }: { readonly agent: ChosenAgent; readonly command?: string | undefined },
  { cwd, env }: Pick<Caller, "cwd" | "env">,
): Promise<NonNullable<ApplyOptions["review"]>> {
  const chosen = new Map<string, ChosenAgent>();
  for (const { reviewer } of phases) {
    const name = reviewer?.agent ?? agent.name;
    if (reviewer === undefined || name === undefined || chosen.has(name)) continue;
    const found = await chooseAgent({ agent: name, allow: "read" }, { cwd, env });
    await checkAgentCommand(name, { cwd, env, advice: "Install it, or name another in reviewer.agent." });
    chosen.set(name, found);
  }
  return (phase, start) => {
    const name = phase.reviewer?.agent ?? agent.name;
    const found = name === undefined ? undefined : chosen.get(name);
    if (found === undefined) return { command: command ?? "" };
    const model = phase.reviewer?.model ?? (name === agent.name ? agent.model(phase) : undefined);
    return { command: found.line({ ...start, model }) ?? "", agent: name, model: found.model({ model }) };
  };
}

/** Returns the absolute path of the folder that agents work in. Throws if it does not exist. */
export async function workingDirectory({ workingDirectory: written, directory }: Nebula, cwd: string): Promise<string> {
  if (written === undefined) return cwd;
  const path = resolve(cwd, written);
  const isDirectory = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (isDirectory) return path;
  throw new ContextError("invalid_content", `working_dir "${written}" is not a directory, seen from ${cwd}`, {
    file: join(directory, "nebula.toml"),
    hint: "Run the command in a folder where this path exists.",
  });
}

/** Returns the counter of each phase, by its model. Counters are loaded once. */
async function loadCounters(
  { phases }: Nebula,
  { agent, choice }: { readonly agent: ChosenAgent; readonly choice: ApplyChoice },
  caller: Caller,
): Promise<ApplyOptions["counter"]> {
  const counters = new Map<string, Counter>();
  const counterKey = (phase: Phase) => JSON.stringify(agent.counting(phase));
  for (const phase of phases) {
    if (counters.has(counterKey(phase))) continue;
    const { model, fallback } = agent.counting(phase);
    const options = { counter: choice.counter, model: modelForCounter({ counter: choice.counter, model }) };
    counters.set(counterKey(phase), await chooseCounter({ ...caller, options }, fallback));
  }
  return phases.length === 0 ? undefined : (phase) => counters.get(counterKey(phase))!;
}

/** Returns a nebula's settings for agents, except a working directory inside the current project. */
export async function nebulaSettings(
  { directory, agentSettings }: Pick<LoadedNebula, "directory" | "agentSettings">,
  { cwd, env }: Pick<Caller, "cwd" | "env">,
): Promise<PowerfulSetting[]> {
  const home = homeDirectory(env);
  const root = projectRoot(directory, home);
  const around = await followLinks(projectRoot(cwd, home));
  const settings: PowerfulSetting[] = [];
  for (const setting of agentSettings) {
    const isPath = setting.key === "context.working_dir";
    const target = isPath ? await followLinks(resolve(cwd, String(setting.value))) : undefined;
    if (target === undefined || !isInside(target, around)) settings.push(powerfulSetting({ ...setting, root, target }));
  }
  return settings;
}

/** Returns a problem for each limit of a nebula that has no effect with this agent, because the agent neither takes a
 *  limit nor reports what it costs. */
export function limitProblems(
  { nebula, limits }: Pick<LoadedNebula, "nebula" | "limits">,
  agent: ChosenAgent,
  cwd: string,
): NebulaProblem[] {
  if (nebula === undefined || agent.line(nebula.phases[0]) === null) return [];
  const unkept = nebula.phases.filter((phase) => !agent.keepsLimit(phase)).map(({ file }) => file);
  const who = agent.name ?? "the agent's command";
  // An agent that reports only tokens needs a model with a known price.
  const isPriced = agent.preset !== undefined;
  const unless = isPriced ? " unless its model has a known price (--model)" : "";
  const message = `cannot be kept: ${who} does not report what it costs${unless}`;
  return limits
    .filter(({ file, key }) => (key === "max_budget_usd" ? unkept.includes(file) : unkept.length > 0))
    .map(({ file, line, key }) => ({
      file: relative(cwd, file),
      line,
      severity: "warning",
      rule: "unkept-limit",
      message: `"${key}" ${message}`,
    }));
}

/** Returns a problem for each phase that can never complete because the program of a check is missing. */
export async function checkProblems(
  { nebula, agentSettings }: Pick<LoadedNebula, "nebula" | "agentSettings">,
  { cwd, env }: Pick<Caller, "cwd" | "env">,
): Promise<NebulaProblem[]> {
  const problems: NebulaProblem[] = [];
  const place = { cwd: resolve(cwd, nebula?.workingDirectory ?? ""), env };
  for (const { file, line, key, value } of agentSettings) {
    if (!/(^|\.)check$/.test(key) || !Array.isArray(value)) continue;
    for (const command of value) {
      const why = await explainMissing(
        String(/^\s*([\w./+:@%,-]+)(?=[\s;&|<>]|$)/.exec(command)?.[1] ?? "true"),
        place,
      );
      if (why === undefined) continue;
      const message = `the check "${command}" cannot succeed: ${why.reason}`;
      problems.push({ file: relative(cwd, file), line, severity: "warning", rule: "never-completes", message });
    }
  }
  return problems;
}

/** How the agent of a phase would run. */
export interface RunStart {
  readonly id: string;
  /** Relative to the current directory, with links resolved. */
  readonly workingDirectory: string;
  /** Null if the nebula names none. */
  readonly model: string | null;
  /** Null if no agent is chosen. */
  readonly command: string | null;
  readonly permissions: string;
  /** The most that all attempts of the phase may cost together, in dollars. Null without a limit. */
  readonly maxBudgetUsd: number | null;
}

/** Returns how the agent of each phase would run, for a person who must decide whether to trust a plan. */
export async function phaseRuns(
  { phases, workingDirectory: written }: Nebula,
  agent: ChosenAgent,
  cwd: string,
): Promise<RunStart[]> {
  const path = await followLinks(resolve(cwd, written ?? ""));
  const workingDirectory = relative(await followLinks(cwd), path) || ".";
  return phases.map((phase) => ({
    id: phase.id,
    workingDirectory,
    model: agent.model(phase) ?? null,
    command: agent.line(phase),
    permissions: agent.permissions(phase),
    maxBudgetUsd: phase.maxBudgetUsd ?? null,
  }));
}

/** Returns all settings of the project that need trust, trusted or not. */
export async function readProjectSettings(
  folder: string,
  { root, cwd, env }: ProjectPlace & { readonly cwd: string },
): Promise<PowerfulSetting[]> {
  const { powerful } = await loadConfig({ cwd: folder, env: { ...env, PLIMSOLL_TRUST: "1" } });
  const settings = [...powerful, ...(await readProjectFetches(root))];
  // A relative working directory starts where nebulas are run.
  const from = isInside(cwd, root) || (await isNebula(folder)) ? cwd : root;
  // Nebulas that git does not ignore, the named one, and those that are trusted already.
  const { files } = await listFiles(root);
  const nebulas = files.filter((file) => basename(file) === "nebula.toml").map((file) => dirname(file));
  const known = (await trustRecord.find({ root, env }))?.settings ?? [];
  for (const other of new Set([folder, ...known.map(({ file }) => dirname(join(root, file)))]))
    if (await isNebula(other)) nebulas.push(other);
  for (const directory of new Set(nebulas)) {
    const loaded = await loadNebula(directory);
    settings.push(...(await nebulaSettings(loaded, { cwd: from, env })));
  }
  return settings;
}

function isNebula(folder: string): Promise<boolean> {
  return exists(join(folder, "nebula.toml"));
}
