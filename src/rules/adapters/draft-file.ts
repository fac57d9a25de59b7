/** Decides what a target will hold: as many packs as every limit allows, placed into the current file. */

import { type Verbosity, verbosities } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { OnDrop, OnOverflow } from "../../host/index.ts";
import {
  type Budget,
  isEnforced,
  type LimitUse,
  type MeasuredChain,
  measureUse,
  readBudgets,
} from "../audit/limits.ts";
import { toPlainProse } from "../files/plain-prose.ts";
import { type Fit, type FitOptions, fitPacks, type Pack, type RenderOptions, renderContext } from "../packs/index.ts";
import type { Adapter, ToolLimit } from "./adapter.ts";
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
export interface DraftSettings {
  readonly verbosity: Verbosity;
  readonly budget: Budget | undefined;
  readonly onOverflow: OnOverflow;
}

/** If adapters share a file, the smallest budget and the lowest verbosity apply. */
export function chooseSettings(adapters: readonly Adapter[], options: DraftOptions): DraftSettings {
  // A map, because an adapter may have the id `constructor`.
  const levels = new Map(Object.entries(options.verbosityOf));
  const verbosity = adapters.map(
    (adapter) => options.verbosity ?? levels.get(adapter.id) ?? adapter.verbosity ?? "full",
  );
  const declared = adapters.find((adapter) => adapter.onOverflow !== undefined)?.onOverflow;
  return {
    verbosity: verbosities.find((level) => verbosity.includes(level)) ?? "full",
    budget: readBudgets(adapters, options).smallest,
    onOverflow: options.onOverflow ?? declared ?? options.defaultOnOverflow,
  };
}

/** Returns whether a file may be written although required packs or a person's own packs do not fit into it. With
 *  `onOverflow: thin`, tiers of any pack may be missing. With `onDrop: warn`, whole packs may be missing, too, but
 *  never required ones. */
export function isLossAllowed(
  { lost }: Pick<FileDraft, "lost">,
  {
    onDrop,
    onOverflow,
    defaultOnOverflow,
  }: Pick<DraftOptions, "onOverflow" | "defaultOnOverflow"> & { onDrop: OnDrop },
): boolean {
  const mayThin = (onOverflow ?? defaultOnOverflow) === "thin";
  return lost.every(({ tiers, required }) => (mayThin && tiers.length > 0) || (onDrop === "warn" && !required));
}

export type DraftStatus = "ok" | "too small" | "over budget" | "imported" | "failed";

export interface FileDraft extends Pick<Fit, "dropped" | "thinned" | "leftOut" | "lost"> {
  readonly status: DraftStatus;
  /** Ids of the packs in the block. */
  readonly packs: readonly string[];
  /** What the shortest text that did not fit exceeds. Absent if every text that was tried fits. */
  readonly boundBy?: "budget" | "limit" | undefined;
  /** The block with its markers. Absent if nothing fits. */
  readonly text: string | undefined;
  readonly tokens: number;
  readonly bytes: number;
  /** The tools' own limits, with how much of each is used. */
  readonly limits: readonly LimitUse[];
  /** Limits that are exceeded in folders below, whatever the block holds. */
  readonly broken: readonly LimitUse[];
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
  lost: [],
  text: undefined,
  tokens: 0,
  bytes: 0,
  limits: [],
  broken: [],
  state: "unknown",
  file: undefined,
};

/** The place for a body, and what is known about it. */
export interface DraftPlace {
  readonly adapters: readonly Adapter[];
  readonly limits: readonly ToolLimit[];
  readonly settings: DraftSettings;
  readonly state: TargetFile;
  /** For each limit on a chain, the other files that the tool reads together with this text. */
  readonly chains: ReadonlyMap<ToolLimit, readonly MeasuredChain[]>;
  place(body: string): Placed;
}

/** Returns the largest body that fits a place. */
export function draftBody(where: DraftPlace, options: DraftOptions): FileDraft {
  const { adapters, limits: toolLimits, settings, state, chains } = where;
  const place = rememberLast(where.place);
  const enforced = toolLimits.filter(isEnforced);
  // Used if no tool is known to read another file together with this text.
  const alone: MeasuredChain = { folder: undefined, copies: 1, others: 0 };
  const measureUses = ({ block, file }: Placed, limits: readonly ToolLimit[]) =>
    limits.map((limit) =>
      measureUse(limit, { field: block, file, chains: chains.get(limit) ?? [alone] }, options.counter),
    );
  const isOverHard = (placed: Placed) => measureUses(placed, enforced).some(({ exceeded }) => exceeded);
  const budgets = readBudgets(adapters, options);
  const render = createRenderer(adapters[0]!, options.content);
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
      if (body.length > budgets.byteLimit) return refuse(body, "budget");
      // A UTF-16 unit has at least one byte, and a character at most two units, so no exact measurement is needed.
      const atLeast = { bytes: body.length, chars: body.length / 2, lines: 0, tokens: 0 };
      if (enforced.some(({ unit, value }) => atLeast[unit] > value)) return refuse(body, "limit");
      const placed = place(body);
      if (budgets.isExceeded(placed.block)) return refuse(body, "budget");
      return !isOverHard(placed) || refuse(body, "limit");
    },
  });
  const { dropped, thinned, leftOut, lost } = fit;
  const names = { packs: fit.packs.map((pack) => pack.id), dropped, thinned, leftOut, lost, boundBy };
  if (fit.text === undefined) {
    const least = place(render([], () => settings.verbosity, []));
    const status = isOverHard(least) ? "over budget" : "too small";
    return { ...emptyDraft, ...names, status, state, limits: measureUses(least, toolLimits) };
  }
  const placed = place(fit.text);
  const text = placed.block();
  // Most targets of a run get the same block, and counting it takes longer than anything else.
  const last = counted.get(options.counter);
  const tokens = last?.text === text ? last.tokens : options.counter.count(text);
  counted.set(options.counter, { text, tokens });
  return {
    ...names,
    status: "ok",
    state,
    text,
    tokens,
    bytes: Buffer.byteLength(text),
    limits: measureUses(placed, toolLimits),
    broken: [],
    file: placed.bytes(),
  };
}

const counted = new WeakMap<Counter, { readonly text: string; readonly tokens: number }>();

/** The text that fits is nearly always the last one that was tried. */
function rememberLast(place: DraftPlace["place"]): DraftPlace["place"] {
  let last: { readonly body: string; readonly placed: Placed } | undefined;
  return (body) => {
    if (last?.body !== body) last = { body, placed: place(body) };
    return last.placed;
  };
}

/** Renders the body of a block in the adapter's format. Adapters that get the same packs share one text. */
function createRenderer({ format }: Pick<Adapter, "format">, content: DraftOptions["content"]): FitOptions["render"] {
  const known = rendered.get(content) ?? new Map<string, string>();
  rendered.set(content, known);
  return (packs, verbosityOf, parts) => {
    const key = JSON.stringify([format, parts, packs.map((pack) => [pack.id, verbosityOf(pack)])]);
    const markdown = () => renderContext(packs, { ...content, verbosity: "full", verbosityOf, parts });
    const body = known.get(key) ?? (format === "plain-prose" ? toPlainProse(markdown()) : markdown());
    // The next file nearly always needs the drafts of the last one, but the texts may be large.
    if (known.size * body.length > 2 ** 24) known.clear();
    known.set(key, body);
    return body;
  };
}

const rendered = new WeakMap<DraftOptions["content"], Map<string, string>>();
