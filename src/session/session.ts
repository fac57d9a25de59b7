import type { LedgerTier, ModelView } from "../budget/index.ts";
import { didYouMean } from "../text/index.ts";
import {
  isFailure,
  type ToolArguments,
  type ToolCall,
  type ToolFailure,
  type ToolResult,
} from "./budgeted-tool.ts";
import type { Delivered } from "./envelope.ts";
import type { ToolSchema } from "./hints.ts";
import { type Delivery, deliver, evict } from "./results.ts";
import type { SessionStatus } from "./session-report.ts";
import {
  continuedCall,
  type Opened,
  type Origin,
  openGivenResult,
  openStored,
  openToken,
  openToolResult,
} from "./sources.ts";
import { type LiveSession, openLiveSession, type SessionOptions } from "./state/live-session.ts";
import { viewWorkLog, type WorkLogView, type WorkLogViewName } from "./work-log/views.ts";

/** One agent run under one budget. Content problems come back as error envelopes; only the store makes a call reject. */
export interface Session {
  readonly id: string;
  call(name: string, args: ToolArguments, options?: CallOptions): Promise<Delivered>;
  /** For a result that is there already, of a tool that is not ours: all of it is stored, and paged by `nextPage`. */
  deliver(result: ToolResult, call: GivenCall): Promise<Delivered>;
  /** From the store, or where a token of the form `result` asks for more than it has, from the tool. */
  nextPage(token: string, options?: CallOptions & BudgetOption): Promise<Delivered>;
  /** A delivered result again, from the store. */
  recall(id: string, offset?: number, options?: BudgetOption): Promise<Delivered>;
  /** An answer to a call that cannot be made: within its share, counted and logged as any other. */
  refuse(failure: ToolFailure, call: Omit<GivenCall, "shownTokens">): Promise<Delivered>;
  /** What else stands in the model's window. History and tool results the session records by itself. */
  record(tier: Exclude<LedgerTier, "history" | "tool_results">, tokens: number): Promise<void>;
  /** The results so far are history: their compressed entries stand for them now. */
  beginTurn(): Promise<void>;
  /** A new conversation over the same store: nothing is current, the work log is empty, all can be recalled. */
  reset(): Promise<void>;
  status(): SessionStatus;
  /** The account as data for the model, with the warning for its system prompt. */
  forModel(): ModelView;
  workLog(view?: WorkLogViewName): WorkLogView;
  toolSchemas(): readonly ToolSchema[];
}

export interface BudgetOption {
  /** Tokens that the page may have at most. */
  readonly budget?: number | undefined;
}

export type CallOptions = Partial<ToolCall>;

export interface GivenCall extends BudgetOption {
  readonly tool: string;
  readonly args: ToolArguments;
  /** Where the model gets the result as it is, and not the page: what it counts. */
  readonly shownTokens?: number | undefined;
}

export async function createSession(options: SessionOptions): Promise<Session> {
  const live = await openLiveSession(options);
  const { parts, offsetTokens } = live;
  const { ledger, log, hints, results } = parts;
  const sources = { results, offsetTokens };
  const tools = [...parts.tools.values()];
  const callTool: Session["call"] = (tool, args, call = {}) =>
    deliverCall(live, { tool, args, isOwnCall: true, open: (id) => runTool(live, { id, tool, args }, call) });
  return {
    id: live.id,
    call: callTool,
    deliver: (result, { tool, args, budget, shownTokens }) =>
      deliverCall(live, {
        tool,
        args: { ...args, budget },
        isOwnCall: false,
        shownTokens,
        open: (id) => openGivenResult(result, { id, tool, args }),
      }),
    async nextPage(token, { budget, ...call } = {}) {
      // What is wrong with the stored result is told by the delivery.
      const again = await continuedCall(sources, token).catch(() => undefined);
      if (again !== undefined && !isFailure(again)) {
        return callTool(again.tool, { ...again.args, ...(budget === undefined ? {} : { budget }) }, call);
      }
      return deliverCall(live, {
        tool: "next_page",
        args: { token, budget },
        isOwnCall: false,
        open: async () => again ?? openToken(sources, token),
      });
    },
    recall: (id, offset, { budget } = {}) =>
      deliverCall(live, {
        tool: "recall",
        args: { id, offset, budget },
        isOwnCall: false,
        open: () => openStored(sources, id, offset === undefined ? undefined : { at: "items", offset }),
      }),
    refuse: (failure, call) => deliver(parts, { ...call, isOwnCall: false, open: async () => failure }),
    async record(tier, tokens) {
      ledger.record(tier, tokens);
      await live.save();
    },
    async beginTurn() {
      ledger.beginTurn();
      evict(parts, 0);
      await live.save();
    },
    async reset() {
      ledger.releaseResults(ledger.snapshot().results.map(([id]) => id));
      ledger.record("user", 0);
      log.clear();
      evict(parts, 0);
      await live.save();
    },
    status: live.status,
    forModel: ledger.forModel,
    workLog: (view = "recent") => viewWorkLog(log, view),
    toolSchemas: () => hints.schemas(tools),
  };
}

/** A budget that is none is told, not taken for none. */
function deliverCall({ parts }: LiveSession, delivery: Omit<Delivery, "budget">): Promise<Delivered> {
  const { budget } = delivery.args;
  if (budget === undefined || (Number.isSafeInteger(budget) && Number(budget) > 0)) {
    return deliver(parts, { ...delivery, budget: budget as number | undefined });
  }
  const message = `budget is ${JSON.stringify(budget)}`;
  const failure = { code: "invalid_argument", message, hint: "Use a whole number of tokens from 1." };
  return deliver(parts, { ...delivery, open: async () => failure });
}

async function runTool(
  { parts, versions, offsetTokens }: LiveSession,
  origin: Origin,
  { signal = new AbortController().signal, timeoutMs }: CallOptions,
): Promise<Opened | ToolFailure> {
  const tool = parts.tools.get(origin.tool);
  if (tool === undefined) return unknownTool(origin.tool, [...parts.tools.keys()]);
  const result = await tool.run(origin.args, { signal, timeoutMs });
  await offsetTokens.refresh();
  return isFailure(result) ? result : openToolResult(result, origin, { versions, offsetTokens });
}

function unknownTool(name: string, names: readonly string[]): ToolFailure {
  const hint = didYouMean(name, names) ?? `The tools are ${names.join(", ")}.`;
  return { code: "unknown_tool", message: `there is no tool ${JSON.stringify(name)}`, hint };
}
