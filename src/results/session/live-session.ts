import { invalidArgument } from "../../core/errors.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import type { BudgetedTool } from "./budgeted-tool.ts";
import { createOffsetTokens, createSeenVersions } from "./continuations.ts";
import { createHints, type HintMode } from "./hints.ts";
import { createLedger, type LedgerOptions } from "./ledger.ts";
import type { PageFormat } from "./page-text.ts";
import type { PageLimit, SessionParts } from "./results.ts";
import {
  type LargeResult,
  listGroups,
  type SessionRecord,
  type SessionRecords,
  sessionRecords,
} from "./session-record.ts";
import { createStatus, type SessionStatus } from "./session-report.ts";
import { createSources, type Sources } from "./sources.ts";
import { createStoredResults, storedLimits } from "./stored-results.ts";
import { storedLog } from "./work-log.ts";

/** A running session: its parts, and the record that restores them. */
export interface LiveSession {
  readonly id: string;
  readonly parts: SessionParts;
  readonly sources: Sources;
  status(): SessionStatus;
  /** Returns the id of a result as `recall` takes it. */
  shownId(key: string): string;
  save(): Promise<void>;
  /** Takes over what other processes have changed. */
  refresh(): Promise<void>;
}

export async function openLiveSession(options: SessionOptions): Promise<LiveSession> {
  const settled = await settleOptions(options);
  const { store } = settled;
  const records = sessionRecords(store);
  const started = settled.now();
  const { id, record } = await findRecord(records, settled, started);
  const { groupId = id } = settled;
  await dropUnusedResults(store, { now: started, except: groupId });
  const parts = await openParts(settled, id, record);
  const versions = createSeenVersions(record.versions);
  let { calls, largest, lastUsed } = record;
  const current = (base: SessionRecord): SessionRecord => ({
    version: 1,
    started: base.started,
    ...chooseGroups(base, id, groupId),
    counter: settled.counter.name,
    calls,
    lastUsed,
    largest,
    limits: parts.ledger.limits,
    ledger: parts.ledger.snapshot(),
    evictedThrough: parts.log.evictedThrough(),
    measured: parts.hints.measured(),
    versions: versions.list(),
  });
  const account = records.share(id, record, {
    current,
    async restore(other, isNew) {
      ({ calls, largest, lastUsed } = other);
      parts.ledger.restore(other.ledger);
      parts.hints.restore(other.measured);
      versions.restore(other.versions);
      if (isNew) await parts.log.refresh(other.evictedThrough);
    },
  });
  const count = ({ time, ...delivered }: LargeResult & { readonly time: string }): (() => void) => {
    calls += 1;
    lastUsed = time;
    // Merging keeps the largest ones.
    largest = [...largest, delivered];
    return () => {
      calls -= 1;
      largest = largest.filter(({ id: known }) => known !== delivered.id);
    };
  };
  // Results of different groups can have the same id. So the account adds the group to the id, unless the group has the
  // session's own name.
  const prefix = groupId === id ? "" : `${groupId}/`;

  const shownId = (key: string): string => (key.startsWith(prefix) ? key.slice(prefix.length) : key);
  const status = (): SessionStatus => {
    const { largest: found, ...rest } = createStatus(id, current(record), parts.ledger);
    return { ...rest, largest: found.map((each) => ({ ...each, id: shownId(each.id) })) };
  };
  const offsetTokens = createOffsetTokens(store, groupId, options.continuations);
  const sources = createSources({ results: parts.results, versions, offsetTokens });
  return {
    id,
    parts: { ...parts, ...account, keyOf: (result) => `${prefix}${result}`, count },
    sources,
    status,
    shownId,
    ...account,
  };
}

/** Drops results of sessions that nobody has used for a long time. Keeps their records and work logs. `except` is the
 *  session that is starting. */
async function dropUnusedResults(
  store: Store,
  { now, except }: { readonly now: Date; readonly except: string },
): Promise<void> {
  const since = new Date(now.getTime() - storedLimits.unusedDays * 86_400_000).toISOString();
  // Few, because the start of a session waits for it. The next starts drop the others.
  let left = 200;
  for (const [group, used] of await sessionRecords(store).lastUses()) {
    if (left <= 0) return;
    if (group !== except && used < since) left -= await createStoredResults(store, group).drop(left);
  }
}

/** The first group of a session is its main one. */
function chooseGroups(
  base: SessionRecord,
  id: string,
  groupId: string,
): Pick<SessionRecord, "resultsOf" | "alsoResultsOf"> {
  const { resultsOf, alsoResultsOf } = base;
  if (listGroups(id, base).includes(groupId)) return { resultsOf, alsoResultsOf };
  const isUnused = base.calls === 0 && resultsOf === undefined && alsoResultsOf === undefined;
  return isUnused ? { resultsOf: groupId } : { resultsOf, alsoResultsOf: [...(alsoResultsOf ?? []), groupId] };
}

/** The options with a counter and a store, and with a clock that returns dates. */
interface SettledOptions extends Omit<SessionOptions, "counter" | "store" | "now"> {
  readonly counter: Counter;
  readonly store: Store;
  readonly now: () => Date;
}

async function settleOptions({ counter, model, store, now, ...rest }: SessionOptions): Promise<SettledOptions> {
  return {
    ...rest,
    counter: counter ?? (await createCounter("auto", { model })),
    store: store ?? createMemoryStore(),
    now: () => new Date(now()),
  };
}

