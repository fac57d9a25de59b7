/** Decides what a target will hold: as many packs as every limit allows, placed into the current file. */

import { type Verbosity, verbosities } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { OnOverflow } from "../../host/index.ts";
import { type Budget, budgetsOf, isEnforced, type LimitUse, type MeasuredChain, useOf } from "../audit/limits.ts";
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

export interface FileDraft extends Pick<Fit, "dropped" | "thinned" | "leftOut"> {
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
