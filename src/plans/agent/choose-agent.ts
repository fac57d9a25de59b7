import { execFile } from "node:child_process";
import { constants, existsSync } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, relative, resolve } from "node:path";
import type { Call, OptionSpec } from "../../cli/command.ts";
import { priceOf, providerOfModel } from "../../core/billing/index.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import { counterNameForModel } from "../../core/tokens/index.ts";
import {
  type Allow,
  allowLevels,
  type Environment,
  findProgram,
  followLinks,
  hasRepository,
  homeDirectory,
  loadConfig,
  placeOf,
  upward,
} from "../../host/index.ts";
import { embeddedAdapters, loadAudit } from "../../rules/index.ts";
import type { LoadedNebula, NebulaProblem } from "../nebula/index.ts";
import { type AgentPreset, agentCommand, agentPresets } from "./index.ts";

/** Options of every command that runs agents. */
export const agentOptions: AgentOptionSpecs = {
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

interface AgentOptionSpecs {
  readonly agent: ValueSpec;
  readonly "agent-command": ValueSpec;
  readonly allow: ValueSpec;
  readonly model: ValueSpec;
}

type ValueSpec = OptionSpec & { readonly value: string; readonly list?: never };

export interface AgentFlags {
  readonly agent?: string | undefined;
  readonly "agent-command"?: string | undefined;
  readonly allow?: string | undefined;
  readonly model?: string | undefined;
}

export type AgentCall = Pick<Call<AgentFlags>, "options" | "cwd" | "env">;

/** What a single run may say about its agent: a phase has its own model and permissions. */
export interface AgentWishes {
  readonly model?: string | undefined;
  readonly allow?: Allow | undefined;
  readonly budgetUsd?: number | undefined;
  /** Where it works, if that is not the folder that it was chosen for. */
  readonly folder?: string | undefined;
}

/** The agent of a command line and the configuration. */
export interface ChosenAgent {
  /** The name of a known agent. */
  readonly name?: string | undefined;
  readonly preset?: AgentPreset | undefined;
  /** Returns its model: an option, or else what is wished, or else the configuration's. */
  model(wishes?: AgentWishes): string | undefined;
  /** Returns its command line. Null if no agent is chosen. */
  line(wishes?: AgentWishes): string | null;
  /** Describes for people what it may do. */
  permissions(wishes?: AgentWishes): string;
  /** Whether a limit on its cost can be kept: it takes one, or reports its cost, or tokens that have a price. */
  keepsLimit(wishes?: AgentWishes): boolean;
  /** Returns what decides how tokens of its prompts are counted. */
  counting(wishes?: AgentWishes): { readonly model?: string | undefined; readonly fallback: string };
}

/** Finds the agent of a command: options win over the configuration. Does not check that it can run. `directory` is
 *  where it works. */
export async function chooseAgent(call: AgentCall, directory: string = call.cwd): Promise<ChosenAgent> {
  const { agent, "agent-command": command, allow: level, model: flag } = call.options;
  refuseTogether(call.options);
  const { values, sources } = await loadConfig({ cwd: call.cwd, env: call.env });
  const { run } = values;
  const name = command === undefined ? (agent ?? run.agent) : undefined;
  const preset = name === undefined ? undefined : knownPreset(name, { isOption: agent !== undefined, sources });
  // Words and models of one agent mean nothing to another.
  const isConfigured = command === undefined && (run.agent === undefined || run.agent === name);
  const model = (wishes: AgentWishes = {}) => flag ?? wishes.model ?? (isConfigured ? run.model : undefined);
  const allow = (wishes: AgentWishes = {}) => (level as Allow | undefined) ?? wishes.allow ?? run.allow;
  const args = isConfigured ? run.args : [];
  return {
    name,
    preset,
    model,
    line(wishes = {}) {
      if (name === undefined && command === undefined) return null;
      const chosen = { agent: name, command, model: model(wishes), allow: allow(wishes) };
      // Asked for every start, because an agent may have written settings for the next one.
      const trustFolder = name === "gemini" && !hasGeminiSettings(wishes.folder ?? directory, call.env);
      return agentCommand({ ...chosen, args, trustFolder, budgetUsd: wishes.budgetUsd });
    },
    permissions: (wishes) => (command === undefined ? allow(wishes) : "as the command says"),
    keepsLimit(wishes) {
      if (preset === undefined || preset.prints === "text") return false;
      const named = model(wishes);
      const provider = named === undefined ? undefined : providerOfModel(named);
      const isPriced = provider !== undefined && !priceOf({ provider, model: named, prices: values.prices }).isDefault;
      return preset.command.includes("{budget}") || isPriced;
    },
    counting(wishes) {
      const named = model(wishes);
      // "opus" names no family, but the agent does.
      const isKnown = named !== undefined && counterNameForModel(named).known;
      const family = preset?.model;
      if (named !== undefined && (isKnown || family === undefined)) return { model: named, fallback: "bytes/4" };
      return { fallback: family === undefined ? "bytes/4" : counterNameForModel(family).name };
    },
  };
}

function refuseTogether({ agent, "agent-command": command, allow }: AgentFlags): void {
  if (command === undefined) return;
  const [other, reason] = agent !== undefined ? ["--agent", ""] : ["--allow", ": only known agents can be limited"];
  if (agent === undefined && allow === undefined) return;
  throw usageError(`${other} and --agent-command are both given${reason}`, "Use one of them.");
}

function knownPreset(
  name: string,
  { isOption, sources }: { readonly isOption: boolean; readonly sources: Readonly<Record<string, string>> },
): AgentPreset {
  if (isOption || Object.hasOwn(agentPresets, name)) return agentPresets[name]!;
  throw new ContextError("invalid_config", `"run.agent" is "${name}", which is not a known agent`, {
    hint: `Choose from ${Object.keys(agentPresets).join(", ")}.`,
    ...placeOf(["run", "agent"], sources),
  });
}

/** Gemini CLI refuses folders that a person has not trusted, because it runs what their settings say. We answer for a
 *  folder only if it has none. */
function hasGeminiSettings(directory: string, env: Environment): boolean {
  const home = homeDirectory(env);
  for (const folder of upward(directory, home)) {
    // Those are the person's own.
    if (folder === home) break;
    for (const name of [".gemini", ".env"]) if (existsSync(join(folder, name))) return true;
    if (hasRepository(folder)) break;
  }
  return false;
}

/** Returns the limits of a nebula that nobody can keep with this agent: it neither takes a limit nor reports what it
 *  costs. */
export function limitProblems(
  { nebula, limits }: Pick<LoadedNebula, "nebula" | "limits">,
  agent: ChosenAgent,
  cwd: string,
): NebulaProblem[] {
  if (nebula === undefined || agent.line(nebula.phases[0]) === null) return [];
  const unkept = nebula.phases.filter((phase) => !agent.keepsLimit(phase)).map(({ file }) => file);
  const who = agent.name ?? "the agent's command";
  const message = `cannot be kept: ${who} does not report what it costs${needsModel(agent)}`;
  return limits
    .filter(({ file, key }) => (key === "max_budget_usd" ? unkept.includes(file) : unkept.length > 0))
    .map(({ file, line, key }) => ({
      ...{ file: relative(cwd, file), line, severity: "warning", rule: "unkept-limit" },
      message: `"${key}" ${message}`,
    }));
}

/** An agent that reports only tokens needs a model with a known price. */
function needsModel({ preset }: ChosenAgent): string {
  return preset === undefined || preset.prints === "text" ? "" : " unless its model has a known price (--model)";
}

/** Whether an agent loads a file of the project by itself. */
export type LoadsItself = (file: { readonly path: string; readonly text: string }) => boolean;

/** Asks `audit` which files of a project the agent loads. A file with the same text as one of them counts as loaded. */
export async function conventionsOf({ preset }: ChosenAgent, directory: string): Promise<LoadsItself | undefined> {
  if (preset === undefined) return undefined;
  const { projectFilesOf } = await loadAudit();
  const root = await followLinks(directory);
  const files = await projectFilesOf(preset.tool, { adapters: embeddedAdapters(), directory: root });
  const paths = new Set(files.flatMap((file) => [file.path, file.realPath].map((path) => relative(root, path))));
  const texts = new Set(files.map(({ text }) => text.trim()));
  return ({ path, text }) => paths.has(path) || texts.has(text.trim());
}

/** Throws unless an agent is chosen and its program can run. */
export async function requireAgent(agent: ChosenAgent, place: AgentCall, wishes: AgentWishes = {}): Promise<string> {
  const line = agent.line(wishes);
  if (line === null) throw await missingAgent(place);
  await checkAgentCommand(agent.name ?? line, place);
  return line;
}

async function missingAgent({ env }: AgentCall): Promise<ContextError> {
  const found = await findPresets(env);
  const known = Object.keys(agentPresets).join(", ");
  const choice =
    found.length === 0
      ? `None of ${known} is on PATH: install one, or use --agent-command.`
      : `Found on PATH: ${found.join(", ")}. Choose one with --agent, or use --agent-command.`;
  return usageError("no agent is chosen", choice);
}

/** Returns the presets whose program is on PATH. */
async function findPresets(env: Environment): Promise<string[]> {
  const names = Object.keys(agentPresets);
  const programs = await Promise.all(names.map((name) => findProgram(name, env)));
  return names.filter((_, index) => programs[index] !== undefined);
}

interface CommandPlace {
  readonly cwd: string;
  readonly env: Environment;
}

/** Throws if a command cannot run. Only a plain first word can be checked. */
export async function checkAgentCommand(line: string, place: CommandPlace): Promise<void> {
  if (line.trim() === "") throw usageError("the agent's command is empty");
  if (line.includes("\0")) throw usageError("the agent's command has a NUL character in it");
  const word = plainWord.exec(line)?.[1];
  if (word === undefined) return;
  const refusal = word.includes("/") ? await refusedPath(word, place) : await refusedName(word, place);
  if (refusal === undefined) return;
  const { reason, hint } = refusal;
  throw usageError(
    `the agent's command "${word}" cannot be run: ${reason}`,
    hint ?? "Install it, or name another with --agent or --agent-command.",
  );
}

interface Refusal {
  readonly reason: string;
  readonly hint?: string | undefined;
}

async function refusedPath(word: string, { cwd }: CommandPlace): Promise<Refusal | undefined> {
  const path = resolve(cwd, word);
  const kind = await kindOf(path);
  if (kind === "program") return undefined;
  if (kind === "file") return notExecutable(path);
  if (kind === "other") return { reason: `${path} is not a file` };
  return {
    reason: isAbsolute(word) ? "there is no such program" : `there is no such program, seen from ${cwd}`,
  };
}

async function refusedName(word: string, place: CommandPlace): Promise<Refusal | undefined> {
  if (await isKnown(word, place)) return undefined;
  for (const path of pathsOf(word, place)) if ((await kindOf(path)) === "file") return notExecutable(path);
  const reason = "there is no such program on PATH";
  const kind = await kindOf(resolve(place.cwd, word));
  if (kind !== "program" && kind !== "file") return { reason };
  const chmod = kind === "file" ? `, after chmod +x ${resolve(place.cwd, word)}` : "";
  return { reason, hint: `There is one in ${place.cwd}: name it "./${word}"${chmod}.` };
}

function notExecutable(path: string): Refusal {
  return { reason: `${path} is not executable`, hint: `Run chmod +x ${path}` };
}

/** A first word without quotes, expansions or an assignment. */
const plainWord = /^\s*([\w./+:@%,-]+)(?=[\s;&|<>]|$)/;

async function kindOf(path: string): Promise<"program" | "file" | "other" | undefined> {
  try {
    if (!(await stat(path)).isFile()) return "other";
  } catch {
    return undefined;
  }
  return access(path, constants.X_OK).then(
    () => "program",
    () => "file",
  );
}

function pathsOf(word: string, { cwd, env }: CommandPlace): string[] {
  return (env.PATH ?? "").split(delimiter).map((folder) => resolve(cwd, folder, word));
}

/** Asks the shell, which knows its own commands and how it reads PATH. */
function isKnown(word: string, { cwd, env }: CommandPlace): Promise<boolean> {
  return new Promise((settle) => {
    const args = ["-c", 'command -v -- "$1"', "sh", word];
    execFile("/bin/sh", args, { cwd, env: { ...env } }, (error) => settle(error === null));
  });
}
