/** Prepares a run of inject: configuration, layers, profile, tools, notes and facts. */
import { relative, resolve } from "node:path";
import type { Call } from "../../cli/command.ts";
import { ContextError, usageError } from "../../core/errors.ts";
import { type Verbosity, verbosities, wholeNumber } from "../../core/text/index.ts";
import { chooseCounter } from "../../host/config/choose-counters.ts";
import {
  type Config,
  defaultConfig,
  describeError,
  detectFacts,
  homeDirectory,
  type LoadedConfig,
  loadConfig,
  lonelyFolder,
  placeOf,
  projectRoot,
  readProjectTree,
  type Surroundings,
  type ToolBudget,
} from "../../host/index.ts";
import { requireTrust } from "../../host/trust/require-trust.ts";
import type { ContentProblem } from "../index.ts";
import {
  type Adapter,
  applyBudgets,
  chooseAdapters,
  type EngineOptions,
  embeddedAdapters,
  type LoadedPacks,
  type LoadPacksOptions,
  loadPacks,
  type Places,
  readNotes,
  refuseUnknownTools,
  type Scope,
  type StatusOptions,
  type ToolBudgets,
  withRelated,
} from "../index.ts";
import { refuseUnknownPacks, selectionOf } from "./packs-content.ts";

export interface InjectFlags {
  readonly scope?: string | undefined;
  readonly global?: boolean | undefined;
  readonly tool?: readonly string[] | undefined;
  readonly all?: boolean | undefined;
  readonly profile?: string | undefined;
  readonly lang?: string | undefined;
  readonly verbosity?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
  readonly pack?: readonly string[] | undefined;
  readonly "no-pack"?: readonly string[] | undefined;
  readonly "max-tokens"?: string | undefined;
  readonly "max-bytes"?: string | undefined;
  readonly "on-overflow"?: string | undefined;
  readonly content?: string | undefined;
  readonly force?: boolean | undefined;
  readonly uninstall?: boolean | undefined;
  readonly stats?: boolean | undefined;
}

export interface Prepared {
  /** Why the run has no packs. */
  readonly whyNoPacks?: string | undefined;
  /** Whether every tool has the same budget, so that it does not matter whose budget applies. */
  readonly hasOneBudget: boolean;
  readonly engine: StatusOptions & Pick<EngineOptions, "force">;
}

export async function prepareInject(call: Call<InjectFlags>): Promise<Prepared> {
  const { cwd, env, options } = call;
  const home = homeDirectory(env);
  const scope: Scope = isProjectScope(options) ? "project" : "global";
  // Files under HOME do not depend on a project's configuration, and a project's files do not depend on a person's.
  const place = scope === "global" ? home : cwd;
  const root = scope === "global" ? home : projectRoot(cwd, home);
  const projectOnly = scope === "project";
  const { values: config, leftOut, sources } = await configFor(call, { cwd: place, env, projectOnly });
  requireTrust(leftOut, call);
  const tree = scope === "project" ? await readProjectTree(root, env) : lonelyFolder(root);
  const loaded = await loadFor(call, {
    ...{ config, sources, scope, root, env },
    contentDirectory: options.content === undefined ? undefined : resolve(cwd, options.content),
    profile: options.profile,
    language: options.lang,
    selection: selectionOf({ values: config, sources }, options),
    configured: hasOwnPacks(options) ? selectionOf({ values: config, sources }, {}) : undefined,
    tree,
  });
  tellProblems(loaded.problems, call);
  const places = { scope, root, home };
  const replaced = options.content === undefined ? [] : embeddedAdapters();
  if (options.uninstall !== true) {
    refuseUnknownIds(config, { loaded, replaced, sources, flags: options });
  }
  const budgets = budgetsFor(options, config.budgets, loaded.adapters);
  const adapters = applyBudgets(loaded.adapters, budgets, scope);
  const chosen = await chooseTools(call, { config, places, adapters });
  const counter = await chooseCounter(call, "auto", { config, quiet: options.stats !== true, drafts: true });
  return {
    whyNoPacks: loaded.packs.length > 0 ? undefined : whyNoPacks(loaded),
    hasOneBudget: new Set(Object.values(budgets).map(({ value, unit }) => `${value} ${unit}`)).size === 1,
    engine: {
      ...chosen,
      ...{ known: adapters, packs: loaded.packs, standingPacks: loaded.configuredPacks },
      // Any adapter may have left a file, also a built-in one that --content replaces.
      everyAdapter: [...replaced, ...loaded.everyAdapter],
      ownFiles: config.own_files,
      content: {
        title: config.title,
        profile: loaded.profile,
        notes: scope === "project" ? await readNotes(root) : [],
        facts: scope === "project" ? await detectFacts(root) : [],
      },
      places,
      ...{ tree, env, counter },
      verbosity: options.verbosity as Verbosity | undefined,
      verbosityOf: scope === "project" ? levelsOf(config, adapters) : config.verbosity,
      onOverflow: options["on-overflow"] as EngineOptions["onOverflow"],
      defaultOnOverflow: config.on_overflow,
      onDrop: config.on_drop,
      force: options.force === true,
    },
  };
}

