/** One pack in one language: the right variant of each text, cut into tiers. */
import { parseSegments, type Segment } from "../../text/index.ts";
import type { Layer, Locale, Pack, PackSource, PackWarning } from "../pack.ts";
import { prepareText } from "./prepare-text.ts";

export interface ReadPack {
  readonly pack: Pack;
  readonly warnings: readonly PackWarning[];
}

/** The texts that a pack's folder may hold: each with variants such as `context.de.md`, and `context.expanded.md` with what was fetched. */
export const packTextName: RegExp = /^(context|constraints|preamble)(\.[a-z]{2,8}(-[a-z0-9]{1,8})*)?\.md$/i;

export function readPack(
  source: PackSource,
  { layer, language }: { readonly layer: Layer; readonly language: string },
): ReadPack {
  const languages = languageChain(language);
  const locale = findLocale(source.locales, languages);
  const context = readText(source, [...variants("context", languages), "context.expanded.md", "context.md"]);
  const constraints = readText(source, [...variants("constraints", languages), "constraints.md"]);
  const preamble = readText(source, [...variants("preamble", languages), "preamble.md"]);
  const { id, description, tags, weight, base, overlaps, versions, changelog } = source;
  const pack: Pack = {
    ...{ id, tags, weight, base, overlaps, versions, changelog, layer },
    name: locale?.name || source.name,
    description: locale?.description || description,
    // A preamble is core as a whole: it is never thinned.
    preamble: preamble.segments
      .map(({ text }) => text)
      .join("")
      .trim(),
    context: context.segments,
    constraints: constraints.segments,
    samples: source.samples,
    knownErrors: source.knownErrors,
    learning: source.learning,
  };
  return { pack, warnings: [context, constraints, preamble].flatMap(({ warnings }) => warnings) };
}

/** `de-AT` → de-at, de. Never `en`: that is the text without a language in its name. */
function languageChain(language: string): string[] {
  const parts = language.toLowerCase().split(/[-_]/);
  const chain = parts.map((_, index) => parts.slice(0, parts.length - index).join("-"));
  return chain.filter((each) => each !== "en" && each !== "");
}

function findLocale(locales: PackSource["locales"], languages: readonly string[]): Locale | undefined {
  const byLanguage = new Map(
    Object.entries(locales).map(([name, locale]) => [languageChain(name)[0], locale]),
  );
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

/** The first of the names that is there, whatever its case. */
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
