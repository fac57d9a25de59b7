import type { Delivered, Session, ToolArguments, ToolFailure } from "../../session/index.ts";
import { type Answer, recall, settle, storedPage } from "../page-calls.ts";
import { budgetStatusTool, nextPageTool, optionalCount, recallTool } from "../page-tools.ts";
import type { Continuations } from "./continuations.ts";

export interface Answering {
  readonly session: Session;
  readonly continuations: Continuations;
}

export interface CalledTool {
  readonly name: string;
  readonly args: ToolArguments;
  readonly signal: AbortSignal;
}

/** Runs a tool of the session, or one that gives pages. */
export function answerCall(answering: Answering, called: CalledTool): Promise<Answer> {
  return settle(async () => {
    switch (called.name) {
      case nextPageTool.name:
        return nextPage(answering, called);
      case recallTool.name:
        return recall(answering.session, called.args);
      case budgetStatusTool.name:
        return budgetStatus(answering.session, called.args);
      default:
        return callTool(answering, called);
    }
  });
}

async function nextPage(answering: Answering, { args, signal }: CalledTool): Promise<Answer | ToolFailure> {
  const token = String(args.token);
  const offset = /^offset:(\d{1,15})$/.exec(token)?.[1];
  if (offset === undefined) return storedPage(answering.session, args);
  const budget = optionalCount(args.budget, "budget", 1);
  if (typeof budget === "object") return budget;
  const call = await answering.continuations.find(token);
  if ("code" in call) return call;
  const again = { ...call.args, offset: Number(offset), ...(budget === undefined ? {} : { budget }) };
  return callTool(answering, { name: call.tool, args: again, signal });
}

async function callTool(
  { session, continuations }: Answering,
  { name, args, signal }: CalledTool,
): Promise<Delivered> {
  const delivered = await session.call(name, args, { signal });
  const token = tokenOf(delivered);
  if (token?.startsWith("offset:")) {
    const { offset: _, ...rest } = args;
    await continuations.remember(token, { tool: name, args: rest });
  }
  return delivered;
}

function tokenOf({ envelope }: Delivered): string | undefined {
  return envelope.status === "success" ? envelope.data.continuation_token : undefined;
}

async function budgetStatus(session: Session, args: ToolArguments): Promise<Answer> {
  if (args.reset === true) await session.reset();
  const { calls, summary } = session.status();
  const data = { session: session.id, summary, ...session.forModel(), calls, ...session.workLog("recent") };
  const envelope = { status: "success", data } as const;
  return { envelope, text: JSON.stringify(envelope) };
}