/** Loads the record of the session, or creates it. */
async function findRecord(
  records: SessionRecords,
  options: SettledOptions,
  now: Date,
): Promise<{ id: string; record: SessionRecord }> {
  const { sessionId: id } = options;
  if (id !== undefined && !/^[\w.@:-]{1,200}$/.test(id)) {
    throw invalidArgument(
      `the session id ${JSON.stringify(id)} cannot be used`,
      "Use 1 to 200 letters, digits and . _ - @ :",
    );
  }
  const before = id === undefined ? undefined : await records.load(id);
  if (id !== undefined && before !== undefined) return { id, record: before };
  const ledger = createLedger(options.budget);
  const record: SessionRecord = {
    version: 1,
    started: now.toISOString(),
    counter: options.counter.name,
    calls: 0,
    limits: ledger.limits,
    ledger: ledger.snapshot(),
    evictedThrough: 0,
    largest: [],
    measured: {},
    versions: [],
  };
  if (id !== undefined) {
    await records.claim(id, record);
    return { id, record };
  }
  // Named after its start time. Two sessions of the same millisecond get a number.
  const base = `s-${record.started.replace(/[-:.]/g, "")}`;
  for (let number = 1; ; number += 1) {
    const newId = number === 1 ? base : `${base}-${number}`;
    if (await records.claim(newId, record)) return { id: newId, record };
  }
}

async function openParts(
  options: SettledOptions,
  id: string,
  record: SessionRecord,
): Promise<Omit<SessionParts, "count" | "keyOf" | "refresh" | "save">> {
  const { budget, counter, hints: mode = "note", now, patience, store, tools = [] } = options;
  const { pageLimit = (): PageLimit => ({}), nextPageName = () => "next_page", groupId = id } = options;
  const ledger = createLedger(budget, record.ledger);
  const expected = (tool: string, further?: number): number =>
    Math.min(ledger.expected(tool, further), pageLimit().tokens ?? Number.POSITIVE_INFINITY);
  const named = indexTools(tools);
  return {
    counter,
    tools: named,
    ledger,
    log: await storedLog(store, id).open(record.evictedThrough),
    hints: createHints({ mode, tools: named, ledger, expected, measured: record.measured }),
    results: createStoredResults(store, groupId),
    format: options.format ?? "json",
    now,
    pageLimit,
    nextPageName,
    patience,
  };
}

function indexTools(tools: readonly BudgetedTool[]): ReadonlyMap<string, BudgetedTool> {
  const named = new Map<string, BudgetedTool>();
  for (const tool of tools) {
    if (named.has(tool.name)) {
      throw invalidArgument(`two tools are called ${JSON.stringify(tool.name)}`, "Give each tool its own name.");
    }
    named.set(tool.name, tool);
  }
  return named;
}

/** Options of `createSession`. */
export interface SessionOptions<Tools extends readonly BudgetedTool[] = readonly BudgetedTool[]> {
  /** Continues the stored session with this id, or creates it. Without an id, a new session starts. */
  readonly sessionId?: string | undefined;
  /** Sessions with the same `groupId` share stored results. Defaults to the session's own id. */
  readonly groupId?: string | undefined;
  /** Names what `record("system", …)` sets, if several programs with instructions of their own share the session. The
   *  system tier is the sum of these parts.
   *  @default "" */
  readonly systemPart?: string | undefined;
  /** Counts the tokens of results. Defaults to the estimate for `model`. */
  readonly counter?: Counter | undefined;
  /** The model that reads the results. It chooses the counter if none is given. */
  readonly model?: string | undefined;
  /** Keeps results, the work log and the account. Defaults to a store in memory. */
  readonly store?: Store | undefined;
  /** Returns the time in milliseconds since 1970. Usually `Date.now`. */
  readonly now: () => number;
  /** The token limits: of everything, of a tool call, of the work log. Defaults to 100,000 tokens in total. */
  readonly budget?: LedgerOptions | undefined;
  /** The tools that `session.call` can run.
   *  @default [] */
  readonly tools?: Tools | undefined;
  /** How the session says how much the next call can return: `note` in each result, `schema` in the tools' definitions
   *  (which breaks the provider's prompt cache), `off` not at all.
   *  @default "note" */
  readonly hints?: HintMode | undefined;
  /** The form of results. `json`: an envelope with facts about the page. `text`: compact text, as command line tools
   *  print it, with one line about the page if it is not the whole result.
   *  @default "json" */
  readonly format?: PageFormat | undefined;
  /** The form of continuation tokens. `offset` is always `offset:100`, for a program that knows which tool it called.
   *  `unique` adds the result's id (`k3vbq5zoha:offset:100`) if another call could continue at the same offset.
   *  @default "offset" */
  readonly continuations?: "offset" | "unique" | undefined;
  /** Returns what the client shows of a result before it cuts it. Called for each page. */
  readonly pageLimit?: (() => PageLimit) | undefined;
  /** Limits how long a large result of parallel calls waits for the sizes of the others. Without it, the result waits
   *  until all sizes are known. */
  readonly patience?: (() => Promise<void>) | undefined;
  /** Returns the name of the tool that takes continuation tokens. Called for each page.
   *  @default () => "next_page" */
  readonly nextPageName?: (() => string) | undefined;
}
