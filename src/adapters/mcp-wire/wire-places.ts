/** Which files hold the MCP servers of which AI tools. */
import { dirname } from "node:path";
import { ContextError } from "../../errors.ts";
import { didYouMean } from "../../text/index.ts";
import { type Environment, exists } from "../../workspace/index.ts";
import type { Adapter } from "../adapter.ts";
import { findCommand } from "../clips/clipboard.ts";
import { type Places, resolveTargetPath } from "../targets/targets.ts";

export interface WirePlace {
  /** Absolute. */
  readonly path: string;
  readonly format: string;
  /** Where in the file the servers stand, with dots. */
  readonly key: string;
  /** Every tool that reads its servers there. */
  readonly adapters: readonly Adapter[];
}

/** Where a new server goes: into each file of a tool that is there, or into the main one. */
export async function placesToWrite(adapters: readonly Adapter[], places: Places): Promise<WirePlace[]> {
  const chosen: WirePlace[] = [];
  for (const adapter of adapters) {
    const own = placesOf(adapter, places);
    const present: WirePlace[] = [];
    for (const place of own) if (await exists(place.path)) present.push(place);
    chosen.push(...(present.length > 0 ? present : own.slice(0, 1)));
  }
  return eachOnce(chosen);
}

/** Where a server can be. */
export function placesToSearch(adapters: readonly Adapter[], places: Places): WirePlace[] {
  return eachOnce(adapters.flatMap((adapter) => placesOf(adapter, places)));
}

export interface WireChoice {
  /** Ids from the command line: each must have a place. */
  readonly tools: readonly string[] | undefined;
  /** Ids from the configuration, which speaks of other files, too. */
  readonly configured: readonly string[] | undefined;
  readonly places: Places;
  readonly env: Environment;
}

/** The tools that a new server is for: those that were asked for, else those that are in use here. */
export async function chooseWired(adapters: readonly Adapter[], choice: WireChoice): Promise<Adapter[]> {
  if (choice.tools !== undefined) return namedTools(choice.tools, adapters, choice.places);
  const wired = withPlace(adapters, choice.places);
  if (choice.configured !== undefined) return wired.filter(({ id }) => choice.configured!.includes(id));
  const used: Adapter[] = [];
  for (const adapter of wired) if (await isInUse(adapter, choice)) used.push(adapter);
  return used;
}

/** By id; one without a place here is wrong usage, so that it does not look done. */
export function namedTools(ids: readonly string[], adapters: readonly Adapter[], places: Places): Adapter[] {
  const wired = withPlace(adapters, places);
  return [...new Set(ids)].map((id) => {
    const adapter = wired.find((each) => each.id === id);
    if (adapter !== undefined) return adapter;
    const known = wiredIds(adapters, places);
    const others = `The AI tools that plimsoll can be added to here: ${known.join(", ")}.`;
    if (adapters.some((each) => each.id === id || each.reads.includes(id))) {
      const where = places.scope === "global" ? "under HOME" : "in a project";
      const message = `no file ${where} is known that ${id} reads MCP servers from`;
      throw new ContextError("usage", message, { hint: others });
    }
    throw new ContextError("usage", `unknown tool "${id}"`, { hint: didYouMean(id, known) ?? others });
  });
}

/** The tools that can be named in a scope. */
export function wiredIds(adapters: readonly Adapter[], places: Places): string[] {
  return withPlace(adapters, places).map(({ id }) => id);
}

function withPlace(adapters: readonly Adapter[], places: Places): Adapter[] {
  return adapters.filter((adapter) => placesOf(adapter, places).length > 0);
}

/** The places of a tool in a scope: a path under HOME is a person's, any other a project's. */
function placesOf(adapter: Adapter, places: Places): WirePlace[] {
  return adapter.mcpConfigs.flatMap(({ path, format, key = "mcpServers" }) => {
    if (path === undefined || isGlobal(path) !== (places.scope === "global")) return [];
    const guessed = path.endsWith(".toml") ? "toml" : "json";
    return [{ path: resolveTargetPath(path, places), format: format ?? guessed, key, adapters: [adapter] }];
  });
}

function isGlobal(path: string): boolean {
  return path === "~" || path.startsWith("~/");
}

function eachOnce(places: readonly WirePlace[]): WirePlace[] {
  const byKey = new Map<string, WirePlace>();
  for (const place of places) {
    const id = JSON.stringify([place.path, place.key]);
    const known = byKey.get(id);
    byKey.set(
      id,
      known === undefined ? place : { ...known, adapters: [...known.adapters, ...place.adapters] },
    );
  }
  return [...byKey.values()];
}

/** Its MCP file or the folder of that is there, or what else tells that people use it. */
async function isInUse(adapter: Adapter, { places, env }: WireChoice): Promise<boolean> {
  const { scope, root } = places;
  const files = placesOf(adapter, places).map(({ path }) => path);
  const folders = files.map(dirname).filter((folder) => folder !== root);
  const targets = scope === "project" ? adapter.targets.filter((target) => target.scope === scope) : [];
  const rules = adapter.detect.flatMap(({ path }) =>
    path !== undefined && isGlobal(path) === (scope === "global") ? [path] : [],
  );
  const told = [...targets.map(({ path }) => path), ...rules].map((path) => resolveTargetPath(path, places));
  for (const path of [...files, ...folders, ...told]) if (await exists(path)) return true;
  return scope === "global" && (await hasCommand(adapter, env));
}

async function hasCommand({ detect }: Adapter, env: Environment): Promise<boolean> {
  for (const { command } of detect) {
    if (command !== undefined && (await findCommand(command.split(" ")[0]!, env)) !== undefined) return true;
  }
  return false;
}
