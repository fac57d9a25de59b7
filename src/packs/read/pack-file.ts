/** The YAML files of a pack as people write them, and the pack they make. Absent keys get their empty value here and nowhere else. */
import type { AdditivePosition, KnownError, Learning, Locale, PackSource, Sample } from "../pack.ts";
import type { Profile, ProfilePack } from "../profile.ts";

export interface PackFile {
  readonly id: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly profiles?: readonly string[] | undefined;
  readonly weight?: number | undefined;
  readonly base?: boolean | undefined;
  readonly overlaps?: readonly string[] | undefined;
  readonly additive?: boolean | undefined;
  readonly additive_position?: AdditivePosition | undefined;
  readonly locales?: Readonly<Record<string, Locale>> | undefined;
  readonly versions?: Readonly<Record<string, string>> | undefined;
  readonly changelog?: readonly string[] | undefined;
}

export type SampleEntry = Pick<Sample, "label"> & Partial<Sample>;
export type KnownErrorEntry = Pick<KnownError, "pattern"> & Partial<KnownError>;
export type LearningEntry = Pick<Learning, "slug"> & Partial<Learning>;

export interface LearningFile {
  readonly profile_filters?: object | undefined;
  readonly journeys?: readonly LearningEntry[] | undefined;
}

export interface ProfileFile {
  readonly id: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly packs?: readonly ProfilePack[] | undefined;
  readonly tip_tags?: readonly string[] | undefined;
}

/** Everything of one pack's folder. */
export interface PackFolder {
  readonly pack: PackFile;
  readonly texts: Readonly<Record<string, string>>;
  readonly samples?: readonly SampleEntry[] | undefined;
  readonly knownErrors?: readonly KnownErrorEntry[] | undefined;
  readonly learning?: LearningFile | undefined;
  readonly directory: string;
}

export function createPackSource(folder: PackFolder): PackSource {
  const { pack, texts, directory } = folder;
  return {
    id: pack.id,
    name: pack.name ?? "",
    description: pack.description ?? "",
    tags: pack.tags ?? [],
    weight: pack.weight ?? 0,
    base: pack.base ?? false,
    additive: pack.additive ?? false,
    additivePosition: pack.additive_position ?? "after",
    overlaps: pack.overlaps ?? [],
    profiles: pack.profiles ?? [],
    locales: pack.locales ?? {},
    versions: pack.versions ?? {},
    changelog: pack.changelog ?? [],
    texts,
    samples: (folder.samples ?? []).map(createSample),
    knownErrors: (folder.knownErrors ?? []).map(createKnownError),
    learning: (folder.learning?.journeys ?? []).map(createLearning),
    directory,
  };
}

export function createProfile({ id, name, description, packs }: ProfileFile): Profile {
  return { id, name: name ?? id, description: description ?? "", packs: packs ?? [] };
}

function createSample({ id, label, url, description, tags, inject }: SampleEntry): Sample {
  return {
    id: id ?? label,
    label,
    url: url ?? "",
    description: description ?? "",
    tags: tags ?? [],
    inject: inject ?? false,
  };
}

function createKnownError({ id, pattern, cause, fix, docs, tags }: KnownErrorEntry): KnownError {
  return { id: id ?? pattern, pattern, cause: cause ?? "", fix: fix ?? "", docs, tags: tags ?? [] };
}

/** In the format's first home (sap-devs-cli, its learning.schema.json) an entry is a slug of this site and nothing else. */
const journeySite = "https://learning.sap.com/learning-journeys/";

function createLearning({ slug, title, url, level, hours, featured }: LearningEntry): Learning {
  return {
    slug,
    title: title ?? titleFromSlug(slug),
    url: url ?? `${journeySite}${encodeURIComponent(slug)}`,
    level,
    hours,
    featured: featured ?? false,
  };
}

function titleFromSlug(slug: string): string {
  const words = slug.replace(/[-_]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
