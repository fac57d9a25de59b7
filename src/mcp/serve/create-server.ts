import type { McpServerFactory, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { BudgetedTool } from "../../session/index.ts";
import { settle, toCallResult } from "../page-calls.ts";
import { budgetStatusTool, nextPageTool, type PageTool, recallTool } from "../page-tools.ts";
import { type Answering, answerCall } from "./answer-call.ts";

export interface ServerParts {
  readonly version: string;
  readonly tools: readonly BudgetedTool[];
  /** Told by each request that says who asks. */
  readonly clientIs: (name: string) => void;
  /** Opened by the first call of a tool: a client that only looks at the list leaves no trace. */
  readonly answering: () => Promise<Answering>;
}

/** Makes servers that share one session: one for each connection, or over HTTP for each request. */
export async function createServerFactory(parts: ServerParts): Promise<McpServerFactory> {
  const { Server, CLIENT_INFO_META_KEY } = await import("@modelcontextprotocol/server");
  const tools = listTools(parts.tools);
  return () => {
    const server = new Server(
      { name: "plimsoll", title: "Plimsoll", version: parts.version },
      { capabilities: { tools: {} }, instructions },
    );
    const clientName = ({ mcpReq }: ServerContext): string | undefined => {
      // Of revision 2026-07-28, whose types say nothing about what is in it.
      const told = (mcpReq.envelope as Record<string, { name?: string }> | undefined)?.[CLIENT_INFO_META_KEY];
      return told?.name ?? server.getClientVersion()?.name;
    };
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", async ({ params }, context) => {
      const name = clientName(context);
      if (name !== undefined) parts.clientIs(name);
      const called = { name: params.name, args: params.arguments ?? {}, signal: context.mcpReq.signal };
      return toCallResult(await settle(async () => answerCall(await parts.answering(), called)));
    });
    return server;
  };
}

/** Clients may put it before every conversation, so it is short. */
const instructions =
  "Results come in pages within a token budget. Where data.truncated is true, the rest is a call away: pass " +
  "data.continuation_token to next_page, or narrow the question. budget_status tells what is left.";

/** The same from call to call and from session to session: a list that changes breaks the provider's prompt cache. */
function listTools(tools: readonly BudgetedTool[]): Tool[] {
  const pageTools: readonly PageTool[] = [nextPageTool, recallTool, budgetStatusTool];
  return [...tools, ...pageTools].map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema: { ...inputSchema } as Tool["inputSchema"],
    annotations: { readOnlyHint: true, openWorldHint: false },
  }));
}
