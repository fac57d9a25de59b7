/** One delivery, from top to bottom: room in the ledger → result → its share → page → store → ledger → work log → evict → record.
 *  Everything is in the store before the page goes out, so that a continuation outlives the process. */
import { type CallShare, type Ledger, leastAllocation } from "../budget/index.ts";
import { redactSecrets } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import { compressResult } from "./compress/compress-result.ts";
import { genericCompressor } from "./compress/generic.ts";
import type { Delivered, PageData } from "./envelope.ts";
import type { Hints } from "./hints.ts";
import { hintedTool, measurePage, pageNote } from "./page-note.ts";
import { type FitSizes, fitFailure, toFailure } from "./pages/fit-failure.ts";
import { readPage } from "./pages/fit-page.ts";
import type { Page, PageOptions } from "./pages/page-source.ts";
import type { Opened } from "./sources.ts";
import type { StoredResults } from "./state/stored-results.ts";
import { type BudgetedTool, isFailure, type ToolArguments, type ToolFailure } from "./tool/budgeted-tool.ts";
import { createLogEntry, type LogEntry, namesSecret, withoutSecrets } from "./work-log/log-entry.ts";
import type { WorkLog } from "./work-log/work-log.ts";

export interface SessionParts {
  readonly counter: Counter;
  readonly tools: ReadonlyMap<string, BudgetedTool>;
  readonly ledger: Ledger;
  readonly log: WorkLog;
  readonly hints: Hints;
  readonly results: StoredResults;
  now(): Date;
  pageLimit(): PageLimit;
  nextPageName(): string;
  /** How long a call that needs more than its fair share waits for the calls beside it. */
  patience?: (() => Promise<void>) | undefined;
  /** Counts the result in and writes the session's record. */
  record(delivered: { id: string; tool: string; tokens: number; time: string }): Promise<void>;
}

/** What the reader takes of one result before it cuts it, in the reader's own units. */
export interface PageLimit {
  readonly tokens?: number | undefined;
  /** UTF-16 units, as JavaScript counts. */
  readonly characters?: number | undefined;
  /** Of UTF-8. */
  readonly bytes?: number | undefined;
  readonly lines?: number | undefined;
}

