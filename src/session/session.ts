import type { CallShare, LedgerTier, ModelView } from "../budget/index.ts";
import { didYouMean } from "../text/index.ts";
import type { Delivered } from "./envelope.ts";
import type { ToolSchema } from "./hints.ts";
import { beginCall, type Delivery, deliver, evict } from "./results.ts";
import type { SessionOptions } from "./session-options.ts";
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
import { type LiveSession, openLiveSession } from "./state/live-session.ts";
import {
  isFailure,
  type ToolArguments,
  type ToolCall,
  type ToolFailure,
  type ToolResult,
} from "./tool/budgeted-tool.ts";
import { budgetParameter, readArguments, type ToolParameters } from "./tool/read-arguments.ts";
import { viewWorkLog, type WorkLogView, type WorkLogViewName } from "./work-log/views.ts";

/** One agent run under one budget. Content problems come back as error envelopes; only the store makes a call reject. */
export interface Session {
  readonly id: string;
  call(name: string, args?: ToolArguments | null, options?: CallOptions): Promise<Delivered>;
  /** A call of a tool that is not ours begins. Calls that run side by side share the tool tier: pass it on to `deliver`, or end it. */
  beginCall(tool: string): CallShare;
  /** For a result that is there already, of a tool that is not ours: all of it is stored, and paged by `nextPage`. */
  deliver(result: ToolResult, call: GivenCall): Promise<Delivered>;
  /** From the store; from the tool where the token asks for items behind those of its page, or names a call (`unique`). */
  nextPage(token: string, options?: CallOptions & PageOption): Promise<Delivered>;
  /** A delivered result again, from the store; from `offset` on, or as its page was. */
  recall(id: string, options?: RecallOptions): Promise<Delivered>;
  /** An answer to a call that cannot be made: within its share, counted and logged as any other. */
  refuse(failure: ToolFailure, call: Pick<GivenCall, "tool" | "args">): Promise<Delivered>;
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

export interface PageOption {
  /** Of the page, within what the session allots to a call. What a model asks for is in the arguments, as `budget`. */
  readonly maxTokens?: number | undefined;
}

export type CallOptions = Partial<ToolCall>;

export interface RecallOptions extends PageOption {
  /** Of the first item. */
  readonly offset?: number | undefined;
}

export interface GivenCall extends PageOption {
  readonly tool: string;
  readonly args: ToolArguments;
  /** Where the model gets the result as it is, and not the page: what it counts. */
  readonly shownTokens?: number | undefined;
  /** Of `beginCall`. */
  readonly share?: CallShare | undefined;
}

export async function createSession(options: SessionOptions): Promise<Session> {
  const live = await openLiveSession(options);
  const { parts, offsetTokens } = live;
  const { ledger, log, hints, results } = parts;
  const sources = { results, offsetTokens };
  const tools = [...parts.tools.values()];
  const callTool: Session["call"] = (tool, given, call = {}) => {
    const args = given ?? {};
    const open = (id: string) => runTool(live, { id, tool, args }, call);
    return deliverCall(live, { tool, args, isDirectCall: true, open }, { budget: args.budget });
  };
  return {
    id: live.id,
    call: callTool,
    beginCall: (tool) => beginCall(parts, tool),
    deliver: (result, { tool, args, maxTokens, shownTokens, share }) => {
      const open = (id: string) => openGivenResult(result, { id, tool, args });
      return deliverCall(live, { tool, args, shownTokens, share, open }, { maxTokens });
    },
    async nextPage(token, { maxTokens, ...call } = {}) {
      // What is wrong with the stored result is told by the delivery.
      const again = await continuedCall(sources, token).catch(() => undefined);
      const budget = maxTokens === undefined ? {} : { budget: maxTokens };
      if (again !== undefined && !isFailure(again)) {
        return callTool(again.tool, { ...again.args, ...budget }, call);
      }
      const open = async () => again ?? openToken(sources, token);
      const args = { token, ...budget };
      return deliverCall(live, { tool: "next_page", args, open }, { maxTokens });
    },
    recall: (id, { offset, maxTokens } = {}) => {
      const position = offset === undefined ? undefined : ({ at: "items", offset } as const);
      const open = () => openStored(sources, id, position);
      const args = { id, offset, budget: maxTokens };
      return deliverCall(live, { tool: "recall", args, open }, { offset, maxTokens });
    },
    refuse: (failure, call) =>
      deliverCall(live, { ...call, open: async () => failure }, { budget: call.args.budget }),
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

/** What a model or a program may say of a page. */
const pageParameters = {
  budget: budgetParameter,
  maxTokens: budgetParameter,
  offset: { type: "integer", minimum: 0, description: "Items to skip." },
} as const satisfies ToolParameters;

/** A budget that is none is told, not taken for none. */
function deliverCall(
  { parts }: LiveSession,
  delivery: Delivery,
  wanted: { readonly [Name in keyof typeof pageParameters]?: unknown },
): Promise<Delivered> {
  const read = readArguments(pageParameters, wanted);
  if ("failure" in read) return deliver(parts, { ...delivery, open: async () => read.failure });
  const { budget, maxTokens = budget } = read.values;
  return deliver(parts, { ...delivery, maxTokens });
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
