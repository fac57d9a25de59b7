import type { McpServerFactory, ServerContext, Tool } from "@modelcontextprotocol/server";
import type { BudgetedTool, ToolSchema } from "../../session/index.ts";
import { messageOf } from "../../text/index.ts";
import { settle, toCallResult } from "../call-answer.ts";
import { budgetStatusTool, nextPageTool, recallTool } from "../page-tools.ts";
import { type Answering, answerCall } from "./answer-call.ts";
import { clientInSession, sessionHeader } from "./http-clients.ts";
import { rootsOfRequest } from "./http-roots.ts";

export interface ServerParts {
  readonly version: string;
  readonly tools: readonly BudgetedTool[];
  /** Answers in the client's session, and within what is known of it. The session is opened by the first call of a tool: a client that
   *  only looks at the list leaves no trace. */
  readonly asClient: <Result>(
    client: Asking,
    answer: (answering: Answering) => Promise<Result>,
  ) => Promise<Result>;
  /** Whether the client's roots say which directory is read. */
  readonly asksRoots: boolean;
  /** The tools' definitions tell the budget, and change with it. */
  readonly hasHints: boolean;
  log(text: string): void;
}

/** Who asks, as far as that was said. */
export interface Asking {
  /** Over HTTP. */
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** Addresses; undefined where the client offers none. */
  readonly roots: readonly string[] | undefined;
}

/** Makes servers: one for each connection, or over HTTP for each request. */
export async function createServerFactory(parts: ServerParts): Promise<McpServerFactory> {
  const library = await import("@modelcontextprotocol/server");
  const { tools, instructions } = servedContext(parts.tools);
  return ({ era, requestInfo }) => {
    const told = clientInSession(requestInfo?.headers.get(sessionHeader));
    const server = new library.Server(
      { name: "plimsoll", title: "Plimsoll", version: parts.version },
      { capabilities: { tools: parts.hasHints ? { listChanged: true } : {} }, instructions },
    );
    const nameIn = ({ mcpReq }: ServerContext): string | undefined => {
      // Of revision 2026-07-28, whose types say nothing about what is in it.
      const info = (mcpReq.envelope as Envelope)?.[library.CLIENT_INFO_META_KEY] as
        | { name?: string }
        | undefined;
      return info?.name ?? server.getClientVersion()?.name ?? told?.name;
    };
    const rootsIn = rootsReader(server, { library, era, parts, isHttp: requestInfo !== undefined });
    const askingIn = async (context: ServerContext): Promise<Asking | "must ask"> => {
      const roots = await rootsIn(context);
      return roots === "must ask" ? roots : { id: told?.id, name: nameIn(context), roots };
    };
    server.setRequestHandler("tools/list", async (_request, context) => {
      const asking = parts.hasHints ? await askingIn(context) : "must ask";
      if (asking === "must ask") return { tools };
      const hinted = parts.asClient(asking, async ({ session }) => listTools(session.toolSchemas()));
      // Where there is no directory to read, each call says so: the list is the usual one.
      return { tools: await hinted.catch(() => tools) };
    });
    server.setRequestHandler("tools/call", async ({ params }, context) => {
      const asking = await askingIn(context);
      if (asking === "must ask") {
        const { inputRequired } = library;
        return inputRequired({ inputRequests: { [rootsKey]: inputRequired.listRoots() } });
      }
      const called = { name: params.name, args: params.arguments ?? {}, signal: context.mcpReq.signal };
      const answer = () => parts.asClient(asking, (answering) => answerCall(answering, called));
      const result = toCallResult(await settle(answer));
      // Over HTTP there may be nobody to tell.
      if (parts.hasHints) await server.sendToolListChanged().catch(() => {});
      return result;
    });
    return server;
  };
}

type Library = typeof import("@modelcontextprotocol/server");
type Envelope = Readonly<Record<string, unknown>> | undefined;

const rootsKey = "roots";
/** A client that offers roots and does not tell them is served without. */
const mostRootsMs = 3_000;

interface RootsReaderOptions {
  readonly library: Library;
  readonly era: "legacy" | "modern";
  readonly isHttp: boolean;
  readonly parts: Pick<ServerParts, "asksRoots" | "log">;
}

/** Reads the roots that the client of a request offers. Revision 2026-07-28 lets a server ask only by an answer that wants more input:
 *  `must ask`. Over HTTP each request has a server of its own, and what is older is asked before (`http-roots.ts`). */
function rootsReader(
  server: InstanceType<Library["Server"]>,
  { library, era, isHttp, parts }: RootsReaderOptions,
): (context: ServerContext) => Promise<readonly string[] | undefined | "must ask"> {
  if (!parts.asksRoots) return async () => undefined;
  if (isHttp && era === "legacy") return async () => rootsOfRequest.getStore();
  let known: Promise<readonly string[] | undefined> | undefined;
  if (era === "legacy") {
    server.setNotificationHandler("notifications/roots/list_changed", () => {
      known = undefined;
    });
    const ask = async (): Promise<readonly string[] | undefined> => {
      if (server.getClientCapabilities()?.roots === undefined) return undefined;
      try {
        return addressesOf(await server.listRoots(undefined, { timeout: mostRootsMs }));
      } catch (error) {
        parts.log(`the client offers roots and does not tell them: ${messageOf(error)}`);
        return undefined;
      }
    };
    return () => {
      known ??= ask();
      return known;
    };
  }
  return async ({ mcpReq }) => {
    const capabilities = (mcpReq.envelope as Envelope)?.[library.CLIENT_CAPABILITIES_META_KEY] as Envelope;
    if (capabilities?.roots === undefined) return undefined;
    const given = library.inputResponse(mcpReq.inputResponses, rootsKey);
    if (given.kind === "roots") known = Promise.resolve(addressesOf(given));
    // Over HTTP the next request has another server: nothing tells its client from others.
    return known ?? (mcpReq.inputResponses === undefined ? "must ask" : undefined);
  };
}

function addressesOf({ roots }: { readonly roots: readonly { readonly uri: string }[] }): string[] {
  return roots.map(({ uri }) => uri);
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
