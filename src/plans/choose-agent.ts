import { execFile } from "node:child_process";
import { constants, existsSync } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, relative, resolve } from "node:path";
import { priceOf, providerOfModel } from "../core/billing/index.ts";
import { ContextError, usageError } from "../core/errors.ts";
import { counterNameForModel } from "../core/tokens/index.ts";
import {
  type Allow,
  type ConventionsFile,
  type Environment,
  findProgram,
  findSource,
  followLinks,
  hasRepository,
  homeDirectory,
  loadConfig,
  upward,
} from "../host/index.ts";
import { embeddedAdapters, loadAudit } from "../rules/index.ts";
import { type AgentChoice, type AgentPreset, agentCommand, agentPresets } from "./agent/index.ts";

/** What a single run may say about its agent: a phase has its own model and permissions. */
export interface AgentPreferences {
  readonly model?: string | undefined;
  readonly allow?: Allow | undefined;
  readonly budgetUsd?: number | undefined;
  /** Where it works, if that is not the folder that it was chosen for. */
  readonly folder?: string | undefined;
  /** The session that goes on. */
  readonly session?: string | undefined;
  /** The commands that it may run, exactly as they are. */
  readonly check?: readonly string[] | undefined;
}

/** The agent of a person's choice and the configuration. */
export interface ChosenAgent {
  /** The name of a known agent. */
  readonly name?: string | undefined;
  readonly preset?: AgentPreset | undefined;
  /** Returns its model: the chosen one, or else the preferred one, or else the configuration's. */
  model(preferred?: AgentPreferences): string | undefined;
  /** Returns its command line. Null if no agent is chosen. */
  line(preferred?: AgentPreferences): string | null;
  /** Describes for people what it may do. */
  permissions(preferred?: AgentPreferences): string;
  /** Whether a limit on its cost can be kept: it takes one, or reports its cost, or tokens that have a price. */
  keepsLimit(preferred?: AgentPreferences): boolean;
  /** Returns what decides how tokens of its prompts are counted. */
  counting(preferred?: AgentPreferences): { readonly model?: string | undefined; readonly fallback: string };
}

/** Finds the agent that a person or the configuration chose. Does not check that it can run. */
export async function chooseAgent(
  { agent, command, allow: level, model: chosenModel }: Pick<AgentChoice, "agent" | "command" | "allow" | "model">,
  {
    cwd,
    env,
    directory = cwd,
  }: {
    readonly cwd: string;
    readonly env: Environment;
    /** Where it works. @default cwd */
    readonly directory?: string | undefined;
  },
): Promise<ChosenAgent> {
  const { values, sources } = await loadConfig({ cwd, env });
  const { run } = values;
  const name = command === undefined ? (agent ?? run.agent) : undefined;
  if (name !== undefined && agent === undefined && !Object.hasOwn(agentPresets, name)) {
    throw new ContextError("invalid_config", `"run.agent" is "${name}", which is not a known agent`, {
      hint: `Choose from ${Object.keys(agentPresets).join(", ")}.`,
      ...findSource(["run", "agent"], sources),
    });
  }
  const preset = name === undefined ? undefined : agentPresets[name];
  // Words and models of one agent mean nothing to another.
  const isConfigured = command === undefined && (run.agent === undefined || run.agent === name);
  const model = (preferred: AgentPreferences = {}) =>
    chosenModel ?? preferred.model ?? (isConfigured ? run.model : undefined);
  const allow = (preferred: AgentPreferences = {}) => level ?? preferred.allow ?? run.allow;
  const args = isConfigured ? run.args : [];
  return {
    name,
    preset,
    model,
    line(preferred = {}) {
      if (name === undefined && command === undefined) return null;
      const chosen = { agent: name, command, model: model(preferred), allow: allow(preferred) };
      // Checked at every start, because an agent may have written settings for the next one.
      const trustFolder = name === "gemini" && !hasGeminiSettings(preferred.folder ?? directory, env);
      const { budgetUsd, session, check: checks } = preferred;
      return agentCommand({ ...chosen, args, trustFolder, budgetUsd, session, checks });
    },
    permissions: (preferred) => (command === undefined ? allow(preferred) : "as the command says"),
    keepsLimit(preferred) {
      if (preset === undefined) return false;
      const used = model(preferred);
      const provider = used === undefined ? undefined : providerOfModel(used);
      const isPriced = provider !== undefined && !priceOf({ provider, model: used, prices: values.prices }).isDefault;
      return preset.command.includes("{budget}") || isPriced;
    },
    counting(preferred) {
      const used = model(preferred);
      // "opus" names no family, but the agent does.
      const isKnown = used !== undefined && counterNameForModel(used).known;
      const family = preset?.model;
      if (used !== undefined && (isKnown || family === undefined)) return { model: used, fallback: "bytes/4" };
      return { fallback: family === undefined ? "bytes/4" : counterNameForModel(family).name };
    },
  };
}

