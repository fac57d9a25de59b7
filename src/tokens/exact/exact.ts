/** Counters that equal tiktoken's ordinary encoding on any text: text that looks like a special token is plain text, a lone
 *  surrogate is U+FFFD. The ranks are gpt-tokenizer's; splitting and merging are ours, because its are quadratic in a pretoken. */

import type { Counter } from "../counter.ts";
import { countByMerging } from "./byte-pair-merge.ts";
import { type BytePairRanks, createBytePairRanks, noRank } from "./byte-pair-ranks.ts";
import { cl100kPretokenEnd, o200kPretokenEnd, type PretokenEnd } from "./pretoken.ts";

export type ExactEncoding = "o200k" | "cl100k";

/** Loads the ranks of that encoding alone, once, and counts with them in time that grows with the text. */
export async function createExactCounter(encoding: ExactEncoding): Promise<Counter> {
  loading[encoding] ??= loadRanks(encoding);
  const ranks = await loading[encoding];
  const pretokenEnd = encoding === "o200k" ? o200kPretokenEnd : cl100kPretokenEnd;
  return { name: `exact:${encoding}`, count: (text) => countTokens(text, ranks, pretokenEnd) };
}

const loading: Partial<Record<ExactEncoding, Promise<BytePairRanks>>> = {};

async function loadRanks(encoding: ExactEncoding): Promise<BytePairRanks> {
  const module =
    encoding === "o200k"
      ? await import("gpt-tokenizer/bpeRanks/o200k_base")
      : await import("gpt-tokenizer/bpeRanks/cl100k_base");
  return createBytePairRanks(module.default);
}

const encoder = new TextEncoder();
// Most texts are small, and writing into memory that is there is several times cheaper than getting new memory for each.
const scratch = new Uint8Array(64 * 1024);

function countTokens(text: string, ranks: BytePairRanks, pretokenEnd: PretokenEnd): number {
  const fits = text.length * 3 <= scratch.length;
  const bytes = fits ? scratch : encoder.encode(text);
  const end = fits ? encoder.encodeInto(text, scratch).written : bytes.length;
  let tokens = 0;
  for (let start = 0; start < end; ) {
    const next = pretokenEnd(bytes, start, end);
    tokens += ranks.rankOf(bytes, start, next) === noRank ? countByMerging(ranks, bytes, start, next) : 1;
    start = next;
  }
  return tokens;
}