/** Removing blocks must work with a broken configuration. */
async function configFor(
  { options, output }: Call<InjectFlags>,
  surroundings: Surroundings,
): Promise<Pick<LoadedConfig, "values" | "sources" | "leftOut">> {
  try {
    return await loadConfig(surroundings);
  } catch (error) {
    const isBroken = error instanceof ContextError && ["invalid_config", "unreadable_input"].includes(error.code);
    if (options.uninstall !== true || !isBroken) throw error;
    output.note(`continuing without the configuration: ${describeError(error)}`);
    return { values: defaultConfig, sources: {}, leftOut: [] };
  }
}

/** Returns whether the command line chooses the packs of this run. */
function hasOwnPacks({ pack, "no-pack": left, profile }: InjectFlags): boolean {
  return pack !== undefined || left !== undefined || profile !== undefined;
}

/** Names the lists that leave out packs. If there is none, names the other reasons. */
function whyNoPacks({ choices, profile }: Pick<LoadedPacks, "choices" | "profile">): string {
  if (choices.length === 0) return `the profile "${profile.id}" has no packs`;
  const reasons = [...new Set(choices.map(({ why }) => why))];
  const lists = reasons.filter((why) => why.startsWith("excluded by"));
  return `no pack is used (${(lists.length > 0 ? lists : reasons).join(", ")})`;
}

/** The level of a tool that reads another adapter's file limits that file, as its budget does. */
function levelsOf({ verbosity, own_files }: Config, adapters: readonly Adapter[]): Config["verbosity"] {
  const named = new Map(Object.entries(verbosity));
  const shared = adapters.flatMap(({ id, reads, verbosity: own = "full" }) => {
    const levels = reads.filter((each) => !own_files.includes(each)).flatMap((each) => named.get(each) ?? []);
    const lowest = verbosities.find((level) => [named.get(id) ?? own, ...levels].includes(level));
    return levels.length === 0 || lowest === undefined ? [] : [[id, lowest] as const];
  });
  return Object.fromEntries([...named, ...shared]);
}

/** A budget on the command line replaces every other one. */
function budgetsFor(flags: InjectFlags, configured: Config["budgets"], adapters: readonly Adapter[]): ToolBudgets {
  const { "max-tokens": tokens, "max-bytes": bytes } = flags;
  if (tokens !== undefined && bytes !== undefined) {
    throw usageError("--max-tokens and --max-bytes cannot be used together");
  }
  // A clipboard's own budget is what the tool's field takes. `*` never raises it.
  const files = adapters.filter(({ type }) => type === "file-inject");
  const forAll = (budget: ToolBudgets[string]) =>
    Object.fromEntries([["*", budget], ...files.map(({ id }) => [id, budget] as const)]);
  if (tokens !== undefined) return forAll({ value: wholeNumber(tokens, "max-tokens", 1), unit: "tokens" });
  if (bytes !== undefined) return forAll({ value: wholeNumber(bytes, "max-bytes", 1), unit: "bytes" });
  return Object.fromEntries(Object.entries(configured).map(([id, budget]) => [id, readBudget(budget)]));
}

function readBudget(budget: ToolBudget): ToolBudgets[string] {
  if (typeof budget === "number") return { value: budget, unit: "tokens" };
  return "max_bytes" in budget
    ? { value: budget.max_bytes, unit: "bytes" }
    : { value: budget.max_tokens, unit: "tokens" };
}

interface KnownIds {
  readonly loaded: Pick<LoadedPacks, "adapters" | "choices" | "problems">;
  /** Content of --content may not know every tool of the configuration. */
  readonly replaced: readonly Adapter[];
  readonly sources: LoadedConfig["sources"];
  readonly flags: Pick<InjectFlags, "pack" | "no-pack">;
}

