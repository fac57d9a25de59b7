import type { Session, ToolSchema } from "../../session/index.ts";
import { type Answer, settle, toCallResult } from "../call-answer.ts";
import { isModern, isObject, type RpcMessage, type RpcObject, renderAnswer } from "../lines/rpc-message.ts";
import { nextPage, nextPageTool, recall } from "../page-tools.ts";
import type { Background } from "./background.ts";
import { errorField } from "./itemize-result.ts";
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
  const answer = async (
    tool: ToolSchema,
    message: RpcMessage & { readonly id: string },
  ): Promise<string | undefined> => {
    const { id } = message;
    underWay.add(id);
    const args = argsOf(message);
    const page = tool === nextPageTool ? nextPage : recall;
    // What passed before the call can be recalled by it.
    await background.settled();
    const found = await settle(async () => {
      const delivered = await page(session, args);
      tools.gave(delivered);
      return delivered;
    });
    return underWay.delete(id) ? renderAnswer(id, { result: resultOf(found, message) }) : undefined;
  };
  return {
    take(message) {
      const { id, cancels, method, params } = message;
      if (cancels !== undefined) return underWay.delete(cancels) ? Promise.resolve(undefined) : undefined;
      if (id === undefined || method !== "tools/call") return undefined;
      const tool = tools.find(String(params?.name), argsOf(message));
      return tool === undefined ? undefined : answer(tool, { ...message, id });
    },
  };
}

export function argsOf({ params }: RpcMessage): RpcObject {
  return isObject(params?.arguments) ? params.arguments : {};
}

function resultOf(found: Answer, request: RpcMessage): object {
  const result = toCallResult(found);
  const { data } = result.structuredContent;
  return {
    ...result,
    ...(isObject(data) && data[errorField] === true ? { isError: true } : {}),
    ...(isModern(request) ? { resultType: "complete" } : {}),
  };
}
