/** Places cache markers for Anthropic's cache, in slots that the caller left free, so that a trim loses only the part of
 *  the cache that it rewrote. The caller's markers stay, except on edited messages: those may be from an earlier call.
 *  Anthropic's requests and the prompts of the AI SDK carry markers in different places. */
import { type ModelPrice, priceOf, providerOfModel } from "../../core/billing/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { argumentChecks, isPlainObject, type OptionChecks } from "../../core/text/index.ts";

/** `follow` adds markers only to requests that have some or a `cache_control`, `auto` to all, `none` to no request. */
const breakpointModes = ["follow", "auto", "none"] as const;
/** When an integration adds cache markers to a request for a model of Anthropic. */
export type BreakpointMode = (typeof breakpointModes)[number];

/** How an integration marks requests for the cache. Its public options have the same fields. */
export interface MarkerOptions {
  readonly breakpoints?: BreakpointMode | undefined;
  readonly ttl?: "auto" | Lifetime | undefined;
}

export const markerChecks: OptionChecks = {
  breakpoints: argumentChecks.oneOf(breakpointModes),
  ttl: argumentChecks.oneOf(["auto", "5m", "1h"]),
};

/** Other models that are served in the same format may refuse markers or ignore them. */
export function modeFor(mode: BreakpointMode | undefined, model: string | undefined): BreakpointMode {
  if (mode !== undefined) return mode;
  return model !== undefined && providerOfModel(model) === "anthropic" ? "auto" : "follow";
}

/** Returns how long the cache of one call lives, and the prices by which to choose that.
 *  `asked` are the lifetimes of the caller's own markers, which always decide. */
export function cachePlan(
  { breakpoints, ttl }: MarkerOptions,
  model: string | undefined,
  asked: readonly Lifetime[],
): { readonly cacheLifetimeMs: number; readonly cachePrice: ModelPrice | undefined } {
  const price = priceOf({ provider: "anthropic", model });
  const isHour = asked.length > 0 ? asked.includes("1h") : ttl === "1h";
  // Other platforms that serve the model do not all have the long lifetime.
  const isAuto = ttl === "auto" || (ttl === undefined && /^claude-[^@]*$/.test(model ?? ""));
  const isChosen = isAuto && asked.length === 0 && modeFor(breakpoints, model) === "auto";
  return { cacheLifetimeMs: price.rules.lifetimeMs[isHour ? "1h" : "5m"], cachePrice: isChosen ? price : undefined };
}

/** Returns the lifetime of the markers to add, and where an earlier call wrote for an hour. */
export function addedMarkers(
  { ttl }: MarkerOptions,
  chosen: { readonly ttl: Lifetime; readonly anchor: number | undefined } | undefined,
): Pick<MarkerPlan, "lifetime" | "anchor"> {
  return { lifetime: chosen?.ttl ?? (ttl === "1h" ? "1h" : "5m"), anchor: chosen?.anchor };
}

export interface MarkerPlan extends MarkedParts {
  readonly mode: BreakpointMode;
  /** The messages that the caller passed. They became `messages`. */
  readonly own: readonly object[];
  /** Their markers. */
  readonly ownMarkers: MessageMarkers;
  /** The marker that the request itself carries, which the API puts at its end. */
  readonly automatic?: unknown;
  /** Indexes of messages after which a marker is worthwhile, oldest first. */
  readonly breakpoints: readonly number[];
  /** The index of the message up to which an earlier call wrote the cache for an hour. */
  readonly anchor?: number | undefined;
  /** The lifetime of the added markers, if the caller set none.
   * @default "5m" */
  readonly lifetime?: Lifetime | undefined;
  readonly shape?: MarkerShape | undefined;
}

export interface MarkedParts {
  readonly tools?: unknown;
  readonly system?: unknown;
  readonly messages: readonly object[];
}

