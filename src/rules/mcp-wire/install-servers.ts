import { realpath } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { applyEdits, didYouMean, isPlainObject, parseTomlKey } from "../../core/text/index.ts";
import {
  changeFile,
  type Environment,
  exists,
  type FileChange,
  findProgram,
  readForeignBytes,
  removeEmptyFolders,
  shownPath,
} from "../../host/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { type Places, resolveTargetPath } from "../adapters/targets.ts";
import { jsonFormat } from "./edit-json.ts";
import { loadTomlFormat } from "./edit-toml.ts";

export { readServers } from "./read-servers.ts";

import { type ConfigFormat, ourServer, readWrittenEntries, serverCommand, type WiredServer } from "./wired-server.ts";

export interface ServersOptions {
  readonly adapters: readonly Adapter[];
  readonly places: Places;
  readonly env: Environment;
  readonly dryRun: boolean;
  /** Ids of the tools that were asked for. Absent: those in use here; for uninstalling, all. */
  readonly tools?: readonly string[] | undefined;
  /** Ids of the tools that the configuration names. */
  readonly configured?: readonly string[] | undefined;
  /** Puts existing servers behind `mcp wrap` instead of adding ours. */
  readonly wrap?: WrapChoice | undefined;
}

interface WrapChoice {
  readonly names: readonly string[];
  readonly isLazy: boolean;
  /** Also if permission rules name tools that get other names. */
  readonly isForced: boolean;
}

export interface ServerResult {
  readonly adapters: readonly Adapter[];
  readonly path: string;
  /** What a person does before the tools use a server that was added. */
  readonly next: readonly string[];
  /** Absent when the file failed. */
  readonly change?: FileChange;
  readonly problem?: ContextError;
}