/** Gemini CLI refuses folders that a person has not trusted, because it runs what their settings say. We confirm the
 *  trust only for a folder without such settings. */
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

/** Returns whether an agent loads a file of the project by itself, as `audit` knows it. A file with the same text as a
 *  loaded one counts as loaded. Returns undefined for an agent without a preset. */
export async function findLoadedFiles(
  { preset }: ChosenAgent,
  directory: string,
): Promise<((file: ConventionsFile) => boolean) | undefined> {
  if (preset === undefined) return undefined;
  const { readProjectFiles } = await loadAudit();
  const root = await followLinks(directory);
  const files = await readProjectFiles(preset.tool, { adapters: embeddedAdapters(), directory: root });
  const paths = new Set(files.flatMap((file) => [file.path, file.realPath].map((path) => relative(root, path))));
  const texts = new Set(files.map(({ text }) => text.trim()));
  return ({ path, text }) => paths.has(path) || texts.has(text.trim());
}

/** Returns the names of the known agents whose program is on PATH. */
export async function findInstalledAgents(env: Environment): Promise<string[]> {
  const names = Object.keys(agentPresets);
  const programs = await Promise.all(names.map((name) => findProgram(name, env)));
  return names.filter((_, index) => programs[index] !== undefined);
}

interface CommandPlace {
  readonly cwd: string;
  readonly env: Environment;
}

/** Throws if a command cannot run, with `advice` unless there is a better one. Only a plain first word can be checked. */
export async function checkAgentCommand(
  line: string,
  { advice, ...place }: CommandPlace & { readonly advice: string },
): Promise<void> {
  if (line.trim() === "") throw usageError("the agent's command is empty");
  if (line.includes("\0")) throw usageError("the agent's command has a NUL character in it");
  // A first word without quotes, expansions or an assignment.
  const word = /^\s*([\w./+:@%,-]+)(?=[\s;&|<>]|$)/.exec(line)?.[1];
  if (word === undefined) return;
  const refusal = await explainMissing(word, place);
  if (refusal === undefined) return;
  const { reason, hint = advice } = refusal;
  throw usageError(`the agent's command "${word}" cannot be run: ${reason}`, hint);
}

/** Returns why a program cannot run, or undefined if it can. */
export async function explainMissing(
  word: string,
  { cwd, env }: CommandPlace,
): Promise<{ readonly reason: string; readonly hint?: string } | undefined> {
  const isPath = word.includes("/");
  const path = resolve(cwd, word);
  const kind = await inspectFile(path);
  if (isPath ? kind === "program" : await isShellCommand(word, { cwd, env })) return undefined;
  for (const folder of isPath ? [cwd] : (env.PATH ?? "").split(delimiter)) {
    const found = resolve(cwd, folder, word);
    if ((await inspectFile(found)) === "file")
      return { reason: `${found} is not executable`, hint: `Run chmod +x ${found}` };
  }
  const where = isAbsolute(word) ? "" : `, seen from ${cwd}`;
  if (isPath) return { reason: kind === "other" ? `${path} is not a file` : `there is no such program${where}` };
  const reason = "there is no such program on PATH";
  if (kind === "program") return { reason, hint: `There is one in ${cwd}: name it "./${word}".` };
  if (kind === "file") return { reason, hint: `There is one in ${cwd}: name it "./${word}", after chmod +x ${path}.` };
  return { reason };
}

async function inspectFile(path: string): Promise<"program" | "file" | "other" | undefined> {
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

/** Asks the shell, which knows its own commands and how it reads PATH. */
function isShellCommand(word: string, { cwd, env }: CommandPlace): Promise<boolean> {
  return new Promise((settle) => {
    const args = ["-c", 'command -v -- "$1"', "sh", word];
    execFile("/bin/sh", args, { cwd, env: { ...env } }, (error) => settle(error === null));
  });
}
