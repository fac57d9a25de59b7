/** Calls that are answered from the store, for our own server and for a wrapped one. */
import { ContextError } from "../errors.ts";
import type { ErrorEnvelope, Session, ToolArguments, ToolFailure } from "../session/index.ts";
import { nextPageTool, optionalCount, recallTool, requiredText } from "./page-tools.ts";

/** What a call of a tool comes to: the envelope, and its JSON. */
export interface Answer {
  readonly envelope: { readonly status: "success" | "error" };
  readonly text: string;
}

export async function storedPage(session: Session, args: ToolArguments): Promise<Answer | ToolFailure> {
  const token = requiredText(args.token, nextPageTool, "token");
  if (typeof token !== "string") return token;
  const budget = optionalCount(args.budget, "budget", 1);
  return typeof budget === "object" ? budget : session.nextPage(token, { budget });
}

export async function recall(session: Session, args: ToolArguments): Promise<Answer | ToolFailure> {
  const id = requiredText(args.id, recallTool, "id");
  if (typeof id !== "string") return id;
  const offset = optionalCount(args.offset, "offset", 0);
  if (typeof offset === "object") return offset;
  const budget = optionalCount(args.budget, "budget", 1);
  return typeof budget === "object" ? budget : session.recall(id, offset, { budget });
}

/** What goes wrong is an answer as well; only a bug throws. */
export async function settle(call: () => Promise<Answer | ToolFailure>): Promise<Answer> {
  try {
    const answer = await call();
    return "code" in answer ? failed(answer) : answer;
  } catch (error) {
    if (error instanceof ContextError) return failed(error);
    throw error;
  }
}

function failed({ code, message, hint }: ToolFailure): Answer {
  const error = hint === undefined ? { code, message } : { code, message, hint };
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