/** One result a file. None: no tool with an MCP configuration is in use here. */
export async function installServers(options: ServersOptions): Promise<ServerResult[]> {
  const { adapters, places, env, tools, configured } = options;
  const chosen = await chooseWired(adapters, { tools, configured, places, env });
  if (options.wrap !== undefined) return wrapServers(chosen, { ...options, wrap: options.wrap });
  const { results, changedIds } = await changeEach(await placesToWrite(chosen, places), {
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
  const chosen = tools === undefined ? adapters : findTools(tools, adapters, places);
  const naming = new Set<string>();
  const wrapped = written.all().flatMap((record): WrappedEntry[] => {
    const value: unknown = JSON.parse(record);
    return isPlainObject(value) && typeof value.after === "string" ? [value as unknown as WrappedEntry] : [];
  });
  const change = (current: string | undefined, edit: Edit) => {
    const { id, path, format, server } = edit;
    if (!current?.includes(server.name)) return current;
    naming.add(path);
    const own = wrapped.filter((each) => each.id === id);
    const unwrapped = own.reduce((text, each) => unwrap(text, each, edit), current);
    // Wrapped entries contain our name, but an entry under it may be a person's.
    const removed = own.length > 0 && !written.has(id) ? unwrapped : format.remove(unwrapped, server);
    if (removed !== unwrapped && !written.has(id)) {
      const entry = [...server.keys, server.name].join(".");
      const message = `${entry} was not written by "plimsoll mcp install" here, so it was not changed`;
      throw new ContextError("refused_target", message, { hint: "Remove it by hand if nobody needs it." });
    }
    return removed;
  };
  const { results, changedIds } = await changeEach(placesToSearch(chosen, places), { ...options, change });
  const restored = wrapped.filter(({ id }) => changedIds.includes(id)).map((each) => JSON.stringify(each));
  await written.remove([...changedIds, ...restored]);
  for (const { path, change: done } of results) {
    if (done?.written && done.after === undefined) await removeEmptyFolders(path, places.root);
  }
  return results.filter(({ path, change: done }) => (done ? done.before !== done.after : naming.has(path)));
}

/** What `mcp install --wrap` changed: the entry's text before and after. */
interface WrappedEntry {
  /** Of the place. */
  readonly id: string;
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

/** One result for every file that has one of the servers. Throws if no file has any. */
async function wrapServers(
  chosen: readonly Adapter[],
  options: ServersOptions & { readonly wrap: WrapChoice },
): Promise<ServerResult[]> {
  const { places, env, wrap } = options;
  const wrapped = new Map<string, WrappedEntry>();
  const rules = wrap.isLazy && !wrap.isForced ? await permissionRules(places) : [];
  const change = (current: string | undefined, edit: Edit): string | undefined =>
    wrap.names.reduce((text, name) => {
      const found = text === undefined ? undefined : wrapEntry(text, name, { edit, wrap, rules });
      if (found === undefined) return text;
      wrapped.set(JSON.stringify([edit.id, name]), found.entry);
      return found.text;
    }, current);
  const search = placesToSearch(chosen, places);
  const present: WirePlace[] = [];
  for (const place of search) if (await exists(place.path)) present.push(place);
  const { results, changedIds } = await changeEach(present, { ...options, change });
  const records = [...wrapped.values()].filter(({ id }) => changedIds.includes(id));
  await (await readWrittenEntries(env)).add(records.map((each) => JSON.stringify(each)));
  const changed = results.filter(({ change: done, problem }) => problem !== undefined || done?.before !== done?.after);
  if (changed.length > 0) return changed;
  const files = present.map(({ path }) => shownPath(path, places.root, env)).join(", ");
  const where = files === "" ? "no file with MCP servers is here" : `read ${files}`;
  throw new ContextError("usage", `no server ${wrap.names.join(", ")} that can be wrapped was found; ${where}`, {
    hint: "Only entries with a command can be wrapped, once. Put servers with a url into a file for mcp wrap --config.",
  });
}

/** Returns undefined if the file has no such entry, or if it is wrapped already. */
function wrapEntry(
  text: string,
  name: string,
  { edit, wrap, rules }: { edit: Edit; wrap: WrapChoice; rules: readonly string[] },
): { text: string; entry: WrappedEntry } | undefined {
  const { format, server, id } = edit;
  const entry = format.locate(text, { keys: server.keys, name });
  const command = entry?.pair("command");
  if (entry === undefined || command === undefined) return undefined;
  const words = readWords(entry.data);
  if (words === undefined || words[0] === serverCommand) return undefined;
  refuseNamedTools(name, { rules: [...rules, text], entry: entry.data, wrap });
  const args = ["mcp", "wrap", ...(wrap.isLazy ? ["--lazy"] : []), "--as", name, "--", ...words];
  const isList = Array.isArray(entry.data.command);
  const oldArgs = isList ? undefined : entry.pair("args");
  const { renderPair } = format;
  const program = renderPair("command", isList ? [serverCommand, ...args] : serverCommand);
  const addsArgs = !isList && oldArgs === undefined;
  const edits = [{ ...command, text: addsArgs ? `${program}${format.separator}${renderPair("args", args)}` : program }];
  if (oldArgs !== undefined) edits.push({ ...oldArgs, text: renderPair("args", args) });
  const after = applyEdits(text, edits);
  const end = entry.end + after.length - text.length;
  return {
    text: after,
    entry: { id, name, before: text.slice(entry.start, entry.end), after: after.slice(entry.start, end) },
  };
}

function readWords({ command, args = [] }: Readonly<Record<string, unknown>>): string[] | undefined {
  const words: unknown[] = Array.isArray(command) ? command : [command, ...(Array.isArray(args) ? args : [undefined])];
  return words.every((word) => typeof word === "string") ? words : undefined;
}

/** Settings of an entry that name its tools. */
const toolSettings = "includeTools excludeTools enabled_tools disabled_tools alwaysAllow autoApprove tools".split(" ");

/** With --lazy the client no longer sees the tools, so rules about them would have no effect. */
function refuseNamedTools(
  name: string,
  { rules, entry, wrap }: { rules: readonly string[]; entry: Readonly<Record<string, unknown>>; wrap: WrapChoice },
): void {
  if (!wrap.isLazy || wrap.isForced) return;
  const escaped = name.replaceAll(/[^\w-]/g, "\\$&");
  // Claude Code: "mcp__NAME__tool". opencode: "NAME_tool". A rule for the whole server goes on working.
  const rule = new RegExp(`"(mcp__${escaped}__(?!\\*)[^"]+|${escaped}_[\\w-]+)"`);
  const setting = toolSettings.find((key) => Array.isArray(entry[key]) && !(entry[key] as unknown[]).includes("*"));
  const found = rules.map((text) => rule.exec(text)?.[1]).find((each) => each !== undefined) ?? setting;
  if (found === undefined) return;
  throw new ContextError("refused_target", `a permission rule names a tool of ${name}, which --lazy hides: ${found}`, {
    hint: "Change the rule, leave out --lazy, or pass --force.",
  });
}

/** Returns the texts of the files in which Claude Code has its rules. */
function permissionRules({ root, home }: Places): string[] {
  const own = [".claude/settings.json", ".claude/settings.local.json"];
  return [
    ...own.map((name) => readForeignBytes(join(root, name), { within: root }) ?? ""),
    readForeignBytes(join(home, ".claude/settings.json")) ?? "",
  ];
}

/** Returns the text with the entry as it was. Throws if it has changed since. */
function unwrap(text: string, { name, before, after }: WrappedEntry, { format, server: { keys } }: Edit): string {
  const entry = format.locate(text, { keys, name });
  if (entry === undefined) return text;
  if (text.slice(entry.start, entry.end) !== after) {
    throw new ContextError("refused_target", `${[...keys, name].join(".")} has changed since it was wrapped`, {
      hint: `Its entry was: ${before}`,
    });
  }
  return `${text.slice(0, entry.start)}${before}${text.slice(entry.end)}`;
}

/** Returns the files in which a tool has its servers. Throws if there is none. */
export async function serverFiles(
  tool: string,
  { adapters, places }: Pick<ServersOptions, "adapters" | "places">,
): Promise<string[]> {
  const files: string[] = [];
  for (const { path } of placesToSearch(findTools([tool], adapters, places), places)) {
    if (await exists(path)) files.push(path);
  }
  if (files.length > 0) return files;
  throw new ContextError("usage", `${tool} has no file with MCP servers under HOME`, {
    hint: "Name a file with --config FILE.",
  });
}

/** Ids that `tools` may have. */
export function serverTools({ adapters, places }: Pick<ServersOptions, "adapters" | "places">): string[] {
  return wiredIds(adapters, places);
}

/** Whether a tool that is told to start our command would find it. */
export async function findsCommand(env: Environment): Promise<boolean> {
  return (await findProgram(serverCommand, env)) !== undefined;
}

interface Edit {
  /** Of the entry, among all that install writes. */
  readonly id: string;
  readonly path: string;
  readonly format: ConfigFormat;
  readonly server: WiredServer;
}

async function changeEach(
  wirePlaces: readonly WirePlace[],
  {
    places,
    env,
    dryRun,
    change,
  }: ServersOptions & { readonly change: (current: string | undefined, edit: Edit) => string | undefined },
): Promise<{ results: ServerResult[]; changedIds: string[] }> {
  const results: ServerResult[] = [];
  const changedIds: string[] = [];
  // All paths that lead to the root give the same ids.
  const realRoot = await realpath(places.root).catch(() => places.root);
  for (const place of wirePlaces) {
    const { adapters, path, next } = place;
    try {
      const id = JSON.stringify([join(realRoot, relative(places.root, path)), place.key]);
      const edit = { ...(await createEdit(place)), id };
      const options = { root: places.root, env, dryRun, change: (current?: string) => change(current, edit) };
      const done = await changeFile(path, options);
      results.push({ adapters, path, next, change: done });
      if (done.written && done.before !== done.after) changedIds.push(edit.id);
    } catch (error) {
      if (!(error instanceof ContextError)) throw error;
      results.push({ adapters, path, next, problem: error });
    }
  }
  return { results, changedIds };
}

/** What an adapter says of its file may be wrong: then that is the file's problem. */
async function createEdit({ adapters, path, format, key }: WirePlace): Promise<Omit<Edit, "id">> {
  const keys = parseTomlKey(key);
  const tool = adapters[0]!.id;
  if (keys === undefined) {
    const message = `the adapter ${tool} names no key that a file can have: ${key}`;
    throw new ContextError("invalid_content", message, { file: path });
  }
  const server = ourServer(keys, { tool, key });
  if (format === "json" || format === "jsonc") return { path, format: jsonFormat, server };
  if (format === "toml") return { path, format: await loadTomlFormat(), server };
  throw new ContextError("refused_target", `is ${format}, which plimsoll does not edit`, {
    file: path,
    hint: `Add a server by hand that runs: ${serverCommand} mcp`,
  });
}

/** Which files hold the MCP servers of which AI tools. */
interface WirePlace {
  /** Absolute. */
  readonly path: string;
  readonly format: string;
  /** Where in the file the servers stand, with dots. */
  readonly key: string;
  /** Every tool that reads its servers there. */
  readonly adapters: readonly Adapter[];
  /** What a person does before each tool uses a server that was added here. */
  readonly next: readonly string[];
}

/** Where a new server goes: into each file of a tool that is there, or into the main one. */
async function placesToWrite(adapters: readonly Adapter[], places: Places): Promise<WirePlace[]> {
  const chosen: WirePlace[] = [];
  for (const adapter of adapters) {
    const own = findPlaces(adapter, places);
    const present: WirePlace[] = [];
    for (const place of own) if (await exists(place.path)) present.push(place);
    chosen.push(...(present.length > 0 ? present : own.slice(0, 1)));
  }
  return eachOnce(chosen);
}

/** Where a server can be. */
function placesToSearch(adapters: readonly Adapter[], places: Places): WirePlace[] {
  return eachOnce(adapters.flatMap((adapter) => findPlaces(adapter, places)));
}

interface WireChoice {
  /** Ids from the command line: each must have a place. */
  readonly tools: readonly string[] | undefined;
  /** Ids from the configuration, which speaks of other files, too. */
  readonly configured: readonly string[] | undefined;
  readonly places: Places;
  readonly env: Environment;
}

/** The tools that a new server is for: those that were asked for, else those that are in use here. */
async function chooseWired(adapters: readonly Adapter[], choice: WireChoice): Promise<Adapter[]> {
  if (choice.tools !== undefined) return findTools(choice.tools, adapters, choice.places);
  const wired = filterWired(adapters, choice.places);
  if (choice.configured !== undefined) return wired.filter(({ id }) => choice.configured!.includes(id));
  const filter = async (isChosen: (adapter: Adapter) => Promise<boolean>): Promise<Adapter[]> => {
    const found = await Promise.all(wired.map(isChosen));
    return wired.filter((_adapter, index) => found[index]);
  };
  const used = await filter((adapter) => isInUse(adapter, choice));
  // A project without files of any tool gets the tools that the person uses elsewhere.
  return used.length > 0 ? used : filter((adapter) => isInstalled(adapter, choice));
}

/** By id; one without a place here is wrong usage, so that it does not look done. */
function findTools(ids: readonly string[], adapters: readonly Adapter[], places: Places): Adapter[] {
  const wired = filterWired(adapters, places);
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
function wiredIds(adapters: readonly Adapter[], places: Places): string[] {
  return filterWired(adapters, places).map(({ id }) => id);
}

function filterWired(adapters: readonly Adapter[], places: Places): Adapter[] {
  return adapters.filter((adapter) => findPlaces(adapter, places).length > 0);
}

/** The places of a tool in a scope: a path under HOME is a person's, any other a project's. */
function findPlaces(adapter: Adapter, places: Places): WirePlace[] {
  return adapter.mcpConfigs.flatMap(({ path, format, key = "mcpServers", next }) => {
    if (path === undefined || isGlobal(path) !== (places.scope === "global")) return [];
    const guessed = path.endsWith(".toml") ? "toml" : "json";
    const place = { path: resolveTargetPath(path, places), format: format ?? guessed, key, adapters: [adapter] };
    return [{ ...place, next: next === undefined ? [] : [next] }];
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
    const joined = known && { adapters: [...known.adapters, ...place.adapters], next: [...known.next, ...place.next] };
    byKey.set(id, { ...place, ...joined });
  }
  return [...byKey.values()];
}

/** Its MCP file or the folder of that is there, or what else tells that people use it. */
async function isInUse(adapter: Adapter, { places, env }: WireChoice): Promise<boolean> {
  const { scope, root } = places;
  const files = findPlaces(adapter, places).map(({ path }) => path);
  const folders = files.map(dirname).filter((folder) => folder !== root);
  const targets = scope === "project" ? adapter.targets.filter((target) => target.scope === scope) : [];
  const rules = adapter.detect.flatMap(({ path }) =>
    path !== undefined && isGlobal(path) === (scope === "global") ? [path] : [],
  );
  const told = [...targets.map(({ path }) => path), ...rules].map((path) => resolveTargetPath(path, places));
  for (const path of [...files, ...folders, ...told]) if (await exists(path)) return true;
  return scope === "global" && (await isInstalled(adapter, { places, env }));
}

/** Whether a folder of the tool is under HOME, or its command on PATH. */
async function isInstalled({ detect }: Adapter, { places, env }: Pick<WireChoice, "places" | "env">): Promise<boolean> {
  for (const { command, path } of detect) {
    if (command !== undefined && (await findProgram(command.split(" ")[0]!, env)) !== undefined) return true;
    if (path !== undefined && isGlobal(path) && (await exists(resolveTargetPath(path, places)))) return true;
  }
  return false;
}
