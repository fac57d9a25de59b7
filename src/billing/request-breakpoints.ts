/** Where a request's markers sit. `values` are the blocks' own objects, in the order of the cache. */
import type { Ttl } from "./cache/cache-rules.ts";
import type { Breakpoint } from "./cache/prompt-cache.ts";

/** The markers on blocks, one of a result's own blocks counting for the result; and for `cache_control` on the request itself the last
 *  block that can carry one (Anthropic, Prompt caching, 2026-11). */
export function anthropicBreakpoints(request: Fields, values: readonly unknown[]): readonly Breakpoint[] {
  const breakpoints = values.flatMap((value, after): Breakpoint[] => {
    const ttl = isCacheable(value) ? ttlIn(value) : undefined;
    return ttl === undefined ? [] : [{ after, ttl }];
  });
  const ttl = ttlOf(request);
  const after = ttl === undefined ? -1 : values.findLastIndex(isCacheable);
  return ttl === undefined || after < 0 ? breakpoints : [...breakpoints, { after, ttl }];
}

/** One at the end by itself and the latest three of the request's own, or with `mode: explicit` its latest four alone. Models before
 *  GPT-5.6 take none of them, and their cache looks at none. */
export function openaiBreakpoints(request: Fields, values: readonly unknown[]): readonly Breakpoint[] {
  const { mode, ttl: lifetime } = fieldsOf(request.prompt_cache_options);
  const ttl: Ttl = lifetime === "12h" ? "1h" : "5m";
  const marked = values.flatMap((value, after) =>
    [value, ...innerBlocks(value)].some(hasOpenaiMarker) ? [{ after, ttl }] : [],
  );
  if (mode === "explicit") return marked.slice(-4);
  return values.length === 0 ? [] : [...marked.slice(-3), { after: values.length - 1, ttl }];
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return Object(value) as Fields;
}

/** Where a result keeps blocks of its own: Anthropic and chat, then responses. */
const innerKeys = ["content", "output"] as const;

function innerBlocks(value: unknown): readonly unknown[] {
  const inner = innerKeys.map((key) => fieldsOf(value)[key]).find(Array.isArray);
  return inner ?? [];
}

function hasOpenaiMarker(value: unknown): boolean {
  const marker = fieldsOf(value).prompt_cache_breakpoint;
  return marker !== undefined && marker !== null;
}

function ttlIn(value: unknown): Ttl | undefined {
  return (
    ttlOf(value) ??
    innerBlocks(value)
      .map(ttlOf)
      .findLast((ttl) => ttl !== undefined)
  );
}

function ttlOf(value: unknown): Ttl | undefined {
  const marker = fieldsOf(value).cache_control;
  if (typeof marker !== "object" || marker === null) return undefined;
  return fieldsOf(marker).ttl === "1h" ? "1h" : "5m";
}

/** The API takes no marker on thinking or on empty text. */
function isCacheable(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  const { type, text } = fieldsOf(value);
  return type !== "thinking" && type !== "redacted_thinking" && !(type === "text" && text === "");
}
