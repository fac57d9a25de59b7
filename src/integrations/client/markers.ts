/** Cache markers in the Anthropic shape: `cache_control` on blocks of the system text, of messages, of tools. */
import type { Fields } from "./wrap-client.ts";

export type Lifetime = "5m" | "1h";

/** The lifetimes of all markers in blocks or messages, in the order of the prompt; those inside of a tool result count for it. */
export function markersOf(value: unknown): Lifetime[] {
  const found: Lifetime[] = [];
  collect(value, found);
  return found;
}

function collect(value: unknown, found: Lifetime[]): void {
  if (Array.isArray(value)) {
    for (const each of value) collect(each, found);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const { content, cache_control: marker } = value as Fields;
  if (Array.isArray(content)) collect(content, found);
  if (typeof marker === "object" && marker !== null) found.push(lifetimeOf(marker));
}

function lifetimeOf(marker: object): Lifetime {
  return Reflect.get(marker, "ttl") === "1h" ? "1h" : "5m";
}

/** A message or block without markers; the same object where it has none. */
export function withoutMarkers<Value>(value: Value): Value {
  if (Array.isArray(value)) {
    const cleaned = value.map(withoutMarkers);
    return cleaned.every((each, index) => each === value[index]) ? value : (cleaned as Value);
  }
  if (typeof value !== "object" || value === null) return value;
  const { cache_control: marker, ...rest } = value as Fields;
  const content = withoutMarkers(rest.content);
  if (marker === undefined && content === rest.content) return value;
  return ("content" in rest ? { ...rest, content } : rest) as Value;
}

/** Whether some text, or some block of a list, can carry a marker. */
export function isMarkable(value: unknown): boolean {
  return typeof value === "string" ? value !== "" : Array.isArray(value) && lastMarkable(value) >= 0;
}

/** The text or blocks with a marker on the last one that can carry it. A text becomes a block, which is billed and cached alike. */
export function withMarker(value: unknown, lifetime: Lifetime): readonly object[] {
  const cache_control = lifetime === "1h" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
  const blocks: readonly object[] = Array.isArray(value) ? value : [{ type: "text", text: value }];
  const index = lastMarkable(blocks);
  return blocks.with(index, { ...blocks[index], cache_control });
}

// The API takes none on thinking, on empty text, and on tools that are not loaded yet.
function lastMarkable(blocks: readonly unknown[]): number {
  return blocks.findLastIndex((block) => {
    const { type, text, defer_loading } = Object(block) as Fields;
    if (type === "thinking" || type === "redacted_thinking" || defer_loading === true) return false;
    return type !== "text" || text !== "";
  });
}