/** Where a request has its markers. */
export interface MarkerShape {
  /** Returns the lifetimes of all markers in a value, in the order of the prompt. */
  readMarkers(value: unknown): Lifetime[];
  /** Whether the value can carry a marker. */
  isMarkable(value: unknown): boolean;
  /** Puts a marker at the end of a value, or on one block of a message. */
  mark(value: unknown, lifetime: Lifetime, block?: number): unknown;
  /** Removes the markers from a message. Returns the same object if it has none. */
  withoutMarkers(message: object): object;
}

/** The lifetime of a marker, the `ttl` of `cache_control`. */
export type Lifetime = "5m" | "1h";

/** The lifetimes of the markers in each message that has some, in the order of the messages. */
export type MessageMarkers = ReadonlyMap<object, readonly Lifetime[]>;

/** Reads each message once per call. A long history has thousands, and a client may move its markers in place. */
export function readMessageMarkers(messages: readonly object[], shape: MarkerShape): MessageMarkers {
  const found = new Map<object, readonly Lifetime[]>();
  // What is no list is refused when the request is trimmed.
  for (const message of Array.isArray(messages) ? messages : []) {
    const lifetimes = shape.readMarkers(message);
    if (lifetimes.length > 0) found.set(message, lifetimes);
  }
  return found;
}

/** Returns what to send. Parts that did not change are the caller's own objects. */
export function placeMarkers({ shape = anthropicMarkers, ...plan }: MarkerPlan): MarkedParts {
  const { mode, own, ownMarkers, automatic, tools, system, messages } = plan;
  const kept = new Set(own);
  const cleaned = messages.map((message) => (kept.has(message) ? message : shape.withoutMarkers(message)));
  const whole = readLifetime(automatic);
  const asked = [...[...ownMarkers.values()].flat(), ...whole];
  const marked: Marked = { before: shape.readMarkers([tools, system]), messages: new Map() };
  let parts: MarkedParts = { tools, system, messages: cleaned };
  if (mode === "none" || (mode === "follow" && asked.length + marked.before.length === 0)) return parts;
  for (const [index, message] of cleaned.entries()) {
    const lifetimes = ownMarkers.get(message);
    if (lifetimes !== undefined) marked.messages.set(index, lifetimes);
  }
  const taken = marked.before.length + [...marked.messages.values()].flat().length + whole.length;
  const lifetime = asked.at(-1) ?? plan.lifetime ?? "5m";
  const places = choosePlaces(parts, { ...plan, shape, marked, hasAutomatic: whole.length > 0 });
  for (const place of places.slice(0, Math.max(0, maxMarkers - taken)))
    parts = addMarker(parts, place, { shape, marked, lifetime });
  return parts;
}

/** The lifetimes of the markers in a request, before its messages and by the index of each message that has some. */
interface Marked {
  readonly before: Lifetime[];
  readonly messages: Map<number, readonly Lifetime[]>;
}

// platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11. The request's own `cache_control` takes a
// slot too.
const maxMarkers = 4;

/** Returns the lifetime of a marker, if it is one. */
export function readLifetime(marker: unknown): Lifetime[] {
  if (typeof marker !== "object" || marker === null) return [];
  return [Reflect.get(marker, "ttl") === "1h" ? "1h" : "5m"];
}

