/** Makes the status line of Claude Code. It runs after every answer, so `main.ts` loads it without the other commands.
 *  Whatever is missing or wrong in the input is left out. */
import { fstatSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Fields } from "../../core/text/index.ts";
import { type Environment, stateDirectory } from "../../host/index.ts";
import { mayConfigure, readSpend, type Spend, type SpentAnswer } from "../../recordings/index.ts";
import { findSkippedServer } from "../plugins/claude-health.ts";
import { type CacheClock, formatSpan, readCacheClock } from "./cold-cache.ts";
import { measureSaved, readSavings, sumWeek } from "./saved-money.ts";

/** What the status line shows. Parts that are not known are absent. */
interface Status {
  readonly context?: { readonly tokens: number; readonly window: number } | undefined;
  /** The share of the input that the newest answers read from the cache. */
  readonly cache?: { readonly hitRate: number; readonly answers: number } | undefined;
  readonly session?: Money | undefined;
  readonly today?: Money | undefined;
  readonly savedTokens?: number | undefined;
  /** What the plugin saved: dollars of this session, its share of what the session would have cost, and the last week. */
  readonly saved?: { readonly usd: number; readonly share: number; readonly weekUsd: number } | undefined;
  readonly cacheClock?: CacheClock | undefined;
  /** Since when Claude Code does not run the plugin although it is installed, in milliseconds since 1970. */
  readonly inactiveSince?: number | undefined;
  readonly lastMiss?:
    | {
        readonly causes: readonly string[];
        readonly tokens?: number | undefined;
        readonly usd?: number | undefined;
      }
    | undefined;
}

interface Money {
  readonly usd: number;
  /** Whether the price of every model is known. */
  readonly isPriced: boolean;
  /** Whether all transcripts were read. The next run continues. */
  readonly isComplete: boolean;
  /** Whether a subscription pays, so that the dollars are only what the API would have cost. */
  readonly isSubscription: boolean;
}

/** Prints the status line for the JSON on standard input. */
export async function printStatusLine(args: readonly string[], env: Environment): Promise<void> {
  const { text, json } = await statusLine(readInput(), { env, now: new Date() });
  try {
    writeSync(1, args.includes("--json") ? `${JSON.stringify(json, null, 2)}\n` : `${text}\n`);
  } catch {
    // The client ends a run when the next one begins.
  }
}

