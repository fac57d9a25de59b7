/** Decides what a target will hold: as many packs as every limit allows, placed into the current file. */

import {
  type AddedPart,
  addedParts,
  type DroppedPack,
  type Pack,
  type RenderOptions,
  renderContext,
  trimPacks,
} from "../packs/index.ts";
import { type Tier, tiersAt, toPlainProse, type Verbosity, verbosities } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import type { OnOverflow } from "../workspace/index.ts";
import type { Adapter, ToolLimit } from "./adapter.ts";
import { type Budget, budgetsOf, isEnforced, type LimitUse, type MeasuredChain, useOf } from "./limits.ts";
import type { Placed, TargetFile } from "./targets.ts";

export interface DraftOptions {
  /** In order of priority. */
  readonly packs: readonly Pack[];
  /** What the block contains besides the packs. */
  readonly content: Omit<RenderOptions, "verbosity" | "verbosityOf" | "parts">;
  /** Counts the tokens of budgets and reports. */
  readonly counter: Counter;
  /** Set on the command line: overrides the configuration and the adapters. */
  readonly verbosity?: Verbosity | undefined;
  readonly verbosityOf: Readonly<Record<string, Verbosity>>;
  readonly onOverflow?: OnOverflow | undefined;
  /** Used if neither a flag nor the adapter sets it. */
  readonly defaultOnOverflow: OnOverflow;
  /** Overwrites blocks that a person edited and files that Plimsoll did not write. */
  readonly force: boolean;
}

/** The settings for all adapters of a target together. */
export interface Settings {
  readonly verbosity: Verbosity;
  readonly budget: Budget | undefined;
  readonly onOverflow: OnOverflow;
}

/** If adapters share a file, the smallest budget and the lowest verbosity apply. */
export function settingsOf(adapters: readonly Adapter[], options: DraftOptions): Settings {
  const levels = adapters.map(
    (adapter) => options.verbosity ?? ownValue(options.verbosityOf, adapter.id) ?? adapter.verbosity ?? "full",
  );
  const declared = adapters.find((adapter) => adapter.onOverflow !== undefined)?.onOverflow;
  return {
    verbosity: verbosities.find((level) => levels.includes(level)) ?? "full",
    budget: budgetsOf(adapters, options).smallest,
    onOverflow: options.onOverflow ?? declared ?? options.defaultOnOverflow,
  };
}

export type DraftStatus = "ok" | "too small" | "over budget" | "imported" | "failed";

export interface FileDraft {
  readonly status: DraftStatus;
  /** Ids of the packs in the block. */
  readonly packs: readonly string[];
  readonly dropped: readonly DroppedPack[];
  readonly thinned: readonly ThinnedPack[];
  /** The parts besides the packs that did not fit. */
  readonly leftOut: readonly AddedPart[];
  /** What the shortest text that did not fit exceeds. Absent if every text that was tried fits. */
  readonly boundBy?: "budget" | "limit" | undefined;
  /** The block with its markers. Absent if nothing fits. */
  readonly text: string | undefined;
  readonly tokens: number;
  readonly bytes: number;
  /** The tools' own limits, with how much of each is used. */
  readonly limits: readonly LimitUse[];
  /** The state of the target before the change. */
  readonly state: TargetFile;
  /** The new content of the file. The same as before if nothing may be written. */
  readonly file: string | undefined;
}

export const emptyDraft: FileDraft = {
  status: "failed",
  packs: [],
  dropped: [],
  thinned: [],
  leftOut: [],
  text: undefined,
  tokens: 0,
  bytes: 0,
  limits: [],
  state: "unknown",
  file: undefined,
};

/** The place for a body, and what is known about it. */
export interface DraftPlace {
  readonly adapters: readonly Adapter[];
  readonly limits: readonly ToolLimit[];
  readonly settings: Settings;
  readonly state: TargetFile;
  /** For each limit on a chain, the other files that the tool reads together with this text. */
  readonly chains: ReadonlyMap<ToolLimit, readonly MeasuredChain[]>;
  place(body: string): Placed;
}

/** Used if no tool is known to read another file together with this text. */
const alone: MeasuredChain = { folder: undefined, copies: 1, others: 0 };

