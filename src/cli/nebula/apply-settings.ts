import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ApplyOptions, Nebula } from "../../agent/index.ts";
import { ContextError } from "../../errors.ts";
import { loadConfig } from "../../workspace/index.ts";
import { chooseAgent } from "../choose-agent.ts";
import type { Call } from "../command.ts";
import { type ContextFlags, readContextSettings } from "../compose/context-settings.ts";
import { storeFile } from "../store-file.ts";
import { noteIgnoredStore } from "../trust.ts";
import { wholeNumber } from "../whole-number.ts";

export type ApplyCall = Call<ContextFlags & ApplyFlags>;

interface ApplyFlags {
  readonly agent?: string | undefined;
  readonly "agent-command"?: string | undefined;
  readonly "max-workers"?: string | undefined;
  readonly timeout?: string | undefined;
  readonly store?: string | undefined;
  readonly yes?: boolean | undefined;
  readonly resume?: boolean | undefined;
}

export type ApplySettings = Pick<
  ApplyOptions,
  | "counter"
  | "cwd"
  | "env"
  | "maxWorkers"
  | "maxContextTokens"
  | "secrets"
  | "shares"
  | "timeoutMs"
  | "storeFile"
>;

/** Flag over manifest over configuration; defaults are those of applying a nebula. */
export async function readApplySettings(call: ApplyCall, nebula: Nebula): Promise<ApplySettings> {
  const { options, cwd, env } = call;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, call);
  const { execution } = nebula;
  const { counter, maxTokens, shares } = await readContextSettings(call);
  const isAsked = options["max-context-tokens"] !== undefined;
  const number = (name: "max-workers" | "timeout", least: number) =>
    options[name] === undefined ? undefined : wholeNumber(options[name], name, least);
  const seconds = number("timeout", 1);
  return {
    counter,
    cwd: await workingDirectory(nebula, cwd),
    env,
    maxWorkers: number("max-workers", 1),
    maxContextTokens: isAsked ? maxTokens : (execution.maxContextTokens ?? maxTokens),
    secrets: { deny: config.values.deny, allow: config.values.allow },
    shares,
    timeoutMs: seconds === undefined ? undefined : seconds * 1000,
    storeFile: storeFile(options.store, { cwd, env, config }),
  };
}

async function workingDirectory(
  { workingDirectory: named, directory }: Nebula,
  cwd: string,
): Promise<string> {
  if (named === undefined) return cwd;
  const path = resolve(cwd, named);
  const isDirectory = await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (isDirectory) return path;
  throw new ContextError("invalid_content", `working_dir "${named}" is no directory seen from ${cwd}`, {
    file: join(directory, "nebula.toml"),
    hint: "Run the command where that path leads to one.",
  });
}

/** The command line for each phase, since a phase may name its model. All of them can be run, or nothing is. */
export async function agentCommands(
  { phases }: Nebula,
  { cwd }: ApplySettings,
  call: ApplyCall,
): Promise<ApplyOptions["command"]> {
  const lines = new Map<string | undefined, string>();
  for (const model of new Set(phases.map((phase) => phase.model)))
    lines.set(model, await chooseAgent({ ...call, cwd }, model));
  return ({ model }) => lines.get(model)!;
}
