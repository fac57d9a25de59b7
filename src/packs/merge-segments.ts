/** Additive merge of two texts in tiers: what an author of an overlay adds stays beside what it adds to, at every verbosity. */
import type { Segment, Tier } from "../text/index.ts";
import type { AdditivePosition } from "./pack.ts";

/** Each tier of `added` goes after the last segment of that tier in `base` (or before its first), one blank line between.
 *  A tier that `base` lacks goes to its end (or start). No other byte between two segments of `base` changes. */
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

/** One text a tier, in the order in which the tiers first appear; blank ones are nothing. */
function groupByTier(segments: readonly Segment[]): Segment[] {
  const texts = new Map<Tier, string>();
  for (const { tier, text } of segments) texts.set(tier, (texts.get(tier) ?? "") + text);
  return [...texts]
    .map(([tier, text]) => ({ tier, text: withoutLeadingBlankLines(text).trimEnd() }))
    .filter(isFilled);
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

/** The line breaks that ended the segment end the pair, so that what follows stands as far away as before. */
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
    const here = groups.filter(
      (group) => index === (isMissing(group) ? 0 : base.findIndex(isFilledTier(group.tier))),
    );
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

/** Not the spaces of the first line that says something: they may make it code. */
export function withoutLeadingBlankLines(text: string): string {
  const lead = /^\s*\n/.exec(text)?.[0] ?? "";
  return text.slice(lead.length);
}
