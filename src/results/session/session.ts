import type { LedgerTier } from "../../core/budget/index.ts";
import { invalidArgument } from "../../core/errors.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { didYouMean } from "../../core/text/index.ts";
import { type Counter, createCounter } from "../../core/tokens/index.ts";
import {
  type BudgetedTool,
  budgetParameter,
  isFailure,
  readArguments,
  type ToolArguments,
  type ToolFailure,
  type ToolParameters,
  type ToolResult,
} from "./budgeted-tool.ts";
import type { CallShare } from "./call-shares.ts";
import { createOffsetTokens, createSeenVersions } from "./continuations.ts";
import type { Delivered } from "./envelope.ts";
import { createHints, type HintMode, type ToolSchema } from "./hints.ts";
import { createLedger, type LedgerOptions, type ModelView } from "./ledger.ts";
import type { PageFormat } from "./page-text.ts";
import { beginCall, type Delivery, deliver, evict, type PageLimit, type SessionParts } from "./results.ts";
import {
  claimRecord,
  listGroups,
  listLastUses,
  loadRecord,
  type SessionRecord,
  shareRecord,
} from "./session-record.ts";
import { createStatus, type SessionStatus } from "./session-report.ts";
import {
  findContinuedCall,
  type Opened,
  type Origin,
  openGivenResult,
  openStored,
  openToken,
  openToolResult,
  readStoredLines,
  type SourceParts,
} from "./sources.ts";
import { createStoredResults, storedLimits } from "./stored-results.ts";
import { nameLogStream, openWorkLog, viewWorkLog, type WorkLogView, type WorkLogViewName } from "./work-log.ts";

/** One agent run with one token budget. Problems with content come back as error envelopes. A call rejects only if the
 *  store fails. `ToolName` is the union of the names of the session's tools. */
export interface Session<ToolName extends string = string> {
  readonly id: string;
  /** Runs a tool and returns the first page of its result. A model may name a tool that does not exist: that is an error
   *  that it can read. */
  call(name: ToolName | (string & {}), args?: ToolArguments | null, options?: CallOptions): Promise<Delivered>;
  /** Announces a call of a tool that the session does not run itself. Parallel calls share the tokens for tool results.
   *  Pass the share to `deliver`, or end it. */
  beginCall(tool: string): CallShare;
  /** Stores a result that you already have and returns its first page. `nextPage` returns the others. */
  deliver(result: ToolResult, call: GivenCall): Promise<Delivered>;
  /** Returns the page of a continuation token, from the store or by running the tool again. */
  nextPage(token: string, options?: CallOptions & PageOption): Promise<Delivered>;
  /** Returns a delivered result from the store again. */
  recall(id: string, options?: RecallOptions): Promise<Delivered>;
  /** Returns the lines of a delivered result, as its text form shows them, or says why it is not stored. */
  readLines(id: string): Promise<AsyncIterable<string> | ToolFailure>;
  /** Answers a call that cannot be made. The answer is counted and logged like any other. */
  refuse(failure: ToolFailure, call: Pick<GivenCall, "tool" | "args">): Promise<Delivered>;
  /** Records what else is in the model's window. The session records history and tool results by itself. */
  record(tier: Exclude<LedgerTier, "history" | "tool_results">, tokens: number): Promise<void>;
  /** Starts a turn: earlier results become history and count with their compressed entries only. */
  beginTurn(): Promise<void>;
  /** Starts a new conversation with an empty work log. Earlier results can still be recalled. */
  reset(): Promise<void>;
  /** Takes over what other processes with the same session have recorded. Calls do this by themselves. */
  refresh(): Promise<void>;
  /** Returns the account: tokens used, left and delivered. */
  status(): SessionStatus;
  /** Returns the account as data for the model, with the warning for its system prompt. */
  forModel(): ModelView;
  /** Returns the compressed history.
   *  @param view `recent` by default. */
  workLog(view?: WorkLogViewName): WorkLogView;
  /** Returns the tools' definitions for a request to the model. */
  toolSchemas(): ToolSchema[];
  /** Counts a text as the session counts its results. */
  countTokens(text: string): number;
}

export interface PageOption {
  /** The most tokens that the page may have. The session never gives a page more than its share of the budget. A model
   *  passes this number as the argument `budget`. */
  readonly maxTokens?: number | undefined;
}

/** Options of one call of a tool. */
export interface CallOptions {
  /** Cancels the call. */
  readonly signal?: AbortSignal | undefined;
  /** How long the tool may run, in milliseconds. Without it, each tool has its own limit. */
  readonly timeoutMs?: number | undefined;
  /** Goes into the entry of the work log, such as the state of a task list. At most 160 characters are kept. */
  readonly note?: string | undefined;
}

/** Options of `session.recall`. */
export interface RecallOptions extends PageOption {
  /** The item to start with. Without it, the page is the same as before. */
  readonly offset?: number | undefined;
}

