/** Loads the content for the AI tools of one place: packs of all layers in one order, profiles and adapters. */
import { join } from "node:path";
import { unknownName } from "../../core/text/index.ts";
import {
  type Config,
  configDirectory,
  type Environment,
  findSigns,
  type LoadedConfig,
  type ProjectTree,
  placeOf,
  readProjectTree,
} from "../../host/index.ts";
import { type ContentProblem, type LayerDirectory, loadContent, readEmbeddedContent } from "../content/load-content.ts";
import {
  builtInProfiles,
  mergeLayers,
  orderPacks,
  type Pack,
  type PackLayer,
  type PackSource,
  type Profile,
  packTextName,
} from "../packs/index.ts";
import { companyDirectory } from "../sync/company.ts";
import { expandLayers } from "../sync/expand-layers.ts";
import { pinFolder } from "../sync/fetched-texts.ts";
import type { Adapter, Scope } from "./adapter.ts";

export interface LoadPacksOptions {
  readonly config: Config;
  /** Where each value of the configuration was set, for errors. */
  readonly sources?: LoadedConfig["sources"] | undefined;
  readonly scope: Scope;
  /** The project's root. */
  readonly root: string;
  readonly env: Environment;
  /** A content directory to use instead of the embedded one. */
  readonly contentDirectory?: string | undefined;
  readonly profile?: string | undefined;
  readonly language?: string | undefined;
  /** The packs that a person named. Absent: every pack is used, whatever the profile and the project. */
  readonly selection?: PackSelection | undefined;
  /** The packs that the configuration names, if `selection` or `profile` differ from it. */
  readonly configured?: PackSelection | undefined;
  /** The project's files, if the caller has read them already. */
  readonly tree?: ProjectTree | undefined;
}

export interface LoadedPacks {
  /** The chosen packs in the order of the profile, most important first. */
  readonly packs: readonly Pack[];
  /** The packs that the configuration chooses. The same list as `packs` unless `configured` is given. */
  readonly configuredPacks: readonly Pack[];
  /** All packs in that order, with the reason why each is used or not. */
  readonly choices: readonly PackChoice[];
  /** The packs as written, lowest layer first, including the embedded layer. */
  readonly layers: readonly PackLayer[];
  /** The directories of the layers that are files, lowest layer first. */
  readonly directories: readonly string[];
  readonly profile: Profile;
  readonly profiles: readonly Profile[];
  readonly adapters: readonly Adapter[];
  /** Includes adapters that a higher layer changes. */
  readonly everyAdapter: readonly Adapter[];
  readonly problems: readonly ContentProblem[];
}

/** Does not throw on invalid content: `problems` lists what is wrong. Throws on an unknown profile or language. */
export async function loadPacks(options: LoadPacksOptions): Promise<LoadedPacks> {
  const { config, contentDirectory } = options;
  const directories = await layersOf(options);
  const content = await loadContent<Adapter>({
    layers: directories,
    embedded: contentDirectory === undefined ? readEmbeddedContent<Adapter>() : undefined,
    // Content without adapters is meant for the tools that Plimsoll knows.
    spareAdapters: contentDirectory === undefined ? undefined : embeddedAdapters,
    loadAdapterSchema: async () => (await import("./adapter-schema.ts")).adapterFileSchema,
  });
  const expanded = await expandLayers(content.packs, pinFolder(options.scope, options));
  const merged = mergeLayers(expanded.layers, { language: options.language ?? config.language });
  const profiles = [...builtInProfiles, ...content.profiles];
  const isBroken = content.problems.some(({ severity }) => severity === "error");
  const profile = profileNamed(options, { profiles, isBroken });
  if (!isBroken) refuseUnknownLanguage(options, content.packs);
  const choices = await choicesOf(orderPacks(merged.packs, profile), profile, options);
  const packs = usedOf(choices);
  const configuredPacks =
    options.configured === undefined
      ? packs
      : await configuredOf(merged.packs, { ...options, selection: options.configured, profiles });
  const warnings = merged.warnings.filter(({ pack }) => packs.some(({ id }) => id === pack)).map(expanded.problemOf);
  return {
    packs,
    configuredPacks,
    choices,
    layers: content.packs,
    directories: directories.map(({ directory }) => directory),
    profile,
    profiles,
    adapters: content.adapters,
    everyAdapter: content.everyAdapter,
    problems: [...content.problems, ...warnings],
  };
}

