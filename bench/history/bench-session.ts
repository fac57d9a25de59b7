/** The sessions that everything is measured on: recorded ones from a directory, or generated ones. */
import { relative } from "node:path";
import { ContextError } from "../../src/core/errors.ts";
import type { Counter } from "../../src/core/tokens/index.ts";
import { readTextFile } from "../../src/host/index.ts";
import { findSessionFiles } from "../../src/recordings/places.ts";
import { type PreparedSession, prepareSession } from "../../src/recordings/replay/prepare-session.ts";
import { readRecording } from "../../src/recordings/sessions/index.ts";
import type { RecordedSession } from "../../src/recordings/sessions/recorded-session.ts";
import { generateSession, type SessionOptions } from "../../test/generate/generate-session.ts";

export interface BenchSession {
  readonly prepared: PreparedSession;
  /** For each number of messages their tokens, from 0 messages on. */
  readonly sizes: readonly number[];
}

export interface BenchSessions {
  readonly source: "transcripts" | "generated";
  readonly sessions: readonly BenchSession[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

/** What a coding agent's tools and system text take, and what is kept free for an answer. */
export const PREFIX_TOKENS = 20_000;
/** All sessions are billed at the ratios of Claude Sonnet 5: a read costs a tenth of the input, a write 1.25 times. */
export const PRICES = { anthropic: { input: 2, cache_read: 0.2, cache_write_5m: 2.5 } } as const;
export const RESERVE = 8_000;

/** Tokens that the messages of a session may have. */
export function messageBudget({ prepared }: BenchSession, window: number): number {
  return window - RESERVE - PREFIX_TOKENS - prepared.prefixTokens - prepared.frameTokens;
}

export function needsTrimming(session: BenchSession, window: number): boolean {
  const last = session.prepared.calls.at(-1) ?? 0;
  return (session.sizes[last] ?? 0) > messageBudget(session, window);
}

/** All sessions of a directory in Anthropic's shape, which the peers' conversions begin with. */
export async function readSessions(directory: string, counter: Counter): Promise<BenchSessions> {
  const { files } = findSessionFiles([directory], process.cwd());
  const sessions: BenchSession[] = [];
  const notes: string[] = [];
  for (const { path } of files) {
    const file = relative(directory, path) || path;
    try {
      const read = await readTextFile(path);
      if (!("text" in read)) throw new ContextError("unreadable_input", read.reason);
      const session = benchSession(readRecording(read.text, { file }), counter);
      const reason = reasonToLeaveOut(session.prepared);
      if (reason === undefined) sessions.push(session);
      else notes.push(`${file} is left out: ${reason}`);
    } catch (error) {
      if (!(error instanceof ContextError)) throw error;
      notes.push(`${file} is left out: ${error.message}`);
    }
  }
  return { source: "transcripts", sessions, notes };
}

function reasonToLeaveOut({ format, calls }: PreparedSession): string | undefined {
  if (format !== "anthropic") return `its messages are of the format ${format}`;
  return calls.length === 0 ? "it has no assistant turn" : undefined;
}

/** Some fit every window, some none; one in three is as untidy as recordings are. */
const plans: readonly Pick<SessionOptions, "profile" | "turns">[] = [
  { profile: "coding", turns: 180 },
  { profile: "coding", turns: 40 },
  { profile: "search", turns: 90 },
  { profile: "chat", turns: 30 },
  { profile: "coding", turns: 90 },
  { profile: "coding", turns: 260 },
  { profile: "search", turns: 30 },
  { profile: "search", turns: 150 },
];
const quirks: SessionOptions["quirks"] = ["unanswered-calls", "consecutive-users", "results-out-of-order"];
const ROUNDS = 2;

export function generateSessions(counter: Counter, { isQuick }: { isQuick: boolean }): BenchSessions {
  const all = Array.from({ length: isQuick ? 1 : ROUNDS }, () => plans).flat();
  const sessions = all.map((plan, index) => {
    const seed = index + 1;
    const { messages } = generateSession({ ...plan, seed, quirks: seed % 3 === 0 ? quirks : [] });
    const file = `${plan.profile}-${plan.turns}-${seed}`;
    return benchSession({ file, source: "messages", format: "anthropic", messages, notes: [] }, counter);
  });
  return { source: "generated", sessions, notes: [] };
}

export function benchSession(recorded: RecordedSession, counter: Counter): BenchSession {
  // No model: all are billed alike, by PRICES.
  const prepared = prepareSession(recorded, { counter });
  const sizes = [0];
  for (const message of prepared.messages) sizes.push((sizes.at(-1) ?? 0) + tokensOf(prepared, message));
  return { prepared, sizes };
}

/** Tokens of a message, whether the session's own or one that a policy made of it. */
export function tokensOf({ blocksOf }: PreparedSession, message: object): number {
  return blocksOf(message).blocks.reduce((sum, block) => sum + block.tokens, 0);
}
