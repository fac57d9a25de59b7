/** Delivers one result: room in the ledger → result → its share → page → store → ledger → work log → evict → record.
 *  The store has everything before the page is sent, so a continuation also works in another process. */

import { leastAllocation } from "../../core/budget/index.ts";
import { Buffer } from "../../core/bytes.ts";
import { ContextError } from "../../core/errors.ts";
import { messageOf, shorten } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { type BudgetedTool, isFailure, type ToolArguments, type ToolFailure } from "./budgeted-tool.ts";
import type { CallShare } from "./call-shares.ts";
import { chooseItemsName, type Delivered, type ErrorEnvelope } from "./envelope.ts";
import { readPage } from "./fit-page.ts";
import type { Hints } from "./hints.ts";
import type { Ledger } from "./ledger.ts";
import { createLogEntry } from "./log-entry.ts";
import { createTextForm, type PageFormat, renderFailure } from "./page-text.ts";
import type { Page, PageOptions } from "./render-page.ts";
import type { Opened } from "./sources.ts";
import type { StoredResults } from "./stored-results.ts";
import type { WorkLog } from "./work-log.ts";

export interface SessionParts {
  readonly counter: Counter;
  readonly tools: ReadonlyMap<string, BudgetedTool>;
  readonly ledger: Ledger;
  readonly log: WorkLog;
  readonly hints: Hints;
  readonly results: StoredResults;
  readonly format: PageFormat;
  now(): Date;
  pageLimit(): PageLimit;
  nextPageName(): string;
  /** Limits how long a call that needs more than its fair share waits for parallel calls. */
  patience?: (() => Promise<void>) | undefined;
  /** Returns the id of a result in the account, which may have results of several groups. */
  keyOf(id: string): string;
  /** Takes over what other processes have added to the account. */
  refresh(): Promise<void>;
  /** Counts the call. Returns a function that takes it back. */
  count(delivered: { id: string; tool: string; tokens: number; time: string }): () => void;
  /** Writes the session's record. */
  save(): Promise<void>;
}

/** What a client shows of one result before it cuts it, in the client's own units. */
export interface PageLimit {
  readonly tokens?: number | undefined;
  /** UTF-16 units, as in JavaScript. */
  readonly characters?: number | undefined;
  /** Bytes of UTF-8. */
  readonly bytes?: number | undefined;
  readonly lines?: number | undefined;
}

/** Returns the share of the limit that a text takes, ignoring tokens. Above 1, the client cuts the text. */
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
  /** The call as the work log shows it. */
  readonly tool: string;
  readonly args: ToolArguments;
  /** The most tokens of the page that the caller asked for. */
  readonly maxTokens?: number | undefined;
  /** Whether the tool itself is called. Otherwise this is a page of an earlier result. */
  readonly isDirectCall?: boolean | undefined;
  /** Whether the caller passed a token, and the tool is called for it. */
  readonly isContinued?: boolean | undefined;
  /** The tokens that the model really gets, if it does not get the page. */
  readonly shownTokens?: number | undefined;
  /** For the entry in the work log. */
  readonly note?: string | undefined;
  /** Given if the call began before its result arrived here. */
  readonly share?: CallShare | undefined;
  open(id: string): Promise<Opened | ToolFailure>;
}

export async function deliver(parts: SessionParts, delivery: Delivery): Promise<Delivered> {
  const { tool, args, note, shownTokens } = delivery;
  let share = delivery.share;
  let takeBack: (() => void) | undefined;
  try {
    await parts.refresh();
    share ??= beginCall(parts, tool, delivery.maxTokens);
    const id = await parts.results.claimId();
    const outcome = await buildPage(parts, delivery, { id, share });
    const tokens = shownTokens ?? outcome.delivered.tokens;
    const { opened = delivery } = outcome;
    const origin = { tool: opened.tool, args: opened.args };
    const compressor = parts.tools.get(origin.tool)?.compress;
    const { envelope } = outcome.delivered;
    const step = { id, tool, args, note, time: parts.now(), envelope, origin, compressor };
    const entry = { ...createLogEntry(step, parts.counter), id: parts.keyOf(id) };
    // Tokens and call at once: a parallel call may save the record at any moment, and the process may be killed then.
    parts.ledger.addResult(entry.id, tokens);
    const uncount = parts.count({ id: entry.id, tool, tokens, time: entry.time });
    takeBack = () => {
      parts.ledger.cancelResult(entry.id);
      uncount();
    };
    share.end();
    await parts.log.add(entry);
    evict(parts);
    await parts.save();
    return outcome.delivered;
  } catch (error) {
    // Only the store fails here. A result that nobody received costs nothing.
    takeBack?.();
    share?.end();
    throw error;
  }
}

