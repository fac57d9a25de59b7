/** The texts that make tokenizers slow: one thing repeated, and base64, which has no words to split at. */
import { type BenchCounter, counterNamed, REFERENCE } from "./counters.ts";
import { bestTime } from "./processor-time.ts";

export interface RunRow {
  readonly run: string;
  /** Best processor time of 1 MB. */
  readonly estimateMs: number;
  readonly exactMs: number;
  /** Of 20 KB, once: it is quadratic, and 1 MB would take minutes. */
  readonly gptTokenizer20KbMs: number;
}

export const RUN_ESTIMATOR = "estimate:claude-5";
export const RUN_EXACT = "exact:o200k";
const BYTES = 1_000_000;
const SHORT_BYTES = 20_000;

export function measureRuns(counters: readonly BenchCounter[]): RunRow[] {
  const estimator = counterNamed(counters, RUN_ESTIMATOR);
  const exact = counterNamed(counters, RUN_EXACT);
  const peer = counterNamed(counters, REFERENCE);
  peer.forget();
  return runs.map(([run, make]) => {
    const text = make(BYTES);
    const short = make(SHORT_BYTES);
    return {
      run,
      estimateMs: bestTime(20, () => void estimator.count(text)),
      exactMs: bestTime(3, () => void exact.count(text)),
      gptTokenizer20KbMs: bestTime(1, () => void peer.count(short)),
    };
  });
}

const runs: readonly (readonly [string, (bytes: number) => string])[] = [
  ["the letter a", (bytes) => "a".repeat(bytes)],
  ["spaces", (bytes) => " ".repeat(bytes)],
  ["line breaks", (bytes) => "\n".repeat(bytes)],
  ["one emoji", (bytes) => "😀".repeat(bytes / 4)],
  ["base64", randomBase64],
  ["one Han character", (bytes) => "漢".repeat(bytes / 3)],
];

/** The same on every machine. */
function randomBase64(length: number): string {
  let seed = 7;
  const bytes = Uint8Array.from({ length: (length / 4) * 3 }, () => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return seed >>> 24;
  });
  return Buffer.from(bytes).toString("base64");
}
