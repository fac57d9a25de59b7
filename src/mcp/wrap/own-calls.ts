import type { Session } from "../../session/index.ts";
import { idKey, isModern, isObject, type RpcMessage, type RpcObject } from "../lines/rpc-message.ts";
import { nextPage, recall, settle, toCallResult } from "../page-calls.ts";
import { nextPageTool, type PageTool } from "../page-tools.ts";
import type { Background } from "./background.ts";
import type { OwnTools } from "./own-tools.ts";

/** Calls of our tools, which never reach the wrapped server. */
export interface OwnCalls {
  /** The line that answers the message, or nothing where the client took the call back. Undefined: the message is not for us. */
  take(message: RpcMessage): Promise<string | undefined> | undefined;
}

export interface OwnCallsOptions {
  readonly session: Session;
  readonly tools: OwnTools;
  readonly background: Background;
}

export function createOwnCalls({ session, tools, background }: OwnCallsOptions): OwnCalls {
  const underWay = new Set<string>();
  const answer = async (tool: PageTool, message: RpcMessage): Promise<string | undefined> => {
    const key = idKey(message.id);
    underWay.add(key);
    const args = argsOf(message);
    const page = tool === nextPageTool ? nextPage : recall;
    // What passed before the call can be recalled by it.
    await background.settled();
    const found = await settle(async () => {
      const delivered = await page(session, args);
      tools.gave(delivered);
      return delivered;
    });
    return underWay.delete(key) ? renderAnswer(message, toCallResult(found)) : undefined;
  };
  return {
    take(message) {
      const { id, method, params } = message;
      if (method === "notifications/cancelled") {
        return underWay.delete(idKey(params?.requestId)) ? Promise.resolve(undefined) : undefined;
      }
      if (id === undefined || method !== "tools/call") return undefined;
      const tool = tools.find(String(params?.name), argsOf(message));
      return tool === undefined ? undefined : answer(tool, message);
    },
  };
}

export function argsOf({ params }: RpcMessage): RpcObject {
  return isObject(params?.arguments) ? params.arguments : {};
}

function renderAnswer(request: RpcMessage, result: object): string {
  const complete = isModern(request) ? { resultType: "complete" } : {};
  return `${JSON.stringify({ jsonrpc: "2.0", id: request.id, result: { ...result, ...complete } })}\n`;
}
