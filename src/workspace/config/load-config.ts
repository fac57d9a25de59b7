import { join, relative } from "node:path";
import { ContextError } from "../../errors.ts";
import { configDirectory, type Environment, homeDirectory } from "../directories.ts";
import { readRegularText } from "../files/read-regular-file.ts";
import { isInside } from "../files/resolve-target.ts";
import { exists, upward } from "../files/upward.ts";
import { type Config, defaultConfig } from "./config.ts";
import type { ConfigFile, ConfigProblem } from "./config-file.ts";

export interface LoadedConfig {
  readonly values: Config;
  /** Key of `keyOf` → `project .plimsoll/config.yaml:2`, `user ~/.config/plimsoll/config.yaml:1` or `default`. */
  readonly sources: Readonly<Record<string, string>>;
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
  const merged: Merged = { values: {}, sources: {} };
  mergeInto(merged, defaultConfig, () => "default");
  for (const { label, file, values, lineOf } of layers) {
    mergeInto(merged, values, (path) => `${label} ${file}:${lineOf(path)}`);
  }
  const values = merged.values as unknown as Config;
  refuseZeroShares(values, layers);
  return { values, sources: merged.sources };
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
  const project = await findProjectFile(cwd, home);
  const places: Place[] = [];
  if (!projectOnly && (await exists(user)))
    places.push({ label: "user", path: user, file: fromHome(home, user) });
  if (project !== undefined) places.push({ label: "project", path: project, file: relative(cwd, project) });
  return places;
}

/** From here upward, at most to the root of the repository or to HOME: a file further up belongs to something else. */
async function findProjectFile(cwd: string, home: string): Promise<string | undefined> {
  for (const current of upward(cwd, home)) {
    const path = join(current, ".plimsoll", "config.yaml");
    if (await exists(path)) return path;
    if (await exists(join(current, ".git"))) break;
  }
  return undefined;
}

function fromHome(home: string, path: string): string {
  return isInside(path, home) ? join("~", relative(home, path)) : path;
}

async function readLayer(place: Place): Promise<Layer> {
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

function isBranch(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
