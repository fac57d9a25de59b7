/** From a command line to what the engine takes: configuration, layers, profile, tools, notes and facts. */
import { relative, resolve } from "node:path";
import {
  type Adapter,
  adaptersWithBlock,
  chooseAdapters,
  type EngineOptions,
  embeddedAdapters,
  type LoadedPacks,
  type LoadPacksOptions,
  loadPacks,
  type Places,
  refuseUnknownTools,
  type Scope,
  type StatusOptions,
} from "../../adapters/index.ts";
import { ContextError } from "../../errors.ts";
import type { Verbosity } from "../../text/index.ts";
import {
  type Config,
  type ContentProblem,
  detectFacts,
  homeDirectory,
  loadConfig,
  lonelyFolder,
  projectRoot,
  readNotes,
  readProjectTree,
} from "../../workspace/index.ts";
import { chooseCounter } from "../choose-counters.ts";
import type { Call } from "../command.ts";
import { requireTrust } from "../trust.ts";

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
  readonly "on-overflow"?: string | undefined;
  readonly content?: string | undefined;
  readonly force?: boolean | undefined;
  readonly uninstall?: boolean | undefined;
}

export interface Prepared {
  readonly engine: StatusOptions & Pick<EngineOptions, "force">;
}

export async function prepareInject(call: Call<InjectFlags>): Promise<Prepared> {
  const { cwd, env, options } = call;
  const home = homeDirectory(env);
  const scope: Scope = isProjectScope(options) ? "project" : "global";
  // A person's own files are the same wherever they stand: of a project's configuration they know nothing. And a project's files are the
  // same for everybody: of the person's configuration they know nothing.
  const place = scope === "global" ? home : cwd;
  const root = scope === "global" ? home : projectRoot(cwd, home);
  const projectOnly = scope === "project";
  const { values: config, leftOut } = await loadConfig({ cwd: place, env, projectOnly });
  requireTrust(leftOut, call);
  const loaded = await loadFor(call, {
    config,
    scope,
    root,
    env,
    contentDirectory: options.content === undefined ? undefined : resolve(cwd, options.content),
    profile: options.profile,
    language: options.lang,
  });
  requireTrust(loaded.leftOut, call);
  tellProblems(loaded.problems, call);
  const places = { scope, root, home };
  if (options.uninstall !== true) refuseUnknownTools(config.own_files, loaded.adapters, scope);
  const chosen = await chooseTools(call, { config, places, adapters: loaded.adapters });
  const named = options.counter ?? (options.model === undefined ? config.counter : undefined);
  const counterChosen = named !== undefined || options.model !== undefined;
  const counter = await chooseCounter(
    { ...call, options: { counter: counterChosen ? named : "bytes/4", model: options.model } },
    "bytes/4",
  );
  return {
    engine: {
      ...chosen,
      ...{ known: loaded.adapters, packs: loaded.packs },
      // Each may have left a file, the embedded ones too where --content replaces them.
      everyAdapter: [...(options.content === undefined ? [] : embeddedAdapters()), ...loaded.everyAdapter],
      ownFiles: config.own_files,
      content: {
        title: config.title,
        profile: loaded.profile,
        notes: scope === "project" ? await readNotes(root) : [],
        facts: scope === "project" ? await detectFacts(root) : [],
      },
      places,
      tree: scope === "project" ? await readProjectTree(root, env) : lonelyFolder(root),
      ...{ env, counter, counterChosen },
      verbosity: options.verbosity as Verbosity | undefined,
      verbosityOf: config.verbosity,
      onOverflow: options["on-overflow"] as EngineOptions["onOverflow"],
      defaultOnOverflow: config.on_overflow,
      force: options.force === true,
    },
  };
}

/** Files in a repository, not those under HOME. */
export function isProjectScope({ global, scope }: Pick<InjectFlags, "global" | "scope">): boolean {
  return global !== true && scope !== "global";
}

interface ToolChoice {
  readonly config: Config;
  readonly places: Places;
  readonly adapters: readonly Adapter[];
}

/** The tools of this run, and those that the configuration or the files here call for whatever the run is about. */
async function chooseTools(
  { env, options, output }: Call<InjectFlags>,
  { config, places, adapters }: ToolChoice,
): Promise<Pick<StatusOptions, "adapters" | "standing" | "ids">> {
  const choose = (tools: readonly string[] | undefined, all: boolean) =>
    chooseAdapters(adapters, { tools, all, places, env });
  const asked = await choose(options.tool ?? config.tools, options.all === true);
  if (options.tool === undefined) {
    const ids = [...(config.tools ?? []), ...asked.map(({ id }) => id)];
    return { adapters: asked, standing: [], ids };
  }
  // Other content than usual may not know every tool of the configuration.
  const known = config.tools?.filter((id) => isKnownTool(id, adapters));
  const standing = await choose(known, false);
  // A tool that already reads our block elsewhere is served there: in a file of its own it would be loaded twice.
  const isServed = (id: string) => places.scope === "project" && !config.own_files.includes(id);
  const sharing = standing.filter(
    (each) => !asked.includes(each) && asked.some(({ id }) => each.reads.includes(id) && isServed(id)),
  );
  const serving = options.uninstall === true ? [] : adaptersWithBlock(sharing, places);
  const chosen = [...asked, ...serving];
  for (const id of options.tool) {
    const owner = chosen.find((adapter) => adapter.reads.includes(id));
    if (owner !== undefined && (isServed(id) || !chosen.some((adapter) => adapter.id === id)))
      output.note(`${id} gets no file of its own: it reads that of ${owner.id}`);
  }
  return { adapters: chosen, standing, ids: [...options.tool, ...chosen.map(({ id }) => id)] };
}

function isKnownTool(id: string, adapters: readonly Adapter[]): boolean {
  return adapters.some((adapter) => adapter.id === id || adapter.reads.includes(id));
}

/** Whoever takes our blocks away must not need the company's server for it. */
async function loadFor(
  { options, output }: Call<InjectFlags>,
  content: LoadPacksOptions,
): Promise<LoadedPacks> {
  try {
    return await loadPacks(content);
  } catch (error) {
    if (options.uninstall !== true || content.config.company === undefined) throw error;
    output.note(`going on without the company's layer: ${(error as Error).message}`);
    return loadPacks({ ...content, config: { ...content.config, company: undefined } });
  }
}

/** Every problem is told; with an error among them nothing may be written anywhere, only taken away. */
function tellProblems(
  problems: readonly ContentProblem[],
  { cwd, options, output }: Call<InjectFlags>,
): void {
  const line = (problem: ContentProblem) =>
    `${relative(cwd, problem.file)}:${problem.line}: ${problem.message}`;
  const isFatal = ({ severity }: ContentProblem) => severity === "error" && options.uninstall !== true;
  for (const problem of problems) if (!isFatal(problem)) output.note(line(problem));
  const [first, ...rest] = problems.filter(isFatal);
  if (first === undefined) return;
  throw new ContextError("invalid_content", [first.message, ...rest.map(line)].join("\n"), {
    file: relative(cwd, first.file),
    line: first.line,
  });
}
