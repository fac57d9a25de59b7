/** What Claude Code's recorded answers cost: those of one session with its sub-agents, and those of this day. Transcripts
 *  only grow, so an index remembers how far each one was read. The index is a cache: without it all is read again. */
import { closeSync, existsSync, readSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { costOfUsage, type Prices, type UsageCost } from "../../core/billing/index.ts";
import {
  configDirectory,
  type Environment,
  homeDirectory,
  openForeign,
  readForeign,
  searchUpward,
  stateDirectory,
} from "../../host/index.ts";
import { findClaudeTranscripts, findSubAgents } from "../places.ts";
import { claudeCodeUsage, createUsageSum, type UsageRecord } from "../sessions/recorded-usage.ts";

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
  readonly id: string;
  readonly model: string;
  /** Milliseconds since 1970, 0 if it is not known. */
  readonly time: number;
  readonly session: string;
  readonly isPriced: boolean;
  /** What writing to the cache cost more than reading the same tokens from it. */
  readonly rewriteUsd: number;
}

export async function readSpend(options: SpendOptions): Promise<Spend> {
  const { transcript, env, now, prices = {}, maxListAgeMs = 0, maxBytes = Number.POSITIVE_INFINITY } = options;
  const index = readIndex(env, prices);
  const dayStart = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const place = JSON.stringify([env.CLAUDE_CONFIG_DIR, transcript && dirname(dirname(transcript))]);
  const own = transcript === undefined ? [] : [transcript, ...findSubAgents(transcript)];
  const list = listDay(
    index.list,
    { place, day: dayStart, at: now.getTime() },
    { env, transcript, maxAgeMs: maxListAgeMs },
  );
  const reader: Reader = { prices, bytesLeft: maxBytes, isComplete: true, problems: [] };
  const names = new Set([...own, ...list.files]);
  const files = new Map([...names].map((name) => [name, readOn(name, index.files[name], reader)]));
  await writeIndex(env, { ...index, files: Object.fromEntries(files), list }, index);
  return {
    session: sumOf(
      own.flatMap((name) => files.get(name) ?? []),
      { prices },
    ),
    day: sumOf([...files.values()], { prices, since: dayStart }),
    answers: transcript === undefined ? [] : (files.get(transcript)?.answers ?? []),
    isComplete: reader.isComplete,
    problems: reader.problems,
  };
}

/** How far a transcript was read, and what is in it. */
interface ReadFile {
  readonly length: number;
  readonly inode: number;
  readonly answers: readonly SpentAnswer[];
  readonly sums: readonly UsageRecord[];
  /** How many lines with token numbers could not be parsed. */
  readonly damaged: number;
}

const unread: ReadFile = { length: 0, inode: 0, answers: [], sums: [], damaged: 0 };

interface SpendIndex {
  /** An index of other prices or of another shape is not used. */
  readonly basis: string;
  readonly files: Readonly<Record<string, ReadFile>>;
  readonly list: DayList;
}

/** The transcripts that changed on a day, as they were found at a time. */
interface DayList {
  /** What the folders depend on. */
  readonly place: string;
  readonly day: number;
  readonly at: number;
  readonly files: readonly string[];
}

const indexShape = 2;
/** A larger one does not fit into a string. */
const mostIndexBytes = 500_000_000;

function indexFile(env: Environment): string {
  return join(stateDirectory(env), "spend.json");
}

function readIndex(env: Environment, prices: Prices): SpendIndex {
  const basis = JSON.stringify([indexShape, prices]);
  try {
    const index = JSON.parse(String(readForeign(indexFile(env), { maxBytes: mostIndexBytes }))) as SpendIndex;
    const isWhole = Array.isArray(index.list.files) && Object(index.files) === index.files;
    if (index.basis === basis && isWhole) return index;
  } catch {
    // A missing or damaged index is built again.
  }
  return { basis, files: {}, list: { place: "", day: 0, at: 0, files: [] } };
}

/** Two processes may write at once. The index of either one is right, and the next run reads what is missing. */
async function writeIndex(env: Environment, index: SpendIndex, before: SpendIndex): Promise<void> {
  const names = Object.keys(index.files);
  const isSame = names.every((name) => index.files[name] === before.files[name]) && index.list.at === before.list.at;
  if (isSame && names.length === Object.keys(before.files).length) return;
  const file = indexFile(env);
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    if (!existsSync(dirname(file))) await makeStateFolder(dirname(file));
    writeFileSync(temporary, JSON.stringify(index), { mode: 0o600 });
    renameSync(temporary, file);
  } catch {
    // Without an index the next run takes longer.
  }
}

/** Loads what makes folders only if one is missing: loading it takes as long as all the rest. */
async function makeStateFolder(folder: string): Promise<void> {
  const { makeDirectory } = await import("../../host/index.ts");
  await makeDirectory(folder, 0o700);
}

function listDay(known: DayList, wanted: Omit<DayList, "files">, options: ListOptions): DayList {
  const { place, day, at } = wanted;
  const age = at - known.at;
  if (known.place === place && known.day === day && age >= 0 && age < options.maxAgeMs) return known;
  return { ...wanted, files: findClaudeTranscripts(options.env, { since: day, transcript: options.transcript }) };
}

interface ListOptions extends Pick<SpendOptions, "env" | "transcript"> {
  readonly maxAgeMs: number;
}

