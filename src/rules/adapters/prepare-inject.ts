/** Prepares a run of inject: configuration, layers, profile, tools, notes and facts. */
import { relative, resolve } from "node:path";
import { ContextError, throwProblems } from "../../core/errors.ts";
import { formatNumber, type Verbosity, verbosities } from "../../core/text/index.ts";
import {
  type Caller,
  type CompanyConfig,
  type Config,
  type CounterChoice,
  chooseCounter,
  defaultConfig,
  describeError,
  detectFacts,
  findSource,
  homeDirectory,
  type LoadedConfig,
  loadConfig,
  projectRoot,
  requireTrust,
  type Surroundings,
  type ToolBudget,
} from "../../host/index.ts";
import { applyBudgets, limitBudgets, type ToolBudgets } from "../audit/limits.ts";
import type { CompanyRules } from "../content/content-layer.ts";
import type { ContentProblem } from "../content/load-content.ts";
import { readNotes } from "../content/notes.ts";
import { lonelyFolder, readProjectTree } from "../files/project-tree.ts";
import type { Adapter, Scope } from "./adapter.ts";
import { chooseAdapters, findServed, refuseUnknownTools } from "./choose-adapters.ts";
import type { EngineOptions } from "./engine.ts";
import { embeddedAdapters, type LoadedPacks, type LoadPacksOptions, loadPacks } from "./load-packs.ts";
import { type NamedPacks, refuseUnknownPacks, selectPacks } from "./packs-content.ts";
import { withRelated } from "./plan-files.ts";
import type { StatusOptions } from "./status.ts";

/** What a person asks for. It wins over the configuration. */
export interface InjectChoice extends CounterChoice<string>, NamedPacks {
  readonly scope: Scope;
  /** Ids of AI tools. */
  readonly tools?: readonly string[] | undefined;
  /** Every known tool. */
  readonly all?: boolean | undefined;
  readonly profile?: string | undefined;
  readonly language?: string | undefined;
  readonly verbosity?: Verbosity | undefined;
  /** For each tool, instead of its own budget. */
  readonly budget?: ToolBudgets[string] | undefined;
  readonly onOverflow?: EngineOptions["onOverflow"];
  /** A folder of packs, profiles and adapters instead of the built-in ones. */
  readonly content?: string | undefined;
  readonly force?: boolean | undefined;
  /** Whether the run only removes. It then works with a broken configuration. */
  readonly uninstall?: boolean | undefined;
  /** Whether the run shows numbers of tokens. */
  readonly stats?: boolean | undefined;
}

export interface Prepared {
  /** Why the run has no packs. */
  readonly whyNoPacks?: string | undefined;
  /** Whether every tool has the same budget, so that it does not matter whose budget applies. */
  readonly hasOneBudget: boolean;
  readonly engine: StatusOptions & Pick<EngineOptions, "force">;
}

