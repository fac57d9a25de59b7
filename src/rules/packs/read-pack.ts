/** Reads one pack in one language: chooses the variant of each text and cuts it into tiers. */
import {
  closeFence,
  type Line,
  type LineWarning,
  parseSegments,
  type Segment,
  scanLines,
} from "../../core/text/index.ts";
import type {
  AdditivePosition,
  ContentLayer,
  KnownError,
  Learning,
  Locale,
  Pack,
  PackSource,
  PackWarning,
  ProfilePack,
  Sample,
  Skill,
} from "./pack.ts";

export interface ReadPack {
  readonly pack: Pack;
  readonly warnings: readonly PackWarning[];
}

/** The YAML files of a pack that are read. */
export const packFileNames: readonly string[] = ["pack.yaml", "samples.yaml", "known_errors.yaml", "learning.yaml"];

/** The globs that a pack may have. The front matter of some tools holds them as plain text, so they must not contain
 *  characters that end it. */
export const packGlob: RegExp = /^(?![/!~])(?!(?:.*\/)?\.\.(?:\/|$))[^\s"'`\\#:\p{C}]+$/u;

/** The texts that a pack's folder may hold. Each may have variants such as `context.de.md`; `context.expanded.md`
 *  includes fetched texts. */
export const packTextName: RegExp = /^(context|constraints|preamble)(\.[a-z]{2,8}(-[a-z0-9]{1,8})*)?\.md$/i;

export function readPack(
  source: PackSource,
  { layer, language }: { readonly layer: ContentLayer; readonly language: string },
): ReadPack {
  const languages = languageChain(language);
  const locale = findLocale(source.locales, languages);
  const context = readText(source, [...variants("context", languages), "context.expanded.md", "context.md"]);
  const constraints = readText(source, [...variants("constraints", languages), "constraints.md"]);
  const preamble = readText(source, [...variants("preamble", languages), "preamble.md"]);
  const { id, description, tags, weight, base, overlaps, detect, globs, nested, versions, changelog } = source;
  const pack: Pack = {
    ...{ id, tags, weight, base, overlaps, detect, globs, nested, versions, changelog, layer },
    name: locale?.name || source.name,
    description: locale?.description || description,
    // A preamble is core as a whole, so it is never thinned.
    preamble: preamble.segments
      .map(({ text }) => text)
      .join("")
      .trim(),
    context: context.segments,
    constraints: constraints.segments,
    samples: source.samples,
    knownErrors: source.knownErrors,
    learning: source.learning,
    skills: source.skills.map((skill) => readSkill(skill, { layer, directory: source.directory })),
  };
  return { pack, warnings: [context, constraints, preamble].flatMap(({ warnings }) => warnings) };
}

/** A skill is read by agents as it is, so only markers that mean something to Plimsoll are left out. */
function readSkill(skill: Skill, { layer, directory }: Pick<PackSource, "directory"> & { layer: ContentLayer }): Skill {
  const files = { ...skill.files, "SKILL.md": prepareText(skill.files["SKILL.md"] ?? "").text };
  if (layer !== "project") return { ...skill, files };
  const folder = directory.split(/[\\/]/).at(-1);
  return { ...skill, files, path: `.plimsoll/packs/${folder}/skills/${skill.name}/SKILL.md` };
}

/** `de-AT` → de-at, de. Never `en`: English is the text without a language in its name. */
function languageChain(language: string): string[] {
  const parts = language.toLowerCase().split(/[-_]/);
  const chain = parts.map((_, index) => parts.slice(0, parts.length - index).join("-"));
  return chain.filter((each) => each !== "en" && each !== "");
}

function findLocale(locales: PackSource["locales"], languages: readonly string[]): Locale | undefined {
  const byLanguage = new Map(Object.entries(locales).map(([name, locale]) => [languageChain(name)[0], locale]));
  const found = languages.find((language) => byLanguage.has(language));
  return found === undefined ? undefined : byLanguage.get(found);
}

function variants(name: string, languages: readonly string[]): string[] {
  return languages.map((language) => `${name}.${language}.md`);
}

interface ReadText {
  readonly segments: readonly Segment[];
  readonly warnings: readonly PackWarning[];
}

/** Reads the first of the names that exists, whatever its letter case. */
function readText({ id, texts, directory }: PackSource, names: readonly string[]): ReadText {
  const byName = new Map(Object.keys(texts).map((file) => [file.toLowerCase(), file]));
  const file = names.map((name) => byName.get(name)).find((name) => name !== undefined);
  if (file === undefined) return { segments: [], warnings: [] };
  const prepared = prepareText(texts[file]!);
  const { segments, warnings } = parseSegments(prepared.text);
  const all = [
    ...prepared.warnings,
    ...warnings.map(({ line, message }) => ({ line: prepared.originalLine(line), message })),
  ].sort((a, b) => a.line - b.line);
  return { segments, warnings: all.map((warning) => ({ pack: id, directory, file, ...warning })) };
}

/** The YAML file of a pack as people write it. Absent keys get their empty value in this file only. */
export interface PackFile {
  readonly id: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly tags?: readonly string[] | undefined;
  readonly profiles?: readonly string[] | undefined;
  readonly weight?: number | undefined;
  readonly base?: boolean | undefined;
  readonly overlaps?: readonly string[] | undefined;
  readonly detect?: readonly string[] | undefined;
  readonly globs?: readonly string[] | undefined;
  readonly nested?: boolean | undefined;
  readonly additive?: boolean | undefined;
  readonly additive_position?: AdditivePosition | undefined;
  readonly locales?: Readonly<Record<string, Locale>> | undefined;
  readonly versions?: Readonly<Record<string, string>> | undefined;
  readonly changelog?: readonly string[] | undefined;
}

export type SampleEntry = Pick<Sample, "label"> & Partial<Sample>;
export type KnownErrorEntry = Pick<KnownError, "pattern"> & Partial<KnownError>;
type LearningEntry = Pick<Learning, "slug"> & Partial<Learning>;

export interface LearningFile {
  readonly profile_filters?: object | undefined;
  readonly journeys?: readonly LearningEntry[] | undefined;
}

export interface ProfileFile {
  readonly id: string;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly packs?: readonly ProfilePack[] | undefined;
  readonly only?: readonly string[] | undefined;
  readonly tip_tags?: readonly string[] | undefined;
}

/** Everything in one pack's folder. */
export interface PackFolder {
  readonly pack: PackFile;
  readonly texts: Readonly<Record<string, string>>;
  readonly samples?: readonly SampleEntry[] | undefined;
  readonly knownErrors?: readonly KnownErrorEntry[] | undefined;
  readonly learning?: LearningFile | undefined;
  readonly skills?: readonly Skill[] | undefined;
  readonly directory: string;
}

export function createPackSource(folder: PackFolder): PackSource {
  const { pack, texts, skills = [], directory } = folder;
  const { detect = [], globs = [], nested = false } = pack;
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
    detect,
    profiles: pack.profiles ?? [],
    locales: pack.locales ?? {},
    versions: pack.versions ?? {},
    changelog: pack.changelog ?? [],
    ...{ globs, nested, texts, skills },
    samples: (folder.samples ?? []).map(createSample),
    knownErrors: (folder.knownErrors ?? []).map(createKnownError),
    learning: (folder.learning?.journeys ?? []).map(createLearning),
    directory,
  };
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

/** An entry may be a slug alone, for programs with an index of courses. Nothing is made up from it. */
function createLearning({ slug, title, url, level, hours, featured }: LearningEntry): Learning {
  return { slug, title: title ?? "", url: url ?? "", level, hours, featured: featured ?? false };
}

/** A pack's text that is safe inside a marked block with other texts: it neither ends the block nor hides the text
 *  after it. */
interface PreparedText {
  readonly text: string;
  readonly warnings: readonly LineWarning[];
  /** Returns the line in the given text for a line in the prepared text. */
  originalLine(line: number): number;
}

/** Leaves out markers that are not for the reader, and closes open fences and comments. Keeps everything else byte for
 *  byte. */
export function prepareText(text: string): PreparedText {
  const warnings: LineWarning[] = [];
  let body = text;
  let originalLine = (line: number): number => line;
  const warn = ({ line, message }: LineWarning) => warnings.push({ line: originalLine(line), message });
  // A removed line may have closed a comment, which changes the lines below. So scan again until nothing is removed.
  for (;;) {
    const found = scan(body);
    found.warnings.forEach(warn);
    if (found.dropped.length === 0) return { text: body + closing(body, found), warnings, originalLine };
    const outer = originalLine;
    originalLine = (line) =>
      outer(found.dropped.reduce((number, each) => (each <= number ? number + 1 : number), line));
    body = found.kept.join("");
  }
}

interface Scan {
  readonly kept: string[];
  /** Line numbers, ascending. */
  readonly dropped: number[];
  readonly warnings: LineWarning[];
  openFence?: Line | undefined;
  openComment?: Line | undefined;
}

function scan(text: string): Scan {
  const found: Scan = { kept: [], dropped: [], warnings: [] };
  if (!mayNeedWork(text)) return found;
  const lastCommentEnd = text.lastIndexOf("-->");
  let inMarker = false;
  found.openFence = scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    const marker = kind === "text" || kind === "comment" ? droppedMarker(content) : undefined;
    inMarker = marker !== undefined || (inMarker && kind === "comment");
    if (marker !== undefined) found.warnings.push({ line: line.number, message: marker });
    if (inMarker) found.dropped.push(line.number);
    else found.kept.push(text.slice(line.start, line.next));
    if (kind === "text" && line.start > lastCommentEnd && /^ *<!--/.test(content)) found.openComment ??= line;
    if (content.includes("-->")) inMarker = false;
  });
  if (found.dropped.length > 0) return found;
  if (found.openFence) found.warnings.push({ line: found.openFence.number, message: unclosedFence });
  if (found.openComment) found.warnings.push({ line: found.openComment.number, message: unclosedComment });
  return found;
}

