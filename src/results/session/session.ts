import type { LedgerTier } from "../../core/budget/index.ts";
import { didYouMean } from "../../core/text/index.ts";
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
import type { Delivered } from "./envelope.ts";
import type { ToolSchema } from "./hints.ts";
import type { ModelView } from "./ledger.ts";
import { type LiveSession, openLiveSession, type SessionOptions } from "./live-session.ts";
import type { LogEntry } from "./log-entry.ts";
import { createDeliveries, type Deliveries, type Delivery } from "./results.ts";
import type { SessionStatus } from "./session-report.ts";
import type { Opened, Origin } from "./sources.ts";
import { viewWorkLog, type WorkLogView, type WorkLogViewName } from "./work-log.ts";

/** One agent run with one token budget. Problems with content come back as error envelopes. A call rejects only if the
 *  store fails. `ToolName` is the union of the names of the session's tools. */
export interface Session<ToolName extends string = string> {
  readonly id: string;
  /** Runs a tool and returns the first page of its result. */
  call(name: ToolName, args?: ToolArguments | null, options?: CallOptions): Promise<Delivered>;
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
  toolSchemas(): readonly ToolSchema[];
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
  const live = await openLiveSession(options);
  const { parts, sources } = live;
  const { ledger, log, hints } = parts;
  const deliveries = createDeliveries(parts);
  const addOwnId = (entry: LogEntry): LogEntry => ({ ...entry, id: live.shownId(entry.id) });
  const callTool = (
    tool: string,
    args: ToolArguments,
    { isContinued, note, ...call }: CallOptions & Pick<Delivery, "isContinued">,
  ) => {
    const open = (id: string) => runTool(live, { id, tool, args }, call);
    const delivery = { tool, args, note, isDirectCall: true, isContinued, open };
    return deliverCall(deliveries, delivery, { budget: args.budget });
  };
  return {
    id: live.id,
    call: (tool, args, call = {}) => callTool(tool, args ?? {}, call),
    beginCall: deliveries.beginCall,
    deliver: (result, { maxTokens, ...call }) => {
      const open = (id: string) => sources.given(result, { id, ...call });
      return deliverCall(deliveries, { ...call, open }, { maxTokens });
    },
    async nextPage(token, { maxTokens, ...call } = {}) {
      // The delivery reports what is wrong with a stored result.
      const again = await sources.continuedCall(token).catch(() => undefined);
      const budget = maxTokens === undefined ? {} : { budget: maxTokens };
      if (again !== undefined && !isFailure(again)) {
        return callTool(again.tool, { ...again.args, ...budget }, { ...call, isContinued: true });
      }
      const open = async () => again ?? sources.token(token);
      const args = { token, ...budget };
      return deliverCall(deliveries, { tool: "next_page", args, note: call.note, open }, { maxTokens });
    },
    recall: (id, { offset, maxTokens } = {}) => {
      const position = offset === undefined ? undefined : ({ at: "items", offset } as const);
      const open = () => sources.stored(id, position);
      const args = { id, offset, budget: maxTokens };
      return deliverCall(deliveries, { tool: "recall", args, open }, { offset, maxTokens });
    },
    readLines: (id) => sources.lines(id, (tool) => parts.tools.get(tool)?.renderText),
    refuse: (failure, call) =>
      deliverCall(deliveries, { ...call, open: async () => failure }, { budget: call.args.budget }),
    async record(tier, tokens) {
      ledger.record(tier, tokens, options.systemPart);
      await live.save();
    },
    async beginTurn() {
      await live.refresh();
      ledger.beginTurn();
      deliveries.evict();
      await live.save();
    },
    async reset() {
      await live.refresh();
      ledger.reset();
      log.clear();
      deliveries.evict();
      await live.save();
    },
    refresh: live.refresh,
    status: live.status,
    forModel: ledger.forModel,
    workLog: (view = "recent") => viewWorkLog({ ...log, entries: () => log.entries().map(addOwnId) }, view),
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
  { deliver }: Deliveries,
  delivery: Delivery,
  wanted: { readonly [Name in keyof typeof pageParameters]?: unknown },
): Promise<Delivered> {
  const read = readArguments(pageParameters, wanted);
  if ("failure" in read) return deliver({ ...delivery, open: async () => read.failure });
  const { budget, maxTokens = budget } = read.values;
  return deliver({ ...delivery, maxTokens });
}

async function runTool(
  { parts, sources }: LiveSession,
  origin: Origin,
  { signal = new AbortController().signal, timeoutMs }: CallOptions,
): Promise<Opened | ToolFailure> {
  const tool = parts.tools.get(origin.tool);
  if (tool === undefined) {
    const names = [...parts.tools.keys()];
    const hint = didYouMean(origin.tool, names) ?? `The tools are ${names.join(", ")}.`;
    return { code: "unknown_tool", message: `there is no tool ${JSON.stringify(origin.tool)}`, hint };
  }
  const result = await tool.run(parts.hints.withDefaults(tool.name, origin.args), { signal, timeoutMs });
  return isFailure(result) ? result : sources.tool(result, origin);
}
