/** Places cache markers for Anthropic's cache, in slots that the caller left free, so that a trim loses only the part of
 *  the cache that it rewrote. The caller's markers stay, except on edited messages: those may be from an earlier call.
 *  Anthropic's requests and the prompts of the AI SDK carry markers in different places. */
import { providerOfModel } from "../billing/index.ts";
import type { Fields } from "../text/index.ts";

/** `follow` adds markers only to requests that have some or a `cache_control`, `auto` to all, `none` to no request. */
export const breakpointModes = ["follow", "auto", "none"] as const;
/** When an integration adds cache markers to a request for a model of Anthropic. */
export type BreakpointMode = (typeof breakpointModes)[number];

/** Other models that are served in the same format may refuse markers or ignore them. */
export function modeFor(mode: BreakpointMode | undefined, model: string | undefined): BreakpointMode {
  if (mode !== undefined) return mode;
  return model !== undefined && providerOfModel(model) === "anthropic" ? "auto" : "follow";
}

interface MarkerPlan extends MarkedParts {
  readonly mode: BreakpointMode;
  /** The messages that the caller passed. They became `messages`. */
  readonly own: readonly unknown[];
  /** The marker that the request itself carries, which the API puts at its end. */
  readonly automatic?: unknown;
  /** Indexes of messages after which a marker is worthwhile, oldest first. */
  readonly breakpoints: readonly number[];
  readonly shape?: MarkerShape | undefined;
}

export interface MarkedParts {
  readonly tools?: unknown;
  readonly system?: unknown;
  readonly messages: readonly object[];
}

/** Where a request has its markers. `Place` is a message, or the list of tools or system texts. */
export interface MarkerShape {
  /** Returns the lifetimes of all markers in a value, in the order of the prompt. */
  markersOf(value: unknown): Lifetime[];
  /** Whether the value can carry a marker. */
  isMarkable(value: unknown): boolean;
  mark(value: unknown, lifetime: Lifetime): unknown;
  /** Removes the markers from a message. Returns the same object if it has none. */
  withoutMarkers(message: object): object;
}

/** The lifetime of a marker, the `ttl` of `cache_control`. */
export type Lifetime = "5m" | "1h";

/** Returns what to send. Parts that did not change are the caller's own objects. */
export function placeMarkers(plan: MarkerPlan): MarkedParts {
  const { mode, own, automatic, tools, system, messages, breakpoints, shape = anthropicMarkers } = plan;
  const kept = new Set<unknown>(own);
  const cleaned = messages.map((message) => (kept.has(message) ? message : shape.withoutMarkers(message)));
  const whole = lifetimesOf(automatic);
  const asked = [...shape.markersOf([tools, system, own]), ...whole];
  let parts: MarkedParts = { tools, system, messages: cleaned };
  if (mode === "none" || (mode === "follow" && asked.length === 0)) return parts;
  const lifetime = [...shape.markersOf(own), ...whole].at(-1) ?? "5m";
  let slots = maxMarkers - shape.markersOf([tools, system, cleaned]).length - whole.length;
  for (const place of wantedPlaces(parts, breakpoints, { shape, hasAutomatic: whole.length > 0 })) {
    if (slots-- <= 0) break;
    parts = mark(parts, place, { shape, lifetime });
  }
  return parts;
}

// platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11. The request's own `cache_control` takes a
// slot too.
const maxMarkers = 4;

/** Returns the lifetime of a marker, if it is one. */
export function lifetimesOf(marker: unknown): Lifetime[] {
  if (typeof marker !== "object" || marker === null) return [];
  return [Reflect.get(marker, "ttl") === "1h" ? "1h" : "5m"];
}

/** Returns the marker of this lifetime. */
export function markerFor(lifetime: Lifetime): Fields {
  return lifetime === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

type Place = "tools" | "system" | number;

/** Returns the places that are worth a marker, the best first: the end, from which the next call reads; then where the
 *  history was cut, the older place first, because a call that cuts still finds the cache there; then the end of what
 *  comes before the messages. */
function wantedPlaces(
  { tools, system, messages }: MarkedParts,
  breakpoints: readonly number[],
  { shape, hasAutomatic }: { shape: MarkerShape; hasAutomatic: boolean },
): readonly Place[] {
  const end = messages.length - 1;
  const cuts = breakpoints.filter((index) => index !== end);
  const indexes = hasAutomatic ? cuts : [end, ...cuts];
  const places: Place[] = indexes.filter((index) => {
    const message = messages[index];
    return message !== undefined && shape.isMarkable(message) && shape.markersOf(message).length === 0;
  });
  if (shape.markersOf([tools, system]).length > 0) return places;
  if (shape.isMarkable(system)) return [...places, "system"];
  return shape.isMarkable(tools) ? [...places, "tools"] : places;
}

interface MarkOptions {
  readonly shape: MarkerShape;
  readonly lifetime: Lifetime;
}

function mark(parts: MarkedParts, place: Place, { shape, lifetime }: MarkOptions): MarkedParts {
  const { tools, system, messages } = parts;
  const index = typeof place === "number" ? place : 0;
  // Markers of an hour must come before those of 5 minutes.
  const isAfterShort = shape.markersOf([tools, system, messages.slice(0, index)]).includes("5m");
  const isBeforeLong = shape.markersOf(messages.slice(index)).includes("1h");
  const needed = isAfterShort ? "5m" : isBeforeLong ? "1h" : lifetime;
  if (typeof place !== "number") return { ...parts, [place]: shape.mark(parts[place], needed) };
  return { ...parts, messages: messages.with(place, shape.mark(messages[place], needed) as object) };
}

/** Anthropic's own requests: a marker is the `cache_control` of a block. A marker inside of a tool result counts for the
 *  result. A system text may be a plain string. */
export const anthropicMarkers: MarkerShape = {
  markersOf(value) {
    if (Array.isArray(value)) return value.flatMap(anthropicMarkers.markersOf);
    if (typeof value !== "object" || value === null) return [];
    const { content, cache_control: marker } = value as Fields;
    const inner = Array.isArray(content) ? anthropicMarkers.markersOf(content) : [];
    return [...inner, ...lifetimesOf(marker)];
  },
  isMarkable: (value) => hasMarkable(isMessage(value) ? value.content : value),
  mark(value, lifetime) {
    return isMessage(value) ? { ...value, content: withMarker(value.content, lifetime) } : withMarker(value, lifetime);
  },
  withoutMarkers: cleanBlock,
};

function isMessage(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

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

/** Whether the text, or a block of the list, can carry a marker. */
function hasMarkable(value: unknown): boolean {
  return typeof value === "string" ? value !== "" : Array.isArray(value) && lastMarkable(value) >= 0;
}

/** Puts a marker on the last block that can carry one. A text becomes a block, which is billed and cached the same
 *  way. */
function withMarker(value: unknown, lifetime: Lifetime): readonly object[] {
  const blocks: readonly object[] = Array.isArray(value) ? value : [{ type: "text", text: value }];
  const index = lastMarkable(blocks);
  return blocks.with(index, { ...blocks[index], cache_control: markerFor(lifetime) });
}

// The API refuses markers on thinking, on empty text and on tools that load later.
function lastMarkable(blocks: readonly unknown[]): number {
  return blocks.findLastIndex((block) => {
    const { type, text, defer_loading } = Object(block) as Fields;
    if (type === "thinking" || type === "redacted_thinking" || defer_loading === true) return false;
    return type !== "text" || text !== "";
  });
}