/** Makes room for a call. Parallel calls share the room. */
export function beginCall(parts: SessionParts, tool: string, maxTokens: number = Number.POSITIVE_INFINITY): CallShare {
  const { tokens = Number.POSITIVE_INFINITY } = parts.pageLimit();
  evict(parts, parts.ledger.limits.tools[tool] ?? parts.ledger.limits.perToolCall);
  return parts.ledger.beginCall(tool, Math.min(maxTokens, tokens));
}

/** Removes the oldest entries from the work log while it exceeds its limit, or while less is available than needed. The
 *  store keeps them. */
export function evict({ ledger, log }: SessionParts, needed: number = 0): void {
  for (;;) {
    const tokens = log.tokens(ledger.isCurrent);
    ledger.record("history", tokens);
    const isShort = needed > ledger.available() && ledger.countsHistory();
    if (tokens <= ledger.limits.tiers.history && !isShort) return;
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
    if (isFailure(opened)) return { delivered: await buildFailure(parts, opened, { id, share }) };
    const page = await buildSharedPage(parts, delivery, { opened, share, id });
    await parts.results.save(id, await opened.finish(page));
    if (delivery.isDirectCall && page.data.cut === undefined) parts.hints.observe(opened.tool, page);
    const { data, text, tokens } = page;
    return { delivered: { envelope: { status: "success", data }, text, tokens, id }, opened };
  } catch (error) {
    // The model can react to an exception of a tool.
    const failure: ToolFailure =
      error instanceof ContextError
        ? { code: error.code, message: error.message, hint: error.hint }
        : { code: "execution_error", message: messageOf(error) };
    return { delivered: await buildFailure(parts, failure, { id, share }) };
  }
}

/** Makes the largest page that the call may have. If parallel calls need more than there is, the page gets its fair
 *  share. */
async function buildSharedPage(
  parts: SessionParts,
  delivery: Delivery,
  { opened, share, id }: { opened: Opened; share: CallShare; id: string },
): Promise<Page> {
  const { source, tool } = opened;
  const form =
    parts.format === "json"
      ? undefined
      : createTextForm({
          id,
          itemsName: chooseItemsName(source),
          fields: source.fields,
          takesOffset: delivery.isDirectCall === true && delivery.isContinued !== true,
          nextPageName: parts.nextPageName(),
          renderText: source.isFieldsText ? undefined : parts.tools.get(tool)?.renderText,
        });
  const sized = (allocation: number): PageOptions => {
    const { isDirectCall = false, maxTokens } = delivery;
    return {
      ...createSizes(parts, allocation),
      form,
      note: (facts) =>
        parts.hints.pageNote(facts, { origin: tool, isDirectCall, maxTokens, nextPageName: parts.nextPageName() }),
      warnings: (tokens) => [parts.ledger.warning(tokens) ?? []].flat(),
    };
  };
  const most = sized(Math.min(share.mostTokens, Math.max(leastAllocation, delivery.maxTokens ?? share.mostTokens)));
  const fitPage = await readPage(source, most);
  const page = fitPage(most);
  const granted = await share.settle(delivery.shownTokens ?? page.tokens, parts.patience);
  return page.tokens <= granted || delivery.shownTokens !== undefined ? page : fitPage(sized(granted));
}

async function buildFailure(
  parts: SessionParts,
  failure: ToolFailure,
  { id, share }: { id: string; share: CallShare },
): Promise<Delivered> {
  const { format } = parts;
  const page = fitFailure(failure, format, createSizes(parts, share.mostTokens));
  const granted = await share.settle(page.tokens, parts.patience);
  return { ...(page.tokens <= granted ? page : fitFailure(failure, format, createSizes(parts, granted))), id };
}

/** Returns an error in its envelope, shortened until it is within the allocation. */
function fitFailure(
  failure: ToolFailure,
  format: PageFormat,
  { allocation, measure, count }: Pick<PageOptions, "allocation" | "measure" | "count">,
) {
  for (let characters = 600; ; characters = Math.floor(characters / 2)) {
    const { code, message, hint } = failure;
    const error = { code: shorten(code, 60), message: shorten(message, characters) };
    const envelope: ErrorEnvelope = {
      status: "error",
      error: hint === undefined ? error : { ...error, hint: shorten(hint, characters / 2) },
    };
    const text = format === "text" ? renderFailure(envelope.error) : JSON.stringify(envelope);
    if (measure(text) <= allocation || characters < 10) return { envelope, text, tokens: count(text) };
  }
}

/** Converts the client's limit into parts of the allocation, so that one number says whether a page fits. */
function createSizes(
  { counter, pageLimit }: SessionParts,
  allocation: number,
): Pick<PageOptions, "allocation" | "measure" | "count"> {
  const count = (text: string): number => counter.count(text);
  const limit = pageLimit();
  if (shareOfLimit("x", limit) === 0) return { allocation, count, measure: count };
  const measure = (text: string): number => Math.max(count(text), Math.ceil(shareOfLimit(text, limit) * allocation));
  return { allocation, count, measure };
}