export async function prepareInject(choice: InjectChoice, caller: Caller): Promise<Prepared> {
  const { cwd, env } = caller;
  const { scope } = choice;
  const home = homeDirectory(env);
  // Files under HOME do not depend on a project's configuration, and a project's files do not depend on a person's.
  const isProject = scope === "project";
  const root = isProject ? projectRoot(cwd, home) : home;
  const surroundings = { cwd: isProject ? cwd : home, env, projectOnly: isProject };
  const { values: own, leftOut, sources } = await readConfig(choice, surroundings, caller);
  // Removing needs nothing that the settings could bring.
  if (choice.uninstall !== true) requireTrust(leftOut, caller);
  const tree = isProject ? await readProjectTree(root, env) : lonelyFolder(root);
  const loaded = await loadChosen(choice, { config: own, sources, scope, root, tree }, caller);
  // After an error nothing may be written, only removed.
  const problems = loaded.problems.map((problem) => ({ ...problem, file: relative(cwd, problem.file) }));
  const isFatal = ({ severity }: ContentProblem) => severity === "error" && choice.uninstall !== true;
  for (const { file, line, message } of problems.filter((each) => !isFatal(each)))
    caller.output.note(`${file}:${line}: ${message}`);
  throwProblems("invalid_content", problems.filter(isFatal));
  const config = { ...own, tools: own.tools ?? loaded.company?.tools };
  const places = { scope, root, home };
  const replaced = choice.content === undefined ? [] : embeddedAdapters();
  if (choice.uninstall !== true) {
    refuseUnknownIds(own, { loaded, replaced, sources, named: choice, cwd });
    tellOverruled(choice, { values: own, sources, company: loaded.company }, caller);
  }
  const budgets = chooseBudgets(choice.budget, own.budgets, { ...loaded, limits: loaded.company?.budgets });
  const adapters = applyBudgets(loaded.adapters, budgets, scope);
  const chosen = await chooseTools(choice, { config, places, adapters }, caller);
  return {
    whyNoPacks: loaded.packs.length > 0 ? undefined : whyNoPacks(loaded),
    hasOneBudget: new Set(Object.values(budgets).map(({ value, unit }) => `${value} ${unit}`)).size === 1,
    engine: {
      ...chosen,
      known: adapters,
      packs: loaded.packs,
      standingPacks: loaded.configuredPacks,
      // Any adapter may have left a file, also a built-in one that --content replaces.
      everyAdapter: [...replaced, ...loaded.everyAdapter],
      ownFiles: config.own_files,
      content: {
        title: config.title,
        profile: loaded.profile,
        notes: isProject ? await readNotes(root) : [],
        facts: isProject ? await detectFacts(root) : [],
      },
      places,
      tree,
      env,
      // Not all of the caller: copying its standard input would load Node's sockets, which takes milliseconds.
      counter: await chooseCounter({ cwd, env, output: caller.output, options: choice }, "auto", {
        config,
        quiet: choice.stats !== true,
        drafts: true,
      }),
      verbosity: choice.verbosity,
      verbosityOf: isProject ? chooseLevels(config, adapters) : config.verbosity,
      onOverflow: choice.onOverflow,
      defaultOnOverflow: config.on_overflow,
      onDrop: config.on_drop,
      force: choice.force === true,
    },
  };
}

/** Removing blocks must work with a broken configuration. */
async function readConfig(
  { uninstall }: InjectChoice,
  surroundings: Surroundings,
  { output }: Caller,
): Promise<Pick<LoadedConfig, "values" | "sources" | "leftOut">> {
  try {
    return await loadConfig(surroundings);
  } catch (error) {
    const isBroken = error instanceof ContextError && ["invalid_config", "unreadable_input"].includes(error.code);
    if (uninstall !== true || !isBroken) throw error;
    output.note(`continuing without the configuration: ${describeError(error)}`);
    return { values: defaultConfig, sources: {}, leftOut: [] };
  }
}

/** Names the lists that leave out packs. If there is none, names the other reasons. */
function whyNoPacks({ choices, profile }: Pick<LoadedPacks, "choices" | "profile">): string {
  if (choices.length === 0) return `the profile "${profile.id}" has no packs`;
  const reasons = [...new Set(choices.map(({ why }) => why))];
  const lists = reasons.filter((why) => why.startsWith("excluded by"));
  return `no pack is used (${(lists.length > 0 ? lists : reasons).join(", ")})`;
}

/** Returns the verbosity for each adapter. A file gets at most the lowest level that is configured for a tool that
 *  reads it, just as the smallest budget applies to it. Tools in `own_files` have a file of their own and do not
 *  count. */