interface Reader {
  readonly prices: Prices;
  bytesLeft: number;
  isComplete: boolean;
  readonly problems: SpendProblem[];
}

/** Reads the lines that were added since the last time. */
function readOn(name: string, known: ReadFile = unread, reader: Reader): ReadFile {
  const opened = openForeign(name);
  if ("reason" in opened) {
    reader.problems.push({ file: name, cause: opened.reason });
    return known;
  }
  const { descriptor, stats } = opened;
  try {
    const { size, ino } = stats;
    const isGrown = known.inode === ino && known.length <= size;
    const start = isGrown ? known : { ...unread, inode: ino };
    const file = start.length === size ? start : readLines({ descriptor, size, start }, reader);
    if (file.damaged > 0) reader.problems.push({ file: name, cause: file.damaged });
    return file;
  } catch (error) {
    reader.problems.push({ file: name, cause: error });
    return known;
  } finally {
    closeSync(descriptor);
  }
}

interface OpenFile {
  readonly descriptor: number;
  readonly size: number;
  readonly start: ReadFile;
}

interface Draft {
  length: number;
  readonly answers: SpentAnswer[];
  sums: readonly UsageRecord[];
  damaged: number;
}

const chunkBytes = 4_000_000;
/** A longer line is not read: a file without any line feed would fill the memory. */
const mostLineBytes = 64_000_000;

function readLines({ descriptor, size, start }: OpenFile, reader: Reader): ReadFile {
  const draft: Draft = { ...start, answers: [...start.answers] };
  for (let wanted = chunkBytes; draft.length < size; ) {
    if (reader.bytesLeft <= 0) {
      reader.isComplete = false;
      break;
    }
    const buffer = Buffer.allocUnsafe(Math.min(wanted, size - draft.length));
    const read = readSync(descriptor, buffer, 0, buffer.length, draft.length);
    reader.bytesLeft -= read;
    const end = buffer.subarray(0, read).lastIndexOf(lineFeed) + 1;
    readChunk(buffer.subarray(0, end), draft, reader);
    draft.length += end;
    // Without an end, the last line is still being written, or a line is longer than the buffer.
    if (end === 0 && read < wanted) break;
    if (end === 0 && read > mostLineBytes) throw new RangeError(`a line has more than ${mostLineBytes} bytes`);
    wanted = end === 0 ? wanted * 2 : chunkBytes;
  }
  return { ...start, ...draft, answers: largestOf(draft.answers) };
}

const lineFeed = 0x0a;

/** Most lines report nothing, and decoding them takes most of the time. */
function readChunk(chunk: Buffer, draft: Draft, reader: Reader): void {
  for (const word of ['"usage"', '"cost-state"']) {
    for (let at = chunk.indexOf(word); at >= 0; ) {
      const end = chunk.indexOf(lineFeed, at);
      readLine(chunk.toString("utf8", chunk.lastIndexOf(lineFeed, at) + 1, end), draft, reader);
      at = chunk.indexOf(word, end);
    }
  }
}

function readLine(text: string, draft: Draft, { prices }: Reader): void {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    draft.damaged++;
    return;
  }
  const record = claudeCodeUsage(line);
  if (record?.sums !== undefined) draft.sums = [...draft.sums.filter(({ id }) => id !== record.id), record];
  if (record === undefined || record.sums !== undefined) return;
  const { id, model = "", time = 0, session = "", usage } = record;
  const cost = costOfUsage(usage, { model: record.model, prices, timeMs: record.time });
  if (cost === undefined) return;
  const { price, ...numbers } = cost;
  const { write5m, write1h } = numbers;
  const extra = write5m * (price.write5m - price.read) + write1h * (price.write1h - price.read);
  draft.answers.push({
    ...numbers,
    ...{ id, model, time, session, isPriced: !price.isDefault },
    rewriteUsd: Math.max(0, (extra * price.input) / 1_000_000),
  });
}

/** While an answer is streamed, its first lines report only a part of the output. */
function largestOf(answers: readonly SpentAnswer[]): SpentAnswer[] {
  const largest = new Map<string, SpentAnswer>();
  for (const answer of answers) {
    const known = largest.get(answer.id);
    if (known === undefined || answer.total + answer.output >= known.total + known.output)
      largest.set(answer.id, answer);
  }
  return [...largest.values()];
}

/** Adds up files. Several files may have copies of one answer. A session's own sum covers requests that have no
 *  answer in a file. It counts for a day only if the whole session is of that day. */
function sumOf(files: readonly ReadFile[], { prices, since = 0 }: { prices: Prices; since?: number }): SpendSum {
  const sum = createUsageSum({ prices });
  const unpriced = new Set<string>();
  const older = new Set<string>();
  for (const answer of files.flatMap(({ answers }) => answers)) {
    const { id, model, time, session } = answer;
    if (time < since) {
      older.add(session);
      continue;
    }
    // Field by field: a status line adds up thousands of answers, and a spread is slow.
    sum.add({ id, model, time, session, usage: {}, cost: answer });
    if (!answer.isPriced) unpriced.add(model || "unknown");
  }
  for (const record of files.flatMap(({ sums }) => sums)) if (!older.has(record.session ?? "")) sum.add(record);
  const { usd, answers } = sum.totals();
  return { usd, answers, unpriced: [...unpriced].sort() };
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
