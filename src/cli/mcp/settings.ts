/** From the command line and the configuration to the budget, the store and the session of a server. */
import { type LedgerOptions, leastAllocation } from "../../budget/index.ts";
import { ContextError } from "../../errors.ts";
import type { PageLimit } from "../../session/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { type LoadedConfig, loadConfig, type SecretRules } from "../../workspace/index.ts";
import { chooseCounter } from "../choose-counters.ts";
import type { Call } from "../command.ts";
import { storeFile } from "../store-file.ts";
import { noteIgnoredStore, noteLeftOut } from "../trust.ts";
import { wholeNumber } from "../whole-number.ts";

export interface ServerFlags {
  readonly total?: string | undefined;
  readonly "per-tool"?: string | undefined;
  readonly store?: string | undefined;
  readonly "no-store"?: boolean | undefined;
  readonly session?: string | undefined;
  readonly "page-characters"?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
}

export interface ServerSettings {
  readonly counter: Counter;
  readonly budget: LedgerOptions;
  /** Undefined where results are kept in memory only. */
  readonly storeFile: string | undefined;
  /** Named on the command line: it goes on, whoever served it before. */
  readonly sessionId: string | undefined;
  readonly secrets: SecretRules;
}

/** `root`: where the project's configuration is looked for. */
export async function readSettings(call: Call<ServerFlags>, root: string): Promise<ServerSettings> {
  const { options, cwd, env, output } = call;
  if (options.store !== undefined && options["no-store"] === true) {
    throw new ContextError("usage", "--store and --no-store contradict each other", {
      hint: "Leave one of them out.",
    });
  }
  const config = await loadConfig({ cwd: root, env });
  noteIgnoredStore(config, call);
  noteLeftOut(
    config.leftOut.filter(({ key }) => key === "allow"),
    call,
  );
  // That the model is unknown goes without saying here.
  const quiet = options.model === undefined ? { ...output, note: () => {} } : output;
  const counter = await chooseCounter({ ...call, cwd: root, output: quiet }, "auto");
  return {
    counter,
    budget: readBudget(options, config),
    storeFile: options["no-store"] === true ? undefined : storeFile(options.store, { cwd, env, config }),
    sessionId: options.session,
    secrets: { deny: config.values.deny, allow: config.values.allow },
  };
}

/** Instead of what is known of the client. */
export function readPageLimit(options: ServerFlags): PageLimit | undefined {
  const characters = number(options, "page-characters", 1_000);
  return characters === undefined ? undefined : { characters };
}

/** What nobody chose is left out: the ledger's own defaults follow the total. */
function readBudget(options: ServerFlags, { values, sources }: LoadedConfig): LedgerOptions {
  const { session } = values;
  const chosen = <Name extends keyof typeof session>(name: Name): (typeof session)[Name] | undefined =>
    sources[`session.${name}`] === "default" ? undefined : session[name];
  return {
    total: number(options, "total", 1_000) ?? chosen("total"),
    perToolCall: number(options, "per-tool", leastAllocation) ?? chosen("per_tool_call"),
    historyMax: chosen("history_max"),
    warningThreshold: chosen("warning_threshold"),
    tools: session.tools,
  };
}

function number(
  options: ServerFlags,
  name: "total" | "per-tool" | "page-characters",
  least: number,
): number | undefined {
  const value = options[name];
  return value === undefined ? undefined : wholeNumber(value, name, least);
}
