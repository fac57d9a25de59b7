import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { ContextError, throwProblems } from "../../core/errors.ts";
import { isPlainObject } from "../../core/text/index.ts";
import { cacheDirectory, configDirectory, type Environment, homeDirectory, stateDirectory } from "../directories.ts";
import { projectRoot, searchUpward } from "../files/find-root.ts";
import { exists, followLinks, isInside } from "../files/paths.ts";
import { readForeignText } from "../files/read-foreign.ts";
import { gitProtocols, withoutPasswords } from "../processes/start-git.ts";
import {
  findUntrusted,
  type PowerfulSetting,
  type ProjectPlace,
  powerfulSetting,
  refuseOtherOwner,
} from "../trust/trusted.ts";
import { type Config, type ConfigPart, defaultConfig } from "./config.ts";
import type { ConfigFile } from "./config-file.ts";
import { readKnownShape } from "./known-shape.ts";

/** The powerful settings of a project. */
interface Judged {
  readonly powerful: readonly PowerfulSetting[];
  /** The settings among them that nobody has trusted. They are ignored. */
  readonly leftOut: readonly PowerfulSetting[];
  /** The repositories of skills that nobody has trusted. They are not fetched, and what is pinned is used. */
  readonly unfetched: readonly PowerfulSetting[];
}

export interface LoadedConfig extends Judged {
  readonly values: Config;
  /** Maps a key of `joinKey` to `project .plimsoll/config.yaml:2`, `user ~/.config/plimsoll/config.yaml:1` or
   *  `default`. */
  readonly sources: Readonly<Record<string, string>>;
  /** The place where the project sets a store, which is always ignored. */
  readonly ignoredStore?: { readonly file: string; readonly line: number } | undefined;
}

export interface Surroundings {
  readonly cwd: string;
  readonly env: Environment;
  /** Ignores the user's file: text that is written into a project must be the same for every teammate. */
  readonly projectOnly?: boolean | undefined;
}

/** Returns the effective configuration and the source of each value. Reports all mistakes of both files at once. */
export async function loadConfig(surroundings: Surroundings): Promise<LoadedConfig> {
  const layers: Layer[] = [];
  for (const place of await findConfigFiles(surroundings)) layers.push(await readLayer(place));
  throwProblems(
    "invalid_config",
    layers.flatMap((layer) =>
      [...layer.problems, ...findMisplaced(layer)].map((each) => ({ ...each, file: layer.file })),
    ),
  );
  const project = layers.find(({ label }) => label === "project");
  const judged =
    project === undefined ? { powerful: [], leftOut: [], unfetched: [] } : await judgePowerful(project, surroundings);
  const merged: Merged = { values: {}, sources: {} };
  mergeInto(merged, defaultConfig, () => "default");
  for (const layer of layers) {
    const { label, file, lineOf } = layer;
    // A project cannot choose where state is kept, nor for how long.
    const leftOut = new Set(layer === project ? ["store", "retention", ...judged.leftOut.map(({ key }) => key)] : []);
    const kept = Object.entries(layer.values).filter(([key]) => !leftOut.has(key));
    mergeInto(merged, Object.fromEntries(kept), (path) => `${label} ${file}:${lineOf(path)}`);
  }
  const values = merged.values as unknown as Config;
  // Checked on both files together: one file may change a share that the other sets.
  if (!Object.values(values.context.shares).some((share) => share > 0)) {
    const last = layers.findLast(({ values }) => Object.keys(values.context?.shares ?? {}).length > 0);
    throw new ContextError("invalid_config", '"context.shares" must not all be 0', {
      hint: 'Give at least one layer a share, or leave them out and set "context.max_tokens: 0" to compose nothing.',
      file: last?.file,
      line: last?.lineOf(["context", "shares"]),
    });
  }
  const hasStore = (project?.values.store ?? defaultConfig.store) !== defaultConfig.store;
  const ignoredStore = hasStore ? { file: project!.file, line: project!.lineOf(["store"]) } : undefined;
  return { values, sources: merged.sources, ...judged, ignoredStore };
}

/** Skills are files of a project. */
function findMisplaced({ label, values, lineOf }: Layer): Layer["problems"] {
  if (label === "project" || (values.skills ?? []).length === 0) return [];
  return [{ line: lineOf(["skills"]), message: '"skills" works only in the configuration of a project' }];
}

