/** Chooses the AI tools of a run: the ones that the user named, else the ones that are in use here. */
import { statSync } from "node:fs";
import { dirname, normalize } from "node:path";
import type { ContextError } from "../../core/errors.ts";
import { closest, type UnknownName, unknownName } from "../../core/text/index.ts";
import { type Environment, findProgram } from "../../host/index.ts";
import type { Adapter, Scope } from "./adapter.ts";
import { type Places, resolveTargetPath } from "./targets.ts";

export interface Choice {
  /** Ids from the command line or the configuration. */
  readonly tools: readonly string[] | undefined;
  readonly all: boolean;
  /** Returns no adapter if nothing is named or in use. */
  readonly onlyInUse?: boolean | undefined;
  readonly places: Places;
  readonly env: Environment;
}

export async function chooseAdapters(adapters: readonly Adapter[], choice: Choice): Promise<readonly Adapter[]> {
  if (choice.all) return adapters;
  if (choice.tools !== undefined) {
    return [...new Set(choice.tools.map((id) => findAdapter(id, adapters, choice.places.scope)))];
  }
  const found: Adapter[] = [];
  for (const adapter of adapters) if (await isInUse(adapter, choice)) found.push(adapter);
  return found.length > 0 || choice.onlyInUse === true
    ? found
    : // The two files that most tools read.
      adapters.filter(({ id }) => id === "claude-code" || id === "agents-md");
}

/** Adapters of tools that read another adapter's file in a project, and keep commands or agents of their own there. */
export interface Served {
  readonly run: readonly Adapter[];
  /** Those that the configuration chooses. */
  readonly standing: readonly Adapter[];
}

/** Finds those that are named, or else in use. */
export function findServed(
  adapters: readonly Adapter[],
  {
    asked,
    configured,
    all,
    places,
  }: Pick<Choice, "all" | "places"> & {
    readonly asked: readonly string[] | undefined;
    readonly configured: readonly string[] | undefined;
  },
): Served {
  if (places.scope === "global") return { run: [], standing: [] };
  const hasFile = ({ targets }: Adapter) => targets.some(({ scope }) => scope === "project");
  const served = adapters.filter((each) => (each.commands ?? each.agents) !== undefined && !hasFile(each));
  const isUsed = ({ detect }: Adapter) =>
    detect.some(({ path = "~" }) => !path.startsWith("~") && isThere(resolveTargetPath(path, places)));
  const find = (ids: Choice["tools"]) => served.filter((each) => ids?.includes(each.id) ?? isUsed(each));
  return { run: all ? [] : find(asked), standing: find(configured) };
}

/** Throws on an id that no tool has. */
export function refuseUnknownTools(
  ids: readonly string[],
  adapters: readonly Adapter[],
  place?: UnknownName["place"],
): void {
  for (const id of ids) if (!toolIds(adapters).includes(id)) throw unknownTool(id, adapters, place);
}

/** Returns the ids that mean a tool wherever one can be named: adapters, and tools that read an adapter's file. Tools
 *  with a file come first: a person who names half of an id means those. */
function toolIds(adapters: readonly Adapter[]): readonly string[] {
  const [files, others] = [true, false].map((isFile) =>
    adapters.filter(({ type }) => (type === "file-inject") === isFile).map(({ id }) => id),
  );
  return [...new Set([...files!, ...adapters.flatMap(({ reads }) => reads), ...others!])];
}

/** Suggests the tool whose id or name has such a word: `claude` is Claude Code, and `windsurf` is Devin Desktop. */
function unknownTool(id: string, adapters: readonly Adapter[], place: UnknownName["place"]): ContextError {
  const ids = toolIds(adapters);
  const nameOf = (each: string) => adapters.find((adapter) => adapter.id === each)?.name ?? "";
  const wordsOf = (each: string) => `${each} ${nameOf(each)}`.toLowerCase().match(/[a-z]{4,}/g) ?? [];
  const words = new Map(ids.flatMap((each) => wordsOf(each).map((word) => [word, each] as const)).reverse());
  const meant = closest(id, ids) ?? words.get(closest(id, [...words.keys()]) ?? "");
  return unknownName(id, { kind: "tool", known: ids, meant, place });
}

/** Returns the tool's own adapter. If the tool has no file in this scope, returns the adapter whose file it reads. */
function findAdapter(id: string, adapters: readonly Adapter[], scope: Scope): Adapter {
  const named = adapters.find((adapter) => adapter.id === id);
  const isHere = (adapter: Adapter) => adapter.targets.some((target) => target.scope === scope);
  // `reads` applies to projects: under HOME a tool with an adapter reads only its own file.
  if (named !== undefined && (named.type !== "file-inject" || isHere(named) || scope === "global")) return named;
  const shared = adapters.find((adapter) => adapter.reads.includes(id) && isHere(adapter));
  if (shared !== undefined) return shared;
  if (named !== undefined) return named;
  throw unknownTool(id, adapters, undefined);
}

/** In a project, a tool is in use if its file or folder exists. For a user, its command is on PATH or its folder is in
 *  the home directory. */
async function isInUse(adapter: Adapter, { places, env }: Choice): Promise<boolean> {
  const targets = adapter.targets.filter((target) => target.scope === places.scope);
  if (adapter.type !== "file-inject" || targets.length === 0) return false;
  // In a project, a tool that reads a folder of files has the folder for itself. Other tools share `.github` and the
  // root.
  const signs = targets.flatMap(({ path, mode, scope }) => {
    const folder = dirname(normalize(path));
    return mode === "replace-file" && scope === "project" && folder !== "." ? [path, folder] : [path];
  });
  if (signs.some((path) => isThere(resolveTargetPath(path, places)))) return true;
  for (const { command, path } of adapter.detect) {
    const inHome = path?.startsWith("~") === true;
    if (path !== undefined && inHome === (places.scope === "global") && isThere(resolveTargetPath(path, places))) {
      return true;
    }
    if (places.scope === "global" && command !== undefined && (await findProgram(command.split(" ")[0]!, env)))
      return true;
  }
  return false;
}

/** Checks synchronously: a hundred paths would otherwise cost a turn of the event loop each. */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOTDIR";
  }
}