/** Returns the largest body that fits a place. */
export function draftBody(where: DraftPlace, options: DraftOptions): FileDraft {
  const { adapters, limits: toolLimits, settings, state, chains } = where;
  const place = rememberLast(where.place);
  const enforced = toolLimits.filter(isEnforced);
  const usesOf = ({ block, file }: Placed, limits: readonly ToolLimit[]) =>
    limits.map((limit) => useOf(limit, { field: block, file, chains: chains.get(limit) ?? [alone] }, options.counter));
  const isOverHard = (placed: Placed) => usesOf(placed, enforced).some(({ exceeded }) => exceeded);
  const budgets = budgetsOf(adapters, options);
  const render = renderFor(adapters[0]!, options.content);
  let shortest = Infinity;
  let boundBy: FileDraft["boundBy"];
  const refuse = (body: string, by: FileDraft["boundBy"]): false => {
    if (body.length < shortest) [shortest, boundBy] = [body.length, by];
    return false;
  };
  const fit = fitPacks(options.packs, {
    ...settings,
    maxBytes: budgets.smallestBytes,
    render,
    fits: (body) => {
      if (budgets.smallest === undefined && enforced.length === 0) return true;
      if (body.length > budgets.mostBytes) return refuse(body, "budget");
      if (enforced.some((limit) => isFarBeyond(limit, body))) return refuse(body, "limit");
      const placed = place(body);
      if (budgets.isExceeded(placed.block)) return refuse(body, "budget");
      return !isOverHard(placed) || refuse(body, "limit");
    },
  });
  const { dropped, thinned, leftOut } = fit;
  const names = { packs: fit.packs.map((pack) => pack.id), dropped, thinned, leftOut, boundBy };
  if (fit.text === undefined) {
    const least = place(render([], () => settings.verbosity, []));
    const status = isOverHard(least) ? "over budget" : "too small";
    return { ...emptyDraft, ...names, status, state, limits: usesOf(least, toolLimits) };
  }
  const placed = place(fit.text);
  return {
    ...names,
    status: "ok",
    state,
    text: placed.block(),
    tokens: countOnce(placed.block(), options.counter),
    bytes: Buffer.byteLength(placed.block()),
    limits: usesOf(placed, toolLimits),
    file: placed.bytes(),
  };
}

/** Most targets of a run get the same block, and counting it takes longer than anything else. */
function countOnce(text: string, counter: Counter): number {
  const last = counted.get(counter);
  if (last?.text === text) return last.tokens;
  const tokens = counter.count(text);
  counted.set(counter, { text, tokens });
  return tokens;
}

const counted = new WeakMap<Counter, { readonly text: string; readonly tokens: number }>();

/** Returns whether a text is too large without an exact measurement: a UTF-16 unit has at least one byte, and a
 *  character at most two units. */
function isFarBeyond({ unit, value }: ToolLimit, body: string): boolean {
  if (unit === "bytes") return body.length > value;
  return unit === "chars" && body.length > 2 * value;
}

/** The text that fits is nearly always the last one that was tried. */
function rememberLast(place: DraftPlace["place"]): DraftPlace["place"] {
  let last: { readonly body: string; readonly placed: Placed } | undefined;
  return (body) => {
    if (last?.body !== body) last = { body, placed: place(body) };
    return last.placed;
  };
}

/** Renders the body of a block in the adapter's format. Adapters that get the same packs share one text. */
function renderFor({ format }: Pick<Adapter, "format">, content: DraftOptions["content"]): FitOptions["render"] {
  const known = rendered.get(content) ?? new Map<string, string>();
  rendered.set(content, known);
  return (packs, verbosityOf, parts) => {
    const key = JSON.stringify([format, parts, packs.map((pack) => [pack.id, verbosityOf(pack)])]);
    const body =
      known.get(key) ?? renderBody(format, renderContext(packs, { ...content, verbosity: "full", verbosityOf, parts }));
    if (known.size * body.length > MOST_RENDERED) known.clear();
    known.set(key, body);
    return body;
  };
}

/** Characters. The next file nearly always needs the drafts of the last one, but the texts may be large. */
const MOST_RENDERED = 2 ** 24;
const rendered = new WeakMap<DraftOptions["content"], Map<string, string>>();

function renderBody(format: Adapter["format"], markdown: string): string {
  return format === "plain-prose" ? toPlainProse(markdown) : markdown;
}

/** An adapter may have the id `constructor`. */
function ownValue<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** A tier that was left out of a pack so that the block fits. */
interface ThinnedPack {
  readonly id: string;
  /** The tier that was left out. */
  readonly tier: Tier;
}

export interface FitOptions {
  readonly verbosity: Verbosity;
  readonly onOverflow: OnOverflow;
  /** The budget in bytes for whole packs. 0 if the budget is not in bytes. */
  readonly maxBytes: number;
  /** Returns the text of these packs, each at its own verbosity, with these parts. */
  render(packs: readonly Pack[], verbosityOf: (pack: Pack) => Verbosity, parts: readonly AddedPart[]): string;
  /** Returns whether the text is within every limit. */
  fits(text: string): boolean;
}

interface Fit {
  /** Absent if the core of no pack fits. */
  readonly text: string | undefined;
  readonly packs: readonly Pack[];
  readonly dropped: readonly DroppedPack[];
  readonly thinned: readonly ThinnedPack[];
  readonly leftOut: readonly AddedPart[];
}

