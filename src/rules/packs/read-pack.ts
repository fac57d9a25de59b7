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
  Prompt,
  Sample,
  Skill,
} from "./pack.ts";

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
): { readonly pack: Pack; readonly warnings: readonly PackWarning[] } {
  const languages = languageChain(language);
  const locales = new Map(Object.entries(source.locales).map(([name, each]) => [languageChain(name)[0], each]));
  const locale = languages.map((each) => locales.get(each)).find((each) => each !== undefined);
  const variants = (name: string) => languages.map((each) => `${name}.${each}.md`);
  const context = readText(source, [...variants("context"), "context.expanded.md", "context.md"]);
  const constraints = readText(source, [...variants("constraints"), "constraints.md"]);
  const preamble = readText(source, [...variants("preamble"), "preamble.md"]);
  const folder = source.directory.split(/[\\/]/).at(-1);
  const pack: Pack = {
    id: source.id,
    name: locale?.name || source.name,
    description: locale?.description || source.description,
    tags: source.tags,
    weight: source.weight,
    base: source.base,
    overlaps: source.overlaps,
    detect: source.detect,
    globs: source.globs,
    nested: source.nested,
    tools: source.tools,
    notTools: source.notTools,
    optional: source.optional,
    versions: source.versions,
    changelog: source.changelog,
    layer,
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
    skills: source.skills.map((skill) => ({
      ...skill,
      // Agents read a skill as it is, so only markers that mean something to Plimsoll are left out.
      files: { ...skill.files, "SKILL.md": prepareText(skill.files["SKILL.md"] ?? "").text },
      ...(layer === "project" &&
        skill.path === undefined && { path: `.plimsoll/packs/${folder}/skills/${skill.name}/SKILL.md` }),
    })),
    prompts: source.prompts?.map((prompt) => ({ ...prompt, body: prepareText(prompt.body).text })),
  };
  return { pack, warnings: [context, constraints, preamble].flatMap(({ warnings }) => warnings) };
}

/** `de-AT` → de-at, de. Never `en`: English is the text without a language in its name. */
function languageChain(language: string): string[] {
  const parts = language.toLowerCase().split(/[-_]/);
  const chain = parts.map((_, index) => parts.slice(0, parts.length - index).join("-"));
  return chain.filter((each) => each !== "en" && each !== "");
}

/** Reads the first of the names that exists, whatever its letter case. */
function readText(
  { id, texts, segments: known, directory }: PackSource,
  names: readonly string[],
): { readonly segments: readonly Segment[]; readonly warnings: readonly PackWarning[] } {
  const byName = new Map(Object.keys(texts).map((file) => [file.toLowerCase(), file]));
  const file = names.map((name) => byName.get(name)).find((name) => name !== undefined);
  if (file === undefined) return { segments: [], warnings: [] };
  const found = known?.[file];
  if (found !== undefined) return { segments: found, warnings: [] };
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
  readonly tools?: readonly string[] | undefined;
  readonly not_tools?: readonly string[] | undefined;
  readonly optional?: boolean | undefined;
  readonly additive?: boolean | undefined;
  readonly additive_position?: AdditivePosition | undefined;
  readonly locales?: Readonly<Record<string, Locale>> | undefined;
  readonly versions?: Readonly<Record<string, string>> | undefined;
  readonly changelog?: readonly string[] | undefined;
}

export type SampleEntry = Pick<Sample, "label"> & Partial<Sample>;
export type KnownErrorEntry = Pick<KnownError, "pattern"> & Partial<KnownError>;
export interface LearningFile {
  readonly profile_filters?: object | undefined;
  readonly journeys?: readonly (Pick<Learning, "slug"> & Partial<Learning>)[] | undefined;
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
  readonly prompts?: readonly Prompt[] | undefined;
  readonly directory: string;
}