/** The share of the limit that a text takes, without its tokens. Above 1 the reader cuts the text. */
export function shareOfLimit(text: string, { characters, bytes, lines }: PageLimit): number {
  return Math.max(
    characters === undefined ? 0 : text.length / Math.max(leastAllocation, characters),
    bytes === undefined ? 0 : Buffer.byteLength(text) / Math.max(leastAllocation, bytes),
    lines === undefined ? 0 : countLines(text) / lines,
  );
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

export interface Delivery {
  /** The call, as the work log tells it. */
  readonly tool: string;
  readonly args: ToolArguments;
  /** Of the page, as the caller wants it. */
  readonly maxTokens?: number | undefined;
  /** The tool itself is called, not a page of an earlier result. */
  readonly isDirectCall?: boolean | undefined;
  /** What the model really gets, where that is not the page. */
  readonly shownTokens?: number | undefined;
  /** Where the call began before its result came here. */
  readonly share?: CallShare | undefined;
  open(id: string): Promise<Opened | ToolFailure>;
}

export async function deliver(parts: SessionParts, delivery: Delivery): Promise<Delivered> {
  const { tool, shownTokens } = delivery;
  const share = delivery.share ?? beginCall(parts, tool, delivery.maxTokens);
  let id: string | undefined;
  try {
    id = await parts.results.claimId();
    const outcome = await buildPage(parts, delivery, { id, share });
    const tokens = shownTokens ?? outcome.delivered.tokens;
    parts.ledger.addResult(id, tokens);
    share.end();
    const entry = logEntry(parts, delivery, outcome);
    await parts.log.add(entry);
    evict(parts, 0);
    await parts.record({ id, tool, tokens, time: entry.time });
    return outcome.delivered;
  } catch (error) {
    // Only the store fails here: what nobody got costs nothing.
    if (id !== undefined) parts.ledger.releaseResults([id]);
    share.end();
    throw error;
  }
}

/** Makes room for a call. Calls that run side by side share it. */
export function beginCall(
  parts: SessionParts,
  tool: string,
  maxTokens: number = Number.POSITIVE_INFINITY,
): CallShare {
  const { tokens = Number.POSITIVE_INFINITY } = parts.pageLimit();
  const share = parts.ledger.beginCall(tool, Math.min(maxTokens, tokens));
  evict(parts, share.mostTokens);
  return share;
}

/** Oldest entries leave the work log while it is above its maximum, or while less is available than needed. The store keeps them. */
export function evict({ ledger, log }: SessionParts, needed: number): void {
  for (;;) {
    const tokens = log.tokens(ledger.isCurrent);
    ledger.record("history", tokens);
    if (tokens <= ledger.limits.tiers.history && needed <= ledger.available()) return;
    if (!log.evictOldest(ledger.isCurrent)) return;
  }
}

interface Outcome {
  readonly delivered: Delivered;
  /** Absent for an error. */
  readonly opened?: Opened;
}

async function buildPage(
  parts: SessionParts,
  delivery: Delivery,
  { id, share }: { id: string; share: CallShare },
): Promise<Outcome> {
  try {
    const opened = await delivery.open(id);
    if (isFailure(opened)) return { delivered: await failurePage(parts, opened, { id, share }) };
    const page = await sharedPage(parts, delivery, { opened, share });
    await parts.results.save(id, await opened.finish(page));
    if (delivery.isDirectCall && page.data.cut === undefined) {
      const hinted = hintedTool(opened.tool, parts.tools.get(opened.tool));
      parts.hints.observe(hinted, measurePage(page, hinted));
    }
    const { data, text, tokens } = page;
    return { delivered: { envelope: { status: "success", data }, text, tokens, id }, opened };
  } catch (error) {
    return { delivered: await failurePage(parts, toFailure(error), { id, share }) };
  }
}

/** A page as large as the call may have at most, or where calls side by side need more than there is, as its fair share. */
async function sharedPage(
  parts: SessionParts,
  delivery: Delivery,
  { opened, share }: { opened: Opened; share: CallShare },
): Promise<Page> {
  const sized = (allocation: number): PageOptions =>
    pageOptions(parts, { opened, delivery, sizes: createSizes(parts, allocation) });
  const most = sized(
    Math.min(share.mostTokens, Math.max(leastAllocation, delivery.maxTokens ?? share.mostTokens)),
  );
  const read = await readPage(opened.source, most);
  const page = read.fit(most);
  const granted = await share.settle(delivery.shownTokens ?? page.tokens, parts.patience);
  return page.tokens <= granted || delivery.shownTokens !== undefined ? page : read.fit(sized(granted));
}

async function failurePage(
  parts: SessionParts,
  failure: ToolFailure,
  { id, share }: { id: string; share: CallShare },
): Promise<Delivered> {
  const page = fitFailure(failure, createSizes(parts, share.mostTokens));
  const granted = await share.settle(page.tokens, parts.patience);
  return { ...(page.tokens <= granted ? page : fitFailure(failure, createSizes(parts, granted))), id };
}

/** The reader's limit is measured in parts of the allocation, so that one number says whether a page fits. */
function createSizes({ counter, pageLimit }: SessionParts, allocation: number): FitSizes {
  const count = (text: string): number => counter.count(text);
  const limit = pageLimit();
  if (shareOfLimit("x", limit) === 0) return { allocation, count, measure: count };
  const measure = (text: string): number =>
    Math.max(count(text), Math.ceil(shareOfLimit(text, limit) * allocation));
  return { allocation, count, measure };
}

function pageOptions(
  { hints, ledger, tools, nextPageName }: SessionParts,
  { opened, delivery, sizes }: { opened: Opened; delivery: Delivery; sizes: FitSizes },
): PageOptions {
  const { tool: origin } = opened;
  const { isDirectCall = false, maxTokens } = delivery;
  return {
    ...sizes,
    note: (facts) =>
      pageNote(facts, {
        ...{ hints, origin, isDirectCall, maxTokens },
        tool: tools.get(origin),
        nextPageName: nextPageName(),
      }),
    warnings: (tokens) => [ledger.warning(tokens) ?? []].flat(),
  };
}

function logEntry(parts: SessionParts, { tool, args }: Delivery, { delivered, opened }: Outcome): LogEntry {
  const { envelope, id } = delivered;
  const compress = (maxCharacters: number): string => {
    if (envelope.status === "error") {
      return `Failed (${envelope.error.code}): ${redactSecrets(envelope.error.message)}`;
    }
    const origin = { tool: opened?.tool ?? tool, args: opened?.args ?? args };
    if (namesSecret(origin.args)) return "[redacted]";
    const data = withoutSecrets(envelope.data) as PageData;
    const own = isPartOnly(data) ? undefined : parts.tools.get(origin.tool)?.compress;
    return compressResult(own ?? genericCompressor, { ...origin, data }, maxCharacters);
  };
  return createLogEntry({ id, tool, args, time: parts.now(), compress }, parts.counter);
}

/** A piece of text in the place of an item tells a tool's compressor nothing. */
function isPartOnly({ cut }: PageData): boolean {
  return cut !== undefined && (cut.from > 0 || cut.at === undefined);
}