function chooseLevels({ verbosity, own_files }: Config, adapters: readonly Adapter[]): Config["verbosity"] {
  const named = new Map(Object.entries(verbosity));
  const shared = adapters.flatMap(({ id, reads, verbosity: own = "full" }) => {
    const levels = reads.filter((each) => !own_files.includes(each)).flatMap((each) => named.get(each) ?? []);
    const lowest = verbosities.find((level) => [named.get(id) ?? own, ...levels].includes(level));
    return levels.length === 0 || lowest === undefined ? [] : [[id, lowest] as const];
  });
  return Object.fromEntries([...named, ...shared]);
}

/** A budget of the run replaces every other one. `limits` are the company's. */
export function chooseBudgets(
  budget: InjectChoice["budget"],
  configured: Config["budgets"],
  { adapters, limits = {} }: { readonly adapters: readonly Adapter[]; readonly limits?: Config["budgets"] | undefined },
): ToolBudgets {
  // A clipboard's own budget is what the tool's field takes. `*` never raises it.
  const files = adapters.filter(({ type }) => type === "file-inject");
  if (budget !== undefined) return Object.fromEntries([["*", budget], ...files.map(({ id }) => [id, budget] as const)]);
  return limitBudgets(readToolBudgets(configured), readToolBudgets(limits));
}

function readToolBudgets(configured: Config["budgets"]): ToolBudgets {
  const read = (own: ToolBudget): ToolBudgets[string] => {
    if (typeof own === "number") return { value: own, unit: "tokens" };
    return "max_bytes" in own ? { value: own.max_bytes, unit: "bytes" } : { value: own.max_tokens, unit: "tokens" };
  };
  return Object.fromEntries(Object.entries(configured).map(([id, own]) => [id, read(own)]));
}

/** Says which settings of the project have no effect, because the company decides. */
function tellOverruled(
  { packs, withoutPacks, budget }: InjectChoice,
  {
    values,
    sources,
    company,
  }: Pick<LoadedConfig, "values" | "sources"> & { readonly company: CompanyRules | undefined },
  { cwd, output }: Caller,
): void {
  if (company === undefined) return;
  const { required = [], budgets = {}, lineOf } = company;
  const place = (key: keyof CompanyConfig) => `${relative(cwd, company.file)}:${lineOf([key])}`;
  const { exclude } = selectPacks({ values, sources }, { packs, withoutPacks });
  const kept = required.filter((id) => exclude?.ids.includes(id));
  if (exclude !== undefined && kept.length > 0)
    output.note(`${exclude.from} cannot leave out ${kept.join(", ")}: the company requires it (${place("required")})`);
  if (budget !== undefined) return;
  const own = readToolBudgets(values.budgets);
  const used = limitBudgets(own, readToolBudgets(budgets));
  for (const id of Object.keys(own).filter((each) => used[each] !== own[each])) {
    const { file, line } = findSource(["budgets", id], sources);
    const { value, unit } = used[id]!;
    output.note(
      `budgets.${id} in ${file}:${line} is above the company's (${place("budgets")}), so ${formatNumber(value)} ${unit} apply`,
    );
  }
}

/** Throws on a tool or a pack that does not exist. An id of the configuration is reported with its line. */
function refuseUnknownIds(
  config: Config,
  {
    loaded,
    replaced,
    sources,
    named,
    cwd,
  }: {
    readonly loaded: Pick<LoadedPacks, "adapters" | "choices" | "problems" | "company">;
    /** Content of --content may not know every tool of the configuration. */
    readonly replaced: readonly Adapter[];
    readonly sources: LoadedConfig["sources"];
    readonly named: NamedPacks;
    readonly cwd: string;
  },
): void {
  const adapters = [...loaded.adapters, ...replaced];
  for (const key of ["tools", "own_files"] as const)
    refuseUnknownTools(config[key] ?? [], adapters, findSource([key], sources));
  for (const key of ["budgets", "verbosity"] as const) {
    const ids = Object.keys(config[key]).filter((id) => key !== "budgets" || id !== "*");
    for (const id of ids) refuseUnknownTools([id], adapters, findSource([key, id], sources));
  }
  const { tools = [], budgets = {}, lineOf, file } = loaded.company ?? { lineOf: () => 1, file: "" };
  for (const [index, id] of tools.entries())
    refuseUnknownTools([id], adapters, { file: relative(cwd, file), line: lineOf(["tools", index]) });
  for (const id of Object.keys(budgets).filter((each) => each !== "*"))
    refuseUnknownTools([id], adapters, { file: relative(cwd, file), line: lineOf(["budgets", id]) });
  // A pack may be missing because it could not be read. That problem is reported instead.
  if (loaded.problems.some(({ severity }) => severity === "error")) return;
  refuseUnknownPacks({ values: config, sources, named }, loaded.choices);
}