/** Reads standard input at once: waiting for a stream takes longer than the rest. A terminal gives none. */
function readInput(): string {
  const chunks: Buffer[] = [];
  try {
    const stats = fstatSync(0);
    if (!stats.isFIFO() && !stats.isFile() && !stats.isSocket()) return "";
  } catch {
    return "";
  }
  const buffer = Buffer.allocUnsafe(65_536);
  for (let waits = 0; waits < 500; ) {
    try {
      const read = readSync(0, buffer);
      if (read === 0) break;
      chunks.push(Buffer.from(buffer.subarray(0, read)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") break;
      waits++;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}

export async function statusLine(
  input: string,
  { env, now }: { readonly env: Environment; readonly now: Date },
): Promise<{ readonly text: string; readonly json: Status }> {
  let fields: Fields = {};
  let spend: Spend | undefined;
  try {
    fields = readFields(JSON.parse(input));
  } catch {
    // The client's input is broken: what the transcripts say is left.
  }
  // A first run may find hundreds of megabytes. It must not take longer than the client waits.
  const maxBytes = 16_000_000;
  const maxListAgeMs = 10_000;
  try {
    const transcript = readText(fields.transcript_path);
    const cwd = readText(fields.cwd) ?? "/";
    // Loading the configuration takes long, and few people have prices in it.
    const prices = mayConfigure("prices", cwd, env)
      ? await (await import("./guard.ts")).configuredPrices(cwd, env)
      : {};
    spend = await readSpend({ transcript, env, now, prices, maxBytes, maxListAgeMs });
  } catch {
    // The line shows what the client itself reports.
  }
  const { total_input_tokens: total, context_window_size: size } = readFields(fields.context_window);
  const [tokens, window] = [readNumber(total), readNumber(size)];
  const json: Status = {
    context: tokens === undefined || !window ? undefined : { tokens, window },
    cache: measureCache(fields, spend),
    ...measureMoney(fields, spend),
    ...measureSavings(fields, spend, { env, now }),
    cacheClock: readCacheClock(spend?.answers ?? [], readFields(fields.prompt_cache)),
    inactiveSince: findSkippedServer(env, now.getTime())?.since,
    lastMiss: findLastMiss(fields, spend),
  };
  return { text: renderStatus(json, env, now.getTime()), json };
}

function readFields(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function readNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function readText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function measureCache(fields: Fields, spend: Spend | undefined): Status["cache"] {
  // How many of the newest answers count.
  const newestAnswers = 10;
  const newest = (spend?.answers ?? []).slice(-newestAnswers);
  const total = newest.reduce((sum, answer) => sum + answer.total, 0);
  if (total > 0) {
    return { hitRate: newest.reduce((sum, answer) => sum + answer.read, 0) / total, answers: newest.length };
  }
  const { hit_ratio, requests } = readFields(fields.prompt_cache);
  const hitRate = readNumber(hit_ratio);
  return hitRate === undefined ? undefined : { hitRate, answers: readNumber(requests) ?? 0 };
}

function measureMoney(fields: Fields, spend: Spend | undefined): Pick<Status, "session" | "today"> {
  const reported = readNumber(readFields(fields.cost).total_cost_usd);
  const { five_hour, seven_day } = readFields(fields.rate_limits);
  const isSubscription = five_hour !== undefined || seven_day !== undefined;
  const isComplete = spend?.isComplete ?? false;
  const createMoney = (usd: number, unpriced: readonly string[]): Money => {
    return { usd, isPriced: unpriced.length === 0, isComplete, isSubscription };
  };
  const session = readText(fields.transcript_path) === undefined ? undefined : spend?.session;
  const recorded = session?.usd ?? 0;
  // The client also counts requests that it does not record until it exits.
  const usd = Math.max(recorded, reported ?? 0);
  const startedToday = spend !== undefined && spend.session.answers > 0 && spend.session.usd <= spend.day.usd;
  return {
    session: session === undefined && reported === undefined ? undefined : createMoney(usd, session?.unpriced ?? []),
    today: spend && createMoney(spend.day.usd + (startedToday ? usd - recorded : 0), spend.day.unpriced),
  };
}

/** Reads what the plugin keeps beside the store. Opening the store would take too long. */
function measureSavings(
  { session_id, cost }: Fields,
  spend: Spend | undefined,
  { env, now }: { readonly env: Environment; readonly now: Date },
): Pick<Status, "savedTokens" | "saved"> {
  const session = readText(session_id);
  if (session === undefined || !/^[\w-]+$/.test(session)) return {};
  const file = join(stateDirectory(env), "saved-tokens", `${session}.json`);
  const savings = readSavings(file);
  if (savings === undefined) return {};
  const { savedTokens } = savings;
  const usd = spend?.isComplete ? measureSaved(savings, spend.answers) : undefined;
  if (usd === undefined) return { savedTokens };
  const paid = Math.max(spend?.session.usd ?? 0, readNumber(readFields(cost).total_cost_usd) ?? 0);
  return { savedTokens, saved: { usd, share: usd / (usd + paid), weekUsd: sumWeek(file, usd, now.getTime()) } };
}

function findLastMiss(fields: Fields, spend: Spend | undefined): Status["lastMiss"] {
  const { last_miss_at, last_miss_cause, misses, miss_recache_tokens } = readFields(fields.prompt_cache);
  const seconds = readNumber(last_miss_at);
  if (seconds === undefined) return undefined;
  const { causes } = readFields(last_miss_cause);
  const measureDistance = (answer: SpentAnswer): number => Math.abs(answer.time - seconds * 1000);
  // The client gives whole seconds, and the transcript has the time at which an answer was written.
  const maxApartMs = 15_000;
  const [answer] = (spend?.answers ?? [])
    .filter((each) => measureDistance(each) <= maxApartMs && each.write5m + each.write1h > 0)
    .sort((left, right) => measureDistance(left) - measureDistance(right));
  const rewritten = answer === undefined ? undefined : answer.write5m + answer.write1h;
  return {
    causes: Array.isArray(causes) ? causes.filter((cause) => typeof cause === "string") : [],
    tokens: rewritten ?? (misses === 1 ? readNumber(miss_recache_tokens) : undefined),
    usd: answer?.isPriced ? answer.rewriteUsd : undefined,
  };
}

const colourCodes = { red: 31, yellow: 33, green: 32, dim: 2 } as const;

function renderStatus(status: Status, env: Environment, now: number): string {
  const hasColours = !env.NO_COLOR && env.FORCE_COLOR !== "0";
  const paint = (colour: keyof typeof colourCodes, text: string): string =>
    hasColours ? `\u001b[${colourCodes[colour]}m${text}\u001b[0m` : text;
  const paintLoad = (load: number, text: string): string =>
    paint(load < 0.5 ? "green" : load < 0.8 ? "yellow" : "red", text);
  const { context, cache, session, today, savedTokens = 0, saved, cacheClock, lastMiss, inactiveSince } = status;
  const parts: string[] = [];
  if (inactiveSince !== undefined) {
    const time = new Date(inactiveSince).toTimeString().slice(0, 5);
    parts.push(paint("red", `plugin inactive since ${time}`));
  }
  if (context !== undefined) {
    const share = context.tokens / context.window;
    const size = `${shortenCount(context.tokens)} of ${shortenCount(context.window)}`;
    parts.push(paintLoad(share, `context ${size} (${Math.round(share * 100)}%)`));
  }
  // A cache that missed a fifth of the input is worth a look, one that missed half is expensive.
  if (cache !== undefined) {
    parts.push(paintLoad((1 - cache.hitRate) * 2 + 0.1, `cache ${Math.round(cache.hitRate * 100)}%`));
  }
  if (session !== undefined) parts.push(`session ${formatMoney(session)}`);
  if (today !== undefined) parts.push(`today ${formatMoney(today)}`);
  if (session?.isSubscription) parts.push(paint("dim", "at API prices"));
  if (saved !== undefined) {
    const [usd, week] = [saved.usd, saved.weekUsd].map((each) => `$${each.toFixed(2)}`);
    parts.push(paint("green", `saved ${usd} (${Math.round(saved.share * 100)} %) in this session, ${week} this week`));
  } else if (savedTokens > 0) parts.push(paint("green", `saved ${shortenCount(savedTokens)} tokens`));
  if (lastMiss !== undefined) parts.push(paint("yellow", describeMiss(lastMiss)));
  if (cacheClock !== undefined) parts.push(paint("dim", describeClock(cacheClock, now)));
  return parts.length === 0 ? "plimsoll: no data yet" : parts.join(paint("dim", " · "));
}

function describeClock({ expiresAt, usd }: CacheClock, now: number): string {
  const price = usd === undefined ? "" : ` · next prompt ${now < expiresAt ? "then " : ""}$${usd.toFixed(2)}`;
  if (now < expiresAt) return `cache cold in ${formatSpan(expiresAt - now)}${price}`;
  return `cache cold since ${formatSpan(now - expiresAt)}${price}`;
}

function describeMiss({ causes, tokens, usd }: NonNullable<Status["lastMiss"]>): string {
  const why = causes.length === 0 ? "unknown cause" : causes.map((cause) => cause.replaceAll("_", " ")).join(", ");
  const size = tokens === undefined ? "" : `, ${shortenCount(tokens)} tokens written again`;
  // The client's words go to a terminal.
  const printable = why.replace(/[^\w ,.-]/g, "").slice(0, 60);
  return `cache lost: ${printable}${size}${usd === undefined ? "" : ` (+$${usd.toFixed(2)})`}`;
}

function formatMoney({ usd, isPriced, isComplete }: Money): string {
  return `${isPriced ? "" : "about "}$${usd.toFixed(2)}${isComplete ? "" : "+"}`;
}

function shortenCount(tokens: number): string {
  if (tokens < 1000) return String(Math.round(tokens));
  if (tokens < 1_000_000) return `${(tokens / 1000).toFixed(tokens < 100_000 ? 1 : 0).replace(/\.0$/, "")}k`;
  return `${(tokens / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}
