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
    const sorted = [...sources].sort((a, b) => compareText(a.id, b.id) || compareText(a.directory, b.directory));
    for (const source of sorted) {
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
  // Named at the end, because an addition without a name keeps the name of its base.
  return { packs: byId.map((pack) => (pack.name === "" ? { ...pack, name: pack.id } : pack)), warnings };
}

/** Keeps everything of both packs, except what the addition sets again: name, description, weight, globs, tools,
 *  versions, entries with the same id. The addition's changelog always comes first: it lists the newest changes, and only the newest
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
    optional: added.optional || (base.optional && added.layer !== "project"),
    overlaps: [...new Set([...base.overlaps, ...added.overlaps])],
    // A project that adds to a pack uses it. A company adds to a pack for all of its projects.
    detect: added.detect.length > 0 || added.layer === "project" ? added.detect : base.detect,
    globs: added.globs.length > 0 ? added.globs : base.globs,
    nested: base.nested || added.nested,
    tools: added.tools ?? base.tools,
    notTools: added.notTools ?? base.notTools,
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
    prompts: mergeEntries(base.prompts ?? [], added.prompts ?? [], ({ kind, name }) => `${kind}s/${name}`),
  };
}

/** An entry with a known key replaces the old one. A new entry goes to the end. */
function mergeEntries<Entry>(
  base: readonly Entry[],
  added: readonly Entry[],
  readKey: (entry: Entry) => string,
): readonly Entry[] {
  const merged = new Map(base.map((entry) => [readKey(entry), entry]));
  for (const entry of added) merged.set(readKey(entry), entry);
  return [...merged.values()];
}

/** Puts each tier of `added` after the last segment of that tier in `base` (or before its first), with one blank
 *  line between. A tier that `base` lacks goes to the end (or start). No other byte between two segments of `base`
 *  changes. */
export function mergeSegments(
  base: readonly Segment[],
  added: readonly Segment[],
  position: AdditivePosition,
): readonly Segment[] {
  const texts = new Map<Tier, string>();
  for (const { tier, text } of added) texts.set(tier, (texts.get(tier) ?? "") + text);
  const groups = [...texts]
    .map(([tier, text]) => ({ tier, text: withoutLeadingBlankLines(text).trimEnd() }))
    .filter(isFilled);
  if (groups.length === 0) return base;
  if (!base.some(isFilled)) return added;
  return position === "before" ? insertBefore(base, groups) : insertAfter(base, groups);
}

function insertAfter(base: readonly Segment[], groups: readonly Segment[]): Segment[] {
  const places = groups.map(({ tier }) => base.findLastIndex((each) => each.tier === tier && isFilled(each)));
  const merged = base.flatMap((segment, index) => {
    const own = groups[places.indexOf(index)];
    if (own === undefined) return [segment];
    // The line breaks that ended the segment now end the pair, so the distance to the next segment does not change.
    const { tier, text } = segment;
    const head = text.trimEnd();
    const tail = text.slice(head.length);
    return [
      { tier, text: `${head}\n\n` },
      { tier, text: own.text + (tail.includes("\n") ? tail : "\n") },
    ];
  });
  for (const { tier, text } of groups.filter((_group, index) => places[index] === -1)) {
    const above = merged.at(-1)!.text;
    const separator = above.endsWith("\n\n") ? "" : above.endsWith("\n") ? "\n" : "\n\n";
    merged.push({ tier, text: `${separator}${text}\n` });
  }
  return merged;
}

function insertBefore(base: readonly Segment[], groups: readonly Segment[]): Segment[] {
  const places = groups.map(({ tier }) => base.findIndex((each) => each.tier === tier && isFilled(each)));
  return base.flatMap((segment, index) => {
    const here = groups.filter((_group, at) => index === Math.max(0, places[at]!));
    if (here.length === 0) return [segment];
    const body = withoutLeadingBlankLines(segment.text);
    const lead = segment.text.slice(0, segment.text.length - body.length);
    const before = here.map(({ tier, text }, at) => ({ tier, text: `${at === 0 ? lead : ""}${text}\n\n` }));
    return [...before, { tier: segment.tier, text: body }];
  });
}

function isFilled({ text }: Segment): boolean {
  return text.trim() !== "";
}
