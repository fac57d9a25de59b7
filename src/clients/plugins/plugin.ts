/** A plugin in an AI client: the files that install writes and uninstall removes. Other people's bytes stay. */
import { createHash } from "node:crypto";
import { type Dirent, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { ContextError, usageError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { type Fields, isPlainObject, isText, mapOf, objectOf, readJson, toByteString } from "../../core/text/index.ts";
import {
  attemptChange,
  type Environment,
  type FileChange,
  readForeignBytes,
  removeEmptyFolders,
} from "../../host/index.ts";

/** One AI client that runs a plugin of ours. */
export interface PluginClient {
  readonly id: string;
  /** The client's program on PATH. */
  readonly program: string;
  /** The client's own folder below HOME. */
  readonly home: string;
  /** Where the client looks for plugins.
   *  @default both */
  readonly scopes?: readonly PluginPlace["scope"][] | undefined;
  /** Whether the plugin can also trim the history.
   *  @default false */
  readonly canTrim?: boolean | undefined;
  /** Whether the plugin can also leave out old images.
   *  @default false */
  readonly canLeaveOutImages?: boolean | undefined;
  /** Whether the plugin can also run the spend guard.
   *  @default false */
  readonly canGuard?: boolean | undefined;
  /** Returns the files of the plugin, in the order in which install writes them. */
  files(place: PluginPlace, settings: PluginSettings): Promise<readonly PluginFile[]>;
  /** Returns the settings of the installed plugin; undefined if there is none. */
  installedSettings(place: PluginPlace): PluginSettings | undefined;
  /** What a person should do or know after install. */
  readonly notes: readonly string[];
  /** Looks in the client's own files whether it runs the plugin now. Returns since when it does not, and how to mend it. */
  findSilence?(place: PluginPlace): PluginSilence | undefined;
  /** Makes the client run the plugin again, if it has stopped doing so. Returns whether there was something to do. */
  endSilence?(place: PluginPlace): Promise<boolean>;
  /** Runs the real client against a model on loopback and reports whether a shortened result reaches its request. */
  check(place: PluginPlace): Promise<PluginCheck>;
  /** The tools of the process that `plugin serve` runs for this client. */
  serverTools?(server: PluginServer): Readonly<Record<string, PluginTool>>;
  /** Answers an event that the client hands to `plugin hook`. Returns undefined if nothing should change. */
  hook?(event: Fields, server: PluginServer): Promise<object | undefined>;
}

export interface PluginPlace {
  readonly scope: "user" | "project";
  /** HOME or the project's root. Nothing outside of it is written. */
  readonly root: string;
  readonly env: Environment;
}

/** What a person chose at install. The installed files have it, and `readPluginSettings` finds it there. */
export interface PluginSettings {
  readonly maxResultTokens?: number | undefined;
  readonly deltas: boolean;
  /** The most tokens of a request, or `window` for the model's own limit. Without it no history is trimmed. */
  readonly trim?: number | "window" | undefined;
  /** At least so many of the newest results with images keep them. Without it all do. */
  readonly images?: number | undefined;
  /** Whether the spend guard judges each tool call. */
  readonly guard?: boolean | undefined;
}

export interface PluginSilence {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
  /** The reason, and what to do. */
  readonly message: string;
}

export interface PluginFile {
  readonly path: string;
  /** Returns the file with our part, or undefined to delete it. Contents are byte strings. Throws a `ContextError` if
   *  the file is somebody else's. */
  install(current: string | undefined): string | undefined;
  /** Returns the file as it was before install. */
  uninstall(current: string | undefined): string | undefined;
}

export interface PluginCheck {
  /** The version of the client, if it was found. */
  readonly version?: string | undefined;
  readonly passed: boolean;
  /** What was tried, one line each. */
  readonly lines: readonly string[];
}

/** What the tools of a plugin's process work with. */
export interface PluginServer {
  readonly settings: PluginSettings;
  readonly env: Environment;
  /** Opens the store once. Rejects if it cannot be used. */
  store(): Promise<Store>;
  /** Takes work to do when the client has closed its end. */
  beforeEnd?(work: () => Promise<void>): void;
  /** The longest that a result may wait for us, in milliseconds.
   *  @default 50 */
  readonly waitMs?: number | undefined;
  /** A clock in milliseconds.
   *  @default Date.now */
  now?(): number;
  log(text: string): void;
}

/** A tool of a plugin's process. Only tools with a definition are listed for the model. */
export interface PluginTool {
  readonly definition?:
    | { readonly description: string; readonly inputSchema: object; readonly _meta?: object }
    | undefined;
  /** Returns the text of the answer. */
  call(input: Readonly<Record<string, unknown>>): Promise<string>;
}

export interface PluginChange {
  readonly path: string;
  readonly change?: FileChange | undefined;
  readonly problem?: ContextError | undefined;
}

/** Installs or removes a plugin and reports each file. Changes nothing if one of the files cannot be changed: half a
 *  plugin could make the client load somebody else's files next to it. */
export async function changePlugin(
  client: PluginClient,
  options: {
    readonly action: "install" | "uninstall";
    readonly place: PluginPlace;
    readonly settings: PluginSettings;
    readonly dryRun: boolean;
  },
): Promise<PluginChange[]> {
  const { action, place, settings, dryRun } = options;
  const { root, env } = place;
  const plugin = `the plugin of ${client.id}`;
  if (settings.trim !== undefined && client.canTrim !== true)
    throw usageError(`${plugin} does not trim histories`, "Leave out --trim.");
  if (settings.images !== undefined && client.canLeaveOutImages !== true)
    throw usageError(`${plugin} cannot change images that were sent before`, "Leave out --images.");
  if (settings.guard === true && client.canGuard !== true)
    throw usageError(`${plugin} has no spend guard`, "Leave out --guard.");
  if (!hasScope(client, place))
    throw usageError(
      `${client.id} loads no plugins from a ${place.scope}`,
      `Use --scope ${client.scopes?.join(" or ")}.`,
    );
  const files = await client.files(place, settings);
  const attempt = async (file: PluginFile, isTrial: boolean): Promise<PluginChange> => {
    const plan = (current: string | undefined) => {
      try {
        return { after: file[action](current), facts: undefined };
      } catch (problem) {
        if (problem instanceof ContextError) return { problem, facts: undefined };
        throw problem;
      }
    };
    const { change, problem } = await attemptChange(file.path, { root, env, dryRun: isTrial, plan });
    if (change?.written && change.after === undefined) await removeEmptyFolders(file.path, root);
    // Another file may be the reason.
    return { path: problem?.file ?? file.path, change, problem };
  };
  const trials = await Promise.all(files.map((file) => attempt(file, true)));
  const refused = trials.find(({ problem }) => problem !== undefined);
  if (refused !== undefined) return [refused];
  if (dryRun) return trials;
  const reports: PluginChange[] = [];
  for (const file of files) {
    reports.push(await attempt(file, false));
    if (reports.at(-1)?.problem !== undefined) break;
  }
  return reports;
}

function hasScope({ scopes }: PluginClient, { scope }: PluginPlace): boolean {
  return scopes === undefined || scopes.includes(scope);
}

/** Whether a plugin is in place: `other` is one of another version, or one that somebody changed. */
export async function installState(
  client: PluginClient,
  place: PluginPlace,
): Promise<"installed" | "other" | "absent"> {
  if (!hasScope(client, place)) return "absent";
  const files = await client.files(place, client.installedSettings(place) ?? { deltas: true });
  const states = files.map(({ path, install, uninstall }) => {
    const current = readForeignBytes(path, { within: place.root, refuseLink: true });
    try {
      if (install(current) === current) return "installed";
      return uninstall(current) === current ? "absent" : "other";
    } catch {
      return "other";
    }
  });
  const [first = "absent", ...rest] = new Set(states);
  return rest.length === 0 ? first : "other";
}

const manifestName = "plimsoll.json";

/** Plans a folder that is ours as a whole. A manifest in it has the hash of each file, so that files which a person
 *  changed or wrote are left alone. Nothing is installed beside files of somebody else, because the client would load
 *  them as a part of the plugin. `texts` has the files by their path in the folder. */
export function ownedFolder(
  folder: string,
  texts: Readonly<Record<string, string>>,
  settings: PluginSettings,
): PluginFile[] {
  const manifest = join(folder, manifestName);
  const earlier = readManifest(readForeignBytes(manifest, { refuseLink: true }));
  const present = listFiles(folder);
  const isListed = (name: string): boolean => Object.hasOwn(texts, name) || Object.hasOwn(earlier, name);
  // A killed install leaves it, and the next one removes it.
  const isTemporary = (name: string): boolean => /(?:^|\/)\.[^/]+\.plimsoll-\d+-\d+\.tmp$/.test(name);
  const foreign = present.find((name) => name !== manifestName && !isListed(name) && !isTemporary(name));
  const gone = present.filter((name) => Object.hasOwn(earlier, name) && !Object.hasOwn(texts, name));
  const files = [...Object.entries(texts), ...gone.map((name) => [name, undefined] as const)].map(([name, text]) =>
    wholeFile(join(folder, name), text, (current) => hashBytes(current) === earlier[name]),
  );
  const hashes = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, hashBytes(toByteString(text))]));
  const about = "Written by plimsoll plugin install. Remove it with plimsoll plugin uninstall.";
  const text = formatJson({ about, settings: readPluginSettings(settings), files: hashes });
  const isOurs = (current: string): boolean => Object.keys(readManifest(current)).length > 0;
  const last = wholeFile(manifest, text, isOurs);
  const install = (current: string | undefined): string | undefined => {
    if (foreign !== undefined) throw notOurs(join(folder, foreign), "was not written by plimsoll");
    return last.install(current);
  };
  return [...files, { ...last, install }];
}

