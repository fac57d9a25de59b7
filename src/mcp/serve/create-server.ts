import type { McpServerFactory, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { BudgetedTool, ToolSchema } from "../../session/index.ts";
import { settle, toCallResult } from "../call-answer.ts";
import { budgetStatusTool, nextPageTool, recallTool } from "../page-tools.ts";
import { type Answering, answerCall } from "./answer-call.ts";
import { clientInSession, sessionHeader } from "./http-clients.ts";

export interface ServerParts {
  readonly version: string;
  readonly tools: readonly BudgetedTool[];
  /** Answers in the client's session, and within what is known of it. The session is opened by the first call of a tool: a client that
   *  only looks at the list leaves no trace. */
  readonly asClient: <Result>(
    client: Asking,
    answer: (answering: Answering) => Promise<Result>,
  ) => Promise<Result>;
  /** The tools' definitions tell the budget, and change with it. */
  readonly hasHints: boolean;
}

/** Who asks, as far as that was said. */
export interface Asking {
  /** Over HTTP. */
  readonly id: string | undefined;
  readonly name: string | undefined;
}

/** Makes servers: one for each connection, or over HTTP for each request. */
export async function createServerFactory(parts: ServerParts): Promise<McpServerFactory> {
  const { Server, CLIENT_INFO_META_KEY } = await import("@modelcontextprotocol/server");
  const { tools, instructions } = servedContext(parts.tools);
  return ({ requestInfo }) => {
    const told = clientInSession(requestInfo?.headers.get(sessionHeader));
    const server = new Server(
      { name: "plimsoll", title: "Plimsoll", version: parts.version },
      { capabilities: { tools: parts.hasHints ? { listChanged: true } : {} }, instructions },
    );
    const asking = ({ mcpReq }: ServerContext): Asking => {
      // Of revision 2026-07-28, whose types say nothing about what is in it.
      const info = (mcpReq.envelope as Record<string, { name?: string }> | undefined)?.[CLIENT_INFO_META_KEY];
      return { id: told?.id, name: info?.name ?? server.getClientVersion()?.name ?? told?.name };
    };
    const hinted = (client: Asking) =>
      parts.asClient(client, async ({ session }) => listTools(session.toolSchemas()));
    server.setRequestHandler("tools/list", async (_request, context) => ({
      tools: parts.hasHints ? await hinted(asking(context)) : tools,
    }));
    server.setRequestHandler("tools/call", async ({ params }, context) => {
      const called = { name: params.name, args: params.arguments ?? {}, signal: context.mcpReq.signal };
      const answer = () => parts.asClient(asking(context), (answering) => answerCall(answering, called));
      const result = toCallResult(await settle(answer));
      // Over HTTP there may be nobody to tell.
      if (parts.hasHints) await server.sendToolListChanged().catch(() => {});
      return result;
    });
    return server;
  };
}

/** What a client has in its context before it calls any tool. */
export function servedContext(tools: readonly BudgetedTool[]): { tools: Tool[]; instructions: string } {
  return { tools: listTools(tools), instructions };
}

/** Clients may put it before every conversation, so it is short. */
const instructions =
  "Results come in pages within a token budget. Where data.truncated is true, the rest is a call away: pass " +
  "data.continuation_token to next_page, or narrow the question. budget_status tells what is left.";

/** Without hints the same from call to call and from session to session: a list that changes breaks the provider's prompt cache. */
function listTools(tools: readonly ToolSchema[]): Tool[] {
  return [...tools, nextPageTool, recallTool, budgetStatusTool].map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema: { ...inputSchema } as Tool["inputSchema"],
    annotations: { readOnlyHint: true, openWorldHint: false },
  }));
}
