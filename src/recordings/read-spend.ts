/** What Claude Code's recorded answers cost: those of one session with its sub-agents, and those of this day. */

import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ModelPrice, Prices, UsageCost } from "../core/billing/index.ts";
import { configDirectory, type Environment, homeDirectory, readForeign, searchUpward } from "../host/index.ts";
import { countInput, priceCall } from "./bill/price-calls.ts";
import { findClaudeTranscripts, findSubAgents, keptTranscripts } from "./places.ts";
import { continueReading, type FileEntry, indexFile, readIndex, writeIndex } from "./recording-index.ts";
import { claudeCodeReader } from "./sessions/claude-code.ts";
import { createPriceTable, createUsageSum } from "./sessions/recorded-usage.ts";
import type { CallFact, SessionFacts } from "./sessions/session-facts.ts";

export interface SpendOptions {
  /** The transcript of the session. Without it only the day is known. */
  readonly transcript?: string | undefined;
  readonly env: Environment;
  readonly now: Date;
  /** Your own prices, which take precedence over the table. */
  readonly prices?: Prices | undefined;
  /** The most bytes to read in this run. A later run continues.
   *  @default no limit */
  readonly maxBytes?: number | undefined;
  /** How old the list of other sessions' transcripts may be.
   *  @default 0 */
  readonly maxListAgeMs?: number | undefined;
}

export interface Spend {
  readonly session: SpendSum;
  /** All sessions of Claude Code since midnight. */
  readonly day: SpendSum;
  /** The answers of the session's main conversation, oldest first. */
  readonly answers: readonly SpentAnswer[];
  /** Whether everything was read. */
  readonly isComplete: boolean;
  /** Files that could not be read or understood. */
  readonly problems: readonly SpendProblem[];
}

export interface SpendProblem {
  readonly file: string;
  /** How many lines could not be parsed, or why the file could not be read. */
  readonly cause: unknown;
}

export interface SpendSum {
  /** Dollars at list prices. */
  readonly usd: number;
  readonly answers: number;
  /** Models whose price is not known. The sum has a default price for them. */
  readonly unpriced: readonly string[];
}

/** One answer and its cost. */
export interface SpentAnswer extends Omit<UsageCost, "price"> {
  readonly price: ModelPrice;
  /** Milliseconds since 1970, 0 if it is not known. */
  readonly time: number;
  readonly isPriced: boolean;
  /** What writing to the cache cost more than reading the same tokens from it. */
  readonly rewriteUsd: number;
}

export async function readSpend(options: SpendOptions): Promise<Spend> {
  const { transcript, env, now, prices = {}, maxBytes = Number.POSITIVE_INFINITY } = options;
  const file = indexFile(env, "recent");
  const index = readIndex(file);
  const since = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const list = listDay(index.head.list, since, options);
  const own = transcript === undefined ? [] : [transcript, ...findSubAgents(transcript)];
  const { entries, bytes, isComplete, problems } = readFiles(new Set([...own, ...list.files]), index.entries, maxBytes);
  const kept = new Map<string, FileEntry>();
  for (const path of keptTranscripts([...entries.keys()], env)) kept.set(path, entries.get(path) as FileEntry);
  // Writing the index takes longer than reading a few new lines again.
  if (bytes > smallBytes || kept.size !== index.entries.size || list !== index.head.list) {
    await writeIndex(file, { entries: kept, head: { list } });
  }
  const findPrice = createPriceTable(prices);
  const sessions = new Map<string, SpentSession>();
  for (const [path, { facts }] of entries) {
    if (facts === undefined) continue;
    sessions.set(path, { facts, answers: facts.calls.map((call) => describeAnswer(call, findPrice(call))) });
  }
  const main = transcript === undefined ? undefined : sessions.get(transcript);
  return {
    session: sumSpend(
      own.flatMap((path) => sessions.get(path) ?? []),
      { prices, since: 0 },
    ),
    day: sumSpend([...sessions.values()], { prices, since }),
    answers: main === undefined ? [] : main.answers.filter((_, index) => main.facts.calls[index]?.chain === 0),
    isComplete,
    problems,
  };
}

const smallBytes = 64_000;

interface ReadFiles extends Pick<Spend, "isComplete" | "problems"> {
  /** How many bytes are new. */
  readonly bytes: number;
  readonly entries: ReadonlyMap<string, FileEntry>;
}

