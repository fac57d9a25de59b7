/** Anthropic's prompt cache: entries at markers, which live from the start of the request that wrote or read them. */
import { blocksOf, hashOf } from "./canonical.mjs";
import { keepsEarlierThinking, minimumCacheTokens, readClaudeModel } from "./claude-models.mjs";

const lifetimesMs = { "5m": 5 * 60_000, "1h": 60 * 60_000 };
/** A marker finds entries at most this many positions back, its own included. */
const lookback = 20;

/** @typedef {{ uncached: number, write5m: number, write1h: number, read: number }} InputTokens */

/** @param {{ countBlock: (block: object) => number, now: () => number }} options */
export function createAnthropicCache({ countBlock, now }) {
  /** @type {Map<string, { until: number, lifetimeMs: number }>} */
  const entries = new Map();

  /** Measures a request without reading or writing. @param {object} body @param {Set<object>} unread */
  function measure(body, unread) {
    const places = placesOf(body, unread, countBlock);
    return { places, tokens: places.at(-1)?.tokens ?? 0 };
  }

  /** Bills a request and stores what its markers say. @returns {InputTokens} */
  function bill(body, { places, tokens: total }) {
    const at = now();
    const minimum = minimumCacheTokens(readClaudeModel(body.model));
    const marked = places.filter(({ lifetime, tokens }) => lifetime !== undefined && tokens >= minimum);
    const hit = findHit(marked, places, (key) => (entries.get(key)?.until ?? 0) > at);
    if (hit !== undefined) {
      const entry = entries.get(hit.key);
      entry.until = at + entry.lifetimeMs;
    }
    for (const { key, lifetime } of marked) {
      const lifetimeMs = Math.max(lifetimesMs[lifetime], liveLifetime(entries.get(key), at));
      entries.set(key, { until: at + lifetimeMs, lifetimeMs });
    }
    const read = hit?.tokens ?? 0;
    const lastOf = (list) => Math.max(read, ...list.map(({ tokens }) => tokens));
    const hour = lastOf(marked.filter(({ lifetime }) => lifetime === "1h"));
    const end = lastOf(marked);
    return { uncached: total - end, write5m: end - hour, write1h: hour - read, read };
  }

  return { measure, bill };
}

function liveLifetime(entry, at) {
  return entry !== undefined && entry.until > at ? entry.lifetimeMs : 0;
}

/** Looks back from each marker, the last one first. */
function findHit(marked, places, isLive) {
  for (const marker of marked.toReversed()) {
    for (let index = places.indexOf(marker); index >= 0; index--) {
      const place = places[index];
      if (marker.position - place.position >= lookback) break;
      if (isLive(place.key)) return place;
    }
  }
  return undefined;
}

/** The blocks of a request in the order of the prompt, each with the key and the tokens of the prefix that it ends. */
function placesOf(body, unread, countBlock) {
  const { model, tools = [], system, messages, thinking, tool_choice, output_config, cache_control } = body;
  const places = [];
  let [key, tokens, position, kind] = [hashOf(model), 0, 0, ""];
  const add = (block, start) => {
    const { cache_control: marker, ...rest } = block;
    key = hashOf(key, start, JSON.stringify(rest));
    tokens += countBlock(rest);
    // A run of calls is one position, and so is a run of results.
    const isRun = block.type === kind && (kind === "tool_use" || kind === "tool_result");
    if (!isRun) position++;
    kind = block.type;
    const lifetime = marker ? (marker.ttl ?? "5m") : undefined;
    places.push({ key, tokens, position, lifetime, type: block.type });
  };
  for (const tool of tools) add(tool, "tools");
  for (const block of blocksOf(system)) add(block, "system");
  key = hashOf(key, JSON.stringify([thinking, tool_choice, output_config]));
  const isForgotten = forgottenThinking(model, messages);
  for (const [index, { role, content }] of messages.entries())
    for (const block of blocksOf(content)) if (!unread.has(block) && !isForgotten(index, block)) add(block, role);
  const last = places.findLast(({ type }) => !/thinking$/.test(type ?? ""));
  if (cache_control && last !== undefined) last.lifetime ??= cache_control.ttl ?? "5m";
  return places;
}

/** Older models do not read thinking from before the last question. */
function forgottenThinking(model, messages) {
  if (keepsEarlierThinking(readClaudeModel(model))) return () => false;
  const isQuestion = ({ role, content }) =>
    role === "user" && blocksOf(content).some(({ type }) => type !== "tool_result");
  const question = messages.findLastIndex(isQuestion);
  return (index, { type }) => index < question && /thinking$/.test(type);
}
