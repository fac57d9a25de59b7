/** What of a JSON-RPC message matters to whoever only passes it on. */
export interface RpcMessage {
  readonly id?: RpcId | undefined;
  readonly method?: string | undefined;
  readonly params?: RpcObject | undefined;
  readonly result?: RpcObject | undefined;
}

export type RpcId = string | number;
export type RpcObject = Readonly<Record<string, unknown>>;

export interface ParsedLine {
  readonly text: string;
  readonly messages: readonly RpcMessage[];
  /** One revision of the protocol allows several messages in a line. */
  readonly isBatch: boolean;
}

/** Undefined for what is no message, or longer than a string can be. */
export function parseLine(line: Buffer): ParsedLine | undefined {
  try {
    const text = line.toString("utf8");
    const value: unknown = JSON.parse(text);
    const isBatch = Array.isArray(value);
    const messages = (isBatch ? value : [value]).map(readMessage);
    return { text, messages, isBatch };
  } catch {
    return undefined;
  }
}

/** What is not as it should be is left out: whoever gets the message may judge it, we do not. */
function readMessage(value: unknown): RpcMessage {
  if (!isObject(value)) return {};
  const { id, method, params, result } = value;
  return {
    id: typeof id === "string" || typeof id === "number" ? id : undefined,
    method: typeof method === "string" ? method : undefined,
    params: isObject(params) ? params : undefined,
    result: isObject(result) ? result : undefined,
  };
}

export function isObject(value: unknown): value is RpcObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** 1 and "1" are two ids. */
export function idKey(id: unknown): string {
  return JSON.stringify(id) ?? "";
}

/** The client's name, where a message tells it: in the handshake, or from revision 2026-07-28 on with each request. */
export function clientNameOf({ method, params }: RpcMessage): string | undefined {
  const meta = params?._meta;
  const told =
    method === "initialize" ? params?.clientInfo : isObject(meta) ? meta[clientInfoKey] : undefined;
  return isObject(told) && typeof told.name === "string" ? told.name : undefined;
}

const clientInfoKey = "io.modelcontextprotocol/clientInfo";

/** From revision 2026-07-28 on every request names its revision, and every result says that it is one. */
export function isModern({ params }: RpcMessage): boolean {
  const meta = params?._meta;
  return isObject(meta) && "io.modelcontextprotocol/protocolVersion" in meta;
}
