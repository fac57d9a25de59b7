/** What the reduction costs a program that keeps its history as JSON and parses all of it on every turn. */
import { medianOf } from "../../tokens/processor-time.ts";
import { freshTrimmer, generateLongHistory, turnsOf } from "./histories.ts";

export interface Reparsed {
  readonly messages: number;
  readonly jsonBytes: number;
  /** Medians. */
  readonly parseMs: number;
  readonly reduceMs: number;
  /** Median of the turns' own ratios: the whole reduction as a share of what parsing took. */
  readonly ratio: number;
}

const WINDOW = 200_000;
const TURNS = 8;

export async function measureReparsed(length: number, rounds: number): Promise<Reparsed> {
  const history = generateLongHistory(length);
  const lengths = turnsOf(history);
  const texts = lengths.slice(-TURNS).map((each) => JSON.stringify(history.slice(0, each)));
  const turns: { readonly parseMs: number; readonly reduceMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const trimmer = await freshTrimmer(WINDOW);
    for (const each of lengths.slice(0, -TURNS)) trimmer.reduce({ messages: history.slice(0, each) });
    for (const text of texts) {
      const started = performance.now();
      const messages = JSON.parse(text) as object[];
      const parsed = performance.now();
      trimmer.reduce({ messages });
      turns.push({ parseMs: parsed - started, reduceMs: performance.now() - parsed });
    }
  }
  const jsonBytes = Buffer.byteLength(texts.at(-1) ?? "");
  return {
    messages: length,
    jsonBytes,
    parseMs: medianOf(turns.map(({ parseMs }) => parseMs)),
    reduceMs: medianOf(turns.map(({ reduceMs }) => reduceMs)),
    ratio: medianOf(turns.map(({ parseMs, reduceMs }) => reduceMs / parseMs)),
  };
}