/** The part that a person wrote for this project. It is left out last. */
const ownPart: AddedPart = "Current Context";

/** Returns the most that fits. Leaves out the parts besides the packs first, and adds them again where room is left. If
 *  not even base packs fit, uses the packs that fit alone. */
export function fitPacks(packs: readonly Pack[], options: FitOptions): Fit {
  const { verbosity, onOverflow, maxBytes, fits } = options;
  const trimmed = trimPacks(packs, onOverflow === "drop" ? maxBytes : 0, verbosity);
  const whole = renderAfter(trimmed.packs, { taken: [], parts: addedParts }, options);
  // If all packs have globs, the block holds only the notes and facts of the project.
  const isExpected = trimmed.packs.length > 0 || packs.length === 0;
  if (isExpected && fits(whole)) return { ...trimmed, text: whole, thinned: [], leftOut: [] };
  const ways = [
    () => shorten(trimmed, [ownPart], options),
    () => shorten(trimmed, [], options),
    () => shortenSmall(packs, [ownPart], options),
    () => shortenSmall(packs, [], options),
  ];
  let fit = ways[0]!();
  for (const way of ways.slice(1)) if (fit.text === undefined) fit = way();
  const places = new Map(packs.map(({ id }, place) => [id, place]));
  return { ...fit, dropped: [...fit.dropped].sort((a, b) => places.get(a.id)! - places.get(b.id)!) };
}

/** Uses only packs whose core fits alone, and thins them before it drops them. */
function shortenSmall(packs: readonly Pack[], parts: readonly AddedPart[], options: FitOptions): Fit {
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
): Fit {
  const steps = stepsFor(packs, options);
  let least = 0;
  let most = steps.length;
  while (least < most) {
    const middle = (least + most) >> 1;
    if (options.fits(renderAfter(packs, { taken: steps.slice(0, middle), parts }, options))) most = middle;
    else least = middle + 1;
  }
  const taken = steps.slice(0, least);
  const kept = without(packs, taken);
  const keptIds = new Set(kept.map((pack) => pack.id));
  const inBudget = taken.flatMap(({ id, tier }) => (tier === undefined ? [{ id, reason: "budget" as const }] : []));
  return {
    ...(kept.length === 0 ? { text: undefined, leftOut: [] } : addParts(packs, { taken, parts }, options)),
    packs: kept,
    dropped: [...dropped, ...inBudget],
    thinned: taken.flatMap(({ id, tier }) => (tier !== undefined && keptIds.has(id) ? [{ id, tier }] : [])),
  };
}

/** Adds each part that still fits, the most useful first. A part without text is not left out. */
function addParts(packs: readonly Pack[], { taken, parts }: State, options: FitOptions): Pick<Fit, "text" | "leftOut"> {
  const leftOut: AddedPart[] = [];
  let added = parts;
  let text = renderAfter(packs, { taken, parts }, options);
  for (const part of addedParts.filter((each) => !parts.includes(each))) {
    const longer = renderAfter(packs, { taken, parts: [...added, part] }, options);
    if (longer === text) continue;
    if (!options.fits(longer)) {
      leftOut.push(part);
      continue;
    }
    added = [...added, part];
    text = longer;
  }
  return { text, leftOut };
}

/** One step of making the text shorter: drop a pack, or one of its tiers. */
interface Step {
  readonly id: string;
  readonly tier?: Tier;
}

/** Returns the steps, lowest priority first. With `thin`, tiers are dropped before packs. Base packs come last. */
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

/** Tables belong to a tier, just as texts do. */
function hasTier({ context, constraints, samples, learning, knownErrors }: Pack, tier: Tier): boolean {
  if (tier === "detail" && samples.some((sample) => sample.inject)) return true;
  if (tier === "extended" && (knownErrors.length > 0 || learning.some((course) => course.featured))) return true;
  return [...context, ...constraints].some((segment) => segment.tier === tier && segment.text !== "");
}

function without(packs: readonly Pack[], taken: readonly Step[]): readonly Pack[] {
  const gone = new Set(taken.filter((step) => step.tier === undefined).map((step) => step.id));
  return packs.filter((pack) => !gone.has(pack.id));
}

/** What was taken away, and the parts that are added. */
interface State {
  readonly taken: readonly Step[];
  readonly parts: readonly AddedPart[];
}

function renderAfter(packs: readonly Pack[], { taken, parts }: State, { verbosity, render }: FitOptions): string {
  const levels = new Map<string, Verbosity>();
  for (const { id, tier } of taken)
    if (tier !== undefined) levels.set(id, tier === "extended" ? "standard" : "minimal");
  return render(without(packs, taken), (pack) => levels.get(pack.id) ?? verbosity, parts);
}