/** Finds the project's powerful settings and the ignored ones. Without any, the record of trust is not read. */
async function judgePowerful({ path, values, lineOf }: Layer, { cwd, env }: Surroundings): Promise<Judged> {
  // Keys that can start a program, read outside the project, or change costs. A project's values count only after
  // a person has trusted them. Some belong to later versions: a key is listed here before it is in the schema.
  const powerfulKeys: readonly string[] = ["company", "prices", "allow", "guard", "run"];
  const keys = powerfulKeys.filter((key) => {
    const value: unknown = values[key as keyof ConfigPart];
    return typeof value === "object" ? Object.keys(value ?? {}).length > 0 : value !== undefined;
  });
  const skills = values.skills ?? [];
  if (keys.length + skills.length === 0) return { powerful: [], leftOut: [], unfetched: [] };
  const place = { root: projectRoot(cwd, homeDirectory(env)), env };
  const target = keys.includes("company") ? await findTarget(values.company, place) : undefined;
  const powerful = keys.map((key) =>
    powerfulSetting({
      root: place.root,
      file: path,
      line: lineOf([key]),
      key,
      value: values[key as keyof ConfigPart],
      target: key === "company" ? target : undefined,
    }),
  );
  const repositories: PowerfulSetting[] = [];
  for (const [index, value] of skills.entries()) {
    const found = await findTarget(value, place);
    const line = lineOf(["skills", index]);
    repositories.push(powerfulSetting({ root: place.root, file: path, line, key: "skills", value, target: found }));
  }
  return {
    powerful: [...powerful, ...repositories],
    leftOut: await findUntrusted(powerful, place),
    unfetched: await findUntrusted(repositories, place),
  };
}

/** The directory is trusted, not its name: a link in the repository could lead the name elsewhere tomorrow. */
async function findTarget(
  named: { readonly source?: string | undefined; readonly revision?: string | undefined } | undefined,
  place: ProjectPlace,
): Promise<string | undefined> {
  if (named?.source === undefined) return undefined;
  try {
    const source = readCompanySource({ ...named, source: named.source }, place);
    const path = source.kind === "directory" ? source.path : source.url;
    return isAbsolute(path) ? await followLinks(path) : undefined;
  } catch {
    // The command that uses the value reports the mistake.
    return undefined;
  }
}

/** Returns the path of a value as one text. Quotes a name with a dot, as models have, so two paths never have the same
 *  key. */
export function joinKey(path: readonly string[]): string {
  return path.map((name) => (/[."]/.test(name) ? JSON.stringify(name) : name)).join(".");
}

/** Returns where a value was set, from `project .plimsoll/config.yaml:2`. A default has no place. */
export function findSource(
  path: readonly string[],
  sources: LoadedConfig["sources"],
): { readonly file?: string | undefined; readonly line?: number | undefined } {
  const key = joinKey(path);
  const source = Object.keys(sources).find((each) => each === key || each.startsWith(`${key}.`)) ?? key;
  const [, file, line] = /^\w+ (.*):(\d+)$/.exec(sources[source] ?? "") ?? [];
  return file === undefined ? {} : { file, line: Number(line) };
}

interface ConfigPlace {
  label: "user" | "project";
  path: string;
  /** As shown to people. */
  file: string;
}

type Layer = ConfigPlace & ConfigFile;

async function findConfigFiles({ cwd, env, projectOnly = false }: Surroundings): Promise<ConfigPlace[]> {
  const home = homeDirectory(env);
  const user = join(configDirectory(env), "config.yaml");
  const project = await findProjectFile({ cwd, env }, home);
  const places: ConfigPlace[] = [];
  if (!projectOnly && (await exists(user)))
    places.push({ label: "user", path: user, file: isInside(user, home) ? join("~", relative(home, user)) : user });
  if (project !== undefined) places.push({ label: "project", path: project, file: relative(cwd, project) });
  return places;
}

/** Searches from here upward, at most to the root of the repository: a file further up belongs to something else. */
async function findProjectFile({ cwd, env }: Surroundings, home: string): Promise<string | undefined> {
  for (const { path } of searchUpward(cwd, home)) {
    const folder = join(path, ".plimsoll");
    if (!(await exists(folder))) continue;
    await refuseOtherOwner(path, env);
    if (await exists(join(folder, "config.yaml"))) return join(folder, "config.yaml");
  }
  return undefined;
}

async function readLayer(place: ConfigPlace): Promise<Layer> {
  // People may link their own file from elsewhere. A repository must not.
  const within = place.label === "project" ? dirname(dirname(place.path)) : undefined;
  const read = readForeignText(place.path, { within });
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file: place.file });
  const quick = await readKnownShape<ConfigPart>(read.text, "config");
  if (quick !== undefined) return { ...place, values: quick.value, problems: [], lineOf: quick.lineOf };
  const { parseConfigFile } = await import("./config-file.ts");
  return { ...place, ...parseConfigFile(read.text) };
}

interface Merged {
  values: Record<string, unknown>;
  sources: Record<string, string>;
}

function mergeInto(
  merged: Merged,
  values: object,
  sourceOf: (path: readonly string[]) => string,
  path: string[] = [],
): void {
  // Keys of `joinKey` that are replaced as a whole. A source and its revision belong together: a mix of two files
  // would name a third thing.
  const wholeKeys: readonly string[] = ["company"];
  // Lists that every file adds to: a file without secrets must not undo a file that names one.
  const joinedKeys: readonly string[] = ["deny", "allow"];
  for (const [key, value] of Object.entries(values)) {
    const here = [...path, key];
    const name = joinKey(here);
    if (value === undefined && key in merged.values) continue;
    if (joinedKeys.includes(name) && Array.isArray(merged.values[key])) {
      joinInto(merged, name, { value: value as unknown[], source: sourceOf(here) });
      continue;
    }
    if (!isPlainObject(value) || wholeKeys.includes(name)) {
      merged.values[key] = value;
      merged.sources[name] = sourceOf(here);
      continue;
    }
    const below = { values: { ...(merged.values[key] as object | undefined) }, sources: merged.sources };
    merged.values[key] = below.values;
    if (Object.keys(value).length > 0) delete merged.sources[name];
    else if (Object.keys(below.values).length === 0) merged.sources[name] = sourceOf(here);
    mergeInto(below, value, sourceOf, here);
  }
}

function joinInto(
  { values, sources }: Merged,
  key: string,
  { value, source }: { value: unknown[]; source: string },
): void {
  if (value.length === 0) return;
  const before = values[key] as unknown[];
  sources[key] = before.length === 0 ? source : `${sources[key]}, ${source}`;
  values[key] = [...before, ...value];
}

/** The configured source of the company's packs. */
export type Company = NonNullable<Config["company"]>;

/** Throws on a source or revision that git could take for something other than an address or a name. A relative directory
 *  starts from the root. `key` names the source in messages. */
export function readCompanySource(
  { source, revision }: Company,
  { root, env, key = "company" }: ProjectPlace & { readonly key?: string | undefined },
):
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "git"; readonly url: string; readonly revision: string } {
  refuseOption(`${key}.source`, source);
  const helper = /^[\w+.-]+::/.exec(source)?.[0];
  if (helper !== undefined) {
    throw new ContextError("invalid_config", `${key}.source "${source}" makes git run a helper, "${helper}"`, {
      hint: `Use an address with ${gitProtocols.join(", ")}, or a directory.`,
    });
  }
  if (revision !== undefined) refuseRevision(`${key}.revision`, revision);
  // `scheme://…` or `host:path`. As in git, a host has no slash before the colon. A drive letter is not a host.
  if (/^[\w+.-]+:\/\//.test(source) || /^[^/\\:]{2,}:/.test(source)) {
    if (/^file:/i.test(source)) refuseOwn(pathOfUrl(source), `${key}.source "${source}"`, env);
    return { kind: "git", url: checkScheme(`${key}.source`, source), revision: revision ?? "HEAD" };
  }
  const path = resolve(root, source.replace(/^~(?=\/|$)/, homeDirectory(env)));
  refuseOwn(path, `${key}.source "${source}"`, env);
  // Without a revision, the working tree is used with its current changes.
  const isRepository = () =>
    existsSync(join(path, ".git")) ||
    (existsSync(join(path, "HEAD")) && statSync(join(path, "objects"), { throwIfNoEntry: false }) !== undefined);
  return revision !== undefined && isRepository() ? { kind: "git", url: path, revision } : { kind: "directory", path };
}