/** Returns the paths of all files in a folder. A link counts as a file. */
function listFiles(folder: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  } catch {
    return [];
  }
  return entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll(sep, "/"));
}

export function formatJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function notOurs(file: string, what: string): ContextError {
  return new ContextError("refused_target", what, { file, hint: "Move it away and run the command again." });
}

/** Returns the settings in a folder that `ownedFolder` planned. */
export function folderSettings(folder: string): PluginSettings | undefined {
  const manifest = readForeignBytes(join(folder, manifestName), { refuseLink: true });
  return readPluginSettings(readJson(manifest, isPlainObject)?.settings);
}

/** A person may have changed them: then the files are not those that these settings give. */
export function readPluginSettings(value: unknown): PluginSettings | undefined {
  if (!isPlainObject(value)) return undefined;
  const { maxResultTokens, deltas, trim, images, guard } = value as Readonly<Record<string, unknown>>;
  return {
    deltas: deltas !== false,
    ...(typeof maxResultTokens === "number" && { maxResultTokens }),
    ...((typeof trim === "number" || trim === "window") && { trim }),
    ...(typeof images === "number" && { images }),
    ...(guard === true && { guard }),
  };
}

/** Plans a script that is ours as a whole. Its first line says so and has the hash of the rest. */
export function ownedScript(path: string, text: string): PluginFile {
  const owned = `// plimsoll:owns sha256=${hashBytes(toByteString(text))}\n${text}`;
  return wholeFile(path, owned, (current) => {
    const [line, hash] = /^\/\/ plimsoll:owns sha256=(\S+)\n/.exec(current) ?? [];
    return line !== undefined && hash === hashBytes(current.slice(line.length));
  });
}

/** Plans a file that is ours as a whole. */
function wholeFile(path: string, text: string | undefined, isOurs: (current: string) => boolean): PluginFile {
  const bytes = text === undefined ? undefined : toByteString(text);
  const refuseOthers = (current: string | undefined): void => {
    if (current === undefined || current === bytes || isOurs(current)) return;
    throw notOurs(path, "was not written by plimsoll, or was changed since");
  };
  return {
    path,
    install(current) {
      refuseOthers(current);
      return bytes;
    },
    uninstall(current) {
      refuseOthers(current);
      return undefined;
    },
  };
}

function readManifest(manifest: string | undefined): Readonly<Record<string, string>> {
  return readJson(manifest, objectOf({ files: mapOf(isText) }))?.files ?? {};
}

function hashBytes(bytes: string): string {
  return createHash("sha256").update(bytes, "latin1").digest("hex");
}
