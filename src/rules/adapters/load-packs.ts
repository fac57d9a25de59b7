/** Loads the content for the AI tools of one place: packs of all layers in one order, profiles and adapters. */
import { join } from "node:path";
import { unknownName } from "../../core/text/index.ts";
import { type Config, configDirectory, type Environment, findSource, type LoadedConfig } from "../../host/index.ts";
import type { CompanyRules } from "../content/content-layer.ts";
import { type ContentProblem, type LayerDirectory, loadContent, readEmbeddedContent } from "../content/load-content.ts";
import { findSigns } from "../files/find-signs.ts";
import { type ProjectTree, readProjectTree } from "../files/project-tree.ts";
import {
  builtInProfiles,
  mergeLayers,
  orderPacks,
  type Pack,
  type PackLayer,
  type Profile,
  packTextName,
} from "../packs/index.ts";
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
  /** What the company sets for its projects. */
  readonly company: CompanyRules | undefined;
  readonly problems: readonly ContentProblem[];
}

/** Does not throw on invalid content: `problems` lists what is wrong. Throws on an unknown profile or language. */
export async function loadPacks(options: LoadPacksOptions): Promise<LoadedPacks> {
  const { config, contentDirectory } = options;
  const directories = await listLayers(options);
  const content = await loadContent<Adapter>({
    layers: directories,
    embedded: contentDirectory === undefined ? readEmbeddedContent<Adapter>() : undefined,
    // Content without adapters is meant for the tools that Plimsoll knows.
    spareAdapters: contentDirectory === undefined ? undefined : embeddedAdapters,
    loadAdapterSchema: async () => (await import("./adapter-schema.ts")).adapterFileSchema,
  });
  const expanded = await expandLayers(content.packs, pinFolder(options.scope, options));
  const fetched = await addSkills(expanded.layers, options);
  const merged = mergeLayers(fetched.layers, { language: options.language ?? config.language });
  const profiles = [...builtInProfiles, ...content.profiles];
  const isBroken = content.problems.some(({ severity }) => severity === "error");
  const profile = findProfile(options, { profiles, isBroken });
  if (!isBroken) refuseUnknownLanguage(options, content.packs);
  const { required = [] } = content.company ?? {};
  const all = merged.packs.map((pack) => (required.includes(pack.id) ? { ...pack, required: true } : pack));
  const choices = await judgePacks(orderPacks(all, profile), profile, options);
  const listUsed = (all: readonly PackChoice[]) => all.filter(({ used }) => used).map(({ pack }) => pack);
  const packs = listUsed(choices);
  let configuredPacks = packs;
  if (options.configured !== undefined) {
    // The profile of the configuration may be missing in the content of `--content`. Then its order and choice do not
    // count.
    const other = profiles.find(({ id }) => id === config.profile) ?? profiles[0]!;
    const ordered = orderPacks(all, other);
    configuredPacks = listUsed(await judgePacks(ordered, other, { ...options, selection: options.configured }));
  }
  const warnings = merged.warnings.filter(({ pack }) => packs.some(({ id }) => id === pack)).map(expanded.explain);
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
    company: content.company,
    problems: [...content.problems, ...fetched.problems, ...warnings],
  };
}

/** Few projects take skills from repositories, so the others do not load the code for them. */
async function addSkills(layers: readonly PackLayer[], options: LoadPacksOptions) {
  const { skills } = options.config;
  if (options.scope !== "project" || skills.length === 0) return { layers, problems: [] };
  const { addPinnedSkills } = await import("../sync/pinned-skills.ts");
  const line = findSource(["skills"], options.sources ?? {}).line ?? 1;
  return addPinnedSkills(layers, { skills, folder: pinFolder("project", options), line });
}

function judgePacks(
  packs: readonly Pack[],
  profile: Profile,
  { selection: given, scope, root, env, tree, contentDirectory }: LoadPacksOptions,
): Promise<readonly PackChoice[]> | readonly PackChoice[] {
  // A folder of content takes the place of the built-in packs, so the list of those does not apply to it.
  const selection = contentDirectory === undefined ? given : given && { ...given, builtIn: undefined };
  if (selection === undefined) return packs.map((pack) => ({ pack, used: true, why: "" }));
  const readTree = async () => tree ?? readProjectTree(root, env);
  return choosePacks(packs, { selection, profile, readTree: scope === "project" ? readTree : undefined });
}

/** Returns the adapters that ship with the package, whatever content is used. */
export function embeddedAdapters(): readonly Adapter[] {
  return readEmbeddedContent<Adapter>().adapters;
}

