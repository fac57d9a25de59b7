/** Chooses the packs of a text that has a limit: without packs that others include, and with as much of the rest as
 *  fits. */
import { Buffer } from "../../core/bytes.ts";
import { type Tier, textAt, tiersAt, type Verbosity } from "../../core/text/index.ts";
import type { Pack } from "./pack.ts";
import { type AddedPart, addedParts } from "./render-context.ts";

export interface TrimmedPacks {
  readonly packs: readonly Pack[];
  readonly dropped: readonly DroppedPack[];
}

export interface DroppedPack {
  readonly id: string;
  readonly reason: "overlap" | "budget";
  /** The pack that includes it. */
  readonly by?: string | undefined;
}

/** Drops packs that another pack includes, then keeps as many as fit into `maxBytes` (0 or less means no limit).
 *  `packs` are sorted, most important first, and required packs get the budget first, then the person's own packs. Base packs come
 *  first and are always kept. The first pack that does not fit is dropped with all packs after it, so no smaller pack
 *  takes its place. */
export function trimPacks(packs: readonly Pack[], maxBytes: number, verbosity: Verbosity): TrimmedPacks {
  const base = packs.filter((pack) => pack.base);
  const { kept, dropped } = dropSubsumed(packs.filter((pack) => !pack.base));
  const ranked = [...kept].sort((a, b) => rank(b) - rank(a));
  let fitting = 0;
  let used = 0;
  for (const { context, constraints } of ranked) {
    used += Buffer.byteLength(textAt(context, verbosity)) + Buffer.byteLength(textAt(constraints, verbosity));
    if (maxBytes > 0 && used > maxBytes) break;
    fitting++;
  }
  const gone = new Set(ranked.slice(fitting));
  return {
    packs: [...base, ...kept.filter((pack) => !gone.has(pack))],
    dropped: [...dropped, ...[...gone].map(({ id }) => ({ id, reason: "budget" as const }))],
  };
}

/** How long a pack stays: 2 if the company requires it, 1 if a person wrote it, or a part of it, for this place: in the
 *  project, or for all their projects. */
function rank({ layer, required }: Pack): 0 | 1 | 2 {
  return required ? 2 : layer === "project" || layer === "user" ? 1 : 0;
}

/** A pack is dropped if a pack that it names came earlier and was kept, whatever their weights. This is not transitive.
 *  If two packs name each other, the earlier one is kept. */
function dropSubsumed(packs: readonly Pack[]): { kept: Pack[]; dropped: DroppedPack[] } {
  const kept: Pack[] = [];
  const dropped: DroppedPack[] = [];
  const included = new Set<string>();
  for (const pack of packs) {
    const by = pack.overlaps.find((id) => included.has(id));
    if (by !== undefined) {
      dropped.push({ id: pack.id, reason: "overlap", by });
      continue;
    }
    kept.push(pack);
    included.add(pack.id);
  }
  return { kept, dropped };
}

export interface FitOptions {
  readonly verbosity: Verbosity;
  /** Whether to drop whole packs first, or tiers of packs. */
  readonly onOverflow: "drop" | "thin";
  /** The budget in bytes for whole packs. 0 if the budget is not in bytes. */
  readonly maxBytes: number;
  /** Returns the text of these packs, each at its own verbosity, with these parts. */
  render(packs: readonly Pack[], verbosityOf: (pack: Pack) => Verbosity, parts: readonly AddedPart[]): string;
  /** Returns whether the text is within every limit. */
  fits(text: string): boolean;
}

export interface Fit {
  /** Absent if the core of no pack fits. */
  readonly text: string | undefined;
  readonly packs: readonly Pack[];
  readonly dropped: readonly DroppedPack[];
  /** The tiers that were left out of packs so that the block fits. */
  readonly thinned: readonly { readonly id: string; readonly tier: Tier }[];
  /** The parts besides the packs that did not fit. */
  readonly leftOut: readonly AddedPart[];
  /** Required packs and the person's own packs that are not there as a whole. */
  readonly lost: readonly LostPack[];
}

export interface LostPack {
  readonly id: string;
  readonly required: boolean;
  /** The tiers that are missing. Empty if the whole pack is missing. */
  readonly tiers: readonly Tier[];
}

/** The part that a person wrote for this project. It is left out last. */
const ownPart: AddedPart = "Current Context";

/** Returns the most that fits. Leaves out the parts besides the packs first, and adds them again where room is left. If
 *  not even base packs fit, uses the packs that fit alone. */
export function fitPacks(packs: readonly Pack[], options: FitOptions): Fit {
  const { verbosity, onOverflow, maxBytes, render, fits } = options;
  const trimmed = trimPacks(packs, onOverflow === "drop" ? maxBytes : 0, verbosity);
  const whole = render(trimmed.packs, () => verbosity, addedParts);
  // If all packs have globs, the block holds only the notes and facts of the project.
  const isExpected = trimmed.packs.length > 0 || packs.length === 0;
  const complete = { ...trimmed, text: whole, thinned: [], leftOut: [] };
  if (isExpected && fits(whole)) return { ...complete, lost: listLost(packs, complete) };
  let fit = shorten(trimmed, [ownPart], options);
  if (fit.text === undefined) fit = shorten(trimmed, [], options);
  if (fit.text === undefined) fit = shortenSmall(packs, [ownPart], options);
  if (fit.text === undefined) fit = shortenSmall(packs, [], options);
  const places = new Map(packs.map(({ id }, place) => [id, place]));
  const dropped = [...fit.dropped].sort((a, b) => places.get(a.id)! - places.get(b.id)!);
  return { ...fit, dropped, lost: listLost(packs, fit) };
}

