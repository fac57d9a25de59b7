import { dirname, join, relative } from "node:path";
import { ContextError } from "../../errors.ts";
import { configDirectory, type Environment, homeDirectory } from "../directories.ts";
import { readRegularText } from "../files/read-regular-file.ts";
import { isInside, refuseOutside } from "../files/resolve-target.ts";
import { exists, upward } from "../files/upward.ts";
import { projectRoot } from "../project-root.ts";
import { refuseOtherOwner } from "../trust/owner.ts";
import { type Judged, judgeConfig } from "../trust/project-settings.ts";
import type { PowerfulSetting } from "../trust/trusted.ts";
import { type Config, type ConfigPart, defaultConfig, powerfulKeys } from "./config.ts";
import type { ConfigFile, ConfigProblem } from "./config-file.ts";

export interface LoadedConfig extends Judged {
  readonly values: Config;
  /** Key of `keyOf` → `project .plimsoll/config.yaml:2`, `user ~/.config/plimsoll/config.yaml:1` or `default`. */
  readonly sources: Readonly<Record<string, string>>;
  /** Where the project names a store, which never counts. */
  readonly ignoredStore?: { readonly file: string; readonly line: number } | undefined;
}

export interface Surroundings {
  readonly cwd: string;
  readonly env: Environment;
  /** Leaves the user's file out: what is written into a project must be the same for every teammate. */
  readonly projectOnly?: boolean | undefined;
}

/** The effective configuration and where each value comes from. Everything that is wrong in either file is reported at once. */
export async function loadConfig(surroundings: Surroundings): Promise<LoadedConfig> {
  const layers: Layer[] = [];
  for (const place of await findConfigFiles(surroundings)) layers.push(await readLayer(place));
  refuseProblems(layers);
  const project = layers.find(({ label }) => label === "project");
  const judged = project === undefined ? { powerful: [], leftOut: [] } : await judge(project, surroundings);
  const merged: Merged = { values: {}, sources: {} };
  mergeInto(merged, defaultConfig, () => "default");
  for (const layer of layers) {
    const { label, file, lineOf } = layer;
    const values = layer === project ? without(layer.values, judged.leftOut) : layer.values;
    mergeInto(merged, values, (path) => `${label} ${file}:${lineOf(path)}`);
  }
  const values = merged.values as unknown as Config;
  refuseZeroShares(values, layers);
  return { values, sources: merged.sources, ...judged, ignoredStore: storeOf(project) };
}

/** The project's powerful settings, and those that count for nothing. A project without any costs no look at the record. */
async function judge(layer: Layer, { cwd, env }: Surroundings): Promise<Judged> {
  const keys = powerfulKeys.filter((key) => !isEmpty(layer.values[key as keyof ConfigPart]));
  if (keys.length === 0) return { powerful: [], leftOut: [] };
  return judgeConfig(layer, keys, { root: projectRoot(cwd, homeDirectory(env)), env });
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && Object.keys(value ?? {}).length === 0);
}

/** A project has no say in where state goes. */
function without(values: ConfigPart, leftOut: readonly PowerfulSetting[]): ConfigPart {
  const keys = new Set(["store", ...leftOut.map(({ key }) => key)]);
  return Object.fromEntries(Object.entries(values).filter(([key]) => !keys.has(key)));
}

function storeOf(project: Layer | undefined): LoadedConfig["ignoredStore"] {
  const { store = defaultConfig.store } = project?.values ?? {};
  if (project === undefined || store === defaultConfig.store) return undefined;
  return { file: project.file, line: project.lineOf(["store"]) };
}

/** The path of a value as one text. A name with a dot in it, as models have, is quoted: two paths never give the same key. */
export function keyOf(path: readonly string[]): string {
  return path.map((name) => (/[."]/.test(name) ? JSON.stringify(name) : name)).join(".");
}

interface Place {
  label: "user" | "project";
  path: string;
  /** As shown to people. */
  file: string;
}

type Layer = Place & ConfigFile;

async function findConfigFiles({ cwd, env, projectOnly = false }: Surroundings): Promise<Place[]> {
  const home = homeDirectory(env);
  const user = join(configDirectory(env), "config.yaml");
  const project = await findProjectFile({ cwd, env }, home);
  const places: Place[] = [];
  if (!projectOnly && (await exists(user)))
    places.push({ label: "user", path: user, file: fromHome(home, user) });
  if (project !== undefined) places.push({ label: "project", path: project, file: relative(cwd, project) });
  return places;
}

/** From here upward, at most to the root of the repository or to HOME: a file further up belongs to something else. */
async function findProjectFile({ cwd, env }: Surroundings, home: string): Promise<string | undefined> {
  for (const current of upward(cwd, home)) {
    const folder = join(current, ".plimsoll");
    if (await exists(folder)) {
      await refuseOtherOwner(current, env);
      if (await exists(join(folder, "config.yaml"))) return join(folder, "config.yaml");
    }
    if (await exists(join(current, ".git"))) break;
  }
  return undefined;
}

function fromHome(home: string, path: string): string {
  return isInside(path, home) ? join("~", relative(home, path)) : path;
}

async function readLayer(place: Place): Promise<Layer> {
  // People link their own file together from elsewhere; a repository has no business there.
  if (place.label === "project") await refuseOutside(place.path, dirname(dirname(place.path)), place.file);
  const read = await readRegularText(place.path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file: place.file });
  const { parseConfigFile } = await import("./config-file.ts");
  return { ...place, ...parseConfigFile(read.text) };
}

/** The first problem is the error's own place; each further one names its place in its own line of the message. */
function refuseProblems(layers: readonly Layer[]): void {
  const all = layers.flatMap(({ file, problems }) => problems.map((problem) => ({ ...problem, file })));
  const [first, ...rest] = all as [ConfigProblem & { file: string }, ...typeof all];
  if (first === undefined) return;
  const message = [first.message, ...rest.map((each) => `${each.file}:${each.line}: ${each.message}`)].join(
    "\n",
  );
  throw new ContextError("invalid_config", message, { file: first.file, line: first.line });
}

/** Only of the two files together: what one of them says of a share, the other may change. */
function refuseZeroShares({ context }: Config, layers: readonly Layer[]): void {
  if (Object.values(context.shares).some((share) => share > 0)) return;
  const last = layers.findLast(({ values }) => Object.keys(values.context?.shares ?? {}).length > 0);
  throw new ContextError("invalid_config", '"context.shares" must not all be 0', {
    hint: 'Give at least one layer a share, or leave them out and set "context.max_tokens: 0" to compose nothing.',
    file: last?.file,
    line: last?.lineOf(["context", "shares"]),
  });
}

interface Merged {
  values: Record<string, unknown>;
  sources: Record<string, string>;
}

/** Keys of `keyOf`. A source and its revision belong together: half of one file's and half of the other's would name a third thing. */
const wholeKeys: readonly string[] = ["company"];

function mergeInto(
  merged: Merged,
  values: object,
  sourceOf: (path: readonly string[]) => string,
  path: string[] = [],
): void {
  for (const [key, value] of Object.entries(values)) {
    const here = [...path, key];
    const name = keyOf(here);
    if (value === undefined && key in merged.values) continue;
    if (joinedKeys.includes(name) && Array.isArray(merged.values[key])) {
      joinInto(merged, name, { value: value as unknown[], source: sourceOf(here) });
      continue;
    }
    if (!isBranch(value) || wholeKeys.includes(name)) {
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

/** Lists of which every file adds its own: one that names a secret cannot be undone by another that names none. */
const joinedKeys: readonly string[] = ["deny", "allow"];

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

function isBranch(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
