/** Calls that are answered from the store, for our own server and for a wrapped one. */
import { ContextError } from "../errors.ts";
import {
  type Delivered,
  type ErrorEnvelope,
  type Session,
  shorten,
  type ToolArguments,
  type ToolFailure,
} from "../session/index.ts";
import { nextPageTool, optionalCount, type PageTool, recallTool, requiredText } from "./page-tools.ts";

/** What a call of a tool comes to: the envelope, and its JSON. */
export interface Answer {
  readonly envelope: { readonly status: "success" | "error" };
  readonly text: string;
}

export async function nextPage(
  session: Session,
  args: ToolArguments,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<Delivered> {
  const refuse = (failure: ToolFailure) => refuseCall(session, failure, { tool: nextPageTool, args });
  const token = requiredText(args.token, nextPageTool, "token");
  if (typeof token !== "string") return refuse(token);
  const budget = optionalCount(args.budget, "budget", 1);
  return typeof budget === "object" ? refuse(budget) : session.nextPage(token, { budget, signal });
}

export async function recall(session: Session, args: ToolArguments): Promise<Delivered> {
  const refuse = (failure: ToolFailure) => refuseCall(session, failure, { tool: recallTool, args });
  const id = requiredText(args.id, recallTool, "id");
  if (typeof id !== "string") return refuse(id);
  const offset = optionalCount(args.offset, "offset", 0);
  if (typeof offset === "object") return refuse(offset);
  const budget = optionalCount(args.budget, "budget", 1);
  return typeof budget === "object" ? refuse(budget) : session.recall(id, offset, { budget });
}

function refuseCall(
  session: Session,
  failure: ToolFailure,
  { tool, args }: { tool: PageTool; args: ToolArguments },
): Promise<Delivered> {
  const budget = optionalCount(args.budget, "budget", 1);
  return session.refuse(failure, {
    tool: tool.name,
    args,
    budget: typeof budget === "number" ? budget : undefined,
  });
}

/** What goes wrong with the store is an answer as well; only a bug throws. */
export async function settle(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ContextError) return failed(error);
    throw error;
  }
}

function failed({ code, message, hint }: ToolFailure): Answer {
  const told = { code, message: shorten(message, 600) };
  const error = hint === undefined ? told : { ...told, hint: shorten(hint, 300) };
  const envelope: ErrorEnvelope = { status: "error", error };
  return { envelope, text: JSON.stringify(envelope) };
}

/** The same in both forms: clients show the model one or the other, and each must tell how to go on. */
export function toCallResult({ envelope, text }: Answer): CallResult {
  const result = { content: [{ type: "text" as const, text }], structuredContent: { ...envelope } };
  return envelope.status === "error" ? { ...result, isError: true } : result;
}

export type CallResult = {
  content: { type: "text"; text: string }[];
  structuredContent: Record<string, unknown>;
  isError?: true;
};
