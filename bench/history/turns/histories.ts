/** Histories of a chosen length, and a way through them turn by turn, as an agent goes. */
import { createTrimmer, type Trimmer } from "../../../src/conversation/history/index.ts";
import { type Counter, createCounter } from "../../../src/core/tokens/index.ts";
import { generateSession } from "../../../test/generate/generate-session.ts";
import { PREFIX_TOKENS, RESERVE } from "../bench-session.ts";

export type History = readonly object[];

/** Two messages a turn; it ends with the assistant. Every seed has tool calls of its own. */
export function generateHistory(seed: number, length: number): History {
  return generateSession({ seed, turns: length / 2 }).messages;
}

const SESSION_LENGTH = 500;

/** One conversation after the other, of a length that is a multiple of theirs, or shorter than one. */
export function generateLongHistory(length: number): History {
  const each = Math.min(length, SESSION_LENGTH);
  return Array.from({ length: length / each }, (_, index) => generateHistory(100 + index, each)).flat();
}

/** For each turn the number of messages that its request has. */
export function turnsOf(history: History): number[] {
  return history.flatMap((message, index) =>
    index > 0 && (message as { role: string }).role === "assistant" ? index : [],
  );
}

/** A counter that has counted nothing yet: what it has counted before costs it next to nothing. */
export async function freshCounter(): Promise<Counter> {
  return { ...(await createCounter("estimate:o200k")) };
}

/** A trimmer for one way through a history. */
export async function freshTrimmer(contextWindow: number, counter?: Counter): Promise<Trimmer> {
  return createTrimmer({
    ...{ contextWindow, reserve: RESERVE, prefixTokens: PREFIX_TOKENS, format: "anthropic" },
    counter: counter ?? (await freshCounter()),
  });
}

/** Milliseconds of some turns of a history, all of which are played. */
export function playTurns(trimmer: Trimmer, history: History, isTimed: (length: number) => boolean): number[] {
  const times: number[] = [];
  const messages: object[] = [];
  for (const length of turnsOf(history)) {
    while (messages.length < length) messages.push(history[messages.length]!);
    const started = performance.now();
    trimmer.reduce({ messages });
    const ms = performance.now() - started;
    if (isTimed(length)) times.push(ms);
  }
  return times;
}

/** Milliseconds a turn, each turn the least of several rounds: what else the machine does, compiling and collecting is not its work.
 *  What a turn takes in every round, such as an epoch, stays. */
export async function timePerTurn(rounds: number, play: () => Promise<readonly number[]>): Promise<number> {
  let least = await play();
  for (let round = 1; round < rounds; round++) {
    const times = await play();
    least = least.map((ms, turn) => Math.min(ms, times[turn]!));
  }
  return least.reduce((sum, ms) => sum + ms, 0) / least.length;
}