/** A project's files must never include a person's own files, whoever asks for it and through whatever links. */
function refuseOwn(path: string, named: string, env: Environment): void {
  const real = realPath(path);
  for (const own of [configDirectory(env), stateDirectory(env), cacheDirectory(env)]) {
    const realOwn = realPath(own);
    if (!isInside(real, realOwn) && !isInside(realOwn, real)) continue;
    throw new ContextError("invalid_config", `${named} leads to your own files in ${own}, which no project may use`, {
      hint: "Use a directory that holds only shared files.",
    });
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function pathOfUrl(url: string): string {
  try {
    return decodeURIComponent(new URL(url).pathname);
  } catch {
    return resolve("/", url.replace(/^file:\/*/i, ""));
  }
}

function refuseOption(key: string, value: string): void {
  if (!value.startsWith("-")) return;
  throw new ContextError("invalid_config", `${key} "${value}" starts with "-", like an option`, {
    hint: "Write a directory or an address, such as ./-packs.",
  });
}

/** Accepts a branch, tag or commit. Other forms that git understands (ranges, refspecs, `main~3`) are ambiguous
 *  here. */
function refuseRevision(key: string, revision: string): void {
  refuseOption(key, revision);
  if (/^[\w][\w./@+#-]*$/.test(revision) && !revision.includes("..") && !revision.includes("@{")) return;
  throw new ContextError("invalid_config", `${key} "${revision}" is not the name of a branch, tag or commit`);
}

function checkScheme(key: string, url: string): string {
  const scheme = /^([\w+.-]+):\/\//.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined || gitProtocols.includes(scheme)) return url;
  throw new ContextError(
    "invalid_config",
    `${key} "${withoutPasswords(url)}" has the scheme ${scheme}, which is not supported`,
    {
      hint: `Use one of ${gitProtocols.join(", ")}, or a directory.`,
    },
  );
}