/** Reads what is new in the files. What is known of a file that cannot be read still counts. */
function readFiles(paths: Iterable<string>, known: ReadonlyMap<string, FileEntry>, maxBytes: number): ReadFiles {
  const budget = { bytes: maxBytes };
  const entries = new Map<string, FileEntry>();
  const problems: SpendProblem[] = [];
  let bytes = 0;
  let isComplete = true;
  for (const path of paths) {
    const before = known.get(path);
    if (before !== undefined) entries.set(path, before);
    try {
      const { entry, isWhole, bytes: added } = continueReading({ path, within: path }, before, { readers, budget });
      entries.set(path, entry);
      bytes += added;
      if (!isWhole) isComplete = false;
      if (entry.lostUsage) problems.push({ file: path, cause: entry.lostUsage });
    } catch (error) {
      problems.push({ file: path, cause: error });
    }
  }
  return { entries, bytes, isComplete, problems };
}

const readers = [claudeCodeReader];

interface SpentSession {
  readonly facts: SessionFacts;
  /** One for each call. */
  readonly answers: readonly SpentAnswer[];
}

/** The transcripts that changed on a day, as they were found at a time. */
interface DayList {
  /** What the folders depend on. */
  readonly place: string;
  readonly day: number;
  readonly at: number;
  readonly files: readonly string[];
}

/** Returns the list of the index while it is new enough. */
function listDay(known: unknown, day: number, { env, transcript, now, maxListAgeMs = 0 }: SpendOptions): DayList {
  const place = JSON.stringify([env.CLAUDE_CONFIG_DIR, transcript && dirname(dirname(transcript))]);
  const at = now.getTime();
  const list = Object(known) as DayList;
  const age = at - list.at;
  const isNew = list.place === place && list.day === day && age >= 0 && age < maxListAgeMs;
  if (isNew && Array.isArray(list.files)) return list;
  return { place, day, at, files: findClaudeTranscripts(env, { since: day, transcript }) };
}

/** Several files may have copies of one answer. A session's own sum covers requests that have no answer in a file. It
 *  counts for a day only if the whole session is of that day. */
function sumSpend(
  sessions: readonly SpentSession[],
  { prices, since }: { readonly prices: Prices; readonly since: number },
): SpendSum {
  const sum = createUsageSum({ prices });
  const unpriced = new Set<string>();
  const isOlder = ({ time }: CallFact): boolean => time < since;
  const older = new Set(sessions.flatMap(({ facts }) => (facts.calls.some(isOlder) ? facts.session : [])));
  const sums = sessions.flatMap(({ facts }) => (facts.sums && !older.has(facts.session) ? facts : []));
  for (const { facts, answers: costs } of sessions) {
    // Finding what a sum has more than the answers takes long, and few sessions have a sum.
    const session = sums.length > 0 ? facts.session : undefined;
    for (const [index, cost] of costs.entries()) {
      if (cost.time < since) continue;
      const { id, model, time } = facts.calls[index] as CallFact;
      sum.add({ id, model, time, session, usage: cost, cost });
      if (!cost.isPriced) unpriced.add(model);
    }
  }
  for (const { session, sums: own } of sums) sum.add({ id: session, session, usage: {}, sums: own });
  const { usd, answers } = sum.totals();
  return { usd, answers, unpriced: [...unpriced].sort() };
}

/** Field by field: a status line adds up thousands of answers, and a spread is slow. */
function describeAnswer(call: CallFact, price: ModelPrice): SpentAnswer {
  const answer = {
    time: call.time,
    read: call.read,
    write5m: call.write5m,
    write1h: call.write1h,
    uncached: call.uncached,
    output: call.output,
    total: countInput(call),
    usd: priceCall(call, price),
    // Only dollars are summed.
    cost: 0,
    outputCost: 0,
    isPriced: !price.isDefault,
    price,
    rewriteUsd: 0,
  };
  for (const step of call.extra ?? []) {
    answer.read += step.read;
    answer.write5m += step.write5m;
    answer.write1h += step.write1h;
    answer.uncached += step.uncached;
    answer.output += step.output;
    answer.total += countInput(step);
  }
  const { write5m, write1h } = answer;
  const extra = write5m * (price.write5m - price.read) + write1h * (price.write1h - price.read);
  answer.rewriteUsd = Math.max(0, (extra * price.input) / 1_000_000);
  return answer;
}

/** Returns whether the user's or the project's configuration has this word at all. */
export function mayConfigure(word: string, cwd: string, env: Environment): boolean {
  const files: { readonly path: string; readonly within?: string }[] = [
    { path: join(configDirectory(env), "config.yaml") },
  ];
  for (const { path } of searchUpward(cwd, homeDirectory(env)))
    files.push({ path: join(path, ".plimsoll/config.yaml"), within: path });
  return files.some(({ path, within }) => {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
    // Whoever loads the configuration reports a file that is not read.
    const read = readForeign(path, { within, maxBytes: mostConfigBytes });
    return !Buffer.isBuffer(read) || read.includes(word);
  });
}

const mostConfigBytes = 1_000_000;
