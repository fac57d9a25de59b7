/** Adds our MCP server to the AI tools' configuration files and takes it out again. A file that fails is a result with a `problem`;
 *  the others go on. */
import { ContextError } from "../../errors.ts";
import { changeFile, type Environment, type FileChange } from "../../workspace/index.ts";
import type { Adapter } from "../adapter.ts";
import { findCommand } from "../clips/clipboard.ts";
import type { Places } from "../targets/targets.ts";
import { parseConfigKey } from "./config-key.ts";
import { removeEmptyFolders } from "./empty-folders.ts";
import { jsonFormat } from "./json/edit-json.ts";
import { loadTomlFormat } from "./toml/edit-toml.ts";
import {
  chooseWired,
  namedTools,
  placesToSearch,
  placesToWrite,
  type WirePlace,
  wiredIds,
} from "./wire-places.ts";
import {
  type ConfigFormat,
  serverCommand,
  serverEntry,
  serverName,
  unknownEntry,
  type WiredServer,
} from "./wired-server.ts";
import { entryId, readWrittenEntries } from "./written-entries.ts";

export interface ServersOptions {
  readonly adapters: readonly Adapter[];
  readonly places: Places;
  readonly env: Environment;
  readonly dryRun: boolean;
  /** Ids of the tools that were asked for. Absent: those in use here; for uninstalling, all. */
  readonly tools?: readonly string[] | undefined;
  /** Ids of the tools that the configuration names. */
  readonly configured?: readonly string[] | undefined;
}

export interface ServerResult {
  readonly adapters: readonly Adapter[];
  readonly path: string;
  /** Absent when the file failed. */
  readonly change?: FileChange;
  readonly problem?: ContextError;
}

/** One result a file. None: no tool with an MCP configuration is in use here. */
export async function installServers(options: ServersOptions): Promise<ServerResult[]> {
  const { adapters, places, env, tools, configured } = options;
  const chosen = await chooseWired(adapters, { tools, configured, places, env });
  const { results, changedIds } = await eachPlace(await placesToWrite(chosen, places), {
    ...options,
    change: (current, { format, server }) => format.add(current, server),
  });
  await (await readWrittenEntries(env)).add(changedIds);
  return results;
}

/** One result for every file that holds our server. What is wrong with a file that has never heard of us is no reason to fail. An entry
 *  that install did not write stays, however much it is like ours. */
export async function uninstallServers(options: ServersOptions): Promise<ServerResult[]> {
  const { adapters, places, env, tools } = options;
  const written = await readWrittenEntries(env);
  const chosen = tools === undefined ? adapters : namedTools(tools, adapters, places);
  const naming = new Set<string>();
  const change = (current: string | undefined, { id, path, format, server }: Edit) => {
    if (!current?.includes(server.name)) return current;
    naming.add(path);
    const removed = format.remove(current, server);
    if (removed !== current && !written.has(id)) throw unknownEntry(server);
    return removed;
  };
  const { results, changedIds } = await eachPlace(placesToSearch(chosen, places), { ...options, change });
  await written.remove(changedIds);
  for (const { path, change: done } of results) {
    if (done?.written && done.after === undefined) await removeEmptyFolders(path, places.root);
  }
  return results.filter(({ path, change: done }) => (done ? done.before !== done.after : naming.has(path)));
}

/** Ids that `tools` may have. */
export function serverTools({ adapters, places }: Pick<ServersOptions, "adapters" | "places">): string[] {
  return wiredIds(adapters, places);
}

/** Whether a tool that is told to start our command would find it. */
export async function findsCommand(env: Environment): Promise<boolean> {
  return (await findCommand(serverCommand, env)) !== undefined;
}

interface Edit {
  /** Of the entry, among all that install writes. */
  readonly id: string;
  readonly path: string;
  readonly format: ConfigFormat;
  readonly server: WiredServer;
}

interface EachOptions extends ServersOptions {
  readonly change: (current: string | undefined, edit: Edit) => string | undefined;
}

async function eachPlace(
  wirePlaces: readonly WirePlace[],
  { places, env, dryRun, change }: EachOptions,
): Promise<{ results: ServerResult[]; changedIds: string[] }> {
  const results: ServerResult[] = [];
  const changedIds: string[] = [];
  for (const place of wirePlaces) {
    const { adapters, path } = place;
    try {
      const edit = { ...(await editOf(place)), id: await entryId(path, place.key, places.root) };
      const options = { root: places.root, env, dryRun, change: (current?: string) => change(current, edit) };
      const done = await changeFile(path, options);
      results.push({ adapters, path, change: done });
      if (done.written && done.before !== done.after) changedIds.push(edit.id);
    } catch (error) {
      if (!(error instanceof ContextError)) throw error;
      results.push({ adapters, path, problem: error });
    }
  }
  return { results, changedIds };
}

/** What an adapter says of its file may be wrong: then that is the file's problem. */
async function editOf({ adapters, path, format, key }: WirePlace): Promise<Omit<Edit, "id">> {
  const keys = parseConfigKey(key);
  const tool = adapters[0]!.id;
  if (keys === undefined) {
    const message = `the adapter ${tool} names no key that a file can have: ${key}`;
    throw new ContextError("invalid_content", message, { file: path });
  }
  const server = { keys, name: serverName, entry: serverEntry(tool, key) };
  if (format === "json" || format === "jsonc") return { path, format: jsonFormat, server };
  if (format === "toml") return { path, format: await loadTomlFormat(), server };
  throw new ContextError("refused_target", `is ${format}, which plimsoll does not edit`, {
    file: path,
    hint: `Add a server by hand that runs: ${serverCommand} mcp`,
  });
}