/** Chooses the tools of this run, and the tools that the configuration or the files of the project ask for. */
async function chooseTools(
  { tools, all = false, uninstall = false }: InjectChoice,
  { config, places, adapters }: Pick<StatusOptions, "places" | "adapters"> & { readonly config: Config },
  { env, output }: Caller,
): Promise<Pick<StatusOptions, "adapters" | "standing" | "served" | "ids">> {
  const asked = await chooseAdapters(adapters, { tools: tools ?? config.tools, all, places, env });
  // Content of --content may not know every tool of the configuration.
  const known = config.tools?.filter((id) => adapters.some((each) => each.id === id || each.reads.includes(id)));
  const isOwn = tools !== undefined || (all && known !== undefined);
  const standing = isOwn
    ? await chooseAdapters(adapters, { tools: known, all: false, onlyInUse: true, places, env })
    : asked;
  const served = findServed(adapters, { asked: tools ?? config.tools, configured: known, all, places });
  if (tools === undefined) {
    const ids = [...(config.tools ?? []), ...asked.map(({ id }) => id)];
    return { adapters: asked, standing, served, ids };
  }
  // A tool that reads our block in another file needs no own file: it would load the block twice.
  const isServed = (id: string) => places.scope === "project" && !config.own_files.includes(id);
  const chosen = uninstall ? asked : await withRelated(asked, { standing, places, isServed });
  for (const id of tools) {
    const owner = chosen.find((adapter) => adapter.reads.includes(id));
    if (owner !== undefined && (isServed(id) || !chosen.some((adapter) => adapter.id === id)))
      output.note(`${id} gets no separate file, because it reads the file of ${owner.id}`);
  }
  const ids = [...tools, ...chosen.map(({ id }) => id)];
  // If the configuration names no tools, `standing` was only found by its files. If this run chose all of it, only the
  // files of the run stay, and other files with our text are left over.
  const isReplaced = known === undefined && standing.every((each) => chosen.includes(each));
  return { adapters: chosen, standing: isReplaced ? chosen : standing, served, ids };
}

/** Loads the packs of the run, and the packs that it would use without the person's options. */
async function loadChosen(
  { packs, withoutPacks, profile, language, content, uninstall }: InjectChoice,
  placed: Pick<LoadPacksOptions, "config" | "scope" | "root" | "tree"> & Pick<LoadedConfig, "sources">,
  { cwd, env, output }: Caller,
): Promise<LoadedPacks> {
  const values = { values: placed.config, sources: placed.sources };
  const isOwn = packs !== undefined || withoutPacks !== undefined || profile !== undefined;
  const options: LoadPacksOptions = {
    ...placed,
    env,
    contentDirectory: content === undefined ? undefined : resolve(cwd, content),
    profile,
    language,
    selection: selectPacks(values, { packs, withoutPacks }),
    configured: isOwn ? selectPacks(values, {}) : undefined,
  };
  try {
    return await loadPacks(options);
  } catch (error) {
    // Removing blocks must work without the company's server.
    if (uninstall !== true || placed.config.company === undefined) throw error;
    output.note(`continuing without the company's packs: ${(error as Error).message}`);
    return loadPacks({ ...options, config: { ...placed.config, company: undefined } });
  }
}
