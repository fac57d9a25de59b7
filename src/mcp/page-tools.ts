/** The tools that MCP adds to whatever it serves: for a page that follows, for an earlier result, for the budget itself. What they take is
 *  checked as with any other tool, and what is wrong with a call is counted as any other answer. */
import {
  budgetParameter,
  type Delivered,
  inputSchemaOf,
  readArguments,
  type Session,
  type ToolArguments,
  type ToolParameters,
  type ToolSchema,
} from "../session/index.ts";
import type { Answer } from "./call-answer.ts";

const nextPageParameters = {
  token: {
    type: "string",
    description: "The continuation_token of the page before, as it is.",
    required: true,
  },
  budget: budgetParameter,
} as const satisfies ToolParameters;

export const nextPageTool: ToolSchema = {
  name: "next_page",
  description:
    "Get the next page of a result that was too large for one: pass its continuation_token. Do not repeat the call that gave it.",
  inputSchema: inputSchemaOf(nextPageParameters),
};

export function nextPage(
  session: Session,
  args: ToolArguments,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<Delivered> {
  const read = readArguments(nextPageParameters, args);
  if ("failure" in read) return session.refuse(read.failure, { tool: nextPageTool.name, args });
  const { token, budget: maxTokens } = read.values;
  return session.nextPage(token, { maxTokens, signal });
}

const recallParameters = {
  id: {
    type: "string",
    description: "The id of the result, as budget_status lists it: r42 of a token r42:offset:100.",
    required: true,
  },
  offset: { type: "integer", minimum: 0, description: "Items to skip." },
  budget: budgetParameter,
} as const satisfies ToolParameters;

export const recallTool: ToolSchema = {
  name: "recall",
  description: "Get an earlier result of this session again, from the store, without running its tool.",
  inputSchema: inputSchemaOf(recallParameters),
};

export function recall(session: Session, args: ToolArguments): Promise<Delivered> {
  const read = readArguments(recallParameters, args);
  if ("failure" in read) return session.refuse(read.failure, { tool: recallTool.name, args });
  const { id, offset, budget: maxTokens } = read.values;
  return session.recall(id, { offset, maxTokens });
}

const budgetStatusParameters = {
  reset: {
    type: "boolean",
    default: false,
    description: "Begin a new account, as for a new conversation. Results stay recallable.",
  },
} as const satisfies ToolParameters;

export const budgetStatusTool: ToolSchema = {
  name: "budget_status",
  description:
    "Show how much of the session's token budget is used and left, and what was done so far (result ids for recall).",
  inputSchema: inputSchemaOf(budgetStatusParameters),
};

export async function budgetStatus(session: Session, args: ToolArguments): Promise<Answer> {
  const read = readArguments(budgetStatusParameters, args);
  if ("failure" in read) return session.refuse(read.failure, { tool: budgetStatusTool.name, args });
  if (read.values.reset) await session.reset();
  const { calls, summary } = session.status();
  const data = { session: session.id, summary, ...session.forModel(), calls, ...session.workLog("recent") };
  const envelope = { status: "success", data } as const;
  return { envelope, text: JSON.stringify(envelope) };
}