/** The profile of the configuration may be missing in the content of `--content`. Then its order and choice do not
 *  count. */
async function configuredOf(
  packs: readonly Pack[],
  options: LoadPacksOptions & { readonly profiles: readonly Profile[] },
): Promise<readonly Pack[]> {
  const { profiles, config } = options;
  const profile = profiles.find(({ id }) => id === config.profile) ?? profiles[0]!;
  return usedOf(await choicesOf(orderPacks(packs, profile), profile, options));
}

function usedOf(choices: readonly PackChoice[]): readonly Pack[] {
  return choices.filter(({ used }) => used).map(({ pack }) => pack);
}

function choicesOf(
  packs: readonly Pack[],
  profile: Profile,
  { selection, scope, root, env, tree }: LoadPacksOptions,
): Promise<readonly PackChoice[]> | readonly PackChoice[] {
  if (selection === undefined) return packs.map((pack) => ({ pack, used: true, why: "" }));
  const readTree = async () => tree ?? readProjectTree(root, env);
  return choosePacks(packs, { selection, profile, readTree: scope === "project" ? readTree : undefined });
}

/** Returns the adapters that ship with the package, whatever content is used. */
export function embeddedAdapters(): readonly Adapter[] {
  return readEmbeddedContent<Adapter>().adapters;
}

/** Leaves the user's layer out of a project, so a repository gets the same text from every teammate. */
async function layersOf({ config, scope, root, env, contentDirectory }: LoadPacksOptions): Promise<LayerDirectory[]> {
  const layers: LayerDirectory[] = [];
  if (contentDirectory !== undefined) {
    layers.push({ layer: "embedded", directory: contentDirectory, strictness: "warning", required: true });
  }
  const company = await companyDirectory(config.company, { root, env });
  if (company !== undefined)
    layers.push({ layer: "company", directory: company, strictness: "warning", required: true });
  if (scope === "global") layers.push({ layer: "user", directory: configDirectory(env), strictness: "error" });
  else layers.push({ layer: "project", directory: join(root, ".plimsoll"), root, strictness: "error" });
  return layers;
}

/** If the content is broken, the profile may be missing because it did not load. The content's problem is then reported
 *  instead. */
function profileNamed(
  { profile: named, config, sources = {} }: LoadPacksOptions,
  { profiles, isBroken }: { readonly profiles: readonly Profile[]; readonly isBroken: boolean },
): Profile {
  const id = named ?? config.profile;
  const profile = profiles.find((each) => each.id === id) ?? (isBroken ? profiles[0] : undefined);
  if (profile !== undefined) return profile;
  const place = named === undefined ? placeOf(["profile"], sources) : undefined;
  throw unknownName(id, { kind: "profile", known: profiles.map((each) => each.id), place });
}

/** English is the language of texts without one in their name. Also accepts a regional variant of a language. */
function refuseUnknownLanguage(
  { language: named, config, sources = {} }: LoadPacksOptions,
  layers: readonly PackLayer[],
): void {
  const id = named ?? config.language;
  const known = ["en", ...layers.flatMap(({ sources: packs }) => packs.flatMap(languagesOf))];
  const [plain] = id.toLowerCase().split(/[-_]/);
  if (known.some((each) => each.toLowerCase().split(/[-_]/)[0] === plain)) return;
  const place = named === undefined ? placeOf(["language"], sources) : undefined;
  throw unknownName(id, { kind: "language", known, place });
}

