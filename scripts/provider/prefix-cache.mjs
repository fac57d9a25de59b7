/** The caches that need no markers: OpenAI's and Gemini's. Entries are written by the requests themselves. */
import { hashOf } from "./canonical.mjs";

const minute = 60_000;
/** Characters that are compared at once: 128 tokens of four characters. */
const stepCharacters = 512;
const stepTokens = 128;
/** From GPT-5.6 on a request matches at most this many of its breakpoints, the latest ones. */
const matchedBreakpoints = 80;
const lifetimesMs = { "30m": 30 * minute, "12h": 720 * minute };

/**
 * Bills prompts by the longest prefix that an earlier request has sent.
 * @param {{ now: () => number }} options
 */
export function createPrefixCache({ now }) {
  /** @type {Map<string, number>} until when a prefix is cached */
  const entries = new Map();
  const isLive = (key) => (entries.get(key) ?? 0) > now();

  /** Older models: every prefix in steps of 128 tokens, at no price. Blocks are parts of a prompt in their order.
   *  @param {string} scope @param {{ text: string, tokens: number }[]} blocks
   *  @param {{ minimum: number, lifetimeMs: number }} rules @returns {import("./anthropic-cache.mjs").InputTokens} */
  function billSteps(scope, blocks, { minimum, lifetimeMs }) {
    const text = blocks.map((block) => block.text).join("\n");
    const total = sum(blocks);
    let key = scope;
    let matched = 0;
    for (let end = stepCharacters; end <= text.length; end += stepCharacters) {
      key = hashOf(key, text.slice(end - stepCharacters, end));
      if (isLive(key)) matched = end;
      entries.set(key, now() + lifetimeMs);
    }
    const tokens = Math.floor(((matched / text.length) * total) / stepTokens) * stepTokens || 0;
    const read = tokens < minimum ? 0 : tokens;
    return { uncached: total - read, write5m: 0, write1h: 0, read };
  }

  /** GPT-5.6 and later: entries at breakpoints, found only exactly there. Writes are billed.
   *  @param {string} scope @param {{ text: string, tokens: number, isMarked: boolean }[]} blocks
   *  @param {{ minimum: number, options?: { mode?: string, ttl?: string } }} rules */
  function billBreakpoints(scope, blocks, { minimum, options = {} }) {
    const until = now() + (lifetimesMs[options.ttl] ?? lifetimesMs["30m"]);
    const places = prefixesOf(scope, blocks);
    const explicit = places.filter(({ isMarked }) => isMarked);
    const chosen = options.mode === "explicit" ? explicit : [...explicit, places.at(-1)];
    const isLongEnough = ({ tokens }) => tokens >= minimum;
    const candidates = (options.mode === "explicit" ? explicit : places).slice(-matchedBreakpoints);
    const read = candidates.findLast((place) => isLongEnough(place) && isLive(place.key))?.tokens ?? 0;
    const written = chosen.filter(isLongEnough).slice(-4);
    for (const { key } of written) entries.set(key, until);
    const end = Math.max(read, ...written.map(({ tokens }) => tokens));
    const total = sum(blocks);
    // The two lifetimes of Anthropic's bill stand for 30 minutes and 12 hours here.
    const isLong = options.ttl === "12h";
    return { uncached: total - end, write5m: isLong ? 0 : end - read, write1h: isLong ? end - read : 0, read };
  }

  return { billSteps, billBreakpoints };
}

function prefixesOf(scope, blocks) {
  let [key, total] = [scope, 0];
  return blocks.map(({ text, tokens, isMarked }) => {
    key = hashOf(key, text);
    total += tokens;
    return { key, tokens: total, isMarked };
  });
}

function sum(blocks) {
  return blocks.reduce((total, { tokens }) => total + tokens, 0);
}
