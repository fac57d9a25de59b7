/** Makes the status line of Claude Code. It runs after every answer, so `main.ts` loads it without the other commands.
 *  Whatever is missing or wrong in the input is left out. */
import { fstatSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Prices } from "../../core/billing/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { type Environment, readForeign, stateDirectory } from "../../host/index.ts";
import { mayConfigure, readSpend, type Spend, type SpentAnswer } from "../../recordings/index.ts";

/** What the status line shows. Parts that are not known are absent. */
interface Status {
  readonly context?: { readonly tokens: number; readonly window: number } | undefined;
  /** The share of the input that the newest answers read from the cache. */
  readonly cache?: { readonly hitRate: number; readonly answers: number } | undefined;
  readonly session?: Money | undefined;
  readonly today?: Money | undefined;
  readonly savedTokens?: number | undefined;
  readonly lastMiss?: CacheMiss | undefined;
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

interface CacheMiss {
  readonly causes: readonly string[];
  readonly tokens?: number | undefined;
  readonly usd?: number | undefined;
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
  if (!isFed()) return "";
  const chunks: Buffer[] = [];
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

function isFed(): boolean {
  try {
    const stats = fstatSync(0);
    return stats.isFIFO() || stats.isFile() || stats.isSocket();
  } catch {
    return false;
  }
}

interface StatusPlace {
  readonly env: Environment;
  readonly now: Date;
}

export async function statusLine(
  input: string,
  { env, now }: StatusPlace,
): Promise<{ readonly text: string; readonly json: Status }> {
  const fields = parse(input);
  const spend = await spendOf(fields, { env, now });
  const json: Status = {
    context: contextOf(fields),
    cache: cacheOf(fields, spend),
    ...moneyOf(fields, spend),
    savedTokens: savedTokens(fields, env),
    lastMiss: lastMiss(fields, spend),
  };
  return { text: render(json, env), json };
}

function parse(input: string): Fields {
  try {
    return fieldsOf(JSON.parse(input));
  } catch {
    return {};
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A first run may find hundreds of megabytes. It must not take longer than the client waits. */
const maxBytes = 16_000_000;
const maxListAgeMs = 10_000;

async function spendOf(fields: Fields, { env, now }: StatusPlace): Promise<Spend | undefined> {
  try {
    const transcript = textOf(fields.transcript_path);
    const prices = await pricesOf(textOf(fields.cwd) ?? "/", env);
    return await readSpend({ transcript, env, now, prices, maxBytes, maxListAgeMs });
  } catch {
    return undefined;
  }
}

/** Loading the configuration takes long, and few people have prices in it. */
async function pricesOf(cwd: string, env: Environment): Promise<Prices> {
  return mayConfigure("prices", cwd, env) ? (await import("./guard.ts")).configuredPrices(cwd, env) : {};
}

function contextOf(fields: Fields): Status["context"] {
  const { total_input_tokens: total, context_window_size: size } = fieldsOf(fields.context_window);
  const [tokens, window] = [numberOf(total), numberOf(size)];
  return tokens === undefined || !window ? undefined : { tokens, window };
}

/** How many of the newest answers count. */
const newestAnswers = 10;

function cacheOf(fields: Fields, spend: Spend | undefined): Status["cache"] {
  const newest = (spend?.answers ?? []).slice(-newestAnswers);
  const total = newest.reduce((sum, answer) => sum + answer.total, 0);
  if (total > 0) {
    return { hitRate: newest.reduce((sum, answer) => sum + answer.read, 0) / total, answers: newest.length };
  }
  const { hit_ratio, requests } = fieldsOf(fields.prompt_cache);
  const hitRate = numberOf(hit_ratio);
  return hitRate === undefined ? undefined : { hitRate, answers: numberOf(requests) ?? 0 };
}

function moneyOf(fields: Fields, spend: Spend | undefined): Pick<Status, "session" | "today"> {
  const told = numberOf(fieldsOf(fields.cost).total_cost_usd);
  const { five_hour, seven_day } = fieldsOf(fields.rate_limits);
  const isSubscription = five_hour !== undefined || seven_day !== undefined;
  const isComplete = spend?.isComplete ?? false;
  const money = (usd: number, unpriced: readonly string[]): Money => {
    return { usd, isPriced: unpriced.length === 0, isComplete, isSubscription };
  };
  const { day } = spend ?? {};
  const session = textOf(fields.transcript_path) === undefined ? undefined : spend?.session;
  // The client also counts requests that it does not record until it exits.
  const own = Math.max(session?.usd ?? 0, told ?? 0);
  const today =
    day === undefined ? undefined : day.usd + Math.max(0, startedToday(spend) ? own - (session?.usd ?? 0) : 0);
  return {
    session: session === undefined && told === undefined ? undefined : money(own, session?.unpriced ?? []),
    today: today === undefined ? undefined : money(today, day?.unpriced ?? []),
  };
}

function startedToday(spend: Spend | undefined): boolean {
  return spend !== undefined && spend.session.answers > 0 && spend.session.usd <= spend.day.usd;
}

/** Reads the number that the plugin keeps beside the store. Opening the store would take too long. */
function savedTokens({ session_id }: Fields, env: Environment): number | undefined {
  const session = textOf(session_id);
  if (session === undefined || !/^[\w-]+$/.test(session)) return undefined;
  try {
    const read = readForeign(join(stateDirectory(env), "saved-tokens", `${session}.json`));
    return numberOf(fieldsOf(JSON.parse(String(read))).savedTokens);
  } catch {
    return undefined;
  }
}

function lastMiss(fields: Fields, spend: Spend | undefined): Status["lastMiss"] {
  const { last_miss_at, last_miss_cause, misses, miss_recache_tokens } = fieldsOf(fields.prompt_cache);
  const at = numberOf(last_miss_at);
  if (at === undefined) return undefined;
  const { causes } = fieldsOf(last_miss_cause);
  const answer = answerAt(at * 1000, spend?.answers ?? []);
  const rewritten = answer === undefined ? undefined : answer.write5m + answer.write1h;
  return {
    causes: Array.isArray(causes) ? causes.filter((cause) => typeof cause === "string") : [],
    tokens: rewritten ?? (misses === 1 ? numberOf(miss_recache_tokens) : undefined),
    usd: answer?.isPriced ? answer.rewriteUsd : undefined,
  };
}

/** The client gives whole seconds, and the transcript has the time at which an answer was written. */
const mostApartMs = 15_000;

function answerAt(time: number, answers: readonly SpentAnswer[]): SpentAnswer | undefined {
  const apart = (answer: SpentAnswer): number => Math.abs(answer.time - time);
  const near = answers.filter((answer) => apart(answer) <= mostApartMs && answer.write5m + answer.write1h > 0);
  return near.reduce<SpentAnswer | undefined>(
    (best, answer) => (best === undefined || apart(answer) < apart(best) ? answer : best),
    undefined,
  );
}

type Colour = "red" | "yellow" | "green" | "dim";
const colourCodes: Readonly<Record<Colour, number>> = { red: 31, yellow: 33, green: 32, dim: 2 };

function render(status: Status, env: Environment): string {
  const hasColours = !env.NO_COLOR && env.FORCE_COLOR !== "0";
  const paint = (colour: Colour, text: string): string =>
    hasColours ? `\u001b[${colourCodes[colour]}m${text}\u001b[0m` : text;
  const { session, today, savedTokens: saved = 0, lastMiss: miss } = status;
  const parts = [
    ...loads(status).map(({ text, load }) => paint(load < 0.5 ? "green" : load < 0.8 ? "yellow" : "red", text)),
    ...(session === undefined ? [] : [`session ${dollars(session)}`]),
    ...(today === undefined ? [] : [`today ${dollars(today)}`]),
    ...(session?.isSubscription ? [paint("dim", "at API prices")] : []),
    ...(saved > 0 ? [paint("green", `saved ${short(saved)} tokens`)] : []),
    ...(miss === undefined ? [] : [paint("yellow", describeMiss(miss))]),
  ];
  return parts.length === 0 ? "plimsoll: no data yet" : parts.join(paint("dim", " · "));
}

/** The parts with a share, and how bad it is. */
function loads({ context, cache }: Status): { readonly text: string; readonly load: number }[] {
  const share = context === undefined ? 0 : context.tokens / context.window;
  const used = context && `context ${short(context.tokens)} of ${short(context.window)} (${percent(share)})`;
  const hits = cache && `cache ${percent(cache.hitRate)}`;
  return [
    ...(used === undefined ? [] : [{ text: used, load: share }]),
    // A cache that missed a fifth of the input is worth a look, one that missed half is expensive.
    ...(hits === undefined ? [] : [{ text: hits, load: (1 - (cache?.hitRate ?? 1)) * 2 + 0.1 }]),
  ];
}

function describeMiss({ causes, tokens, usd }: CacheMiss): string {
  const why = causes.length === 0 ? "unknown cause" : causes.map((cause) => cause.replaceAll("_", " ")).join(", ");
  const size = tokens === undefined ? "" : `, ${short(tokens)} tokens written again`;
  return `cache lost: ${printableCause(why)}${size}${usd === undefined ? "" : ` (+$${usd.toFixed(2)})`}`;
}

/** The client's words go to a terminal. */
function printableCause(text: string): string {
  return text.replace(/[^\w ,.-]/g, "").slice(0, 60);
}

function dollars({ usd, isPriced, isComplete }: Money): string {
  return `${isPriced ? "" : "about "}$${usd.toFixed(2)}${isComplete ? "" : "+"}`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

function short(tokens: number): string {
  if (tokens < 1000) return String(Math.round(tokens));
  if (tokens < 1_000_000) return `${(tokens / 1000).toFixed(tokens < 100_000 ? 1 : 0).replace(/\.0$/, "")}k`;
  return `${(tokens / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}
