/** One delivery, from top to bottom: room in the ledger → result → page → store → ledger → work log → evict → record.
 *  Everything is in the store before the page goes out, so that a continuation outlives the process. */
import { type Ledger, leastAllocation } from "../budget/index.ts";
import { redactSecrets } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";
import { compressResult } from "./compress/compress-result.ts";
import { genericCompressor } from "./compress/generic.ts";
import type { Delivered, PageData } from "./envelope.ts";
import type { Hints } from "./hints.ts";
import { hintedTool, measurePage, pageNote } from "./page-note.ts";
import { type FitSizes, fitFailure, toFailure } from "./pages/fit-failure.ts";
import { fitPage } from "./pages/fit-page.ts";
import type { PageOptions } from "./pages/page-source.ts";
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
  /** Counts the result in and writes the session's record. */
  record(delivered: { id: string; tool: string; tokens: number; time: string }): Promise<void>;
}

/** What the reader takes of one result before it cuts itself. */
export interface PageLimit {
  readonly tokens?: number | undefined;
  readonly characters?: number | undefined;
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
  open(id: string): Promise<Opened | ToolFailure>;
}

export async function deliver(parts: SessionParts, delivery: Delivery): Promise<Delivered> {
  const id = await parts.results.claimId();
  const allocation = makeRoom(parts, delivery);
  parts.ledger.reserve(id, allocation);
  try {
    const outcome = await buildPage(parts, delivery, { id, allocation });
    const tokens = delivery.shownTokens ?? outcome.delivered.tokens;
    parts.ledger.addResult(id, tokens);
    const entry = logEntry(parts, delivery, outcome);
    await parts.log.add(entry);
    evict(parts, 0);
    await parts.record({ id, tool: delivery.tool, tokens, time: entry.time });
    return outcome.delivered;
  } catch (error) {
    // Only the store fails here: what nobody got costs nothing.
    parts.ledger.releaseResults([id]);
    throw error;
  }
}

function makeRoom(parts: SessionParts, { tool, maxTokens = Number.POSITIVE_INFINITY }: Delivery): number {
  const { ledger } = parts;
  const { tokens = Number.POSITIVE_INFINITY } = parts.pageLimit();
  ledger.makeRoom(tool);
  const allocation = Math.max(leastAllocation, Math.min(ledger.allocate(tool), maxTokens, tokens));
  evict(parts, allocation);
  return allocation;
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
  { id, allocation }: { id: string; allocation: number },
): Promise<Outcome> {
  const sizes = createSizes(parts, allocation);
  try {
    const opened = await delivery.open(id);
    if (isFailure(opened)) return { delivered: { ...fitFailure(opened, sizes), id } };
    const page = await fitPage(opened.source, pageOptions(parts, { opened, delivery, sizes }));
    await parts.results.save(id, await opened.finish(page));
    if (delivery.isDirectCall && page.data.cut === undefined) {
      const hinted = hintedTool(opened.tool, parts.tools.get(opened.tool));
      parts.hints.observe(hinted, measurePage(page, hinted));
    }
    const { data, text, tokens } = page;
    return { delivered: { envelope: { status: "success", data }, text, tokens, id }, opened };
  } catch (error) {
    return { delivered: { ...fitFailure(toFailure(error), sizes), id } };
  }
}

/** A limit in characters is measured in parts of the allocation, so that one number says whether a page fits. */
function createSizes({ counter, pageLimit }: SessionParts, allocation: number): FitSizes {
  const count = (text: string): number => counter.count(text);
  const { characters } = pageLimit();
  if (characters === undefined) return { allocation, count, measure: count };
  const perCharacter = allocation / Math.max(leastAllocation, characters);
  return {
    allocation,
    count,
    measure: (text) => Math.max(count(text), Math.ceil(text.length * perCharacter)),
  };
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
