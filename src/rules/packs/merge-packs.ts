/** Merges the layers of content: a later layer replaces a pack of an earlier one, or adds to it. */

import { compareText, type Segment, type Tier, withoutLeadingBlankLines } from "../../core/text/index.ts";
import type { AdditivePosition, ContentLayer, Pack, PackSource, PackWarning } from "./pack.ts";
import { readPack } from "./read-pack.ts";

/** One layer of packs. A later layer's pack replaces an earlier one of the same id, or adds to it if it is additive. */
export interface PackLayer {
  readonly layer: ContentLayer;
  readonly sources: readonly PackSource[];
}

export interface MergedPacks {
  /** Sorted by id. */
  readonly packs: readonly Pack[];
  readonly warnings: readonly PackWarning[];
}

/** Merges the layers into one set of packs. The order of the layers matters, the order of packs in a layer does not. */
export function mergeLayers(
  contentLayers: readonly PackLayer[],
  { language }: { readonly language: string },
): MergedPacks {
  const packs = new Map<string, Pack>();
  let warnings: PackWarning[] = [];
  for (const { layer, sources } of contentLayers) {
    for (const source of [...sources].sort(bySource)) {
      const read = readPack(source, { layer, language });
      const below = packs.get(source.id);
      const isAdded = source.additive && below !== undefined;
      packs.set(source.id, isAdded ? addToPack(below, read.pack, source.additivePosition) : read.pack);
      // Nobody reads the text of a pack that is replaced.
      if (!isAdded && below !== undefined) warnings = warnings.filter(({ pack }) => pack !== source.id);
      warnings.push(...read.warnings);
    }
  }
  const byId = [...packs.values()].sort((a, b) => compareText(a.id, b.id));
  return { packs: byId.map(withName), warnings };
}

function bySource(a: PackSource, b: PackSource): number {
  return compareText(a.id, b.id) || compareText(a.directory, b.directory);
}

/** Keeps everything of both packs, except what the addition sets again: name, description, weight, globs, versions,
 *  entries with the same id. The addition's changelog always comes first: it lists the newest changes, and only the newest
 *  lines are shown. */
function addToPack(base: Pack, added: Pack, position: AdditivePosition): Pack {
  const preambles = position === "before" ? [added.preamble, base.preamble] : [base.preamble, added.preamble];
  return {
    id: base.id,
    name: added.name || base.name,
    description: added.description || base.description,
    tags: [...new Set([...base.tags, ...added.tags])],
    weight: added.weight || base.weight,
    base: base.base || added.base,
    overlaps: [...new Set([...base.overlaps, ...added.overlaps])],
    // A project that adds to a pack uses it. A company adds to a pack for all of its projects.
    detect: added.detect.length > 0 || added.layer === "project" ? added.detect : base.detect,
    globs: added.globs.length > 0 ? added.globs : base.globs,
    nested: base.nested || added.nested,
    versions: { ...base.versions, ...added.versions },
    changelog: [...new Set([...added.changelog, ...base.changelog])],
    layer: added.layer,
    preamble: preambles.filter((text) => text !== "").join("\n\n"),
    context: mergeSegments(base.context, added.context, position),
    constraints: mergeSegments(base.constraints, added.constraints, position),
    samples: mergeEntries(base.samples, added.samples, ({ id }) => id),
    knownErrors: mergeEntries(base.knownErrors, added.knownErrors, ({ id }) => id),
    learning: mergeEntries(base.learning, added.learning, ({ slug }) => slug),
    skills: mergeEntries(base.skills, added.skills, ({ name }) => name),
  };
}

/** An entry with a known key replaces the old one. A new entry goes to the end. */
function mergeEntries<Entry>(
  base: readonly Entry[],
  added: readonly Entry[],
  keyOf: (entry: Entry) => string,
): readonly Entry[] {
  const merged = new Map(base.map((entry) => [keyOf(entry), entry]));
  for (const entry of added) merged.set(keyOf(entry), entry);
  return [...merged.values()];
}

/** Set at the end, because an addition without a name keeps the name of its base. */
function withName(pack: Pack): Pack {
  return pack.name === "" ? { ...pack, name: pack.id } : pack;
}

/** Puts each tier of `added` after the last segment of that tier in `base` (or before its first), with one blank
 *  line between. A tier that `base` lacks goes to the end (or start). No other byte between two segments of `base`
 *  changes. */
export function mergeSegments(
  base: readonly Segment[],
  added: readonly Segment[],
  position: AdditivePosition,
): readonly Segment[] {
  const groups = groupByTier(added);
  if (groups.length === 0) return base;
  if (!base.some(isFilled)) return added;
  return position === "before" ? mergeBefore(base, groups) : mergeAfter(base, groups);
}

/** Returns one text per tier, in the order in which the tiers first appear. Leaves out blank tiers. */
function groupByTier(segments: readonly Segment[]): Segment[] {
  const texts = new Map<Tier, string>();
  for (const { tier, text } of segments) texts.set(tier, (texts.get(tier) ?? "") + text);
  return [...texts].map(([tier, text]) => ({ tier, text: withoutLeadingBlankLines(text).trimEnd() })).filter(isFilled);
}

function mergeAfter(base: readonly Segment[], groups: readonly Segment[]): Segment[] {
  const merged = base.flatMap((segment, index) => {
    const own = groups.find(({ tier }) => index === base.findLastIndex(isFilledTier(tier)));
    return own === undefined ? [segment] : joinAfter(segment, own.text);
  });
  for (const { tier, text } of groups.filter(isMissingIn(base))) {
    merged.push({ tier, text: `${separatorAfter(merged.at(-1)!.text)}${text}\n` });
  }
  return merged;
}

/** The line breaks that ended the segment now end the pair, so the distance to the next segment does not change. */
function joinAfter({ tier, text }: Segment, added: string): Segment[] {
  const head = text.trimEnd();
  const tail = text.slice(head.length);
  return [
    { tier, text: `${head}\n\n` },
    { tier, text: added + (tail.includes("\n") ? tail : "\n") },
  ];
}

function separatorAfter(text: string): string {
  if (text.endsWith("\n\n")) return "";
  return text.endsWith("\n") ? "\n" : "\n\n";
}

function mergeBefore(base: readonly Segment[], groups: readonly Segment[]): Segment[] {
  const isMissing = isMissingIn(base);
  return base.flatMap((segment, index) => {
    const here = groups.filter((group) => index === (isMissing(group) ? 0 : base.findIndex(isFilledTier(group.tier))));
    return here.length === 0 ? [segment] : joinBefore(here, segment);
  });
}

function joinBefore(added: readonly Segment[], { tier, text }: Segment): Segment[] {
  const body = withoutLeadingBlankLines(text);
  const lead = text.slice(0, text.length - body.length);
  const before = added.map((each, index) => ({
    tier: each.tier,
    text: `${index === 0 ? lead : ""}${each.text}\n\n`,
  }));
  return [...before, { tier, text: body }];
}

function isMissingIn(base: readonly Segment[]): (group: Segment) => boolean {
  return ({ tier }) => !base.some(isFilledTier(tier));
}

function isFilledTier(tier: Tier): (segment: Segment) => boolean {
  return (segment) => segment.tier === tier && isFilled(segment);
}

function isFilled({ text }: Segment): boolean {
  return text.trim() !== "";
}
