/** When the provider's cache of a conversation expires, and what the next prompt costs then. */
import { type Fields, formatNumber } from "../../core/text/index.ts";
import type { Environment } from "../../host/index.ts";
import { readSpend, type SpentAnswer } from "../../recordings/index.ts";

export interface CacheClock {
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
  /** What the next prompt costs when all of it is written again. Absent if the price is not known. */
  readonly usd?: number | undefined;
  readonly tokens: number;
}

/** `reported` is `prompt_cache` of Claude Code's status line, if there is one. Without it the newest answer tells: an entry
 *  of the cache lives for five minutes or for an hour after it was used. */
export function readCacheClock(answers: readonly SpentAnswer[], reported: Fields = {}): CacheClock | undefined {
  const last = answers.at(-1);
  const isHour = reported.ttl === undefined ? (last?.write1h ?? 0) > 0 : /^(?:1h|3600)/.test(String(reported.ttl));
  const expires = typeof reported.expires_at === "number" ? reported.expires_at * 1000 : undefined;
  const expiresAt = expires ?? (last === undefined ? 0 : last.time + (isHour ? 3_600_000 : 300_000));
  if (last === undefined || last.read + last.write5m + last.write1h === 0 || expiresAt === 0) return undefined;
  const known = reported.recache_tokens_if_cold;
  const tokens = typeof known === "number" && known > 0 ? known : last.total + last.output;
  const { price, isPriced } = last;
  const perToken = ((isHour ? price.write1h : price.write5m) * price.input) / 1_000_000;
  return { expiresAt, tokens, usd: isPriced ? tokens * perToken : undefined };
}

/** Returns minutes and seconds, or hours and minutes: `3:10`, `2h05`. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (value: number): string => String(value).padStart(2, "0");
  if (seconds >= 3_600) return `${Math.floor(seconds / 3_600)}h${two(Math.floor((seconds % 3_600) / 60))}`;
  return `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
}

/** Says to a person who goes on after the cache went cold what this prompt costs, and what else is possible. Blocks
 *  nothing. */
export async function warnOfColdCache(
  transcript: string,
  { env, now }: { readonly env: Environment; readonly now: number },
): Promise<object | undefined> {
  if (transcript === "") return undefined;
  const { answers } = await readSpend({ transcript, env, now: new Date(now), maxListAgeMs: 60_000 });
  const clock = readCacheClock(answers);
  // A short conversation costs little.
  if (clock?.usd === undefined || now < clock.expiresAt || clock.tokens < 20_000) return undefined;
  const tokens = `${formatNumber(clock.tokens)} tokens`;
  const price = `about $${clock.usd.toFixed(2)} for writing ${tokens} to the provider's cache again`;
  return {
    systemMessage: `The cache of this conversation went cold ${formatSpan(now - clock.expiresAt)} ago. This prompt costs ${price}. You can go on, make it shorter next time with /compact before a pause, or start again: /clear, with a summary of what matters.`,
  };
}
