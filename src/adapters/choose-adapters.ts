/** Which AI tools a run is for: those that were asked for, else those that are in use here. */
import { statSync } from "node:fs";
import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";
import type { Environment } from "../workspace/index.ts";
import type { Adapter, Scope } from "./adapter.ts";
import { findCommand } from "./clips/clipboard.ts";
import { type Places, resolveTargetPath } from "./targets/targets.ts";

export interface Choice {
  /** Ids from the command line or the configuration. */
  readonly tools: readonly string[] | undefined;
  readonly all: boolean;
  readonly places: Places;
  readonly env: Environment;
}

/** Where nothing is found: the two files that most tools read. */
const fallback: readonly string[] = ["claude-code", "agents-md"];

export async function chooseAdapters(
  adapters: readonly Adapter[],
  choice: Choice,
): Promise<readonly Adapter[]> {
  if (choice.all) return adapters;
  if (choice.tools !== undefined) {
    return [...new Set(choice.tools.map((id) => adapterFor(id, adapters, choice.places.scope)))];
  }
  const found: Adapter[] = [];
  for (const adapter of adapters) if (await isInUse(adapter, choice)) found.push(adapter);
  return found.length > 0 ? found : adapters.filter((adapter) => fallback.includes(adapter.id));
}

/** Throws for an id that no tool has. */
export function refuseUnknownTools(ids: readonly string[], adapters: readonly Adapter[], scope: Scope): void {
  for (const id of ids) adapterFor(id, adapters, scope);
}

/** The tool's own adapter; for a tool without a file of its own in this scope, the one whose file it reads. */
function adapterFor(id: string, adapters: readonly Adapter[], scope: Scope): Adapter {
  const named = adapters.find((adapter) => adapter.id === id);
  const isHere = (adapter: Adapter) => adapter.targets.some((target) => target.scope === scope);
  // Under HOME a tool with an adapter has a file of its own or none: `reads` speaks of the project.
  if (named !== undefined && (named.type !== "file-inject" || isHere(named) || scope === "global"))
    return named;
  const shared = adapters.find((adapter) => adapter.reads.includes(id) && isHere(adapter));
  if (shared !== undefined) return shared;
  if (named !== undefined) return named;
  const ids = [...new Set(adapters.flatMap((adapter) => [adapter.id, ...adapter.reads]))].sort();
  throw new ContextError("usage", `unknown tool "${id}"`, {
    hint: didYouMean(id, ids) ?? `Tools are ${ids.join(", ")}.`,
  });
}

/** In a project: its file or folder is there. For a user: its command is on PATH, or its folder in the home directory. */
async function isInUse(adapter: Adapter, { places, env }: Choice): Promise<boolean> {
  const targets = adapter.targets.filter((target) => target.scope === places.scope);
  if (adapter.type !== "file-inject" || targets.length === 0) return false;
  for (const { path } of targets) if (isThere(resolveTargetPath(path, places))) return true;
  for (const { command, path } of adapter.detect) {
    const inHome = path?.startsWith("~") === true;
    if (
      path !== undefined &&
      inHome === (places.scope === "global") &&
      isThere(resolveTargetPath(path, places))
    ) {
      return true;
    }
    if (
      places.scope === "global" &&
      command !== undefined &&
      (await findCommand(command.split(" ")[0]!, env))
    )
      return true;
  }
  return false;
}

/** As `exists`, but without a turn of the event loop for each of a hundred paths. */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOTDIR";
  }
}
