/** Decides what a target shall hold: as many packs as every limit allows, placed into what is there. */
import { type DroppedPack, type Pack, type RenderOptions, renderContext } from "../../packs/index.ts";
import { toPlainProse, type Verbosity, verbosities } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import type { Adapter, OnOverflow, ToolLimit } from "../adapter.ts";
import { type FileState, type Placed, placeBody, refuseTarget } from "../targets/file-target.ts";
import type { FileTarget } from "../targets/targets.ts";
import { type FitOptions, fitPacks, type ThinnedPack } from "./fit-packs.ts";
import {
  type Budget,
  budgetBytes,
  budgetOf,
  isEnforced,
  isFarBeyond,
  isOverBudget,
  type LimitUse,
  type MeasuredChain,
  useOf,
} from "./limits.ts";

export interface DraftOptions {
  /** In their order of priority. */
  readonly packs: readonly Pack[];
  /** What the block says besides the packs. */
  readonly content: Omit<RenderOptions, "verbosity" | "verbosityOf">;
  /** Counts tokens of budgets and reports. */
  readonly counter: Counter;
  /** Whether the user chose the counter: else a token of a budget is 4 bytes. */
  readonly counterChosen: boolean;
  /** For every adapter, over what configuration and adapters say. */
  readonly verbosity?: Verbosity | undefined;
  readonly verbosityOf: Readonly<Record<string, Verbosity>>;
  readonly onOverflow?: OnOverflow | undefined;
  /** Where neither a flag nor the adapter says. */
  readonly defaultOnOverflow: OnOverflow;
  /** Overwrites blocks that were edited by hand and files that are not ours. */
  readonly force: boolean;
}

/** What rules for all adapters of a target together. */
export interface Settings {
  readonly verbosity: Verbosity;
  readonly budget: Budget | undefined;
  readonly onOverflow: OnOverflow;
}

/** Of adapters that share a file the smallest budget and the lowest verbosity rule. */
export function settingsOf(adapters: readonly Adapter[], options: DraftOptions): Settings {
  const levels = adapters.map(
    (adapter) =>
      options.verbosity ?? ownValue(options.verbosityOf, adapter.id) ?? adapter.verbosity ?? "full",
  );
  const inBytes = (budget: Budget) => budget.value * (budget.unit === "tokens" ? 4 : 1);
  const budgets = adapters
    .flatMap((adapter) => budgetOf(adapter) ?? [])
    .sort((a, b) => inBytes(a) - inBytes(b));
  const declared = adapters.find((adapter) => adapter.onOverflow !== undefined)?.onOverflow;
  return {
    verbosity: verbosities.find((level) => levels.includes(level)) ?? "full",
    budget: budgets[0],
    onOverflow: options.onOverflow ?? declared ?? options.defaultOnOverflow,
  };
}

export type DraftStatus = "ok" | "too small" | "over budget" | "imported" | "failed";

export interface Draft {
  readonly status: DraftStatus;
  /** Ids of the packs that are in the block. */
  readonly packs: readonly string[];
  readonly dropped: readonly DroppedPack[];
  readonly thinned: readonly ThinnedPack[];
  /** The block with its markers; absent when nothing fits. */
  readonly text: string | undefined;
  readonly tokens: number;
  readonly bytes: number;
  /** The tools' own limits and how much of each is used. */
  readonly limits: readonly LimitUse[];
  /** How the target was found. */
  readonly state: FileState;
  /** What the file shall be; the same as before when nothing may be written. */
  readonly file: string | undefined;
}

export const emptyDraft: Draft = {
  status: "failed",
  packs: [],
  dropped: [],
  thinned: [],
  text: undefined,
  tokens: 0,
  bytes: 0,
  limits: [],
  state: "unknown",
  file: undefined,
};

/** Where a body goes, and what is known of that place. */
export interface Place {
  readonly adapters: readonly Adapter[];
  readonly limits: readonly ToolLimit[];
  readonly settings: Settings;
  readonly state: FileState;
  /** What the tool reads together with this text, for each limit on the chain. */
  readonly chains: ReadonlyMap<ToolLimit, readonly MeasuredChain[]>;
  place(body: string): Placed;
}