/** Returns the languages that a pack is written in, besides English. */
function languagesOf({ texts, locales }: PackSource): string[] {
  const inNames = Object.keys(texts).flatMap((name) => packTextName.exec(name)?.[2]?.slice(1) ?? []);
  return [...inNames, ...Object.keys(locales)].map((name) => name.toLowerCase()).filter((name) => name !== "expanded");
}

// Chooses the packs of a run, and says why: packs that a person named, or else packs that suit the project.

/** The packs that a person named. */
export interface PackSelection {
  /** Uses only these packs and base packs, whatever the profile says. */
  readonly asked?: PackList | undefined;
  /** Uses only these packs and base packs, unless the profile names packs itself. */
  readonly include?: PackList | undefined;
  /** Wins over every other list. */
  readonly exclude?: PackList | undefined;
}

interface PackList {
  readonly ids: readonly string[];
  /** Where the list was set, for people: `--pack`, or the line of a file. */
  readonly from: string;
}

export interface PackChoice {
  readonly pack: Pack;
  readonly used: boolean;
  /** The reason, for people: `package.json found`. */
  readonly why: string;
}

interface ChoiceOptions {
  readonly selection: PackSelection;
  readonly profile: Profile;
  /** Reads the project's files. Absent for files that serve every project: nothing is detected then. */
  readonly readTree?: (() => Promise<ProjectTree>) | undefined;
}

/** Returns a choice for every pack, in the given order. Reads the project's files only if a pack depends on them. */
export async function choosePacks(packs: readonly Pack[], options: ChoiceOptions): Promise<readonly PackChoice[]> {
  const choices = packs.map((pack) => ({ pack, verdict: judge(pack, options) }));
  const open = choices.filter(({ verdict }) => verdict === undefined).map(({ pack }) => pack);
  const signs = await signsFor(open, options);
  return choices.map(({ pack, verdict }) => ({ pack, ...(verdict ?? detected(pack, signs)) }));
}

type Verdict = Pick<PackChoice, "used" | "why">;

/** Returns `undefined` if the project's files decide. */
function judge(pack: Pack, { selection: { asked, include, exclude }, profile }: ChoiceOptions): Verdict | undefined {
  const { id, base, detect } = pack;
  const named = `profile "${profile.id}"`;
  if (exclude?.ids.includes(id)) return { used: false, why: `excluded by ${exclude.from}` };
  if (asked !== undefined) return byList(pack, asked);
  if (profile.only !== undefined) return byList({ id, base: false }, { ids: profile.only, from: named });
  if (profile.id === "minimal" && !base) return { used: false, why: `${named} has base packs only` };
  if (include !== undefined) return byList(pack, include);
  if (base) return { used: true, why: "base pack" };
  if (profile.packs.some((each) => each.id === id)) return { used: true, why: `asked for by ${named}` };
  return detect.length > 0 ? undefined : { used: true, why: "for every project" };
}

function byList({ id, base }: Pick<Pack, "id" | "base">, { ids, from }: PackList): Verdict {
  if (ids.includes(id)) return { used: true, why: `asked for by ${from}` };
  return base ? { used: true, why: "base pack" } : { used: false, why: `not in ${from}` };
}

type Signs = ReadonlyMap<string, string | undefined> | undefined;

async function signsFor(packs: readonly Pack[], { readTree }: ChoiceOptions): Promise<Signs> {
  if (packs.length === 0 || readTree === undefined) return undefined;
  const lists = packs.map(({ detect }) => detect);
  const found = await findSigns(lists, await readTree());
  return new Map(packs.map(({ id }, index) => [id, found[index]]));
}

function detected({ id, name }: Pack, signs: Signs): Verdict {
  if (signs === undefined) return { used: true, why: "for every project" };
  const sign = signs.get(id);
  return sign === undefined ? { used: false, why: `no ${name} files found` } : { used: true, why: `${sign} found` };
}
