import { createLedger } from "../../budget/index.ts";
import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";
import { createHints } from "../hints.ts";
import type { PageLimit, SessionParts } from "../results.ts";
import type { SessionOptions } from "../session-options.ts";
import { type SessionStatus, statusOf } from "../session-report.ts";
import type { BudgetedTool } from "../tool/budgeted-tool.ts";
import { openWorkLog } from "../work-log/work-log.ts";
import { alwaysClear, createOffsetTokens, type OffsetTokens } from "./offset-tokens.ts";
import { createSeenVersions, type SeenVersions } from "./seen-versions.ts";
import {
  claimSession,
  type LargeResult,
  loadRecord,
  type SessionRecord,
  saveRecord,
} from "./session-record.ts";
import { createStoredResults } from "./stored-results.ts";
import { dropUnusedResults } from "./unused-results.ts";

/** A session's parts, and the record that brings them back. */
export interface LiveSession {
  readonly id: string;
  readonly parts: SessionParts;
  readonly versions: SeenVersions;
  readonly offsetTokens: OffsetTokens;
  status(): SessionStatus;
  save(): Promise<void>;
}

export async function openLiveSession(options: SessionOptions): Promise<LiveSession> {
  const { store } = options;
  const now = options.now();
  const { id, record } = await findRecord(options, now);
  await dropUnusedResults(store, { now, except: options.resultsOf ?? id });
  const parts = await openParts(options, id, record);
  const versions = createSeenVersions(record.versions);
  let { calls, largest, lastUsed } = record;
  const current = (): SessionRecord => ({
    version: 1,
    started: record.started,
    resultsOf: options.resultsOf,
    counter: options.counter.name,
    calls,
    lastUsed,
    limits: parts.ledger.limits,
    ledger: parts.ledger.snapshot(),
    evictedThrough: parts.log.evictedThrough(),
    largest,
    measured: parts.hints.measured(),
    versions: versions.list(),
  });
  const save = (): Promise<void> => saveRecord(store, id, current());
  const countIn = ({ time, ...delivered }: LargeResult & { readonly time: string }): Promise<void> => {
    calls += 1;
    lastUsed = time;
    largest = [...largest, delivered].sort((left, right) => right.tokens - left.tokens).slice(0, mostLarge);
    return save();
  };
  const status = (): SessionStatus => statusOf(id, current(), parts.ledger);
  const offsetTokens =
    options.continuations === "unique" ? createOffsetTokens(store, options.resultsOf ?? id) : alwaysClear;
  return { id, parts: { ...parts, record: countIn }, versions, offsetTokens, status, save };
}

const mostLarge = 10;

async function findRecord(
  options: SessionOptions,
  now: Date,
): Promise<{ id: string; record: SessionRecord }> {
  const { id, store } = options;
  if (id !== undefined && !/^[\w.@:-]{1,200}$/.test(id)) {
    throw new ContextError("invalid_argument", `the session id ${JSON.stringify(id)} cannot be used`, {
      hint: "Use 1 to 200 letters, digits and . _ - @ :",
    });
  }
  const before = id === undefined ? undefined : await loadRecord(store, id);
  if (id !== undefined && before !== undefined) return { id, record: before };
  const record = newRecord(options, now);
  if (id === undefined) return { id: await claimNewId(store, record), record };
  await claimSession(store, id, record);
  return { id, record };
}

function newRecord({ budget, counter }: SessionOptions, now: Date): SessionRecord {
  const ledger = createLedger(budget);
  return {
    version: 1,
    started: now.toISOString(),
    counter: counter.name,
    calls: 0,
    limits: ledger.limits,
    ledger: ledger.snapshot(),
    evictedThrough: 0,
    largest: [],
    measured: {},
    versions: [],
  };
}

/** Named after its start; two that start in the same millisecond get a number. */
async function claimNewId(store: Store, record: SessionRecord): Promise<string> {
  const base = `s-${record.started.replace(/[-:.]/g, "")}`;
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? base : `${base}-${number}`;
    if (await claimSession(store, id, record)) return id;
  }
}

async function openParts(
  options: SessionOptions,
  id: string,
  record: SessionRecord,
): Promise<Omit<SessionParts, "record">> {
  const { budget, counter, hints: mode = "note", now, patience, store, tools = [] } = options;
  const { pageLimit = (): PageLimit => ({}), nextPageName = () => "next_page", resultsOf = id } = options;
  const ledger = createLedger(budget, record.ledger);
  const expected = (tool: string): number =>
    Math.min(ledger.expected(tool), pageLimit().tokens ?? Number.POSITIVE_INFINITY);
  return {
    counter,
    tools: byName(tools),
    ledger,
    log: await openWorkLog(store, id, record.evictedThrough),
    hints: createHints({ mode, ledger, expected, measured: record.measured }),
    results: createStoredResults(store, resultsOf),
    now,
    pageLimit,
    nextPageName,
    patience,
  };
}

function byName(tools: readonly BudgetedTool[]): ReadonlyMap<string, BudgetedTool> {
  const named = new Map<string, BudgetedTool>();
  for (const tool of tools) {
    if (named.has(tool.name)) {
      throw new ContextError("invalid_argument", `two tools are called ${JSON.stringify(tool.name)}`, {
        hint: "A call names its tool: give each a name of its own.",
      });
    }
    named.set(tool.name, tool);
  }
  return named;
}
