/** Finds the most that fits: packs give way in a fixed order, step by step, and the first state within every limit is taken.
 *  Each step only removes text, so the state is found by halving. */
import { type DroppedPack, type Pack, trimPacks } from "../../packs/index.ts";
import { type Tier, tiersAt, type Verbosity } from "../../text/index.ts";
import type { OnOverflow } from "../adapter.ts";

export interface ThinnedPack {
  readonly id: string;
  /** The tier that was left out. */
  readonly tier: Tier;
}

export interface FitOptions {
  readonly verbosity: Verbosity;
  readonly onOverflow: OnOverflow;
  /** The budget in bytes for whole packs; 0 when it is not one of bytes. */
  readonly maxBytes: number;
  /** The text that these packs make, each at its own verbosity. */
  render(packs: readonly Pack[], verbosityOf: (pack: Pack) => Verbosity): string;
  /** Whether the text is within every limit. */
  fits(text: string): boolean;
}

export interface Fit {
  /** Absent: not even the last pack's core fits. */
  readonly text: string | undefined;
  readonly packs: readonly Pack[];
  readonly dropped: readonly DroppedPack[];
  readonly thinned: readonly ThinnedPack[];
}

export function fitPacks(packs: readonly Pack[], options: FitOptions): Fit {
  const { verbosity, onOverflow, maxBytes, fits } = options;
  const trimmed = trimPacks(packs, onOverflow === "drop" ? maxBytes : 0, verbosity);
  const whole = renderAfter(trimmed.packs, [], options);
  const steps = fits(whole) ? [] : stepsFor(trimmed.packs, options);
  let least = Math.min(1, steps.length);
  let most = steps.length;
  while (least < most) {
    const middle = (least + most) >> 1;
    if (fits(renderAfter(trimmed.packs, steps.slice(0, middle), options))) most = middle;
    else least = middle + 1;
  }
  const taken = steps.slice(0, least);
  const kept = without(trimmed.packs, taken);
  const dropped: DroppedPack[] = [...trimmed.dropped];
  for (const step of taken) if (step.tier === undefined) dropped.push({ id: step.id, reason: "budget" });
  const keptIds = new Set(kept.map((pack) => pack.id));
  const text = taken.length === 0 ? whole : renderAfter(trimmed.packs, taken, options);
  return {
    text: kept.length === 0 ? undefined : text,
    packs: kept,
    dropped,
    thinned: taken.flatMap(({ id, tier }) => (tier !== undefined && keptIds.has(id) ? [{ id, tier }] : [])),
  };
}

/** A pack that goes, or one of its tiers. */
interface Step {
  readonly id: string;
  readonly tier?: Tier;
}

/** Lowest priority first. With `thin` tiers go before packs; base packs are thinned and dropped last. */
function stepsFor(packs: readonly Pack[], { verbosity, onOverflow }: FitOptions): Step[] {
  const upward = [...packs].reverse();
  const base = upward.filter((pack) => pack.base);
  const others = upward.filter((pack) => !pack.base);
  const thinning = tiersAt(verbosity).slice(1).reverse();
  const thin = (from: readonly Pack[]) =>
    thinning.flatMap((tier) => from.filter((pack) => hasTier(pack, tier)).map(({ id }) => ({ id, tier })));
  const drop = (from: readonly Pack[]) => from.map(({ id }) => ({ id }));
  const steps: Step[] = onOverflow === "thin" ? thin(upward) : [];
  steps.push(...drop(others));
  if (onOverflow === "drop") steps.push(...thin(base));
  steps.push(...drop(base));
  return steps;
}

/** Tables are of a tier as texts are. */
function hasTier({ context, constraints, samples, learning, knownErrors }: Pack, tier: Tier): boolean {
  if (tier === "detail" && samples.some((sample) => sample.inject)) return true;
  if (tier === "extended" && (knownErrors.length > 0 || learning.some((course) => course.featured)))
    return true;
  return [...context, ...constraints].some((segment) => segment.tier === tier && segment.text !== "");
}

function without(packs: readonly Pack[], taken: readonly Step[]): readonly Pack[] {
  const gone = new Set(taken.filter((step) => step.tier === undefined).map((step) => step.id));
  return packs.filter((pack) => !gone.has(pack.id));
}

function renderAfter(
  packs: readonly Pack[],
  taken: readonly Step[],
  { verbosity, render }: FitOptions,
): string {
  const levels = new Map<string, Verbosity>();
  for (const { id, tier } of taken)
    if (tier !== undefined) levels.set(id, tier === "extended" ? "standard" : "minimal");
  return render(without(packs, taken), (pack) => levels.get(pack.id) ?? verbosity);
}
