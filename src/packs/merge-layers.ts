/** The layers as one set of packs: a later layer's pack replaces an earlier one of the same id, or adds to it when it is additive. */
import { mergeSegments } from "./merge-segments.ts";
import { compareText } from "./order-packs.ts";
import type { AdditivePosition, Layer, Pack, PackSource, PackWarning } from "./pack.ts";
import { readPack } from "./read/read-pack.ts";

export interface PackLayer {
  readonly layer: Layer;
  readonly sources: readonly PackSource[];
}

export interface MergedPacks {
  /** By id. */
  readonly packs: readonly Pack[];
  readonly warnings: readonly PackWarning[];
}

/** The order of the layers counts, the order of the packs in one does not. */
export function mergeLayers(
  layers: readonly PackLayer[],
  { language }: { readonly language: string },
): MergedPacks {
  const packs = new Map<string, Pack>();
  const warnings: PackWarning[] = [];
  for (const { layer, sources } of layers) {
    for (const source of [...sources].sort(bySource)) {
      const read = readPack(source, { layer, language });
      const below = packs.get(source.id);
      const merged =
        source.additive && below !== undefined
          ? addToPack(below, read.pack, source.additivePosition)
          : read.pack;
      packs.set(source.id, merged);
      warnings.push(...read.warnings);
    }
  }
  const byId = [...packs.values()].sort((a, b) => compareText(a.id, b.id));
  return { packs: byId.map(withName), warnings };
}

function bySource(a: PackSource, b: PackSource): number {
  return compareText(a.id, b.id) || compareText(a.directory, b.directory);
}

/** Nothing of either is lost, except what the addition says anew: name, description, weight, versions, entries of the same id.
 *  Its changelog comes first whatever the position: it tells what changed last, and only the newest lines are shown. */
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
    versions: { ...base.versions, ...added.versions },
    changelog: [...new Set([...added.changelog, ...base.changelog])],
    layer: added.layer,
    preamble: preambles.filter((text) => text !== "").join("\n\n"),
    context: mergeSegments(base.context, added.context, position),
    constraints: mergeSegments(base.constraints, added.constraints, position),
    samples: mergeEntries(base.samples, added.samples, ({ id }) => id),
    knownErrors: mergeEntries(base.knownErrors, added.knownErrors, ({ id }) => id),
    learning: mergeEntries(base.learning, added.learning, ({ slug }) => slug),
  };
}

/** An entry of the same key takes the place of the old one; a new one goes to the end. */
function mergeEntries<Entry>(
  base: readonly Entry[],
  added: readonly Entry[],
  keyOf: (entry: Entry) => string,
): readonly Entry[] {
  const merged = new Map(base.map((entry) => [keyOf(entry), entry]));
  for (const entry of added) merged.set(keyOf(entry), entry);
  return [...merged.values()];
}

/** Only now, because an addition without a name keeps the name of what it adds to. */
function withName(pack: Pack): Pack {
  return pack.name === "" ? { ...pack, name: pack.id } : pack;
}
