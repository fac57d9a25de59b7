/** From a command line to what the engine takes: configuration, layers, profile, tools, notes and facts. */
import { relative, resolve } from "node:path";
import {
  type Adapter,
  chooseAdapters,
  type EngineOptions,
  type LoadedPacks,
  type LoadPacksOptions,
  loadPacks,
  type Scope,
} from "../../adapters/index.ts";
import { ContextError } from "../../errors.ts";
import type { Verbosity } from "../../text/index.ts";
import {
  type ContentProblem,
  detectFacts,
  homeDirectory,
  loadConfig,
  projectRoot,
  readNotes,
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
  readonly engine: Omit<EngineOptions, "dryRun">;
  /** Everything that could be chosen. */
  readonly adapters: readonly Adapter[];
}

export async function prepareInject(call: Call<InjectFlags>): Promise<Prepared> {
  const { cwd, env, options, output } = call;
  const home = homeDirectory(env);
  const scope: Scope = options.global === true || options.scope === "global" ? "global" : "project";
  // A person's own files are the same wherever they stand: of a project's configuration they know nothing.
  const place = scope === "global" ? home : cwd;
  const root = scope === "global" ? home : projectRoot(cwd, home);
  const { values: config, leftOut } = await loadConfig({ cwd: place, env });
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
  const chosen = await chooseAdapters(loaded.adapters, {
    tools: options.tool ?? config.tools,
    all: options.all === true,
    places,
    env,
  });
  for (const id of options.tool ?? []) {
    const owner = chosen.find((adapter) => adapter.reads.includes(id));
    if (owner !== undefined && !chosen.some((adapter) => adapter.id === id)) {
      output.note(`${id} has no file of its own here: it reads that of ${owner.id}`);
    }
  }
  const counter = await chooseCounter({ ...call, cwd: place }, "bytes/4");
  return {
    adapters: loaded.adapters,
    engine: {
      adapters: chosen,
      packs: loaded.packs,
      content: {
        title: config.title,
        profile: loaded.profile,
        notes: scope === "project" ? await readNotes(root) : [],
        facts: scope === "project" ? await detectFacts(root) : [],
      },
      places,
      env,
      counter,
      counterChosen:
        options.counter !== undefined || options.model !== undefined || config.counter !== undefined,
      verbosity: options.verbosity as Verbosity | undefined,
      verbosityOf: config.verbosity,
      onOverflow: options["on-overflow"] as EngineOptions["onOverflow"],
      defaultOnOverflow: config.on_overflow,
      force: options.force === true,
    },
  };
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