/** A pack that another one includes is not lost. */
function listLost(packs: readonly Pack[], { dropped, thinned }: Pick<Fit, "dropped" | "thinned">): LostPack[] {
  return packs.filter(rank).flatMap(({ id, required = false }) => {
    const tiers = thinned.filter((each) => each.id === id).map(({ tier }) => tier);
    const isGone = dropped.some((each) => each.id === id && each.reason === "budget");
    return isGone || tiers.length > 0 ? [{ id, required, tiers: tiers.reverse() }] : [];
  });
}

/** Uses only packs whose core fits alone, and thins them before it drops them. */
function shortenSmall(packs: readonly Pack[], parts: readonly AddedPart[], options: FitOptions): Omit<Fit, "lost"> {
  const { render, fits, verbosity } = options;
  const core = (some: readonly Pack[]) => render(some, () => "minimal", parts);
  const empty = core([]);
  const small = packs.filter((pack) => {
    const text = core([pack]);
    return text !== empty && fits(text);
  });
  const trimmed = trimPacks(small, 0, verbosity);
  const large = packs.filter((pack) => !small.includes(pack)).map(({ id }) => ({ id, reason: "budget" as const }));
  const dropped = [...trimmed.dropped, ...large];
  return shorten({ packs: trimmed.packs, dropped }, parts, { ...options, onOverflow: "thin" });
}

/** Each step only removes text, so bisection finds the first state within every limit. */
function shorten(
  { packs, dropped }: Pick<Fit, "packs" | "dropped">,
  parts: readonly AddedPart[],
  options: FitOptions,
): Omit<Fit, "lost"> {
  const steps = planSteps(packs, options);
  let least = 0;
  let most = steps.length;
  while (least < most) {
    const middle = (least + most) >> 1;
    if (options.fits(renderAfter(packs, { taken: steps.slice(0, middle), parts }, options))) most = middle;
    else least = middle + 1;
  }
  const taken = steps.slice(0, least);
  const kept = dropPacks(packs, taken);
  const leftOut: AddedPart[] = [];
  let added = parts;
  let text = renderAfter(packs, { taken, parts }, options);
  // Adds each part that still fits, the most useful first. A part without text is not left out.
  for (const part of kept.length === 0 ? [] : addedParts.filter((each) => !parts.includes(each))) {
    const longer = renderAfter(packs, { taken, parts: [...added, part] }, options);
    if (options.fits(longer)) [added, text] = [[...added, part], longer];
    else leftOut.push(part);
  }
  const keptIds = new Set(kept.map((pack) => pack.id));
  const overBudget = taken.flatMap(({ id, tier }) => (tier === undefined ? [{ id, reason: "budget" as const }] : []));
  return {
    text: kept.length === 0 ? undefined : text,
    leftOut,
    packs: kept,
    dropped: [...dropped, ...overBudget],
    // The steps on packs that are kept have dropped tiers.
    thinned: taken.filter(({ id }) => keptIds.has(id)) as Fit["thinned"],
  };
}

/** One step of making the text shorter: drop a pack, or one of its tiers. */
interface Step {
  readonly id: string;
  readonly tier?: Tier;
}

/** Returns the steps, lowest priority first. With `thin`, tiers are dropped before packs. A person's own packs are
 *  thinned after all others, and dropped after all others; then come required packs. Of each of these groups, base packs
 *  are dropped last. */
function planSteps(packs: readonly Pack[], { verbosity, onOverflow }: FitOptions): Step[] {
  const thinning = tiersAt(verbosity).slice(1).reverse();
  // Tables belong to a tier, just as texts do.
  const hasTier = ({ context, constraints, samples, learning, knownErrors }: Pack, tier: Tier) =>
    (tier === "detail" && samples.some((sample) => sample.inject)) ||
    (tier === "extended" && (knownErrors.length > 0 || learning.some((course) => course.featured))) ||
    [...context, ...constraints].some((segment) => segment.tier === tier && segment.text !== "");
  const thin = (from: readonly Pack[]) =>
    thinning.flatMap((tier) => from.filter((pack) => hasTier(pack, tier)).map(({ id }) => ({ id, tier })));
  const drop = (from: readonly Pack[]) => from.map(({ id }) => ({ id }));
  const upward = [...packs].reverse();
  const groups = [0, 1, 2].map((each) => upward.filter((pack) => rank(pack) === each));
  const steps: Step[] = onOverflow === "thin" ? groups.flatMap(thin) : [];
  for (const group of groups) {
    const base = group.filter((pack) => pack.base);
    steps.push(...drop(group.filter((pack) => !pack.base)));
    if (onOverflow === "drop") steps.push(...thin(base));
    steps.push(...drop(base));
  }
  return steps;
}

function dropPacks(packs: readonly Pack[], taken: readonly Step[]): readonly Pack[] {
  const gone = new Set(taken.filter((step) => step.tier === undefined).map((step) => step.id));
  return packs.filter((pack) => !gone.has(pack.id));
}

function renderAfter(
  packs: readonly Pack[],
  { taken, parts }: { readonly taken: readonly Step[]; readonly parts: readonly AddedPart[] },
  { verbosity, render }: FitOptions,
): string {
  const levels = new Map<string, Verbosity>();
  for (const { id, tier } of taken) levels.set(id, tier === "extended" ? "standard" : "minimal");
  return render(dropPacks(packs, taken), (pack) => levels.get(pack.id) ?? verbosity, parts);
}