type FileSurroundings = Pick<Place, "settings" | "state" | "chains"> & { readonly target: FileTarget };

/** `current` and the result are byte strings. */
export function draftFile(
  current: string | undefined,
  { target, state, chains, settings }: FileSurroundings,
  options: DraftOptions,
): Draft {
  refuseTarget(state, { current, target: target.target, force: options.force });
  const place = (body: string) => placeBody(current, body, target.target);
  const { adapters, limits } = target;
  const draft = draftBody({ adapters, limits, settings, state, chains, place }, options);
  return draft.status === "ok" ? draft : { ...draft, file: current };
}

/** A text that no tool is known to read with another one. */
const alone: MeasuredChain = { folder: undefined, copies: 1, others: 0 };

/** The most that fits a place. */
export function draftBody(where: Place, options: DraftOptions): Draft {
  const { adapters, limits: toolLimits, settings, state, chains } = where;
  const place = rememberLast(where.place);
  const enforced = toolLimits.filter(isEnforced);
  const usesOf = ({ block, file }: Placed, limits: readonly ToolLimit[]) =>
    limits.map((limit) =>
      useOf(limit, { field: block, file, chains: chains.get(limit) ?? [alone] }, options.counter),
    );
  const isOverHard = (placed: Placed) => usesOf(placed, enforced).some(({ exceeded }) => exceeded);
  // All of them: of bytes and counted tokens none is the smallest beforehand.
  const budgets = adapters.flatMap((adapter) => budgetOf(adapter) ?? []);
  const leastBytes = Math.min(
    ...budgets.map((budget) => budgetBytes(budget, options.counterChosen) || Infinity),
  );
  const render = renderFor(adapters[0]!, options.content);
  const fit = fitPacks(options.packs, {
    ...settings,
    maxBytes: budgetBytes(settings.budget, options.counterChosen),
    render,
    fits: (body) => {
      if (budgets.length === 0 && enforced.length === 0) return true;
      if (body.length > leastBytes || enforced.some((limit) => isFarBeyond(limit, body))) return false;
      const placed = place(body);
      return !budgets.some((budget) => isOverBudget(placed.block, budget, options)) && !isOverHard(placed);
    },
  });
  const names = { packs: fit.packs.map((pack) => pack.id), dropped: fit.dropped, thinned: fit.thinned };
  if (fit.text === undefined) {
    const least = place(render([], () => settings.verbosity));
    const status = isOverHard(least) ? "over budget" : "too small";
    return { ...emptyDraft, ...names, status, state, limits: usesOf(least, toolLimits) };
  }
  const placed = place(fit.text);
  return {
    ...names,
    status: "ok",
    state,
    text: placed.block(),
    tokens: options.counter.count(placed.block()),
    bytes: Buffer.byteLength(placed.block()),
    limits: usesOf(placed, toolLimits),
    file: placed.bytes,
  };
}

/** The text that fits was nearly always the last one that was tried. */
function rememberLast(place: Place["place"]): Place["place"] {
  let last: { readonly body: string; readonly placed: Placed } | undefined;
  return (body) => {
    if (last?.body !== body) last = { body, placed: place(body) };
    return last.placed;
  };
}

/** Renders the body of a block in the adapter's format. Adapters that get the same packs share one text. */
export function renderFor(
  { format }: Pick<Adapter, "format">,
  content: DraftOptions["content"],
): FitOptions["render"] {
  const known = rendered.get(content) ?? new Map<string, string>();
  rendered.set(content, known);
  return (packs, verbosityOf) => {
    const key = JSON.stringify([format, packs.map((pack) => [pack.id, verbosityOf(pack)])]);
    const body =
      known.get(key) ??
      renderBody(format, renderContext(packs, { ...content, verbosity: "full", verbosityOf }));
    if (known.size >= MOST_RENDERED) known.clear();
    known.set(key, body);
    return body;
  };
}

/** Large texts: only the last few are worth their memory. */
const MOST_RENDERED = 4;
const rendered = new WeakMap<DraftOptions["content"], Map<string, string>>();

function renderBody(format: Adapter["format"], markdown: string): string {
  return format === "plain-prose" ? toPlainProse(markdown) : markdown;
}

/** An adapter may be called `constructor`. */
function ownValue<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
