/** What the plugin saved in dollars: each answer of a session with the tokens that it would have had more. */
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isNumber, listOf, objectOf, readJson, type ShapeCheck } from "../../core/text/index.ts";
import { readForeignBytes } from "../../host/index.ts";
import type { SpentAnswer } from "../../recordings/index.ts";

/** When a result came, in milliseconds since 1970, how many tokens were left out, and how many were sent. */
export type SavedEdit = readonly number[];

export interface Savings {
  readonly savedTokens: number;
  /** Those of the main conversation, oldest first. */
  readonly edits: readonly SavedEdit[];
  /** Whether the history was trimmed. Then nobody knows which tokens each request would have had. */
  readonly isTrimmed: boolean;
}

const isSavings = objectOf(
  { savedTokens: isNumber },
  { edits: listOf(listOf(isNumber)), isTrimmed: (value): value is boolean => typeof value === "boolean" },
) as ShapeCheck<Pick<Savings, "savedTokens"> & Partial<Savings>>;

export function readSavings(file: string): Savings | undefined {
  const savings = readJson(readForeignBytes(file), isSavings);
  return savings && { edits: [], isTrimmed: false, ...savings };
}

/** Simulates the bill without us. A token that was left out would have been written to the cache once, then read with each
 *  answer, and written again whenever the cache was lost. Returns undefined if that is not known. */
export function measureSaved({ edits, isTrimmed }: Savings, answers: readonly SpentAnswer[]): number | undefined {
  if (isTrimmed || answers.some(({ isPriced }) => !isPriced)) return undefined;
  const news = assignEdits(edits, answers);
  let usd = 0;
  let left = 0;
  // Tokens as we and as the provider count them, of large results.
  const counted = { own: 0, billed: 0 };
  for (const [index, answer] of answers.entries()) {
    const { added, sent } = news[index]!;
    const { total, output } = answers[index - 1] ?? { total: answer.total, output: 0 };
    const growth = answer.total - total - output;
    if (sent >= 1_000 && growth > 0) {
      counted.own += sent;
      counted.billed += growth;
    }
    // A compaction would have removed them, too.
    if (answer.total < total / 2) left = 0;
    usd += priceMore(answer, added, left);
    left += added;
  }
  // Our count is an estimate. What the provider billed for the results that were sent says how far it is off.
  return counted.own === 0 || usd === 0 ? undefined : (usd * counted.billed) / counted.own;
}

/** Returns, for each answer, the tokens of the results that came since the one before: those left out, and those sent. */
function assignEdits(edits: readonly SavedEdit[], answers: readonly SpentAnswer[]) {
  let next = 0;
  return answers.map(({ time }) => {
    let [added, sent] = [0, 0];
    for (; (edits[next]?.[0] ?? Number.POSITIVE_INFINITY) <= time; next++) {
      added += edits[next]![1] ?? 0;
      sent += edits[next]![2] ?? 0;
    }
    return { added, sent };
  });
}

/** Returns what an answer would have cost more with so many new tokens, and so many from before. */
function priceMore({ price, read, write5m, write1h, total }: SpentAnswer, added: number, left: number): number {
  const fresh = write5m + write1h === 0 ? 1 : write1h > write5m ? price.write1h : price.write5m;
  const isWarm = read >= total / 2;
  return ((added * fresh + left * (isWarm ? price.read : fresh)) * price.input) / 1_000_000;
}

/** Remembers the dollars of a session beside its savings, and adds up those of the sessions of the last seven days. */
export function sumWeek(file: string, usd: number, now: number): number {
  const own = file.replace(/json$/, "usd");
  try {
    if (Number(readForeignBytes(own)) !== usd) writeFileSync(own, String(usd), { mode: 0o600 });
    const names = readdirSync(dirname(file)).filter((name) => name.endsWith(".usd"));
    const sums = names
      .map((name) => join(dirname(file), name))
      .filter((path) => now - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < 7 * 86_400_000)
      .map((path) => Number(readForeignBytes(path)) || 0);
    return sums.reduce((sum, each) => sum + each, 0);
  } catch {
    return usd;
  }
}
