/** What a client sends, as the library takes it. The library drops what is not quite as the protocol has it, without a word, and whoever
 *  asked would wait for ever. */
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { idText, isObject, type RpcObject, renderAnswer, type WrittenValue } from "../lines/rpc-message.ts";

export type ClientMessage =
  | { readonly message: JSONRPCMessage }
  /** `answer`: the line that says so to whoever waits. */
  | { readonly refused: string; readonly answer?: string | undefined };

/** `isTaken`: whether the library takes it for a request or a notification. */
export function readClientMessage(
  written: WrittenValue,
  isTaken: (message: unknown) => boolean,
): ClientMessage {
  const { value } = written;
  if (!isObject(value)) return { refused: "a message on stdin is no object" };
  const message = withShortIds(withoutNulls(value), written);
  // Answers to what the server asked are looked at by the library alone.
  if (!("method" in message) || isTaken(message)) return { message: message as unknown as JSONRPCMessage };
  const answer = message.id === undefined ? undefined : refuse(idText(written, "id") ?? "null");
  return { refused: "a message on stdin is not as JSON-RPC 2.0 has it", answer };
}

/** The line for a message of the server: ids are given back as they came. */
export function renderServerMessage(message: JSONRPCMessage): string {
  const id = "id" in message && typeof message.id === "string" ? message.id : "";
  if (!id.startsWith(longId) || "method" in message) return `${JSON.stringify(message)}\n`;
  const answer = "result" in message ? { result: message.result } : { error: message.error };
  return renderAnswer(id.slice(longId.length), answer);
}

/** Some serializers write null for what is not there. */
function withoutNulls(message: RpcObject): RpcObject {
  return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
}

/** No client's own id begins so. */
const longId = "\u0000number ";

/** The library takes texts and whole numbers up to 2 ** 53: another number, such as a time in nanoseconds, becomes a text. */
function withShortIds(message: RpcObject, written: WrittenValue): RpcObject {
  const { id, params } = message;
  const short = isLong(id) ? { ...message, id: longId + idText(written, "id") } : message;
  if (!isObject(params) || !isLong(params.requestId)) return short;
  return { ...short, params: { ...params, requestId: longId + idText(written, "params", "requestId") } };
}

function isLong(id: unknown): boolean {
  return typeof id === "number" && !Number.isSafeInteger(id);
}

function refuse(id: string): string {
  const message =
    'Invalid Request: it needs jsonrpc "2.0", a method, an id that is a text or a number, an object as params if any, and nothing else.';
  return renderAnswer(id, { error: { code: -32_600, message } });
}