export interface GivenCall extends PageOption {
  readonly tool: string;
  readonly args: ToolArguments;
  /** The tokens that the model really gets, if it gets the result as it is and not the page. */
  readonly shownTokens?: number | undefined;
  /** What `beginCall` returned. */
  readonly share?: CallShare | undefined;
  /** Goes into the entry of the work log. */
  readonly note?: string | undefined;
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

/** Opens a session, or continues the stored one with the same `sessionId`. It runs tools, pages their results within
 *  the token budget, stores them, and keeps a compressed log. The types know the names of the given tools.
 *
 * @example
 * ```ts
 * import { createSession } from "plimsoll/session";
 * import { createTools } from "plimsoll/tools";
 *
 * const session = await createSession({
 *   tools: createTools({ root: "." }),
 *   budget: { total: 64_000 },
 *   now: Date.now,
 * });
 * const { text, tokens } = await session.call("read_file", { path: "README.md" });
 * console.log(tokens, text);
 * ```
 */
export async function createSession<const Tools extends readonly BudgetedTool[] = readonly BudgetedTool[]>(
  options: SessionOptions<Tools>,
): Promise<Session<Tools[number]["name"]>> {
  const { id, parts, sources, status, withOwnId } = await openLiveSession(options);
  const { ledger, log, hints } = parts;
  const callTool = (
    tool: string,
    args: ToolArguments,
    { isContinued, note, ...call }: CallOptions & Pick<Delivery, "isContinued">,
  ) => {
    const open = (id: string) => runTool(parts, sources, { id, tool, args, ...call });
    const delivery = { tool, args, note, isDirectCall: true, isContinued, open };
    return deliverCall(parts, delivery, { budget: args.budget });
  };
  return {
    id,
    call: (tool, args, call = {}) => callTool(tool, args ?? {}, call),
    beginCall: (tool) => beginCall(parts, tool),
    deliver: (result, { maxTokens, ...call }) => {
      const open = (id: string) => openGivenResult(result, { id, ...call });
      return deliverCall(parts, { ...call, open }, { maxTokens });
    },
    async nextPage(token, { maxTokens, ...call } = {}) {
      // The delivery reports what is wrong with a stored result.
      const again = await findContinuedCall(sources, token).catch(() => undefined);
      const budget = maxTokens === undefined ? {} : { budget: maxTokens };
      if (again !== undefined && !isFailure(again)) {
        return callTool(again.tool, { ...again.args, ...budget }, { ...call, isContinued: true });
      }
      const open = async () => again ?? openToken(sources, token);
      const args = { token, ...budget };
      return deliverCall(parts, { tool: "next_page", args, note: call.note, open }, { maxTokens });
    },
    recall: (id, { offset, maxTokens } = {}) => {
      const position = offset === undefined ? undefined : ({ at: "items", offset } as const);
      const open = () => openStored(sources, id, position);
      const args = { id, offset, budget: maxTokens };
      return deliverCall(parts, { tool: "recall", args, open }, { offset, maxTokens });
    },
    readLines: (id) => readStoredLines(sources, id, (tool) => parts.tools.get(tool)?.renderText),
    refuse: (failure, call) => deliverCall(parts, { ...call, open: async () => failure }, { budget: call.args.budget }),
    async record(tier, tokens) {
      ledger.record(tier, tokens, options.systemPart);
      await parts.save();
    },
    async beginTurn() {
      await parts.refresh();
      ledger.beginTurn();
      evict(parts);
      await parts.save();
    },
    async reset() {
      await parts.refresh();
      ledger.reset();
      log.clear();
      evict(parts);
      await parts.save();
    },
    refresh: parts.refresh,
    status,
    forModel: ledger.forModel,
    workLog: (view = "recent") => viewWorkLog({ ...log, entries: () => log.entries().map(withOwnId) }, view),
    toolSchemas: hints.schemas,
    countTokens: (text) => parts.counter.count(text),
  };
}

/** What a model or a program may ask of a page. */
const pageParameters = {
  budget: budgetParameter,
  maxTokens: budgetParameter,
  offset: { type: "integer", minimum: 0, description: "Items to skip." },
} as const satisfies ToolParameters;

/** Answers with an error if the budget is not a positive number, so a typo never disables the limit. */
function deliverCall(
  parts: SessionParts,
  delivery: Delivery,
  wanted: { readonly [Name in keyof typeof pageParameters]?: unknown },
): Promise<Delivered> {
  const read = readArguments(pageParameters, wanted);
  if ("failure" in read) return deliver(parts, { ...delivery, open: async () => read.failure });
  const { budget, maxTokens = budget } = read.values;
  return deliver(parts, { ...delivery, maxTokens });
}

async function runTool(
  { tools, hints }: SessionParts,
  sources: SourceParts,
  { signal = new AbortController().signal, timeoutMs, ...origin }: Origin & CallOptions,
): Promise<Opened | ToolFailure> {
  const tool = tools.get(origin.tool);
  if (tool === undefined) {
    const names = [...tools.keys()];
    const hint = didYouMean(origin.tool, names) ?? `The tools are ${names.join(", ")}.`;
    return { code: "unknown_tool", message: `there is no tool ${JSON.stringify(origin.tool)}`, hint };
  }
  const result = await tool.run(hints.withDefaults(tool.name, origin.args), { signal, timeoutMs });
  return isFailure(result) ? result : openToolResult(sources, result, origin);
}

/** Opens the parts of a session, with the account that restores them and that other processes may change too. */
async function openLiveSession(options: SessionOptions) {
  const { store = createMemoryStore(), continuations } = options;
  const counter = options.counter ?? (await createCounter("auto", { model: options.model }));
  const started = new Date(options.now());
  const { id, record } = await findRecord(store, options, { counter: counter.name, started: started.toISOString() });
  const { groupId = id } = options;
  await dropUnusedResults(store, { now: started, except: groupId });
  const parts = await openParts({ ...options, groupId, counter, store }, id, record);
  const versions = createSeenVersions(record.versions);
  let { calls, largest, lastUsed } = record;
  const current = (base: SessionRecord): SessionRecord => ({
    version: 1,
    started: base.started,
    ...chooseGroups(base, id, groupId),
    counter: counter.name,
    calls,
    lastUsed,
    largest,
    limits: parts.ledger.limits,
    ledger: parts.ledger.snapshot(),
    evictedThrough: parts.log.evictedThrough(),
    measured: parts.hints.measured(),
    versions: versions.list(),
  });
  const account = shareRecord(store, {
    id,
    record,
    current,
    async restore(other, isNew) {
      ({ calls, largest, lastUsed } = other);
      parts.ledger.restore(other.ledger);
      parts.hints.restore(other.measured);
      versions.restore(other.versions);
      if (isNew) await parts.log.refresh(other.evictedThrough);
    },
  });
  const count: SessionParts["count"] = ({ time, ...delivered }) => {
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
  /** Returns the value with the id of its result as `recall` takes it. */
  const withOwnId = <Value extends { readonly id: string }>(value: Value): Value =>
    value.id.startsWith(prefix) ? { ...value, id: value.id.slice(prefix.length) } : value;
  const status = (): SessionStatus => {
    const { largest: found, ...rest } = createStatus(id, current(record), parts.ledger);
    return { ...rest, largest: found.map(withOwnId) };
  };
  return {
    id,
    parts: { ...parts, ...account, keyOf: (result: string) => `${prefix}${result}`, count },
    sources: { results: parts.results, versions, offsetTokens: createOffsetTokens(store, groupId, continuations) },
    withOwnId,
    status,
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
  for (const [group, used] of await listLastUses(store)) {
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

/** Loads the record of the session, or creates it. */
async function findRecord(
  store: Store,
  { sessionId: id, budget }: SessionOptions,
  facts: Pick<SessionRecord, "counter" | "started">,
): Promise<{ id: string; record: SessionRecord }> {
  if (id !== undefined && !/^[\w.@:-]{1,200}$/.test(id)) {
    throw invalidArgument(
      `the session id ${JSON.stringify(id)} cannot be used`,
      "Use 1 to 200 letters, digits and . _ - @ :",
    );
  }
  const before = id === undefined ? undefined : await loadRecord(store, id);
  if (id !== undefined && before !== undefined) return { id, record: before };
  const ledger = createLedger(budget);
  const record: SessionRecord = {
    version: 1,
    ...facts,
    calls: 0,
    limits: ledger.limits,
    ledger: ledger.snapshot(),
    evictedThrough: 0,
    largest: [],
    measured: {},
    versions: [],
  };
  if (id !== undefined) {
    await claimRecord(store, id, record);
    return { id, record };
  }
  // Named after its start time. Two sessions of the same millisecond get a number.
  const base = `s-${record.started.replace(/[-:.]/g, "")}`;
  for (let number = 1; ; number += 1) {
    const newId = number === 1 ? base : `${base}-${number}`;
    if (await claimRecord(store, newId, record)) return { id: newId, record };
  }
}

async function openParts(
  options: SessionOptions & { readonly counter: Counter; readonly store: Store; readonly groupId: string },
  id: string,
  record: SessionRecord,
): Promise<Omit<SessionParts, "count" | "keyOf" | "refresh" | "save">> {
  const { budget, counter, format = "json", groupId, hints: mode = "note", now, patience, store } = options;
  const { pageLimit = (): PageLimit => ({}), nextPageName = () => "next_page" } = options;
  const ledger = createLedger(budget, record.ledger);
  const expected = (tool: string, further?: number): number =>
    Math.min(ledger.expected(tool, further), pageLimit().tokens ?? Number.POSITIVE_INFINITY);
  const tools = indexTools(options.tools ?? []);
  return {
    counter,
    tools,
    ledger,
    log: await openWorkLog(store, nameLogStream(id), record.evictedThrough),
    hints: createHints({ mode, tools, ledger, expected, measured: record.measured }),
    results: createStoredResults(store, groupId),
    format,
    now: () => new Date(now()),
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