/** Throws on a tool or a pack that does not exist. An id of the configuration is reported with its line. */
function refuseUnknownIds(config: Config, { loaded, replaced, sources, flags }: KnownIds): void {
  const adapters = [...loaded.adapters, ...replaced];
  for (const key of ["tools", "own_files"] as const)
    refuseUnknownTools(config[key] ?? [], adapters, placeOf([key], sources));
  for (const key of ["budgets", "verbosity"] as const) {
    const ids = Object.keys(config[key]).filter((id) => key !== "budgets" || id !== "*");
    for (const id of ids) refuseUnknownTools([id], adapters, placeOf([key, id], sources));
  }
  // A pack may be missing because it could not be read. That problem is reported instead.
  if (loaded.problems.some(({ severity }) => severity === "error")) return;
  refuseUnknownPacks({ values: config, sources, flags }, loaded.choices);
}

/** Whether the run writes files of a repository, not those under HOME. */
export function isProjectScope({ global, scope }: Pick<InjectFlags, "global" | "scope">): boolean {
  return global !== true && scope !== "global";
}

interface ToolChoice {
  readonly config: Config;
  readonly places: Places;
  readonly adapters: readonly Adapter[];
}

/** Chooses the tools of this run, and those that the configuration or the files here ask for. */
async function chooseTools(
  { env, options, output }: Call<InjectFlags>,
  { config, places, adapters }: ToolChoice,
): Promise<Pick<StatusOptions, "adapters" | "standing" | "ids">> {
  const asked = await chooseAdapters(adapters, {
    tools: options.tool ?? config.tools,
    all: options.all === true,
    places,
    env,
  });
  // Content of --content may not know every tool of the configuration.
  const known = config.tools?.filter((id) => isKnownTool(id, adapters));
  const isOwn = options.tool !== undefined || (options.all === true && known !== undefined);
  const standing = isOwn
    ? await chooseAdapters(adapters, { tools: known, all: false, onlyInUse: true, places, env })
    : asked;
  if (options.tool === undefined) {
    const ids = [...(config.tools ?? []), ...asked.map(({ id }) => id)];
    return { adapters: asked, standing, ids };
  }
  // A tool that reads our block in another file needs no own file: it would load the block twice.
  const isServed = (id: string) => places.scope === "project" && !config.own_files.includes(id);
  const chosen = options.uninstall === true ? asked : await withRelated(asked, { standing, places, isServed });
  for (const id of options.tool) {
    const owner = chosen.find((adapter) => adapter.reads.includes(id));
    if (owner !== undefined && (isServed(id) || !chosen.some((adapter) => adapter.id === id)))
      output.note(`${id} gets no separate file, because it reads the file of ${owner.id}`);
  }
  const ids = [...options.tool, ...chosen.map(({ id }) => id)];
  // Files of tools that were only found here make room for the choice of this run.
  const isReplaced = known === undefined && standing.every((each) => chosen.includes(each));
  return { adapters: chosen, standing: isReplaced ? chosen : standing, ids };
}

function isKnownTool(id: string, adapters: readonly Adapter[]): boolean {
  return adapters.some((adapter) => adapter.id === id || adapter.reads.includes(id));
}

/** Removing blocks must work without the company's server. */
async function loadFor({ options, output }: Call<InjectFlags>, content: LoadPacksOptions): Promise<LoadedPacks> {
  try {
    return await loadPacks(content);
  } catch (error) {
    if (options.uninstall !== true || content.config.company === undefined) throw error;
    output.note(`continuing without the company's packs: ${(error as Error).message}`);
    return loadPacks({ ...content, config: { ...content.config, company: undefined } });
  }
}

/** Reports every problem. After an error nothing may be written, only removed. */
function tellProblems(problems: readonly ContentProblem[], { cwd, options, output }: Call<InjectFlags>): void {
  const line = (problem: ContentProblem) => `${relative(cwd, problem.file)}:${problem.line}: ${problem.message}`;
  const isFatal = ({ severity }: ContentProblem) => severity === "error" && options.uninstall !== true;
  for (const problem of problems) if (!isFatal(problem)) output.note(line(problem));
  const [first, ...rest] = problems.filter(isFatal);
  if (first === undefined) return;
  throw new ContextError("invalid_content", [first.message, ...rest.map(line)].join("\n"), {
    file: relative(cwd, first.file),
    line: first.line,
  });
}