export function createPackSource(folder: PackFolder): PackSource {
  const { pack, samples = [], knownErrors = [], learning: { journeys = [] } = {}, skills = [], prompts = [] } = folder;
  const { name = "", description = "", tags = [], weight = 0, base = false, additive = false } = pack;
  const { overlaps = [], detect = [], globs = [], nested = false, optional = false, profiles = [] } = pack;
  const { locales = {}, versions = {}, changelog = [] } = pack;
  return {
    id: pack.id,
    name,
    description,
    tags,
    weight,
    base,
    additive,
    additivePosition: pack.additive_position ?? "after",
    overlaps,
    detect,
    globs,
    nested,
    tools: pack.tools,
    notTools: pack.not_tools,
    optional,
    profiles,
    locales,
    versions,
    changelog,
    texts: folder.texts,
    skills,
    ...(prompts.length > 0 && { prompts }),
    samples: samples.map(({ label, id = label, url = "", description = "", tags = [], inject = false }) => ({
      id,
      label,
      url,
      description,
      tags,
      inject,
    })),
    knownErrors: knownErrors.map(({ pattern, id = pattern, cause = "", fix = "", docs, tags = [] }) => ({
      id,
      pattern,
      cause,
      fix,
      docs,
      tags,
    })),
    // An entry may be a slug alone, for programs with an index of courses. Nothing is made up from it.
    learning: journeys.map(({ slug, title = "", url = "", level, hours, featured = false }) => ({
      slug,
      title,
      url,
      level,
      hours,
      featured,
    })),
    directory: folder.directory,
  };
}

/** Makes a pack's text safe inside a marked block with other texts: it neither ends the block nor hides the text after
 *  it. Leaves out markers that are not for the reader, and closes open fences and comments. Keeps everything else byte
 *  for byte. `originalLine` maps a line of the prepared text to its line in the given one. */
export function prepareText(text: string): {
  readonly text: string;
  readonly warnings: readonly LineWarning[];
  originalLine(line: number): number;
} {
  const warnings: LineWarning[] = [];
  let body = text;
  let originalLine = (line: number): number => line;
  const warn = ({ line, message }: LineWarning) => warnings.push({ line: originalLine(line), message });
  // A removed line may have closed a comment, which changes the lines below. So scan again until nothing is removed.
  for (;;) {
    const found = scan(body);
    found.warnings.forEach(warn);
    if (found.dropped.length === 0) {
      const { openComment, openFence } = found;
      if (openComment !== undefined) body += `${body.endsWith("\n") ? "" : "\n"}-->\n`;
      else if (openFence !== undefined) body = `${closeFence(body)}\n`;
      return { text: body, warnings, originalLine };
    }
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
  // Most texts have neither comments nor code, so they need no scan by line.
  if (!/<!--|```|~~~/.test(text)) return found;
  const lastCommentEnd = text.lastIndexOf("-->");
  let inMarker = false;
  found.openFence = scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    const marker = kind === "text" || kind === "comment" ? explainDropped(content) : undefined;
    inMarker = marker !== undefined || (inMarker && kind === "comment");
    if (marker !== undefined) found.warnings.push({ line: line.number, message: marker });
    if (inMarker) found.dropped.push(line.number);
    else found.kept.push(text.slice(line.start, line.next));
    if (kind === "text" && line.start > lastCommentEnd && /^ *<!--/.test(content)) found.openComment ??= line;
    if (content.includes("-->")) inMarker = false;
  });
  if (found.dropped.length > 0) return found;
  const warnUnclosed = (line: Line | undefined, what: string) =>
    line &&
    found.warnings.push({
      line: line.number,
      message: `${what} has no end. Plimsoll closes it at the end of the file.`,
    });
  warnUnclosed(found.openFence, "a code fence");
  warnUnclosed(found.openComment, "an HTML comment");
  return found;
}

/** Matches only a marker that is alone on its line: text that mentions a marker is for the reader. */
function explainDropped(line: string): string | undefined {
  if (!/^\s*<!--/.test(line)) return undefined;
  if (/^\s*<!--\s*sync:fetch\b(?:(?!-->).)*(?:-->\s*)?$/.test(line)) {
    return "a sync:fetch marker is left out: it is not valid, or its text was not fetched. `plimsoll packs lint` says which.";
  }
  return /^\s*<!--\s*plimsoll:(?:start|end|owns)\b.*-->\s*$/.test(line)
    ? "a marker of plimsoll's own blocks is left out, because it would end the block early. Put it into a code fence."
    : undefined;
}
