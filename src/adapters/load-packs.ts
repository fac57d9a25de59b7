/** Everything that was written for the AI tools of a place: the layers' packs in one order, profiles and adapters. */
import { join } from "node:path";
import { ContextError } from "../errors.ts";
import {
  builtInProfiles,
  mergeLayers,
  orderPacks,
  type Pack,
  type PackLayer,
  type Profile,
} from "../packs/index.ts";
import { didYouMean } from "../text/index.ts";
import {
  type Config,
  type ContentProblem,
  companyDirectory,
  configDirectory,
  type Environment,
  expandLayers,
  type LayerDirectory,
  loadContent,
  type PowerfulSetting,
  readEmbeddedContent,
  untrustedFetches,
} from "../workspace/index.ts";
import type { Adapter, Scope } from "./adapter.ts";

export interface LoadPacksOptions {
  readonly config: Config;
  readonly scope: Scope;
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
  /** A content directory in place of the embedded one. */
  readonly contentDirectory?: string | undefined;
  readonly profile?: string | undefined;
  readonly language?: string | undefined;
}

export interface LoadedPacks {
  /** The profile's, most important first. */
  readonly packs: readonly Pack[];
  /** As they were written, lowest first, the embedded one included. */
  readonly layers: readonly PackLayer[];
  /** Of the layers that are files, lowest first. */
  readonly directories: readonly string[];
  readonly profile: Profile;
  readonly profiles: readonly Profile[];
  readonly adapters: readonly Adapter[];
  /** Also those that a higher layer replaces. */
  readonly everyAdapter: readonly Adapter[];
  readonly problems: readonly ContentProblem[];
  /** Addresses that the project's packs fetch and nobody has trusted: their texts are not in the packs. */
  readonly leftOut: readonly PowerfulSetting[];
}

/** Never throws for content: what is wrong with it is in `problems`. An unknown profile is wrong usage. */
export async function loadPacks(options: LoadPacksOptions): Promise<LoadedPacks> {
  const { config, contentDirectory } = options;
  const directories = await layersOf(options);
  const content = await loadContent<Adapter>({
    layers: directories,
    embedded: contentDirectory === undefined ? readEmbeddedContent<Adapter>() : undefined,
    loadAdapterSchema: async () => (await import("./adapter-schema.ts")).adapterFileSchema,
  });
  const leftOut = await untrustedFetches(content.packs, options);
  const { layers, originalLine } = expandLayers(content.packs, { env: options.env, leftOut });
  const merged = mergeLayers(layers, { language: options.language ?? config.language });
  const profiles = [...builtInProfiles, ...content.profiles];
  const isBroken = content.problems.some(({ severity }) => severity === "error");
  const profile = profileNamed(options.profile ?? config.profile, { profiles, isBroken });
  const warnings = merged.warnings.map(({ directory, file, line, message }) => ({
    file: join(directory, file),
    line: originalLine(join(directory, file), line),
    severity: "warning" as const,
    rule: "text",
    message,
  }));
  return {
    packs: orderPacks(merged.packs, profile),
    layers: content.packs,
    directories: directories.map(({ directory }) => directory),
    profile,
    profiles,
    // Content without adapters is written for the tools that we know.
    adapters: content.adapters.length > 0 ? content.adapters : embeddedAdapters(),
    everyAdapter: content.everyAdapter,
    problems: [...content.problems, ...warnings],
    leftOut,
  };
}

/** Those that ship with the package, whatever content is used. */
export function embeddedAdapters(): readonly Adapter[] {
  return readEmbeddedContent<Adapter>().adapters;
}

/** The user's own layer stays out of a project: what lands in a repository is the same for every teammate. */
async function layersOf({
  config,
  scope,
  root,
  env,
  contentDirectory,
}: LoadPacksOptions): Promise<LayerDirectory[]> {
  const layers: LayerDirectory[] = [];
  if (contentDirectory !== undefined) {
    layers.push({ layer: "embedded", directory: contentDirectory, strictness: "warning", required: true });
  }
  const company = await companyDirectory(config.company, { root, env });
  if (company !== undefined)
    layers.push({ layer: "company", directory: company, strictness: "warning", required: true });
  if (scope === "global")
    layers.push({ layer: "user", directory: configDirectory(env), strictness: "error" });
  else layers.push({ layer: "project", directory: join(root, ".plimsoll"), root, strictness: "error" });
  return layers;
}

/** Of broken content the profile may be a part that did not load: then that is the problem to tell. */
function profileNamed(
  id: string,
  { profiles, isBroken }: { readonly profiles: readonly Profile[]; readonly isBroken: boolean },
): Profile {
  const profile = profiles.find((each) => each.id === id) ?? (isBroken ? profiles[0] : undefined);
  if (profile !== undefined) return profile;
  const ids = profiles.map((each) => each.id);
  throw new ContextError("usage", `unknown profile "${id}"`, {
    hint: didYouMean(id, ids) ?? `Profiles are ${ids.join(", ")}.`,
  });
}