/** Returns the marker of this lifetime. */
export function markerFor(lifetime: Lifetime): Fields {
  return lifetime === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

/** The end of a message, or of one of its blocks. */
interface Spot {
  readonly message: number;
  readonly block?: number;
}

type MarkerPlace = "tools" | "system" | Spot;

/** Returns the places that are worth a marker, the best first: the ends from which the next call reads; then where the
 *  history was cut, the older place first, because a call that cuts still finds the cache there; then what is cached for
 *  an hour; then the end of what comes before the messages. */
function choosePlaces(
  { tools, system, messages }: MarkedParts,
  {
    own,
    breakpoints,
    anchor = -1,
    shape,
    marked,
    hasAutomatic,
  }: Pick<MarkerPlan, "own" | "breakpoints" | "anchor"> & {
    readonly shape: MarkerShape;
    readonly marked: Marked;
    readonly hasAutomatic: boolean;
  },
): readonly MarkerPlace[] {
  const { end, stable, spare } = findEnds(messages, own);
  const lastTurn = turnStart(messages);
  const hasOwnEnd = [...marked.messages.keys()].some((index) => index >= lastTurn);
  const middle = [...breakpoints, anchor].map((message) => ({ message }));
  const free = (spots: readonly (Spot | undefined)[]): Spot[] =>
    spots.filter(
      (spot): spot is Spot =>
        spot !== undefined && shape.isMarkable(messages[spot.message]) && !marked.messages.has(spot.message),
    );
  const before = marked.before.length > 0 ? [] : (["system", "tools"] as const);
  const fixed = before.find((place) => shape.isMarkable(place === "system" ? system : tools));
  const places: readonly MarkerPlace[] = [
    ...free([hasOwnEnd ? undefined : end, stable, ...middle]),
    ...(fixed === undefined ? [] : [fixed]),
    ...free([spare]),
  ];
  const last = { message: messages.length - 1 };
  return places.filter((place, index) => {
    if (hasAutomatic && isSamePlace(place, last)) return false;
    return places.findIndex((other) => isSamePlace(place, other)) === index;
  });
}

function isSamePlace(first: MarkerPlace, second: MarkerPlace): boolean {
  return JSON.stringify(first) === JSON.stringify(second);
}

/** Many clients put a clock or a reminder behind what only grows, and leave it out of the next request. A cache that was
 *  written up to such a tail is never read again. So a second marker is placed before anything that may be a tail: after
 *  the last tool result if text follows it, and before the last turn if that is only text. It costs nothing: what two
 *  markers write is billed once. The places follow from the history alone, so that a new client marks the same ones. */
function findEnds(
  messages: readonly object[],
  own: readonly unknown[],
): {
  /** The end of the request, unless the next request will not have it. */
  readonly end?: Spot | undefined;
  /** The end of what the next request surely has, if that is not the end of the request. */
  readonly stable?: Spot | undefined;
  /** A place that helps clients which change more than their last text. */
  readonly spare?: Spot | undefined;
} {
  const end = { message: messages.length - 1 };
  const start = turnStart(messages);
  const answer = start === 0 ? undefined : { message: start - 1 };
  // The beginning of an answer that the model continues.
  if (start === messages.length) return { end, stable: { message: end.message - 1 } };
  const message = messages.findLastIndex((each, index) => index >= start && readBlocks(each).some(isResult));
  if (message < 0) return { end, stable: answer, spare: { message: end.message - 1 } };
  const blocks = readBlocks(messages[message]);
  const block = blocks.findLastIndex(isResult);
  const stable = block === blocks.length - 1 ? { message } : { message, block };
  if (isSamePlace(stable, end)) return { end, spare: answer };
  return { end: hasNewTail(own) ? undefined : end, stable, spare: answer };
}

/** Returns the index of the last message that the next request surely has too. */
export function findStableMessage(messages: readonly object[]): number {
  const { stable } = findEnds(messages, messages);
  return stable?.message ?? messages.length - 1;
}

/** The index after the last answer. */
function turnStart(messages: readonly unknown[]): number {
  return messages.findLastIndex((message) => Object(message).role === "assistant") + 1;
}

/** Whether text follows the tool results of the last turn, and none follows those of the earlier turns. Then the client
 *  takes it away again. If it is a person's first remark instead, it is written to the cache one call later. */
function hasNewTail(messages: readonly unknown[]): boolean {
  const earlier = messages.slice(0, turnStart(messages)).flatMap((message) => {
    if (Object(message).role === "assistant") return ["answer"];
    return readBlocks(message).map((block) => (isResult(block) ? "result" : "text"));
  });
  const countAfterResults = (next: string): number =>
    earlier.filter((kind, index) => kind === "result" && earlier[index + 1] === next).length;
  return countAfterResults("text") === 0 && countAfterResults("answer") >= 2;
}

function readBlocks(message: unknown): readonly unknown[] {
  const { content } = Object(message) as Fields;
  return Array.isArray(content) ? content : [content];
}

/** Anthropic's requests and the AI SDK write it differently. */
function isResult(block: unknown): boolean {
  const { type } = Object(block) as Fields;
  return type === "tool_result" || type === "tool-result";
}

function addMarker(
  parts: MarkedParts,
  place: MarkerPlace,
  { shape, marked, lifetime }: { readonly shape: MarkerShape; readonly marked: Marked; readonly lifetime: Lifetime },
): MarkedParts {
  const { messages } = parts;
  const index = typeof place === "string" ? -1 : place.message;
  const hasMarker = (asked: Lifetime, isThere: (at: number) => boolean): boolean =>
    [...marked.messages].some(([at, lifetimes]) => isThere(at) && lifetimes.includes(asked));
  // Markers of an hour must come before those of 5 minutes.
  const isAfterShort = marked.before.includes("5m") || hasMarker("5m", (at) => at < index);
  const isBeforeLong = hasMarker("1h", (at) => at >= index);
  const needed = isAfterShort ? "5m" : isBeforeLong ? "1h" : lifetime;
  if (typeof place === "string") {
    marked.before.push(needed);
    return { ...parts, [place]: shape.mark(parts[place], needed) };
  }
  marked.messages.set(index, [...(marked.messages.get(index) ?? []), needed]);
  const message = shape.mark(messages[index], needed, place.block);
  return { ...parts, messages: messages.with(index, message as object) };
}

/** Anthropic's own requests: a marker is the `cache_control` of a block. A marker inside of a tool result counts for the
 *  result. A system text may be a plain string. */
export const anthropicMarkers: MarkerShape = {
  readMarkers(value) {
    if (Array.isArray(value)) return value.flatMap(anthropicMarkers.readMarkers);
    if (typeof value !== "object" || value === null) return [];
    const { content, cache_control: marker } = value as Fields;
    const inner = Array.isArray(content) ? anthropicMarkers.readMarkers(content) : [];
    return [...inner, ...readLifetime(marker)];
  },
  isMarkable(value) {
    const content = isPlainObject(value) ? value.content : value;
    return typeof content === "string" ? content !== "" : Array.isArray(content) && lastMarkable(content) >= 0;
  },
  mark(value, lifetime, block) {
    if (!isPlainObject(value)) return withMarker(value, lifetime);
    return { ...value, content: withMarker(value.content, lifetime, block) };
  },
  withoutMarkers: cleanBlock,
};

/** Removes the markers from a message or block. Returns the same object if it has none. */
function cleanBlock<Value>(value: Value): Value {
  if (Array.isArray(value)) {
    const cleaned = value.map(cleanBlock);
    return cleaned.every((each, index) => each === value[index]) ? value : (cleaned as Value);
  }
  if (typeof value !== "object" || value === null) return value;
  const { cache_control: marker, ...rest } = value as Fields;
  const content = cleanBlock(rest.content);
  if (marker === undefined && content === rest.content) return value;
  return ("content" in rest ? { ...rest, content } : rest) as Value;
}

/** Puts a marker on a block, by default on the last one that can carry one. A text becomes a block, which is billed and
 *  cached the same way. */
function withMarker(value: unknown, lifetime: Lifetime, block?: number): readonly object[] {
  const blocks: readonly object[] = Array.isArray(value) ? value : [{ type: "text", text: value }];
  const index = block ?? lastMarkable(blocks);
  return blocks.with(index, { ...blocks[index], cache_control: markerFor(lifetime) });
}

// The API refuses markers on thinking, on empty text and on tools that load later.
function lastMarkable(blocks: readonly unknown[]): number {
  return blocks.findLastIndex((block) => {
    const { type, text, defer_loading } = Object(block) as Fields;
    if (type === "thinking" || type === "redacted_thinking" || defer_loading === true) return false;
    return text !== "";
  });
}
