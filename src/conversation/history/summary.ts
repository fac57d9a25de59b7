/** Puts a summary in the place of an epoch's digest. The caller's function writes it, usually with a small model. The
 *  summary becomes part of the epoch's decisions, so it is asked for once and has the same bytes after a restart. */

import type { Counter } from "../../core/tokens/index.ts";
import type { DecisionIndex, LoggedDecision, ReplaceDecision } from "./decision-log.ts";
import type { HistoryDraft } from "./draft.ts";
import { type Recalled, recallFrom } from "./history-store.ts";

/**
 * What `summarise` receives: the content that left the request, and how much may be said about it.
 *
 * @example
 * ```ts
 * import { createTrimmer, type RemovedContent } from "plimsoll/history";
 *
 * async function summarise({ parts, previous = "", signal }: RemovedContent): Promise<string> {
 *   const body = JSON.stringify({ previous, parts: parts.map(({ id, text }) => ({ id, text })) });
 *   const answer = await fetch("http://127.0.0.1:8080/summaries", { method: "POST", body, signal });
 *   return answer.text();
 * }
 * const trimmer = await createTrimmer({ contextWindow: 200_000, summarise });
 * const { messages, summary } = await trimmer.reduceWithSummary({ messages: [{ role: "user", content: "Go on." }] });
 * console.log(messages.length, summary);
 * ```
 */
export interface RemovedContent {
  /** What was trimmed since the previous summary, oldest first. Each part has its id for `recall`. */
  readonly parts: readonly Recalled[];
  /** The previous summary, which the new one replaces. Absent the first time. */
  readonly previous?: string | undefined;
  /** The digest that the request contains if there is no summary: files, names and ids. */
  readonly digest: string;
  /** The most tokens that the summary may have: 4 % of the tokens for messages. A longer one is not used. */
  readonly maxTokens: number;
  /** Aborts when the time for the summary is over. */
  readonly signal: AbortSignal;
}

/** Writes a summary of removed content. */
export type Summarise = (removed: RemovedContent) => Promise<string>;

/** What became of a summary. If it is not `used`, the request contains the digest. */
export type SummaryOutcome = "used" | "failed" | "timed-out" | "too-long" | "empty";

export interface SummaryOptions {
  readonly summarise: Summarise;
  readonly waitMs: number;
  /** The tokens that the messages may have. */
  readonly budget: number;
  readonly counter: Counter;
  readonly ledger: DecisionIndex;
  /** The epoch that applied before this one. */
  readonly after: number | undefined;
}

/** Replaces the digest that the draft placed with a summary. Returns undefined if the draft placed none. */
export async function summariseEpoch(
  draft: HistoryDraft,
  options: SummaryOptions,
): Promise<SummaryOutcome | undefined> {
  const placed = draft.entries.findLast(
    (entry): entry is Placed =>
      readDigest(entry) !== undefined && draft.messages[entry.message]?.decisions.get(entry.part)?.id === entry.id,
  );
  if (placed === undefined) return undefined;
  const { waitMs, budget, counter } = options;
  const { parts, previous } = collectRemoved(draft, options);
  const maxTokens = Math.floor(0.04 * budget);
  const { digest } = placed.decision;
  // The only clock of the trimmer: a function that hangs must not hold back the request.
  // A timer has 31 bits.
  const signal = AbortSignal.timeout(Math.min(waitMs, 2 ** 31 - 1));
  const answer = await ask(options.summarise, { parts, ...previous, digest, maxTokens, signal });
  if (typeof answer !== "object") return answer;
  const summary = frameSummary(answer.text, { counter, maxTokens });
  if (typeof summary === "string") return summary;
  const place = (text: string): void => {
    draft.decide(placed.message, new Map([[placed.part, () => ({ ...placed.decision, digest: text })]]));
  };
  place(summary.text);
  if (draft.size <= budget) return "used";
  place(digest);
  return "too-long";
}

/** A digest never begins like this, so it shows which one is a summary. */
const head = "[summary of what was trimmed earlier:\n";

type Placed = Omit<LoggedDecision, "decision"> & { readonly decision: ReplaceDecision & { readonly digest: string } };

function readDigest({ decision }: LoggedDecision): string | undefined {
  return decision.action === "replace" ? decision.digest : undefined;
}

/** Collects what is trimmed now and was not trimmed yet when the last summary was written. */
function collectRemoved(
  { messages }: HistoryDraft,
  { ledger, after }: SummaryOptions,
): { readonly parts: readonly Recalled[]; readonly previous: Pick<RemovedContent, "previous"> } {
  const epochs = after === undefined ? [] : (ledger.pathTo(after, undefined) ?? []);
  const entries = epochs.map(ledger.entriesOf);
  const isSummary = (entry: LoggedDecision): boolean => readDigest(entry)?.startsWith(head) === true;
  const last = entries.findLastIndex((each) => each.some(isSummary));
  const known = new Set<string>();
  for (const each of entries.slice(0, last + 1)) for (const { message, part } of each) known.add(`${message} ${part}`);
  const parts = [...messages.entries()].flatMap(([index, { decisions }]) =>
    [...decisions.values()].flatMap((entry) =>
      known.has(`${index} ${entry.part}`) ? [] : (recallFrom(messages, entry) ?? []),
    ),
  );
  const summary = entries[last]?.findLast(isSummary);
  const text = summary === undefined ? undefined : readDigest(summary)?.slice(head.length, -1);
  return { parts, previous: text === undefined ? {} : { previous: text } };
}

/** Waits for the text until the signal aborts. A late answer is ignored. */
async function ask(
  summarise: Summarise,
  removed: RemovedContent,
): Promise<{ readonly text: unknown } | "failed" | "timed-out"> {
  const { signal } = removed;
  const late = new Promise<"timed-out">((resolve) => {
    signal.addEventListener("abort", () => resolve("timed-out"), { once: true });
  });
  const answer = async (): Promise<{ readonly text: unknown }> => ({ text: await summarise(removed) });
  try {
    return await Promise.race([answer(), late]);
  } catch {
    return signal.aborted ? "timed-out" : "failed";
  }
}

function frameSummary(
  answer: unknown,
  { counter, maxTokens }: { counter: Counter; maxTokens: number },
): { readonly text: string } | SummaryOutcome {
  if (typeof answer !== "string") return "failed";
  // A token of a hundred characters does not exist in prose. Counting a text of that size would only take time.
  if (answer.length > 100 * maxTokens) return "too-long";
  const clean = answer
    .replace(/\r\n?/g, "\n")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, (character) => (/[\n\t]/.test(character) ? character : ""))
    .trim();
  if (clean === "") return "empty";
  const text = `${head}${clean}]`;
  return counter.count(text) <= maxTokens ? { text } : "too-long";
}