/** Leaves the user's layer out of a project, so a repository gets the same text from every teammate. */
async function listLayers({ config, scope, root, env, contentDirectory }: LoadPacksOptions): Promise<LayerDirectory[]> {
  const layers: LayerDirectory[] = [];
  if (contentDirectory !== undefined) {
    layers.push({ layer: "embedded", directory: contentDirectory, strictness: "warning", required: true });
  }
  const company =
    config.company && (await (await import("../sync/company.ts")).companyDirectory(config.company, { root, env }));
  if (company !== undefined)
    layers.push({ layer: "company", directory: company, strictness: "warning", required: true });
  if (scope === "global") layers.push({ layer: "user", directory: configDirectory(env), strictness: "error" });
  else layers.push({ layer: "project", directory: join(root, ".plimsoll"), root, strictness: "error" });
  return layers;
}

/** If the content is broken, the profile may be missing because it did not load. The content's problem is then reported
 *  instead. */
function findProfile(
  { profile: named, config, sources = {} }: LoadPacksOptions,
  { profiles, isBroken }: { readonly profiles: readonly Profile[]; readonly isBroken: boolean },
): Profile {
  const id = named ?? config.profile;
  const profile = profiles.find((each) => each.id === id) ?? (isBroken ? profiles[0] : undefined);
  if (profile !== undefined) return profile;
  const place = named === undefined ? findSource(["profile"], sources) : undefined;
  throw unknownName(id, { kind: "profile", known: profiles.map((each) => each.id), place });
}

/** English is the language of texts without one in their name. Also accepts a regional variant of a language. */
function refuseUnknownLanguage(
  { language: named, config, sources = {} }: LoadPacksOptions,
  layers: readonly PackLayer[],
): void {
  const id = named ?? config.language;
  const names = layers
    .flatMap((layer) => layer.sources)
    .flatMap(({ texts, locales }) => [
      ...Object.keys(texts).flatMap((name) => packTextName.exec(name)?.[2]?.slice(1) ?? []),
      ...Object.keys(locales),
    ]);
  const known = ["en", ...names.map((name) => name.toLowerCase()).filter((name) => name !== "expanded")];
  const [plain] = id.toLowerCase().split(/[-_]/);
  if (known.some((each) => each.toLowerCase().split(/[-_]/)[0] === plain)) return;
  const place = named === undefined ? findSource(["language"], sources) : undefined;
  throw unknownName(id, { kind: "language", known, place });
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
  /** Uses only these of the built-in packs, and any other pack. */
  readonly builtIn?: PackList | undefined;
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
  const isEverywhere = open.length === 0 || options.readTree === undefined;
  const found = isEverywhere
    ? []
    : await findSigns(
        open.map(({ detect }) => detect),
        await options.readTree!(),
      );
  return choices.map(({ pack, verdict }) => {
    if (verdict !== undefined) return { pack, ...verdict };
    if (isEverywhere) return { pack, used: true, why: "for every project" };
    const sign = found[open.indexOf(pack)];
    return {
      pack,
      used: sign !== undefined,
      why: sign === undefined ? `no ${pack.name} files found` : `${sign} found`,
    };
  });
}

type Verdict = Pick<PackChoice, "used" | "why">;

/** Returns `undefined` if the project's files decide. */
function judge(pack: Pack, { selection, profile }: ChoiceOptions): Verdict | undefined {
  const { id, detect } = pack;
  const { asked, include, exclude } = selection;
  const builtIn = pack.layer === "embedded" ? selection.builtIn : undefined;
  const isChosen = builtIn?.ids.includes(id);
  const base = pack.base && isChosen !== false;
  const named = `profile "${profile.id}"`;
  if (pack.required) return { used: true, why: "required by the company" };
  if (exclude?.ids.includes(id)) return { used: false, why: `excluded by ${exclude.from}` };
  if (asked !== undefined) return byList({ id, base }, asked);
  if (profile.only !== undefined) return byList({ id, base: false }, { ids: profile.only, from: named });
  if (profile.id === "minimal" && !base) return { used: false, why: `${named} has base packs only` };
  if (include !== undefined) return byList({ id, base }, include);
  if (base) return { used: true, why: "base pack" };
  if (profile.packs.some((each) => each.id === id)) return { used: true, why: `asked for by ${named}` };
  if (builtIn !== undefined) return byList({ id, base }, builtIn);
  if (pack.optional) return { used: false, why: "used only where it is named" };
  return detect.length > 0 ? undefined : { used: true, why: "for every project" };
}

function byList({ id, base }: Pick<Pack, "id" | "base">, { ids, from }: PackList): Verdict {
  if (ids.includes(id)) return { used: true, why: `asked for by ${from}` };
  return base ? { used: true, why: "base pack" } : { used: false, why: `not in ${from}` };
}
