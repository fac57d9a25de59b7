/** Cache markers of an Anthropic request: a few more, where the caller left slots, so that an epoch loses no more of the cache than what it
 *  rewrote. The caller's own stay, save on messages that were edited: those may be of an earlier call. */
import { isMarkable, type Lifetime, markersOf, withMarker, withoutMarkers } from "./markers.ts";
import type { Fields } from "./wrap-client.ts";

/** `follow` adds markers to requests that have some of their own or a `cache_control`, `auto` to all. */
export const breakpointModes = ["follow", "auto", "none"] as const;
export type BreakpointMode = (typeof breakpointModes)[number];

export interface MarkerPlan {
  readonly mode: BreakpointMode;
  /** The caller's request, whose messages became `messages`. */
  readonly request: Fields;
  readonly messages: readonly object[];
  /** Indexes of messages behind which a marker pays, oldest first. */
  readonly breakpoints: readonly number[];
}

export interface MarkedParts {
  readonly tools: unknown;
  readonly system: unknown;
  readonly messages: readonly object[];
}

/** What to send, the caller's own objects where nothing changed. */
export function placeMarkers({ mode, request, messages, breakpoints }: MarkerPlan): MarkedParts {
  const { tools, system, cache_control: automatic } = request;
  const own = new Set<unknown>(Array.isArray(request.messages) ? request.messages : []);
  const cleaned = messages.map((message) => (own.has(message) ? message : withoutMarkers(message)));
  const asked = markersOf([tools, system, request.messages, { cache_control: automatic }]);
  let parts: MarkedParts = { tools, system, messages: cleaned };
  if (mode === "none" || (mode === "follow" && asked.length === 0)) return parts;
  const hasAutomatic = (automatic ?? null) !== null;
  const lifetime = markersOf([request.messages, { cache_control: automatic }]).at(-1) ?? "5m";
  let slots = maxMarkers - markersOf([tools, system, cleaned]).length - (hasAutomatic ? 1 : 0);
  for (const place of wantedPlaces(parts, breakpoints, hasAutomatic)) {
    if (slots-- <= 0) break;
    parts = mark(parts, place, lifetime);
  }
  return parts;
}

// platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11; the automatic one of the request itself takes a slot too.
const maxMarkers = 4;

type Place = "tools" | "system" | number;

/** What is worth a slot, the best first: the end, from which the next call reads; where the history was cut, the older place first, since
 *  a call that cuts finds there what still holds; the end of what comes before the messages. */
function wantedPlaces(
  { tools, system, messages }: MarkedParts,
  breakpoints: readonly number[],
  hasAutomatic: boolean,
): readonly Place[] {
  const end = messages.length - 1;
  const cuts = breakpoints.filter((index) => index !== end);
  const indexes = hasAutomatic ? cuts : [end, ...cuts];
  const places: Place[] = indexes.filter((index) => {
    const message = messages[index] as Fields | undefined;
    return isMarkable(message?.content) && markersOf(message).length === 0;
  });
  if (markersOf([tools, system]).length > 0) return places;
  if (isMarkable(system)) return [...places, "system"];
  return isMarkable(tools) ? [...places, "tools"] : places;
}

function mark(parts: MarkedParts, place: Place, lifetime: Lifetime): MarkedParts {
  const { messages } = parts;
  const needed = lifetimeAt(parts, typeof place === "number" ? place : 0, lifetime);
  if (typeof place !== "number") return { ...parts, [place]: withMarker(parts[place], needed) };
  const { content } = messages[place] as Fields;
  const marked = { ...messages[place], content: withMarker(content, needed) };
  return { ...parts, messages: messages.with(place, marked) };
}

/** Markers of an hour have to come before those of 5 minutes. */
function lifetimeAt({ tools, system, messages }: MarkedParts, index: number, lifetime: Lifetime): Lifetime {
  if (markersOf([tools, system, messages.slice(0, index)]).includes("5m")) return "5m";
  return markersOf(messages.slice(index)).includes("1h") ? "1h" : lifetime;
}
