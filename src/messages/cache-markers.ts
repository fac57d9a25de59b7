/** Fields that tell a provider where its cache may end. They move from call to call, are no content, and are not billed. */
import type { Fields } from "./fields.ts";

export const cacheMarkers = [
  "cache_control", // Anthropic
  "cacheControl", // Anthropic through the AI SDK
  "prompt_cache_breakpoint", // OpenAI
  "cachePoint", // Bedrock
] as const;

const names: ReadonlySet<string> = new Set(cacheMarkers);

export function isCacheMarker(name: string): boolean {
  return names.has(name);
}

/** The same object where there is none. */
export function withoutCacheMarkers(fields: Fields): Fields {
  if (!cacheMarkers.some((name) => name in fields)) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !isCacheMarker(name)));
}
