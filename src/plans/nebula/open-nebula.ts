/** The nebula that a command names, and the settings that decide how it is applied. */
import { stat } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import type { ArgumentSpec, Call, OptionSpec } from "../../cli/command.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import { didYouMean, printable, wholeNumber } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { chooseCounter, counterOptions, modelForCounter } from "../../host/config/choose-counters.ts";
import { loadConfig, storeFile } from "../../host/index.ts";
import { noteIgnoredStore } from "../../host/trust/require-trust.ts";
import { type ChosenAgent, conventionsOf } from "../agent/choose-agent.ts";
import { type ContextFlags, readContextSettings } from "../agent/compose-context.ts";
import {
  type ApplyOptions,
  type LoadedNebula,
  loadNebula,
  type Nebula,
  type NebulaProblem,
  type Phase,
} from "./index.ts";

/** The argument with the nebula's folder. */
export const folderArgument: ArgumentSpec = { name: "DIR", summary: "the folder with nebula.toml" };

export type FolderCall = Pick<Call, "arguments" | "cwd" | "output">;

/** Loads a nebula. Makes paths of problems relative to the current directory. */
export async function readNebula({ arguments: [folder = "."], cwd }: FolderCall): Promise<LoadedNebula> {
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

export interface UsableNebula extends Pick<LoadedNebula, "agentSettings" | "limits"> {
  readonly nebula: Nebula;
}

/** Loads a nebula and throws if it has errors. Reports warnings, as notes by default. */
export async function usableNebula(
  call: FolderCall,
  warn: (problem: NebulaProblem) => void = (problem) => call.output.note(problemLine(problem)),
): Promise<UsableNebula> {
  const { nebula, problems, agentSettings, limits } = await readNebula(call);
  const [first, ...rest] = problems.filter(({ severity }) => severity === "error");
  for (const problem of problems) if (problem.severity === "warning") warn(problem);
  if (nebula !== undefined) return { nebula, agentSettings, limits };
  const { message, file, line } = first!;
  throw new ContextError("invalid_content", [message, ...rest.map(problemLine)].join("\n"), { file, line });
}

/** Returns the phase with this id. */
export function phaseOf({ phases }: Nebula, id: string): Phase {
  const found = phases.find((phase) => phase.id === id);
  if (found !== undefined) return found;
  const ids = phases.map((phase) => phase.id);
  const hint = [didYouMean(id, ids), `Its phases: ${ids.join(", ")}.`].filter(Boolean).join(" ");
  throw usageError(`the nebula has no phase "${id}"`, hint);
}

function problemLine({ file, line, message }: NebulaProblem): string {
  return `${printable(file)}:${line}: ${printable(message)}`;
}

/** Options that decide the context of prompts. */
export const contextOptions: ContextOptionSpecs = {
  "max-context-tokens": {
    value: "N",
    summary:
      "token budget of the context before each task; 0 sends none (default: from nebula.toml, or else the configuration)",
  },
  "with-conventions": { summary: "keep convention files in the snapshot that the agent loads by itself" },
  counter: counterOptions.counter,
};

interface ContextOptionSpecs {
  readonly "max-context-tokens": OptionSpec & { readonly value: string; readonly list?: never };
  readonly "with-conventions": OptionSpec & { readonly value?: never };
  readonly counter: OptionSpec & { readonly value: string; readonly list?: never };
}

/** Flags that decide how a nebula is applied. */
export interface SettingsFlags extends ContextFlags {
  readonly "with-conventions"?: boolean | undefined;
  readonly "max-workers"?: string | undefined;
  readonly timeout?: string | undefined;
  readonly store?: string | undefined;
  readonly worktrees?: boolean | undefined;
  readonly remote?: string | undefined;
  readonly lease?: string | undefined;
  readonly commit?: boolean | undefined;
}

export type ApplySettings = Pick<
  ApplyOptions,
  | "counter"
  | "cwd"
  | "env"
  | "loadsItself"
  | "maxWorkers"
  | "maxContextTokens"
  | "prices"
  | "secrets"
  | "shares"
  | "timeoutMs"
  | "storeFile"
  | "worktrees"
  | "remote"
  | "leaseMs"
  | "worktreeCopy"
  | "commit"
>;

/** Reads settings: flags, or else nebula.toml, or else the configuration, or else the defaults of applyNebula. */
export async function readApplySettings(
  call: Call<SettingsFlags>,
  nebula: Nebula,
  agent: ChosenAgent,
): Promise<ApplySettings> {
  const { options, cwd, env } = call;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, call);
  const { execution } = nebula;
  // Each phase has a counter of its own.
  const plain = { ...options, counter: "bytes/4", model: undefined };
  const { maxTokens, shares } = await readContextSettings({ ...call, options: plain });
  const isAsked = options["max-context-tokens"] !== undefined;
  const number = (name: "max-workers" | "timeout" | "lease", least: number) =>
    options[name] === undefined ? undefined : wholeNumber(options[name], name, least);
  const seconds = number("timeout", 1);
  const worktrees = options.worktrees ?? config.values.nebula.worktrees;
  const maxWorkers = number("max-workers", 1);
  if (options.commit && !worktrees && (maxWorkers ?? execution.maxWorkers ?? 1) > 1) {
    throw usageError("--commit with several workers would mix their changes", "Use --worktrees, or --max-workers 1.");
  }
  if (options.remote !== undefined && !worktrees) {
    throw usageError(
      "--remote needs --worktrees: machines share the work of phases as git branches",
      "Use both, or neither.",
    );
  }
  const lease = number("lease", 1);
  const directory = await workingDirectory(nebula, cwd);
  const loadsItself = options["with-conventions"] === true ? undefined : await conventionsOf(agent, directory);
  return {
    worktrees,
    remote: options.remote,
    ...(lease !== undefined && { leaseMs: lease * 1000 }),
    worktreeCopy: config.values.nebula.worktree_copy,
    commit: options.commit,
    counter: await phaseCounters(nebula, agent, call),
    cwd: directory,
    env,
    ...(loadsItself !== undefined && { loadsItself }),
    prices: config.values.prices,
    maxWorkers,
    maxContextTokens: isAsked ? maxTokens : (execution.maxContextTokens ?? maxTokens),
    secrets: { deny: config.values.deny, allow: config.values.allow },
    shares,
    timeoutMs: seconds === undefined ? undefined : seconds * 1000,
    storeFile: storeFile(options.store, { cwd, env, config }),
  };
}

export async function workingDirectory({ workingDirectory: named, directory }: Nebula, cwd: string): Promise<string> {
  if (named === undefined) return cwd;
  const path = resolve(cwd, named);
  const isDirectory = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (isDirectory) return path;
  throw new ContextError("invalid_content", `working_dir "${named}" is not a directory, seen from ${cwd}`, {
    file: join(directory, "nebula.toml"),
    hint: "Run the command in a folder where this path exists.",
  });
}

/** Returns the counter of each phase, by its model. Counters are loaded once. */
async function phaseCounters(
  { phases }: Nebula,
  agent: ChosenAgent,
  call: Call<SettingsFlags>,
): Promise<ApplyOptions["counter"]> {
  const counters = new Map<string, Counter>();
  const keyOf = (phase: Phase) => JSON.stringify(agent.counting(phase));
  for (const phase of phases) {
    if (counters.has(keyOf(phase))) continue;
    const { model, fallback } = agent.counting(phase);
    const options = { ...call.options, model: modelForCounter({ ...call.options, model }) };
    counters.set(keyOf(phase), await chooseCounter({ ...call, options }, fallback));
  }
  return phases.length === 0 ? undefined : (phase) => counters.get(keyOf(phase))!;
}