/** Most texts have neither comments nor code, so they need no scan by line. */
function mayNeedWork(text: string): boolean {
  return text.includes("<!--") || text.includes("```") || text.includes("~~~");
}

const unfetched =
  "a sync:fetch marker is left out: it is not valid, or its text was not fetched. `plimsoll packs lint` says which.";
const ownMarker =
  "a marker of plimsoll's own blocks is left out, because it would end the block early. Put it into a code fence.";
const unclosedFence = "a code fence has no end. Plimsoll closes it at the end of the file.";
const unclosedComment = "an HTML comment has no end. Plimsoll closes it at the end of the file.";

/** Matches only a marker that is alone on its line: text that mentions a marker is for the reader. */
function droppedMarker(line: string): string | undefined {
  if (!/^\s*<!--/.test(line)) return undefined;
  if (/^\s*<!--\s*sync:fetch\b(?:(?!-->).)*(?:-->\s*)?$/.test(line)) return unfetched;
  return /^\s*<!--\s*plimsoll:(?:start|end|owns)\b.*-->\s*$/.test(line) ? ownMarker : undefined;
}

function closing(text: string, { openFence, openComment }: Scan): string {
  if (openComment !== undefined) return `${text.endsWith("\n") ? "" : "\n"}-->\n`;
  return openFence === undefined ? "" : `${closeFence(text).slice(text.length)}\n`;
}
